"""Where a kernel's text and names come from: files, cells, closures, redefinitions."""

import linecache

import pytest

import naiad as triton
import naiad.language as tl
from naiad import _naiad

CONSTANT = tl.constexpr(3)
ANNOTATED: tl.constexpr = 5
PLAIN = 7


@triton.jit
def reads_constants(ptr):
    tl.store(ptr, CONSTANT + ANNOTATED)


@triton.jit
def reads_plain(ptr):
    tl.store(ptr, PLAIN)


@triton.constexpr_function
def double(n):
    return 2 * n


@triton.jit
def calls_constexpr_function(ptr, N: tl.constexpr):
    tl.store(ptr + tl.arange(0, double(N)), 1.0)


def plain_function(x):
    return x


@triton.jit
def calls_plain_function(ptr):
    tl.store(ptr, plain_function(1))


FLOATS = pytest.importorskip("numpy").zeros(64, "float32")


def ir(kernel, *args, **kwargs):
    return kernel.warmup(*args, **kwargs).asm["tile"]


def test_constexpr_globals():
    assert "value=8:i32" in ir(reads_constants, FLOATS) or "value=8.0" in ir(reads_constants, FLOATS)


def test_plain_globals_are_refused():
    with pytest.raises(triton.CompilationError, match="Cannot access global variable"):
        ir(reads_plain, FLOATS)


def test_constexpr_functions_run_while_compiling():
    assert "end=16" in ir(calls_constexpr_function, FLOATS, N=8)


def test_plain_functions_are_refused():
    with pytest.raises(triton.CompilationError) as e:
        ir(calls_plain_function, FLOATS)
    assert "plain_function" in str(e.value)


def test_a_function_made_by_exec(define):
    kernel = define(
        """
        @triton.jit
        def kernel(ptr):
            tl.store(ptr, 41.0)
        """
    )["kernel"]
    assert "41.0" in ir(kernel, FLOATS)


def test_a_function_without_text():
    namespace = {"triton": triton, "tl": tl}
    exec("@triton.jit\ndef kernel(ptr):\n    pass", namespace)
    with pytest.raises(triton.TritonError, match="source of `kernel` cannot be found"):
        ir(namespace["kernel"], FLOATS)


def test_redefinition_under_the_same_name(define):
    text = """
        @triton.jit
        def kernel(ptr):
            tl.store(ptr, {})
        """
    first = define(text.format("41.0"))["kernel"]
    second = define(text.format("42.0"))["kernel"]
    assert "41.0" in ir(first, FLOATS) and "42.0" in ir(second, FLOATS)


def test_two_functions_of_one_name_in_one_text(define):
    cell = define(
        """
        @triton.jit
        def kernel(ptr):
            tl.store(ptr, 41.0)
        first = kernel

        @triton.jit
        def kernel(ptr):
            tl.store(ptr, 42.0)
        """
    )
    assert "41.0" in ir(cell["first"], FLOATS) and "42.0" in ir(cell["kernel"], FLOATS)


def test_closures():
    def make(value):
        value = tl.constexpr(value)

        @triton.jit
        def helper(x):
            return x + value

        @triton.jit
        def kernel(ptr):
            tl.store(ptr, helper(tl.load(ptr)))

        return kernel

    assert "41.0" in ir(make(41.0), FLOATS)
    assert "42.0" in ir(make(42.0), FLOATS)


def test_a_helper_that_changes_is_compiled_anew(define):
    cell = define(
        """
        @triton.jit
        def helper():
            return 41.0

        @triton.jit
        def kernel(ptr):
            tl.store(ptr, helper())
        """
    )
    assert "41.0" in ir(cell["kernel"], FLOATS)
    old = cell["helper"]
    cell["helper"] = define("@triton.jit\ndef helper():\n    return 42.0\n")["helper"]
    assert "42.0" in ir(cell["kernel"], FLOATS)
    cell["helper"] = old
    assert "41.0" in ir(cell["kernel"], FLOATS)


def test_a_constant_that_changes_is_read_anew(define):
    cell = define("G = tl.constexpr(41.0)\n@triton.jit\ndef kernel(ptr):\n    tl.store(ptr, G)\n")
    assert "41.0" in ir(cell["kernel"], FLOATS)
    cell["G"] = tl.constexpr(42.0)
    assert "42.0" in ir(cell["kernel"], FLOATS)


