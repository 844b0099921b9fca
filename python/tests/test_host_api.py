"""Jit functions as host code uses them, and what their compiled code depends on."""

import gc
import time
import types
import weakref

import pytest

import naiad as triton
import naiad.language as tl

np = pytest.importorskip("numpy")

X = np.zeros(64, np.float32)


@triton.jit
def copy(x_ptr, n: tl.int64, scale=2.0, BLOCK: tl.constexpr = 16):
    pass


def run(kernel, *args, **kwargs):
    """What the kernel stores at the first element."""
    out = np.zeros(4, np.float32)
    kernel[(1,)](out, *args, **kwargs)
    return float(out[0])


def test_parameters():
    x, n, scale, block = copy.params
    assert [p.name for p in copy.params] == copy.arg_names == ["x_ptr", "n", "scale", "BLOCK"]
    assert [p.num for p in copy.params] == [0, 1, 2, 3]
    assert [p.has_default for p in copy.params] == [False, False, True, True]
    assert (scale.default, block.default) == (2.0, 16)
    assert (x.annotation, n.annotation) == ("", "i64")
    assert block.is_constexpr and not n.is_constexpr
    assert list(copy.signature.parameters) == copy.arg_names
    assert copy.__name__ == "copy" and copy.fn.__name__ == "copy"


def test_what_generators_of_kernels_read_of_a_function():
    here = 3

    @triton.constexpr_function
    def three():
        return here

    @triton.jit
    def kernel(x, N: tl.constexpr, y, M: tl.constexpr = 4):
        tl.store(x, here + three())

    for function in (three, kernel):
        assert function.__globals__ is globals() and function.module == __name__
        assert function.get_capture_scope()["here"] == 3
        assert function.get_capture_scope()["np"] is np
        assert function.starting_line_number == function.fn.__code__.co_firstlineno
    assert kernel.constexprs == [1, 3] and not kernel.is_gluon()
    assert kernel.parse().body[0].name == "kernel"


def test_modules_below_runtime_are_modules():
    # Public code writes `triton.runtime.jit.JITFunction`, and `jit` is a function's name too.
    assert triton.runtime.jit.JITFunction is triton.JITFunction
    assert triton.runtime.jit.constexpr_function is triton.constexpr_function
    assert triton.runtime.autotuner.Config is triton.Config and triton.jit is triton.runtime.jit.jit


def test_options_of_jit_are_kept():
    @triton.jit(repr=lambda spec: "named", launch_metadata=len, version=3, noinline=True, debug=True)
    def kernel(x):
        pass

    assert (kernel.repr(None), kernel.version, kernel.noinline) == ("named", 3, True)
    assert kernel.launch_metadata is len
    assert kernel.warmup(X).metadata.debug


def test_caches_can_be_looked_at():
    @triton.jit
    def kernel(x, N: tl.constexpr):
        pass

    assert len(kernel.device_caches[0][0]) == 0
    kernel.warmup(X, N=1), kernel.warmup(X, N=2), kernel.warmup(X, N=2)
    assert len(kernel.device_caches[0][0]) == 2
    assert repr(kernel.device_caches) == "{0: <2 compiled variants>}"


def test_hooks_are_for_launches():
    @triton.jit
    def kernel(x):
        pass

    calls = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: calls.append(args))
    kernel.warmup(X)
    kernel[(1,)](X)
    assert calls == [(X,)]
    with pytest.raises(TypeError, match="a hook is called"):
        kernel.add_pre_run_hook(3)


def test_a_source_that_is_replaced():
    @triton.jit
    def kernel(out, n, SHAPE: tl.constexpr = 1):
        tl.store(out, 0.0)

    before = kernel.cache_key
    assert run(kernel, 1) == 0
    kernel._unsafe_update_src(kernel.src.replace("0.0", "5.0 + n"))
    assert run(kernel, 1) == 6
    assert kernel.src.startswith("def kernel(out") and "5.0" in kernel.src
    assert kernel.cache_key != before
    kernel._unsafe_update_src("def kernel(out, n):\n    nonsense")
    with pytest.raises(triton.CompilationError, match="new source of"):
        run(kernel, 1)


