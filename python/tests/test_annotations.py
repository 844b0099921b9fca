"""What annotations and `do_not_specialize` make of a parameter: reference 1.4, line by line."""

import pytest

import naiad as triton
import naiad.language as tl

np = pytest.importorskip("numpy")

X = np.zeros(16, np.float32)


def header(kernel, *args, **kwargs):
    return kernel.warmup(*args, **kwargs).asm["tile"].splitlines()[0]


@pytest.fixture
def annotated(define):
    """A kernel whose one parameter `x` has this annotation."""

    def annotated(annotation, prelude="", **namespace):
        text = f"{prelude}\n@triton.jit\ndef kernel(x: {annotation}):\n    pass\n"
        return define(text, **namespace)["kernel"]

    return annotated


TYPES = [
    ("tl.int64", 7, "i64"),
    ("tl.uint32", 7, "u32"),
    ("tl.int8", -3, "i8"),
    ('"i64"', 7, "i64"),
    ('"i16"', 7, "i16"),
    ("int", 7, "i32"),
    ("float", 1.5, "fp32"),
    ("float", 3, "fp32"),
    ("tl.float16", 1.5, "fp16"),
    ("tl.float64", 1.5, "fp64"),
    ('"fp64"', 1.5, "fp64"),
    ("bool", True, "i1"),
    ("bool", 1, "i1"),
    ("tl.const", X, "*kfp32"),
    ("tl.pointer_type(tl.float16)", X, "*fp16"),
    ("tl.pointer_type(tl.float16, const=True)", X, "*kfp16"),
    ('"*fp16"', X, "*fp16"),
    ('"*i32"', X, "*i32"),
    # Those that say nothing of the type are passed over.
    ("tl.tensor", X, "*fp32"),
    ("tl.tensor", 7, "i32"),
    ('"torch.Tensor"', X, "*fp32"),
    ('"a pointer to the input"', X, "*fp32"),
    ("object", 1.5, "fp32"),
    ("list[int]", 7, "i32"),
    ("None", 7, "i32"),
]


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
@pytest.mark.parametrize("annotation, value, type", TYPES)
def test_types(annotated, annotation, value, type, future):
    assert f"x: {type})" in header(annotated(annotation, future), value)


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
@pytest.mark.parametrize(
    "annotation",
    [
        "tl.constexpr",
        '"tl.constexpr"',
        "triton.language.constexpr",
        '"triton.language.constexpr"',
        "constexpr",
        "T.constexpr",
        "Static",
        '"Static"',
    ],
)
def test_constexpr_in_all_spellings(annotated, annotation, future):
    names = {"constexpr": tl.constexpr, "T": tl, "Static": tl.constexpr}
    kernel = annotated(annotation, future, **names)
    assert "@kernel()" in header(kernel, "text")
    assert [p.is_constexpr for p in kernel.params] == [True]


def test_an_alias_of_a_type(annotated):
    assert "x: i64)" in header(annotated("Wide", Wide=tl.int64), 7)
    # A class of that name that is nothing to a kernel.
    assert "x: i32)" in header(annotated("int64", int64=type("int64", (), {})), 7)


def test_an_annotation_that_names_nothing(annotated):
    assert "x: i32)" in header(annotated('"Tensor"'), 7)


@pytest.mark.parametrize("annotation", ["tl.int64", '"i64"', "int", "tl.uint8"])
def test_a_forced_integer_is_not_folded(annotated, annotation):
    assert "@kernel(%0 x:" in header(annotated(annotation), 1)


def test_stores_through_const_are_errors():
    @triton.jit
    def kernel(x: tl.const):
        tl.store(x, 1.0)

    with pytest.raises(triton.CompilationError, match="const"):
        kernel.warmup(X)


@pytest.mark.parametrize("selector", ["n", 0])
def test_do_not_specialize(selector):
    @triton.jit(do_not_specialize=[selector])
    def kernel(n, m):
        pass

    assert "(%0 n: i32)" in header(kernel, 1, 1)
    assert "(%0 n: i64)" in header(kernel, 2**31, 1)
    assert [p.do_not_specialize for p in kernel.params] == [True, False]


def test_elements_of_a_tuple_are_folded_all_the_same():
    @triton.jit(do_not_specialize=["t"])
    def kernel(t):
        pass

    assert "t.1: i32)" in header(kernel, (1, 2)) and "t.0" not in header(kernel, (1, 2))


@pytest.mark.parametrize("selector", ["n", 0])
def test_alignment_alone_leaves_folding(selector):
    @triton.jit(do_not_specialize_on_alignment=[selector])
    def kernel(n, m):
        pass

    assert "@kernel()" in header(kernel, 1, 1)
    assert [p.do_not_specialize_on_alignment for p in kernel.params] == [True, False]
    assert [p.do_not_specialize for p in kernel.params] == [False, False]


@pytest.mark.parametrize("option", ["do_not_specialize", "do_not_specialize_on_alignment"])
def test_constexpr_cannot_be_left_unspecialized(option):
    @triton.jit(**{option: ["N"]})
    def kernel(x, N: tl.constexpr):
        pass

    with pytest.raises(triton.LaunchError, match=f"`N` is constexpr and in `{option}` at once"):
        kernel.warmup(X, 1)


def test_selectors():
    @triton.jit(do_not_specialize=["other", 9, -1])
    def kernel(n):
        pass

    assert "@kernel()" in header(kernel, 1)

    @triton.jit(do_not_specialize=[1.5])
    def kernel(n):
        pass

    with pytest.raises(TypeError, match="by name or by position, and 1.5 is neither"):
        kernel.warmup(1)
