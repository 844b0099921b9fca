"""Launches like one before take a short way (`crates/naiad-py/src/warm.rs`). Whatever may make the outcome
another one comes here behind a launch that is kept."""

import gc
import sys
import threading
import weakref

import pytest

import naiad as triton
import naiad.language as tl
from naiad import knobs

np = pytest.importorskip("numpy")


@triton.jit
def add(x_ptr, y_ptr, n, BY: tl.constexpr = 1, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + BY, mask=i < n)


@triton.jit
def what(y_ptr, x, BLOCK: tl.constexpr = 1):
    # Told apart: what is known when compiled, and of what type the rest is.
    if x is None:
        kind: tl.constexpr = 1
    elif isinstance(x, tl.constexpr):
        kind: tl.constexpr = 2
    elif x.dtype == tl.int32:
        kind: tl.constexpr = 3
    elif x.dtype == tl.int64:
        kind: tl.constexpr = 4
    elif x.dtype == tl.uint64:
        kind: tl.constexpr = 5
    elif x.dtype == tl.float32:
        kind: tl.constexpr = 6
    elif x.dtype == tl.int1:
        kind: tl.constexpr = 7
    elif x.dtype == tl.pointer_type(tl.float32):
        kind: tl.constexpr = 8
    else:
        kind: tl.constexpr = 9
    tl.store(y_ptr, kind)


def arrays(n=100):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def twice(launch):
    """What comes of it the first time, of a launch that is kept, and of one that is like it."""
    return [launch() for _ in range(3)]


def test_the_same_object_comes_back_while_it_is_the_same_variant():
    x, y = arrays()
    first, second, third = twice(lambda: add[(2,)](x, y, 100))
    assert second is third
    assert add[(2,)](x, y, 100, BY=7) is not third
    assert add[(2,)](x, y, 99) is third
    assert first.asm == third.asm


def test_arguments_given_otherwise():
    x, y = arrays()
    for args, kwargs, by in [
        ((x, y, 100), {}, 1),
        ((x, y, 100, 5), {}, 5),
        ((x, y, 100, 1, 64), {}, 1),
        ((x, y), {"n": 100}, 1),
        ((x,), {"n": 100, "y_ptr": y}, 1),
        ((x,), {"y_ptr": y, "n": 100}, 1),
        ((), {"BLOCK": 64, "n": 100, "BY": 3, "y_ptr": y, "x_ptr": x}, 3),
        # Names, texts and numbers that are equal, and other objects.
        ((x, y), {"".join(["", "n"]): 100, "".join(["BL", "OCK"]): 64}, 1),
    ] * 3:
        y[:] = 0
        add[(2,)](*args, **kwargs)
        np.testing.assert_array_equal(y, x + by)
    with pytest.raises(triton.TritonError, match="`BY` is given by position and by keyword"):
        add[(2,)](x, y, 100, 5, BY=5)
    with pytest.raises(triton.TritonError, match="no parameter `BLOK`"):
        add[(2,)](x, y, 100, BLOK=64)
    with pytest.raises(triton.TritonError, match="`n` is missing"):
        add[(2,)](x, y)


def test_values_that_become_something_else():
    x, y = arrays(1)
    seen = []
    values = [None, 5, 1, 7, 2**40, 2**63, 0.5, 1.0, True, x, 3, -1, -(2**40), x.astype(np.int8), None, 1]
    for value in values * 3:
        what[(1,)](y, value)
        seen.append(int(y[0]))
    assert seen == [1, 3, 2, 3, 4, 5, 6, 6, 7, 8, 3, 3, 4, 9, 1, 2] * 3
    with pytest.raises(triton.TritonError, match="cannot be the int .*: it has more than 64 bits"):
        what[(1,)](y, 2**64)
    with pytest.raises(triton.TritonError, match="cannot be the str"):
        what[(1,)](y, "text")