def test_errors_stand_at_the_line_of_the_file():
    with pytest.raises(triton.CompilationError) as e:
        ir(reads_plain, FLOATS)
    label = next(label for label in e.value.diagnostic["labels"] if label["primary"])
    line = open(__file__).read().splitlines()[label["line"] - 1]
    assert (label["file"], line.strip()) == (__file__, "tl.store(ptr, PLAIN)")


def test_a_kernel_is_freed_with_its_function():
    import gc
    import weakref

    def make():
        @triton.jit
        def kernel(ptr):
            tl.store(ptr, 1.0)

        kernel.warmup(FLOATS)
        return weakref.ref(kernel)

    ref = make()
    gc.collect()
    assert ref() is None


def test_names_of_parameters():
    import inspect

    from naiad.runtime.source import parameter_names

    def plain(a, b=1):
        c = a
        return c

    def everything(a, /, b, *rest, c, d=2, **more):
        e = a
        return e

    def starred(*rest, c):
        pass

    def keywords(*, c, **more):
        d = c
        return d

    for fn in plain, everything, starred, keywords, lambda: None:
        assert parameter_names(fn) == list(inspect.signature(fn).parameters)


def test_kernels_that_are_made_again_and_again(tmp_path, monkeypatch):
    """As tests do that define their kernels within: the file is taken apart once."""
    before = "# " + "é" * 10 + "\n"
    text = """
import naiad as triton
import naiad.language as tl

def make():
    @triton.jit
    def k(x):
        tl.store(x, VALUE)
    return k
"""
    path = tmp_path / "kernels_made_here.py"
    path.write_text(before + text.replace("VALUE", "1.0"))
    monkeypatch.syspath_prepend(str(tmp_path))
    import kernels_made_here

    blocks = []
    function_end = _naiad.function_end
    monkeypatch.setattr(_naiad, "function_end", lambda *at: blocks.append(1) or function_end(*at))
    for _ in range(3):
        assert "value=1.0" in ir(kernels_made_here.make(), FLOATS)
    assert len(blocks) == 1
    # A file that changed is read again.
    path.write_text(before + text.replace("VALUE", "25.0"))
    assert "value=25.0" in ir(kernels_made_here.make(), FLOATS)