def test_a_helper_whose_source_is_replaced():
    @triton.jit
    def helper():
        return 1.0

    @triton.jit
    def kernel(out):
        tl.store(out, helper())

    assert run(kernel) == 1
    helper._unsafe_update_src("def helper():\n    return 2.0\n")
    assert run(kernel) == 2


def test_kernels_edited_and_redefined(define):
    text = "@triton.jit\ndef kernel(out):\n    tl.store(out, {})\n"
    first = define(text.format(1.0))["kernel"]
    second = define(text.format(2.0))["kernel"]
    assert [run(first), run(second), run(first)] == [1, 2, 1]
    assert first.cache_key != second.cache_key


CELL = """
@triton.jit
def helper():
    return 1.0

@triton.constexpr_function
def computed():
    return 1.0

@triton.jit
def constant(out):
    tl.store(out, G)

@triton.jit
def annotated(out):
    tl.store(out, A)

@triton.jit
def calls(out):
    tl.store(out, helper())

@triton.jit
def computes(out):
    tl.store(out, computed())

@triton.jit
def converts(out):
    tl.store(out, tl.load(out).to(D).to(tl.float32) + (D == tl.float16))

@triton.jit
def applies(out):
    tl.store(out, F(1.0 + tl.load(out)))

@triton.jit
def of_module(out):
    tl.store(out, m.G)

@triton.jit
def of_module_function(out):
    tl.store(out, m.computed())

@triton.jit
def of_tuple(out):
    tl.store(out, T[0])
"""


def two(value):
    return triton.constexpr_function(lambda: value)


@pytest.mark.parametrize(
    "kernel, name, first, second",
    [
        ("constant", "G", tl.constexpr(1.0), tl.constexpr(2.0)),
        ("constant", "G", tl.constexpr(0.0), tl.constexpr(-0.0)),
        ("annotated", "A", 1.0, 2.0),
        ("computes", "computed", two(1.0), two(2.0)),
        ("converts", "D", tl.float16, tl.float32),
        ("applies", "F", tl.exp, tl.exp2),
        ("of_tuple", "T", tl.constexpr((1.0, 2)), tl.constexpr((2.0, 2))),
        ("of_module", "m.G", tl.constexpr(1.0), tl.constexpr(2.0)),
        ("of_module_function", "m.computed", two(1.0), two(2.0)),
    ],
)
def test_answers_are_never_stale(define, kernel, name, first, second):
    cell = define("A: tl.constexpr = 1.0\n" + CELL, m=types.ModuleType("m"))

    def bind(value):
        head, _, attribute = name.partition(".")
        if attribute:
            setattr(cell[head], attribute, value)
        else:
            cell[head] = value

    def ir():
        return cell[kernel].warmup(X).asm["tile"]

    bind(first)
    one = ir()
    assert ir() == one
    bind(second)
    other = ir()
    assert one != other
    bind(first)
    assert ir() == one
    # Both are kept.
    assert len(cell[kernel].device_caches[0][0]) <= 3


def test_a_constexpr_that_is_written_to(define):
    cell = define(CELL, G=tl.constexpr(1.0), T=tl.constexpr([1.0]))
    assert (run(cell["constant"]), run(cell["of_tuple"])) == (1, 1)
    cell["G"].value = 2.0
    cell["T"].value[0] = 2.0
    assert (run(cell["constant"]), run(cell["of_tuple"])) == (2, 2)


def test_a_closure_variable_that_changes():
    value = tl.constexpr(1.0)

    @triton.jit
    def kernel(out):
        tl.store(out, value)

    assert run(kernel) == 1
    value = tl.constexpr(2.0)
    assert run(kernel) == 2


