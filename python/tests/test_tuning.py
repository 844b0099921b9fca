"""`heuristics` and `autotune`."""

import pytest

import naiad as triton
import naiad.language as tl
from naiad.tools.tensor_descriptor import TensorDescriptor

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


def test_a_tensor_that_is_not_given_is_let_alone():
    recorder = Recorder()
    tuner(recorder, restore_value=["ptr"])[(1,)](None, 1)
    tuner(recorder, reset_to_zero=["ptr"])[(1,)](ptr=None, n=1)
    assert len(recorder.launches) == 8


def test_pruning():
    recorder = Recorder()
    prune = {"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": 1}
    tuner(recorder, prune_configs_by=prune)[(1,)](None, 5)
    assert [launch["BLOCK"] for launch in recorder.launches] == [32, 32]


def test_mistakes():
    with pytest.warns(triton.NaiadWarning, match="`m` is no parameter"):
        triton.autotune([], key=["m"])(triton.jit(kernel))
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuner(Recorder())[(1,)](None, 5, BLOCK=8)


def test_the_key_has_the_dtypes_of_all_arguments():
    recorder = Recorder()
    tuned = tuner(recorder)
    for ptr in (np.zeros(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.float64)):
        tuned[(1,)](ptr, 5)
    assert list(tuned.cache) == [(5, "float32"), (5, "float64")]
    # By the order of the parameters, however they are given.
    tuned[(1,)](n=5, ptr=np.zeros(1, np.float32))
    assert len(tuned.cache) == 2
    tuned[(1,)](None, [5])
    tuned[(1,)](None, [5])
    assert len(tuned.cache) == 3


@pytest.mark.parametrize(
    "top_k, kept", [(2, [32, 16]), (1, [32]), (0.7, [32, 16]), (0.1, [32]), (1.0, [8, 16, 32]), (9, [8, 16, 32])]
)
def test_the_best_by_a_model(top_k, kept):
    recorder = Recorder()
    prune = {"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": top_k}
    tuned = tuner(recorder, prune_configs_by=prune)
    tuned[(1,)](None, 5)
    assert [c.kwargs["BLOCK"] for c in tuned.configs_timings] == kept


def test_early_pruning():
    seen = {}

    def early(configs, named_args, **kwargs):
        seen.update(named_args, **kwargs)
        return [c for c in configs if c.kwargs["BLOCK"] > seen["n"]]

    recorder = Recorder()
    tuned = tuner(recorder, prune_configs_by={"early_config_prune": early})
    tuned[(1,)](None, 9, EVEN=True)
    assert [c.kwargs["BLOCK"] for c in tuned.configs_timings] == [16, 32]
    assert seen["EVEN"] is True
    with pytest.raises(triton.TritonError, match="left no configuration of `kernel`"):
        tuned[(1,)](None, 99)
    with pytest.raises(ValueError, match="'topk', but knows"):
        tuner(recorder, prune_configs_by={"topk": 1})
    with pytest.raises(ValueError, match="at most 1.0"):
        tuner(recorder, prune_configs_by={"perf_model": len, "top_k": 2.0})[(1,)](None, 5)


def test_hooks_replace_what_is_done_to_tensors():
    log = []
    hooks = {
        "pre_hook": lambda kwargs, reset_only=False: log.append(("pre", reset_only, kwargs["n"])),
        "post_hook": lambda kwargs, exception: log.append(("post", exception)),
    }
    tuner(Recorder(), blocks=[8, 16], reset_to_zero=["ptr"], **hooks)[(1,)](None, 5)
    one = [("pre", False, 5), ("post", None)]
    assert log == [*one, *one, ("pre", True, 5)]


def test_the_post_hook_gets_the_exception():
    seen = []

    class Fails(Recorder):
        def run(self, *args, **kwargs):
            raise triton.OutOfResources(2, 1, "shared memory")

    hooks = {"post_hook": lambda kwargs, exception: seen.append(type(exception))}
    with pytest.raises(triton.TritonError, match="no configuration of `kernel` can be run"):
        tuner(Fails(), **hooks)[(1,)](None, 5)
    assert seen == [triton.OutOfResources] * 3


