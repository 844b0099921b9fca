"""`heuristics` and `autotune`."""

import pytest

import naiad as triton
import naiad.language as tl

np = pytest.importorskip("numpy")


def kernel(ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    pass


class Recorder:
    """A jit function that notes its launches instead of running them."""

    arg_names = ["ptr", "n", "BLOCK", "EVEN"]
    __name__ = "kernel"

    def __init__(self):
        self.launches = []

    def run(self, *args, grid, warmup=False, **kwargs):
        self.launches.append(kwargs)


def test_heuristics_are_computed_for_each_launch():
    recorder = Recorder()
    tuned = triton.heuristics(
        {
            "BLOCK": lambda args: triton.next_power_of_2(args["n"]),
            "EVEN": lambda args: args["n"] == args["BLOCK"],
        }
    )(recorder)
    tuned[(1,)](None, 8)
    tuned[(1,)](None, n=9)
    assert recorder.launches == [{"BLOCK": 8, "EVEN": True}, {"n": 9, "BLOCK": 16, "EVEN": False}]


def tuner(recorder, blocks=(8, 16, 32), **options):
    def bench(fn, quantiles):
        fn()
        # The second of the three is the fastest.
        return [abs(recorder.launches[-1]["BLOCK"] - 16) + 1.0] * 3

    configs = [triton.Config({"BLOCK": block}) for block in blocks]
    return triton.autotune(configs, key=["n"], do_bench=bench, **options)(recorder)


def test_the_fastest_configuration_is_kept_for_its_key():
    recorder = Recorder()
    tuned = tuner(recorder)
    tuned[(1,)](None, 5)
    assert [launch["BLOCK"] for launch in recorder.launches] == [8, 16, 32, 16]
    tuned[(1,)](None, 5)
    assert len(recorder.launches) == 5
    tuned[(1,)](None, 6)
    assert len(recorder.launches) == 9
    assert tuned.best_config.kwargs == {"BLOCK": 16}


def test_one_configuration_is_not_timed():
    recorder = Recorder()
    tuner(recorder, blocks=[64])[(1,)](None, 5)
    assert [launch["BLOCK"] for launch in recorder.launches] == [64]


def test_tensors_are_reset_and_restored():
    seen = []

    class Adds(Recorder):
        def run(self, ptr, n, *, grid, warmup=False, **kwargs):
            seen.append(float(ptr[0]))
            ptr += 1
            super().run(grid=grid, **kwargs)

    x = np.full(1, 5.0)
    tuner(Adds(), restore_value=["ptr"])[(1,)](x, 1)
    assert seen == [5, 5, 5, 5] and x[0] == 6
    seen.clear()
    tuner(Adds(), reset_to_zero=["ptr"])[(1,)](x, 1)
    assert seen == [0, 0, 0, 0] and x[0] == 1


def test_pruning():
    recorder = Recorder()
    prune = {"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": 1}
    tuner(recorder, prune_configs_by=prune)[(1,)](None, 5)
    assert [launch["BLOCK"] for launch in recorder.launches] == [32, 32]


def test_mistakes():
    with pytest.raises(ValueError, match="`m` is no parameter"):
        triton.autotune([], key=["m"])(triton.jit(kernel))
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuner(Recorder())[(1,)](None, 5, BLOCK=8)