# What stands in the first line, and the text behind it; of all that Python takes.
SHAPES = {
    "a decorator in brackets": "@(\n    triton.jit\n)\ndef k(x):\n    tl.store(x, 7)\n",
    "a decorator in brackets, and one before": "@same\n@(\n\n    triton.jit)\ndef k(x):\n    tl.store(x, 7)\n",
    "a tab behind def": "@triton.jit\ndef\tk(x):\n    tl.store(x, 7)\n",
    "a form feed behind def": "@triton.jit\ndef\x0ck(x):\n    tl.store(x, 7)\n",
    "def in two lines": "@triton.jit\ndef\\\n  k(x):\n    tl.store(x, 7)\n",
    "a backslash alone": "@triton.jit\ndef k(x):\n    tl.store(x, 1)\n\\\n    tl.store(x, 7)\n",
    "form feeds": "\x0c@triton.jit\n\x0cdef k(x):\n    tl.store(x, 7)\n\x0c\x0cy = 2\n",
    "a text that goes on, CRLF": "@triton.jit\r\ndef k(x):\r\n    a: tl.constexpr = 'q\\\r\nz'\r\n    tl.store(x, 7)\r\n",
    "texts in texts": "@triton.jit\ndef k(x):\n    tl.static_assert(True, f'{\'(\'}')\n    tl.store(x, 7)\n\ny = (1)\n",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_of_odd_shapes(shape, tmp_path):
    """All of the kernel runs, whether its text is a file's or was executed."""
    np = pytest.importorskip("numpy")
    text = SHAPES[shape]
    try:
        compile(text, "<shape>", "exec")
    except SyntaxError:
        pytest.skip("not in this version of Python")
    head = "def same(f):\n    return f\n\n"
    name = str(tmp_path / "shape.py")
    linecache.cache[name] = len(text), None, (head + text).splitlines(keepends=True) if "\x0c" not in text else [
        line + "\n" for line in (head + text).split("\n")
    ], name
    namespace = {"triton": triton, "tl": tl}
    exec(compile(head + text, name, "exec"), namespace)
    x = np.zeros(1, np.float32)
    namespace["k"][(1,)](x)
    assert x[0] == 7
    assert "y = " not in namespace["k"].src


def test_a_file_that_has_changed_is_not_another_kernel(tmp_path):
    """The line that Python names is now within another kernel."""
    name = str(tmp_path / "changed.py")
    text = "\n\n\n@triton.jit\ndef k(x):\n    tl.store(x, 7)\n"
    namespace = {"triton": triton, "tl": tl}
    exec(compile(text, name, "exec"), namespace)
    changed = "@triton.jit\ndef other(x):\n    tl.store(x, 1)\n    tl.store(x, 2)\n    tl.store(x, 3)\n"
    linecache.cache[name] = len(changed), None, changed.splitlines(keepends=True), name
    with pytest.raises(triton.TritonError, match="has changed"):
        namespace["k"].src


SAME_BYTES = {
    "tabs": "def k(x,\tN):\n\t# a comment\n\ttl.store(x,\tN)\t# tab\n\n\t# behind it\n# of another\n\ny = 1\n",
    "spaces": "def k(x):\n    tl.store(x, 7)   \n\n\n",
    "class": "class C:\n    @triton.jit\n    def k(x,\n          n):\n        '''doc\n      less\n        '''\n        tl.store(x, 7)\n        # end\n\n    y = 1\n",
    "no newline": "def k(x):\n    tl.store(x, 7)",
    "one line": "def k(x): tl.store(x, 'ä')  # ü\n\n# other\n",
}


@pytest.mark.parametrize("shape", SAME_BYTES)
def test_a_source_is_to_the_byte_what_python_has(define, shape):
    import inspect
    import textwrap

    text = SAME_BYTES[shape]
    cell = define(text if shape == "class" else "@triton.jit\n" + text)
    k = cell["C"].k if shape == "class" else cell["k"]
    lines = inspect.getsourcelines(k.fn)[0]
    whole = textwrap.dedent("".join(lines))
    assert k.raw_src == lines and k.src == whole[whole.index("def k") :]
    # What it is replaced by is kept as it is given.
    k._unsafe_update_src("def k(x):\n\ttl.store(x, 8)")
    assert k.src == "def k(x):\n\ttl.store(x, 8)" and k.raw_src == lines


def test_the_source_of_a_constexpr_function(define):
    f = define("@triton.constexpr_function\ndef f(n):\n\treturn n + 1\n")["f"]
    assert f.src == "def f(n):\n\treturn n + 1\n" and f.parse().body[0].name == "f"
    assert len(f.cache_key) == 64


@pytest.mark.parametrize("change", ["clear", "update"])
@pytest.mark.parametrize("launched", [False, True])
def test_annotations_are_those_of_the_decoration(define, change, launched):
    """As in Triton, which takes the signature then."""
    np = pytest.importorskip("numpy")
    k = define("@triton.jit\ndef k(x, N: tl.constexpr, n):\n    tl.store(x, N + n)\n")["k"]
    x = np.zeros(1, np.float32)
    if launched:
        k[(1,)](x, 3, 4)
    for annotations in k.__annotations__, k.fn.__annotations__:
        if change == "clear":
            annotations.clear()
        else:
            annotations.update(n=tl.constexpr, N="i64")
    k[(1,)](x, 3, 5)
    assert x[0] == 8
    assert k.constexprs == [1] and [p.annotation for p in k.params] == ["", "constexpr", ""]
    assert k.signature.parameters["N"].annotation is tl.constexpr


def test_files_whose_names_are_no_text(tmp_path):
    np = pytest.importorskip("numpy")
    name = str(tmp_path / "kern\udcff.py")
    text = "@triton.jit\ndef k(x):\n    tl.store(x, 7)\n"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    namespace = {"triton": triton, "tl": tl}
    # Python itself compiles no such name, but imports and runs files that have one.
    code = compile(text, "kern", "exec")
    code = code.replace(co_consts=tuple(c.replace(co_filename=name) if hasattr(c, "co_code") else c for c in code.co_consts))
    exec(code, namespace)
    x = np.zeros(1, np.float32)
    namespace["k"][(1,)](x)
    assert x[0] == 7