def test_the_hook_of_a_configuration_runs_before_each_of_its_launches():
    seen = []
    configs = [triton.Config({"BLOCK": b}, pre_hook=lambda a: seen.append((a["BLOCK"], a["n"]))) for b in (8, 16)]
    recorder = Recorder()

    def bench(fn, quantiles):
        fn()
        return [float(recorder.launches[-1]["BLOCK"])] * 3

    tuned = triton.autotune(configs, key=["n"], do_bench=bench)(recorder)
    tuned[(1,)](None, 5)
    tuned[(1,)](None, 5)
    assert seen == [(8, 5), (16, 5), (8, 5), (8, 5)]


def test_what_does_not_fit_is_infinitely_slow_and_other_faults_are_seen():
    class Picky(Recorder):
        error = triton.CompileTimeAssertionFailure

        def run(self, *args, grid, warmup=False, **kwargs):
            super().run(grid=grid, **kwargs)
            if kwargs["BLOCK"] < 16:
                raise self.error("too small")

    tuned = tuner(Picky())
    tuned[(1,)](None, 5)
    times = {c.kwargs["BLOCK"]: t[0] for c, t in tuned.configs_timings.items()}
    assert times == {8: float("inf"), 16: 1.0, 32: 17.0}
    Picky.error = KeyError
    with pytest.raises(KeyError):
        tuned[(1,)](None, 6)


def test_a_time_may_be_one_number():
    recorder = Recorder()
    configs = [triton.Config({"BLOCK": b}) for b in (8, 4)]

    def bench(fn, quantiles):
        fn()
        return float(recorder.launches[-1]["BLOCK"])

    tuned = triton.autotune(configs, key=[], do_bench=bench)(recorder)
    tuned[(1,)](None, 5)
    assert tuned.best_config.kwargs == {"BLOCK": 4} and tuned.bench_time > 0


def test_options_of_configurations():
    assert triton.Config({"B": 1}, 8, 2, 1, 64).all_kwargs() == {
        "B": 1,
        "num_warps": 8,
        "num_stages": 2,
        "num_ctas": 1,
        "maxnreg": 64,
    }
    assert triton.Config({}, num_warps=None, num_stages=None, num_ctas=None).all_kwargs() == {}
    assert triton.Config({"B": 1}) == triton.Config({"B": 1}, num_warps=4) != triton.Config({"B": 2})
    recorder = Recorder()
    tuned = triton.autotune([triton.Config({"BLOCK": 8})], key=[])(recorder)
    tuned[(1,)](None, 5, num_warps=None)
    assert recorder.launches[-1]["num_warps"] == 4
    with pytest.raises(ValueError, match="Conflicting meta-parameters: num_warps"):
        tuned[(1,)](None, 5, num_warps=8)
    with pytest.raises(TypeError, match="a configuration is a `triton.Config`"):
        triton.autotune([{"BLOCK": 8}], key=[])(recorder)


def test_no_configurations_are_one():
    recorder = Recorder()
    tuned = triton.autotune([], key=["n"])(recorder)
    tuned[(1,)](None, 5, BLOCK=8)
    assert len(tuned.configs) == 1 and recorder.launches[0]["BLOCK"] == 8


def test_configurations_with_the_same_code_are_timed_once():
    @triton.jit
    def fill(x, BLOCK: tl.constexpr, num_stages: tl.constexpr):
        for _ in tl.range(0, 2, num_stages=num_stages):
            tl.store(x + tl.arange(0, BLOCK), 1.0)

    def bench(fn, quantiles):
        fn()
        timed.append(None)
        return [float(len(timed))] * 3

    def configs(*options, **more):
        return [triton.Config({"BLOCK": b}, **o, **more) for b in (8, 16) for o in options]

    x = np.zeros(16, np.float32)
    warps = [{"num_warps": n} for n in (1, 2, 4)]
    stages = [{"num_stages": n} for n in (1, 2)]
    for choices, trials in [
        (configs(*warps), 2),
        # The kernel asks for the stages.
        (configs(*stages), 4),
        # A hook may choose what the code depends on, so it is asked.
        (configs(*warps, pre_hook=lambda args: None), 2),
    ]:
        timed = []
        tuned = triton.autotune(choices, key=[], do_bench=bench)(fill)
        tuned[(1,)](x)
        assert len(timed) == trials and len(tuned.configs_timings) == len(choices)
        assert tuned.best_config is choices[0]