def test_constants_that_are_equal_and_not_the_same():
    @triton.jit
    def show(y_ptr, C: tl.constexpr):
        if C == "a":
            tl.store(y_ptr, 1)
        elif C == "b":
            tl.store(y_ptr, 2)
        else:
            tl.store(y_ptr, C)

    y = np.zeros(1, np.float32)
    variants = lambda kernel: sum(len(cache[0]) for cache in kernel.device_caches.values())
    for value, want in [(1, 1), (1.0, 1), (True, 1), ("a", 1), ("b", 2), ("".join(["", "a"]), 1)] * 3:
        y[0] = 0
        show[(1,)](y, value)
        assert y[0] == want
    # An int, a float, a bool, and two texts.
    assert variants(show) == 5

    @triton.jit
    def copysign(y_ptr, C: tl.constexpr):
        tl.store(y_ptr, C)

    for value in [0.0, -0.0, float("-0.0"), float("nan"), float("nan"), 10**3 + 7, 7 + 10**3] * 3:
        copysign[(1,)](y, value)
        np.testing.assert_array_equal(y, np.float32(value))
        assert np.signbit(y[0]) == np.signbit(np.float32(value))
    assert variants(copysign) == 4


def test_what_the_kernel_reads_of_its_module(define):
    cell = define(
        """
        BY = tl.constexpr(1)

        @triton.jit
        def helper(x):
            return x + BY

        @triton.jit
        def kernel(x_ptr):
            tl.store(x_ptr, helper(tl.load(x_ptr)))
        """
    )
    x = np.zeros(1, np.float32)
    launch = lambda: cell["kernel"][(1,)](x)
    twice(launch)
    assert x[0] == 3
    cell["BY"] = tl.constexpr(10)
    twice(launch)
    assert x[0] == 33
    cell["BY"].value = 100
    twice(launch)
    assert x[0] == 333
    cell["helper"] = define("@triton.jit\ndef helper(x):\n    return x - 1\n")["helper"]
    twice(launch)
    assert x[0] == 330


def test_a_grid_or_an_array_that_changes_what_the_kernel_reads(define):
    cell = define(
        """
        BY = tl.constexpr(1)

        @triton.jit
        def kernel(x_ptr):
            tl.store(x_ptr, tl.load(x_ptr) + BY)
        """
    )
    x = np.zeros(1, np.float32)
    kernel = cell["kernel"]
    twice(lambda: kernel[(1,)](x))

    def grid(meta):
        cell["BY"] = tl.constexpr(cell["BY"].value * 10)
        return (1,)

    x[0] = 0
    twice(lambda: kernel[grid](x))
    assert x[0] == 1110

    class Array:
        @property
        def __array_interface__(self):
            cell["BY"] = tl.constexpr(cell["BY"].value + 1)
            return x.__array_interface__

    for _ in range(4):
        x[0] = 0
        kernel[(1,)](Array())
        assert x[0] == cell["BY"].value


def test_another_text_other_hooks_another_run(monkeypatch):
    log = []

    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, 1)

    x = np.zeros(1, np.float32)
    launch = lambda: kernel[(1,)](x)
    twice(launch)
    kernel._unsafe_update_src("def kernel(x_ptr):\n    tl.store(x_ptr, 2)\n")
    twice(launch)
    assert x[0] == 2
    kernel.add_pre_run_hook(lambda *args, **kwargs: log.append("before"))
    launch()
    kernel.pre_run_hooks.clear()
    launch()
    hook = lambda about: log.append("enter")
    knobs.runtime.launch_enter_hook.add(hook)
    launch()
    knobs.runtime.launch_enter_hook.remove(hook)
    launch()
    kernel.run = lambda *args, grid, warmup: log.append("mine")
    launch()
    del kernel.run
    launch()
    assert log == ["before", "enter", "mine"]


def test_debug_between():
    @triton.jit
    def fails(x):
        tl.device_assert(tl.load(x) > 0)

    launch = lambda **options: fails[(1,)](np.zeros(1), **options)
    for _ in range(3):
        twice(launch)
        with pytest.raises(triton.TritonError, match="assertion"):
            launch(debug=True)
        launch(debug=False)


def test_options_are_those_of_the_launch():
    @triton.jit
    def warps(x):
        tl.store(x, tl.extra.cuda.num_warps())

    x = np.zeros(1, np.int32)
    for n in [4, 8, 4, 2, 1] * 3:
        assert warps[(1,)](x, num_warps=n).metadata.num_warps == n
        assert x[0] == n
    assert warps[(1,)](x).metadata.num_warps == 4
    with pytest.raises(triton.TritonError, match="power of two, not 3"):
        warps[(1,)](x, num_warps=3)


