"""Which argument is whose, and what is said where one does not fit."""

import enum

import pytest

import naiad as triton
import naiad.language as tl

np = pytest.importorskip("numpy")


@triton.jit
def copy(x_ptr, y_ptr, n, scale: tl.float32 = 2.0, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * scale, mask=i < n)


@triton.jit
def anything(x, FLAG: tl.constexpr = None):
    pass


X, Y = np.zeros(8, np.float32), np.zeros(8, np.float32)


def ir(kernel, *args, **kwargs):
    return kernel.warmup(*args, **kwargs).asm["tile"]


def header(kernel, *args, **kwargs):
    return ir(kernel, *args, **kwargs).splitlines()[0]


@pytest.mark.parametrize(
    "value, type",
    [
        (7, "i32"),
        (2**31, "i64"),
        (2**63, "u64"),
        (True, "i1"),
        (1.5, "fp32"),
        (1e300, "fp32"),
        (X, "*fp32"),
        (np.zeros(2, np.float16), "*fp16"),
        (np.zeros(2, np.bool_), "*i1"),
        (np.zeros(2, np.uint8), "*u8"),
    ],
)
def test_type_of_an_argument(value, type):
    assert f"x: {type})" in header(anything, value)


@pytest.mark.parametrize("value", [None, 1, tl.constexpr(7)])
def test_constants_are_no_parameters(value):
    assert "@anything()" in header(anything, value)


def test_tuples_by_their_elements():
    assert "x.1: i32, %1 x.2: *fp32)" in header(anything, (1, 2, X)).replace("%0 ", "")


@pytest.mark.parametrize("value", ["text", 2.5, (1, 2), tl.float16, np.float32, enum.Enum, [1, 2]])
def test_constexpr_takes_anything(value):
    assert "@anything(" in header(anything, X, FLAG=value)


@pytest.mark.parametrize(
    "value, plain",
    [
        (np.int64(3), 3),
        (np.uint8(200), 200),
        (np.float32(2.0), 2.0),
        (np.float64(0.1), 0.1),
        (np.float16(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        ((np.int64(3), np.bool_(False)), (3, False)),
    ],
)
def test_numpy_scalars_are_constexprs_by_their_value(value, plain):
    @triton.jit
    def kernel(x, V: tl.constexpr, P: tl.constexpr):
        tl.static_assert(V == P)
        tl.static_assert(V == C)

    C = tl.constexpr(value)
    kernel.warmup(X, V=value, P=plain)
    kernel.warmup(X, V=plain, P=plain)
    # Of one value there is one variant.
    assert len(kernel.device_caches[0][0]) == 1


def test_numpy_scalars_as_options_and_in_grids():
    compiled = copy[(np.int64(1),)](X, Y, 8, num_warps=np.int64(8))
    assert compiled.metadata.num_warps == 8


def test_numpy_scalars_are_no_run_time_arguments():
    for value in (np.int64(3), np.float32(2.0), np.bool_(True)):
        with pytest.raises(triton.LaunchError, match="is a NumPy scalar, which is no array"):
            anything.warmup(value)
    with pytest.raises(triton.LaunchError, match="is a NumPy scalar, which is no array"):
        anything.warmup((np.int64(3), 1))


class NoTensor:
    """Torch-like, with one part replaced."""

    dtype = tl.float32
    shape = (4,)

    def __init__(self, **parts):
        self.__dict__.update(parts)

    def data_ptr(self):
        return 4096

    def stride(self):
        return (1,)


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"data_ptr": lambda: "here"}, "has a `data_ptr()` that gives 'here'"),
        ({"data_ptr": lambda: -1}, "has a `data_ptr()` that gives -1"),
        ({"shape": "wide"}, "has a `shape` that is 'wide'"),
        ({"stride": lambda: None}, "has a `stride()` that gives None"),
    ],
)
def test_what_only_looks_like_a_tensor(parts, message):
    with pytest.raises(triton.LaunchError) as e:
        anything.warmup(NoTensor(**parts))
    assert message in str(e.value) and "a tensor gives its address as an int" in str(e.value)


@pytest.mark.parametrize("grid", [lambda: (1,), lambda a, b: (1,), lambda **kw: (1,)])
def test_a_grid_that_takes_no_dictionary(grid):
    with pytest.raises(triton.LaunchError) as e:
        copy[grid](X, Y, 8)
    assert "is called with one argument" in str(e.value) and "`lambda meta: (...)`" in str(e.value)
    assert "positional" not in str(e.value)


def test_type_errors_in_a_grid_come_through():
    with pytest.raises(TypeError, match="unsupported operand"):
        copy[lambda meta: 1 + "1"](X, Y, 8)


def test_a_lambda_is_no_kernel():
    with pytest.raises(TypeError, match="written with `def`, and this one is a lambda"):
        triton.jit(lambda x: x)