@pytest.mark.parametrize("option", [{"warmup": 1}, {"rep": 1}, {"use_cuda_graph": True}])
def test_old_ways_to_measure_still_work(option):
    with pytest.warns(DeprecationWarning, match=next(iter(option))):
        tune = triton.autotune([triton.Config({"BLOCK": b}) for b in (8, 16)], key=[], **option)
    recorder = Recorder()
    if "use_cuda_graph" not in option:
        tune(recorder)[(1,)](None, 5)
        assert recorder.launches


def test_printing(monkeypatch, capsys):
    tuner(Recorder())[(1,)](None, 5)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    tuner(Recorder())[(1,)](None, 5)
    out = capsys.readouterr().out
    assert "autotune kernel for the key (5,)" in out and "BLOCK: 16" in out
    # What is assigned stands above the environment until it is None again.
    triton.knobs.autotuning.print = False
    try:
        tuner(Recorder())[(1,)](None, 5)
        assert capsys.readouterr().out == ""
    finally:
        triton.knobs.autotuning.print = None
    assert triton.knobs.autotuning.print is True


def test_a_listener_hears_of_each_tuning(monkeypatch):
    heard = []
    monkeypatch.setattr(triton.knobs.autotuning, "listener", lambda **kw: heard.append(kw), raising=False)
    tuned = tuner(Recorder())
    tuned[(1,)](None, 5)
    tuned[(1,)](None, 5)
    assert len(heard) == 1 and heard[0]["best_config"] is tuned.best_config
    assert heard[0]["duration"] == tuned.bench_time and not heard[0]["cache_hit"]


# From here on with kernels that run.


def pick(n):
    """A measure by which the configuration with `BLOCK == n` wins."""

    def bench(fn, quantiles):
        result = bench.blocks.pop(0)
        fn(), fn()
        return [abs(result - n) + 1.0] * 3

    bench.blocks = [8, 16, 32]
    return bench


CONFIGS = [triton.Config({"BLOCK": b}) for b in (8, 16, 32)]


@triton.jit
def accumulate(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + 1, mask=i < n)
    tl.atomic_add(total_ptr, tl.sum(tl.where(i < n, x, 0.0)))


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.mark.parametrize("options", [{}, {"restore_value": ["x_ptr"]}, {"reset_to_zero": ["total_ptr"]}])
def test_a_launch_that_tunes_leaves_what_one_leaves_that_does_not(options):
    tuned = triton.autotune(CONFIGS, key=["n"], do_bench=pick(16), **options)(accumulate)
    x, total = np.arange(100, dtype=np.float32), np.zeros(1, np.float32)
    compiled = tuned[grid](x, total, 100)
    assert compiled.name == "accumulate" and tuned.best_config.kwargs == {"BLOCK": 16}
    assert x.tolist() == list(range(1, 101)) and total[0] == 4950


def test_tensors_are_as_before_if_tuning_fails():
    def bench(fn, quantiles):
        fn()
        raise KeyError

    tuned = triton.autotune(CONFIGS, key=["n"], do_bench=bench)(accumulate)
    x, total = np.arange(100, dtype=np.float32), np.zeros(1, np.float32)
    with pytest.raises(KeyError):
        tuned[grid](x, total, 100)
    assert x.tolist() == list(range(100)) and total[0] == 0