def test_variants_that_are_forgotten_are_compiled_again():
    x, y = arrays()
    count = lambda: len(add.device_caches[0][0])
    twice(lambda: add[(2,)](x, y, 100))
    assert count() > 0
    add.device_caches.clear()
    assert count() == 0
    twice(lambda: add[(2,)](x, y, 100))
    assert count() == 1


def test_memory_ends_where_it_ends_now():
    """Each array is where the one before it was, and some end sooner: nothing is kept of their extents."""
    memory = np.zeros(256, np.float32)
    x = np.ones(256, np.float32)

    @triton.jit
    def fill(x_ptr, y_ptr):
        i = tl.arange(0, 64)
        tl.store(y_ptr + i, tl.load(x_ptr + i))

    def over(n):
        address = memory.ctypes.data
        array = type("Array", (), {})()
        array.__array_interface__ = {"typestr": "<f4", "data": (address, False), "shape": (n,), "version": 3}
        return array

    for n in [64, 64, 64, 63, 64, 1, 200, 200, 0]:
        memory[:] = 0
        if n >= 64:
            fill[(1,)](x, over(n))
            assert memory.sum() == 64
        else:
            with pytest.raises(triton.TritonError, match="out of bounds|outside"):
                fill[(1,)](x, over(n))


def test_memory_that_overlaps_after_some_that_did_not():
    @triton.jit
    def shift(x_ptr, y_ptr):
        i = tl.arange(0, 64)
        tl.store(y_ptr + i, tl.load(x_ptr + i))

    memory = np.arange(200, dtype=np.float32)
    twice(lambda: shift[(1,)](memory.copy(), memory.copy()))
    want = memory.copy()
    want[1:65] = memory[:64]
    shift[(1,)](memory, memory[1:])
    np.testing.assert_array_equal(memory, want)


def test_memory_that_may_not_be_written():
    x, y = arrays()
    twice(lambda: add[(2,)](x, y, 100))
    y.flags.writeable = False
    with pytest.raises(triton.TritonError, match="read-only|may not be written"):
        add[(2,)](x, y, 100)
    y.flags.writeable = True
    add[(2,)](x, y, 100)


def test_a_fault_is_told_as_the_first_time():
    x, y = np.zeros(64, np.float32), np.zeros(10, np.float32)

    def told():
        with pytest.raises(triton.TritonError) as e:
            add[(1,)](x, y, 64)
        return str(e.value)

    x2 = np.zeros(64, np.float32)
    twice(lambda: add[(1,)](x, x2, 64))
    messages = twice(told)
    assert messages[0] == messages[1] == messages[2] and "`y_ptr`" in messages[0]


def test_launches_within_a_launch():
    x, y = arrays()
    twice(lambda: add[(2,)](x, y, 100))
    inner = np.zeros(100, np.float32)

    def grid(meta):
        add[(2,)](y, inner, 100, BY=2)
        return (2,)

    for by in 1, 2, 3:
        add[(2,)](x, y, 100)
        add[grid](x, y, 100, BY=by)
        np.testing.assert_array_equal(y, x + by)
        # The inner launch came first, and saw what the launch before had written.
        np.testing.assert_array_equal(inner, x + 3)


def test_threads_with_launches_of_their_own():
    errors = []

    def work(by):
        x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32 if by % 2 else np.float64)
        for _ in range(300):
            y[:] = 0
            add[(2,)](x, y, 100, BY=by)
            if not np.array_equal(y, x + by):
                errors.append(by)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(by,)) for by in range(12)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(before)
    assert not errors


def test_nothing_is_kept_alive(define):
    class Array(np.ndarray):
        pass

    kernel = define("@triton.jit\ndef kernel(x_ptr, F: tl.constexpr):\n    tl.store(x_ptr, 1)\n")["kernel"]
    x = np.zeros(1, np.float32).view(Array)
    grid = lambda meta: (1,)
    twice(lambda: kernel[grid](x, F=add))
    kept = [weakref.ref(x), weakref.ref(grid)]
    del x, grid
    assert [ref() for ref in kept] == [None, None]
    kept = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert kept() is None


def test_more_kinds_of_launches_than_are_kept():
    x, y = arrays()
    for _ in range(3):
        for by in range(20):
            add[(2,)](x, y, 100, BY=by)
            np.testing.assert_array_equal(y, x + by)