def test_a_default_beyond_all_integers():
    @triton.jit
    def kernel(x, n=2**200):
        pass

    with pytest.raises(triton.LaunchError) as e:
        kernel.warmup(X)
    assert f"argument `n` of `kernel` cannot be the int {2**200}" in str(e.value)
    assert "Overflow" not in str(e.value)
    assert "@kernel(" in header(kernel, X, n=2)


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((X, Y), {}, "argument `n` is missing"),
        ((X, Y, 8, 1.0, 16, 3), {}, "takes 5 arguments, but 6 were given"),
        ((X, Y, 8), {"n": 8}, "`n` is given by position and by keyword"),
        ((X, Y, 8), {"BLOK": 8}, "did you mean this one?"),
        ((X, Y, 8), {"num_warp": 8}, "did you mean the launch option `num_warps`?"),
        ((X, Y, 8), {"stream": 8}, "has no parameter `stream`"),
        ((X, Y, 8), {"num_warps": 3}, "`num_warps` must be a power of two, not 3"),
        ((X, Y, 8), {"num_stages": "a"}, "`num_stages` must be an integer"),
        ((X, Y, "8"), {}, "argument `n` of `copy` cannot be the str"),
        ((X, Y, tl.float32), {}, "argument `n` of `copy` cannot be the dtype float32"),
        ((X, Y, object()), {}, "argument `n` of `copy` cannot be a 'object' object"),
        ((X, Y, 1 << 64), {}, "it has more than 64 bits"),
        ((X, Y, 1 << 200), {}, "it has more than 128 bits"),
        ((X, Y, 8, 1.0, "a\ud800"), {}, r"argument `BLOCK` of `copy` cannot be the str 'a\ud800': one half of a surrogate"),
        ((X, Y, 8), {"BLOCK": (1, "\udc00")}, "argument `BLOCK` of `copy` cannot be the str"),
        ((X, Y, "\ud800"), {}, "argument `n` of `copy` cannot be the str"),
        ((X, Y, 8), {"n\ud800": 1}, "has no parameter `n\ufffd"),
        ((X, Y, 8, X), {}, "argument `scale` of `copy` is annotated float32, which no tensor can be"),
        ((X, Y, 8), {"BLOCK": X}, "argument `BLOCK` of `copy` is constexpr and cannot be a tensor"),
        ((X.astype(complex), Y, 8), {}, "argument `x_ptr` of `copy` has elements of dtype complex128"),
        ((X.astype(">f4"), Y, 8), {}, "has elements in foreign byte order"),
    ],
)
def test_what_does_not_fit(args, kwargs, message):
    with pytest.raises(triton.LaunchError) as e:
        copy[(1,)](*args, **kwargs)
    assert message in str(e.value)
    assert e.value.diagnostic["id"] == "bad-launch"


def test_the_parameter_is_pointed_at():
    with pytest.raises(triton.LaunchError) as e:
        copy[(1,)](X, Y, "8")
    [label] = e.value.diagnostic["labels"]
    assert label["file"] == __file__
    line = open(__file__).read().splitlines()[label["line"] - 1]
    assert line[label["column"] - 1 :].startswith("n, scale")


@pytest.mark.parametrize(
    "grid, message",
    [
        (4, "write `(4,)`"),
        ("4", "not one str"),
        ((), "1 to 3 counts"),
        ((1, 1, 1, 1), "1 to 3 counts"),
        ((-1,), "negative: -1"),
        ((1.0,), "which is no integer"),
        ((True,), "which is no integer"),
        ((2**31,), "more than 2147483647"),
        (lambda meta: 4, "write `(4,)`"),
    ],
)
def test_bad_grids(grid, message):
    with pytest.raises(triton.LaunchError) as e:
        copy[grid](X, Y, 8)
    assert message in str(e.value)
    assert e.value.diagnostic["id"] == "bad-grid"


def test_an_empty_grid_launches_nothing():
    copy[(0, 3)](X, Y, 8)


def test_a_function_for_a_grid_gets_all_arguments():
    seen = {}

    def grid(meta):
        seen.update(meta)
        return (0,)

    copy[grid](X, Y, 8, num_warps=8)
    assert seen["x_ptr"] is X
    assert {name: seen[name] for name in ("n", "scale", "BLOCK")} == {"n": 8, "scale": 2.0, "BLOCK": 16}
    assert "num_warps" not in seen


def test_exceptions_of_a_grid_come_through():
    with pytest.raises(ZeroDivisionError):
        copy[lambda meta: 1 // 0](X, Y, 8)


def test_calling_a_kernel_is_explained():
    with pytest.raises(RuntimeError, match=r"copy\[grid\]"):
        copy(X, Y, 8)


def test_functions_of_the_language_run_only_in_kernels():
    with pytest.raises(ValueError, match="forget to add `@triton.jit`"):
        tl.load(0)


def test_attributes_that_code_reads():
    assert copy.arg_names == ["x_ptr", "y_ptr", "n", "scale", "BLOCK"]
    assert [p.name for p in copy.params if p.is_constexpr] == ["BLOCK"]
    assert copy.__name__ == "copy"
    assert copy.fn.__code__.co_name == "copy"
    assert copy.src.startswith("def copy(")
    compiled = copy.warmup(X, Y, 8, num_warps=8)
    assert (compiled.name, compiled.metadata.num_warps) == ("copy", 8)