def test_views_of_one_array_and_read_only_arrays():
    @triton.jit
    def shift(x_ptr, y_ptr, scale_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(scale_ptr), mask=i < n)

    memory, scale = np.arange(9, dtype=np.float32), np.ones(1, np.float32)
    scale.flags.writeable = False
    tuned = triton.autotune(CONFIGS, key=["n"], do_bench=pick(32))(shift)
    tuned[(1,)](memory[:8], memory[1:], scale, 8)
    assert memory.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_findings_and_prints_of_the_chosen_are_shown_once(capsys):
    @triton.jit
    def prints(x_ptr, BLOCK: tl.constexpr):
        tl.static_print("compiling", BLOCK)

    tuned = triton.autotune(CONFIGS, key=[], do_bench=pick(16))(prints)
    tuned[(1,)](np.zeros(1, np.float32))
    assert capsys.readouterr().out.splitlines() == ["compiling 8", "compiling 16", "compiling 32"]


def test_assertions_while_compiling_rule_a_configuration_out():
    @triton.jit
    def kernel(x_ptr, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK > 8)

    tuned = triton.autotune(CONFIGS, key=[], do_bench=pick(8))(kernel)
    tuned[(1,)](np.zeros(1, np.float32))
    assert tuned.best_config.kwargs == {"BLOCK": 16}


@pytest.mark.parametrize("order", ["tune first", "heuristics first"])
def test_both_orders_of_the_decorators(order):
    @triton.jit
    def kernel(x_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr, num_warps: tl.constexpr = 1):
        tl.store(x_ptr, BLOCK)
        tl.store(x_ptr + 1, TWICE)

    tune = triton.autotune(CONFIGS, key=["n"], do_bench=pick(16))
    if order == "tune first":
        guess = triton.heuristics({"TWICE": lambda args: 2 * args["BLOCK"]})
        tuned = tune(guess(kernel))
    else:
        guess = triton.heuristics({"TWICE": lambda args: 2 * args["n"]})
        tuned = guess(tune(kernel))
    x = np.zeros(2, np.float32)
    tuned[(1,)](x, 5)
    assert x.tolist() == [16, 32 if order == "tune first" else 10]
    assert tuned.base_fn is kernel and tuned.fn is not kernel and tuned.arg_names == kernel.arg_names
    assert len(tuned.warmup(x, 5)) == 3


def cached(tmp_path, monkeypatch, blocks=(8, 16, 32), body="pass", **options):
    """A tuned kernel, as another process has it; and how often it was measured."""
    measured = []

    def bench(fn, quantiles):
        measured.append(fn())
        return [float(len(measured))] * 3

    namespace = {"triton": triton, "tl": tl}
    path = tmp_path / "cell.py"
    path.write_text(f"@triton.jit\ndef kernel(ptr, n, BLOCK: tl.constexpr):\n    {body}\n")
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    monkeypatch.setenv("NAIAD_CACHE_DIR", str(tmp_path / "cache"))
    configs = [triton.Config({"BLOCK": b}) for b in blocks]
    tuned = triton.autotune(configs, key=["n"], do_bench=bench, **options)(namespace["kernel"])
    return tuned, measured


def files(tmp_path):
    return [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_results_are_kept_on_disk(tmp_path, monkeypatch):
    x = np.zeros(1, np.float32)

    def measured(n=5, **changes):
        tuned, measured = cached(tmp_path, monkeypatch, **{"cache_results": True, **changes})
        tuned[(1,)](x, n)
        assert tuned.best_config is tuned.configs[0] and len(tuned.configs_timings) == 3
        return len(measured)

    assert [measured(), measured()] == [3, 0]
    assert [measured(n=6), measured(n=6), measured()] == [3, 0, 0]
    # Whatever may change the times is in the key.
    assert measured(body="tl.store(ptr, 1.0)") == 3
    assert measured(blocks=(8, 16, 64)) == 3
    assert measured(cache_results=False) == 3
    monkeypatch.setenv("TRITON_CACHE_AUTOTUNING", "1")
    assert measured(cache_results=False) == 0
    for file in files(tmp_path):
        file.write_text("{")
    assert [measured(), measured()] == [3, 0]
    for file in files(tmp_path):
        file.write_text('{"timings": [[7, [1.0]]]}')
    assert [measured(), measured()] == [3, 0]


def test_a_cache_that_cannot_be_written_is_no_fault(tmp_path, monkeypatch):
    tuned, measured = cached(tmp_path, monkeypatch, cache_results=True)
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(triton.NaiadWarning, match="a result cannot be kept"):
        tuned[(1,)](np.zeros(1, np.float32), 5)
    assert len(measured) == 3


def test_processes_that_store_at_the_same_time(tmp_path, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    from naiad.runtime.cache import Entry

    monkeypatch.setenv("NAIAD_CACHE_DIR", str(tmp_path))
    long = ["x" * 10000, 1]

    def use(i):
        entry = Entry("autotune", "same")
        entry.store(long)
        return entry.load() == long

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(200)))
    assert len(list((tmp_path / "autotune").iterdir())) == 1