def test_tuples_and_functions_as_arguments(define):
    cell = define(
        """
        @triton.jit
        def plus(x):
            return x + 1

        @triton.jit
        def minus(x):
            return x - 1

        @triton.jit
        def kernel(x_ptr, pair, F: tl.constexpr, SHAPE: tl.constexpr):
            tl.store(x_ptr, F(tl.load(x_ptr)) + pair[0] * SHAPE[0])
        """
    )
    kernel, x = cell["kernel"], np.zeros(1, np.float32)
    for function, pair, shape, want in [
        ("plus", (2, 1), (10,), 21),
        ("minus", (2, 1), (10,), 19),
        ("plus", (3.0, 1), (10,), 31),
        ("plus", (1, 1), (10,), 11),
        ("plus", (2, 1), (20,), 41),
    ] * 3:
        x[0] = 0
        kernel[(1,)](x, pair, cell[function], shape)
        assert x[0] == want


def test_a_variable_number_of_arguments():
    @triton.jit
    def total(y_ptr, *rest):
        sum = 0
        for i in tl.static_range(len(rest)):
            sum += rest[i]
        tl.store(y_ptr, sum)

    y = np.zeros(1, np.int32)
    for rest in [(2, 3), (2, 3, 4), (), (5,)] * 3:
        total[(1,)](y, *rest)
        assert y[0] == sum(rest)


def test_tensors_of_torch_whose_storage_changes():
    torch = pytest.importorskip("torch")

    @triton.jit
    def fill(y_ptr):
        tl.store(y_ptr + tl.arange(0, 64), 1.0)

    y = torch.zeros(64)
    twice(lambda: fill[(1,)](y))
    assert y.sum() == 64
    y.untyped_storage().resize_(4 * 16)
    with pytest.raises(triton.TritonError):
        fill[(1,)](y)
    y.set_(torch.zeros(128).untyped_storage(), 64, (64,))
    fill[(1,)](y)
    assert y.sum() == 64
    y.data = torch.zeros(64, dtype=torch.float64)
    fill[(1,)](y)
    assert y.dtype == torch.float64 and y.sum() == 64
    with pytest.raises(triton.TritonError):
        fill[(1,)](torch.zeros(64, dtype=torch.complex64))
    fill[(1,)](torch.nn.Parameter(torch.zeros(64), requires_grad=False))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, ValueError])
def test_what_an_argument_raises_is_raised(error):
    """Also where it would raise nothing the second time."""
    x, y = arrays()

    class Array:
        errors = []

        @property
        def __array_interface__(self):
            if self.errors:
                raise self.errors.pop()
            return x.__array_interface__

    twice(lambda: add[(2,)](Array(), y, 100))
    for _ in range(2):
        Array.errors = [error()]
        with pytest.raises(error):
            add[(2,)](Array(), y, 100)
        # A grid that is none is told of first, whoever was launched before.
        Array.errors = [error()]
        with pytest.raises(triton.TritonError, match="axis 0"):
            add[("two",)](Array(), y, 100)
        add.device_caches.clear()
    Array.errors.clear()
    with pytest.raises(triton.TritonError, match="cannot be the int .*: it has more than 128 bits"):
        add[(2,)](x, y, 2**200)


def test_what_a_count_of_programs_raises_is_raised():
    class Count:
        def __index__(self):
            raise KeyboardInterrupt

    x, y = arrays()
    with pytest.raises(KeyboardInterrupt):
        add[(Count(),)](x, y, 100)


def test_tensors_of_torch_that_negate_their_memory():
    torch = pytest.importorskip("torch")

    @triton.jit
    def copy(x_ptr, y_ptr):
        i = tl.arange(0, 4)
        tl.store(y_ptr + i, tl.load(x_ptr + 2 * i))

    imag = torch.complex(torch.zeros(4), torch.arange(4.0)).conj().imag
    y = torch.zeros(4)
    copy[(1,)](torch.arange(8.0), y)
    # The stride of an axis of one element is any number.
    for x in [imag, imag[:, None], imag[None, :], imag[:, None, None], imag[0], imag[:1, None]]:
        assert x.is_neg()
        for _ in range(2):
            with pytest.raises(triton.TritonError, match="negates its memory"):
                copy[(1,)](x, y)