def test_an_attribute_that_is_a_new_object_each_time(define):
    class Namespace:
        @property
        def fresh(self):
            return triton.constexpr_function(lambda: 3.0)

    @triton.jit
    def kernel(out, NS: tl.constexpr):
        tl.store(out, NS.fresh())

    space = Namespace()
    assert run(kernel, NS=space) == run(kernel, NS=space) == 3
    assert len(kernel.device_caches[0][0]) == 1


def test_cache_keys_cover_what_is_reached(define):
    def key(**changes):
        given = {"G": tl.constexpr(1.0), "helper": None, **changes}
        cell = define(CELL)
        helper = given.pop("helper")
        cell.update(given)
        if helper:
            cell["helper"] = define(f"@triton.jit\ndef helper():\n    {helper}\n")["helper"]
        return [cell[name].cache_key for name in ("constant", "calls")]

    assert key() == key()
    assert key(G=tl.constexpr(2.0))[0] != key()[0]
    assert key(G=tl.constexpr(2.0))[1] == key()[1]
    assert key(helper="return 3.0")[1] != key()[1]
    assert key(helper="return 3.0")[0] == key()[0]


def test_variants_are_bounded():
    @triton.jit
    def kernel(out):
        tl.store(out, value)

    for i in range(40):
        value = tl.constexpr(float(i))
        assert run(kernel) == i
    assert len(kernel.device_caches[0][0]) <= 8


@pytest.mark.parametrize("kind", ["object", "function"])
def test_arguments_are_not_kept_alive(kind):
    class Thing:
        number = 1.0

    @triton.jit
    def kernel(out, IT: tl.constexpr):
        tl.store(out, 1.0)

    def make():
        if kind == "object":
            thing = Thing()
        else:

            @triton.jit
            def thing(x):
                return x

        run(kernel, IT=thing)
        return weakref.ref(thing)

    ref = make()
    gc.collect()
    assert ref() is None
    # Its place in memory may be taken by another, which is not mistaken for it.
    for _ in range(10):
        make()
    assert len(kernel.device_caches[0][0]) == 11


@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0 + tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_what_a_launch_returns():
    x = np.zeros(8, np.float32)
    compiled = fill[(1,)](x, 8, BLOCK=8, num_warps=2, num_stages=None)
    assert set(compiled.asm) == {"tile"} and compiled.name == "fill"
    metadata = compiled.metadata
    assert metadata._asdict()["name"] == "fill" and metadata.hash == compiled.hash
    assert (metadata.num_warps, metadata.num_stages, metadata.num_ctas) == (2, 3, 1)
    assert metadata.target.backend == "cpu"
    assert compiled.hash == fill.warmup(x, 8, BLOCK=8).hash != fill.warmup(x, 8, BLOCK=16).hash
    # Kernels compute an occupancy from these, as in the tutorials.
    compiled._init_handles()
    assert 65536 // (compiled.n_regs * 32 * 4) > 0 and 65536 // metadata.shared > 0
    assert compiled.n_spills == 0


def test_a_compiled_kernel_is_launched_again():
    x = np.zeros(8, np.float32)
    compiled = fill.warmup(x, 8, BLOCK=8, num_warps=2)
    again = compiled[(1, 1, 1)](x, 8, 8)
    compiled[(1, 1, 1)](x, 8, 8, stream=0)
    assert x.tolist() == [2] * 8 and again.metadata.num_warps == 2


def test_hooks_around_launches(monkeypatch):
    log = []

    @triton.jit(launch_metadata=lambda grid, metadata, args: {"flops": grid[0] * args["n"]})
    def kernel(out, n):
        tl.store(out, 1.0)

    out = np.zeros(4, np.float32)
    monkeypatch.setattr(triton.knobs.runtime, "launch_exit_hook", lambda about: log.append(("exit", out[0])))
    enter = triton.knobs.runtime.launch_enter_hook

    def hook(about):
        log.append((about["name"], about["flops"], out[0]))

    enter.add(hook)
    enter.add(hook)
    try:
        kernel[lambda meta: (2,)](out, 5)
        kernel.warmup(out, 5)
    finally:
        enter.remove(hook)
    assert log == [("kernel", 10, 0), ("exit", 1)]