def test_a_derived_tuner_passes_on_what_autotune_took(define):
    kernel = define("""
        @triton.jit
        def kernel(ptr, BLOCK: tl.constexpr):
            tl.store(ptr + tl.arange(0, BLOCK), 1.0)
        """)["kernel"]

    class Tuner(triton.Autotuner):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    options = {"pre_hook": None, "post_hook": None, "prune_configs_by": None}
    options |= {"warmup": 1, "rep": 1, "use_cuda_graph": False, "do_bench": None, "cache_results": False}
    tuner = Tuner(kernel, kernel.arg_names, [triton.Config({"BLOCK": n}) for n in (4, 8)], [], None, None, **options)
    x = np.zeros(8, np.float32)
    tuner[(1,)](x)
    assert x[0] == 1


def test_tuning_is_no_write_that_autograd_sees(define):
    torch = pytest.importorskip("torch")
    kernel = define("""
        @triton.jit
        def kernel(ptr, BLOCK: tl.constexpr):
            tl.store(ptr + tl.arange(0, BLOCK), 1.0)
        """)["kernel"]
    tuned = triton.autotune([triton.Config({"BLOCK": n}) for n in (4, 8)], key=[])(kernel)
    x = torch.zeros(8, requires_grad=True)
    with torch.no_grad():
        view = (x * 1).view(2, 4)
    tuned[(1,)](view)
    assert view._version == 0 and view[0, 0] == 1


def test_configurations_of_one_code_are_tried_once_whatever_hooks_they_have():
    """Hooks choose the blocks of descriptors."""
    x = np.zeros(64, np.float32)
    hooks, trials = [], []

    def hook(nargs):
        hooks.append(nargs["BLOCK"])
        nargs["desc"].block_shape = [nargs["BLOCK"]]

    def bench(fn, quantiles):
        fn()
        trials.append(hooks[-1])
        return [float(hooks[-1])] * 3

    @triton.jit
    def fill(desc, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK
        desc.store([i], tl.full([BLOCK], 1.0, tl.float32) + desc.load([i]))

    def of(block, **options):
        return triton.Config({"BLOCK": block}, pre_hook=hook, **options)

    configs = [of(16), of(16, num_warps=8), of(32), of(16, num_stages=2), of(32, num_warps=1)]
    tuned = triton.autotune(configs, key=[], do_bench=bench)(fill)
    desc = TensorDescriptor.from_tensor(x, [1])
    tuned[lambda meta: (64 // meta["BLOCK"],)](desc)
    assert trials == [16, 32] and tuned.best_config is configs[0]
    assert (x == 1).all()
    assert len(tuned.configs_timings) == 4 + 1


def test_trials_leave_no_trace_in_tensors_behind_descriptors_and_in_tuples():
    @triton.jit
    def add(desc, pair, BLOCK: tl.constexpr):
        desc.store([0], desc.load([0]) + 1)
        tl.store(pair[0], tl.load(pair[0]) + 1)

    x, y = np.zeros(16, np.float32), np.zeros(1, np.float32)
    configs = [triton.Config({"BLOCK": b}) for b in (8, 16)]
    tuned = triton.autotune(configs, key=[])(add)
    tuned[(1,)](TensorDescriptor.from_tensor(x, [16]), (y, 3))
    assert (x == 1).all() and y == 1