def test_a_function_without_text_has_no_source():
    namespace = {"triton": triton}
    exec("@triton.jit\ndef kernel(x):\n    pass", namespace)
    with pytest.raises(triton.TritonError, match="the source of `kernel` cannot be found"):
        namespace["kernel"].src


def test_what_launches_take_is_told_from_what_the_rest_takes():
    """`do_bench` of Triton's fork for CPUs: a function that sleeps besides."""
    out = np.zeros(4, np.float32)

    @triton.jit
    def fill(x_ptr):
        tl.store(x_ptr + tl.arange(0, 4), 1.0)

    def slow():
        time.sleep(0.02)
        fill[(1,)](out)

    def bench(**options):
        return triton.testing.do_bench(slow, 1, 1, return_mode="min", **options)

    runtime = triton.knobs.runtime
    assert bench() > 20 > bench(measure_time_with_hooks=True) > 0
    assert not runtime.launch_enter_hook and not runtime.launch_exit_hook

    def broken():
        raise KeyError("of the function")

    with pytest.raises(KeyError):
        triton.testing.do_bench(broken, measure_time_with_hooks=True)
    assert not runtime.launch_enter_hook and not runtime.launch_exit_hook


class Clock:
    """A clock that only functions move that are timed: what others do to the machine has no part in it."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(triton.testing.time, "perf_counter", lambda: self.now)
        self.calls = 0

    def of(self, *milliseconds):
        """A function that takes these for its calls in turn, and the last from then on."""

        def run():
            self.now += milliseconds[min(self.calls, len(milliseconds) - 1)] / 1e3
            self.calls += 1

        self.calls = 0
        return run


def test_what_takes_longer_than_the_time_for_it_is_called_twice(monkeypatch):
    clock = Clock(monkeypatch)

    def bench(*milliseconds, **options):
        times = triton.testing.do_bench(clock.of(*milliseconds), 25, 100, return_mode="all", **options)
        return [round(t) for t in times], clock.calls

    assert bench(500, 130) == ([130], 2)
    assert bench(500, 70) == ([70, 70], 3)
    # Five calls for an estimate, one to warm up, and then what fits.
    assert bench(500, 24) == ([24] * 4, 1 + 5 + 1 + 4)
    assert bench(500, 1) == ([1] * 100, 1 + 5 + 25 + 100)
    # What is outside of launches fills the time too.
    assert bench(500, 130, measure_time_with_hooks=True) == ([0], 2)
    assert triton.testing.do_bench_cudagraph(clock.of(500, 130), rep=100) == pytest.approx(130)
    assert clock.calls == 2


def test_gradients_are_reset_before_each_call_that_counts(monkeypatch):
    class Tensor:
        grad = 1

    seen, tensor = [], Tensor()
    wait = Clock(monkeypatch).of(130)

    def slow():
        seen.append(tensor.grad)
        tensor.grad = 1
        wait()

    triton.testing.do_bench(slow, grad_to_none=[tensor])
    assert seen == [1, None]


def test_a_trial_that_is_far_behind_is_not_repeated(monkeypatch):
    clock = Clock(monkeypatch)

    def trial(*milliseconds, best):
        times = triton.testing.trial(clock.of(*milliseconds), (0.5, 0.2, 0.8), best)
        return round(times[0]), len(times), clock.calls

    assert trial(90, 30, best=9.0) == (30, 3, 2)
    assert trial(90, 130, best=100.0) == (130, 3, 2)
    assert trial(90, 30, best=20.0) == (30, 3, 1 + 5 + 1 + 3)
    assert trial(1300, 130, best=float("inf")) == (1300, 3, 1)
