"""What functions read that kernels call while they are compiled: a change of it is seen by the next launch."""

import types

import pytest

np = pytest.importorskip("numpy")

KERNEL = """
    @triton.constexpr_function
    def width():
        {body}

    @triton.jit
    def kernel(out):
        tl.store(out, width())
    """


def launched(kernel):
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    return int(out[0])


def settings(**values):
    module = types.ModuleType("settings")
    vars(module).update(values)
    return module


class Box:
    def __init__(self, value):
        self.value_of = value


def set_class(cell, value):
    cell["Class"].W = value


@pytest.mark.parametrize(
    ("body", "before", "change"),
    [
        ("return W", {"W": 3}, lambda cell: cell.update(W=10)),
        ("return (lambda: W)()", {"W": 3}, lambda cell: cell.update(W=10)),
        ("return sum(W for _ in range(1))", {"W": 3}, lambda cell: cell.update(W=10)),
        ("return W[0]", {"W": [3]}, lambda cell: cell["W"].__setitem__(0, 10)),
        ("return W['x']", {"W": {"x": 3}}, lambda cell: cell["W"].update(x=10)),
        ("return W[0][0]", {"W": ([3],)}, lambda cell: cell["W"][0].__setitem__(0, 10)),
        ("return 10 if 4 in W else 3", {"W": {3}}, lambda cell: cell["W"].add(4)),
        ("return m.W", {"m": settings(W=3)}, lambda cell: vars(cell["m"]).update(W=10)),
        ("return m.n.W", {"m": settings(n=settings(W=3))}, lambda cell: vars(cell["m"].n).update(W=10)),
        ("return box.value_of", {"box": Box(3)}, lambda cell: vars(cell["box"]).update(value_of=10)),
        ("return Class.W", {"Class": type("Class", (), {"W": 3})}, lambda cell: set_class(cell, 10)),
    ],
)
def test_a_change_is_seen(define, body, before, change):
    cell = define(KERNEL.format(body=body), **before)
    kernel = cell["kernel"]
    assert launched(kernel) == 3
    assert launched(kernel) == 3 and len(kernel.device_caches[0][0]) == 1
    change(cell)
    assert launched(kernel) == 10
    assert launched(kernel) == 10 and len(kernel.device_caches[0][0]) == 2


def test_through_functions_of_all_kinds(define):
    text = """
        import functools

        def plain():
            return W

        @functools.lru_cache(maxsize=0)
        def kept():
            return plain()

        @tl.constexpr
        def other(n):
            return n + kept()

        @triton.constexpr_function
        def width():
            return again(1)

        @triton.constexpr_function
        def again(n):
            return other.value(n) if n else width()

        @triton.jit
        def helper():
            return width()

        @triton.jit
        def kernel(out):
            tl.store(out, helper())
        """
    cell = define(text, W=3)
    assert launched(cell["kernel"]) == 4
    cell["W"] = 10
    assert launched(cell["kernel"]) == 11
    cell["plain"] = lambda: 20
    assert launched(cell["kernel"]) == 21


def test_variables_of_enclosing_functions(define):
    text = """
        def make(w):
            @triton.constexpr_function
            def width():
                return w

            @triton.jit
            def kernel(out):
                tl.store(out, width())

            def change(to):
                nonlocal w
                w = to

            return kernel, change
        """
    kernel, change = define(text)["make"](3)
    assert launched(kernel) == 3
    change(10)
    assert launched(kernel) == 10


def test_a_name_that_is_defined_later(define):
    body = "try:\n            return W\n        except NameError:\n            return 3"
    cell = define(KERNEL.format(body=body))
    assert launched(cell["kernel"]) == 3
    cell["W"] = 10
    assert launched(cell["kernel"]) == 10


def test_what_is_equal_is_not_compiled_anew(define):
    """Objects that are made for each look, and those whose parts only the function's own code reads."""
    cell = define(KERNEL.format(body="return Class.w() + box.value_of + len(W)"), W=[1], box=Box(1))
    cell["Class"] = type("Class", (), {"w": classmethod(lambda cls: 1)})
    kernel = cell["kernel"]
    for _ in range(3):
        assert launched(kernel) == 3
        cell["W"], cell["box"].value_of = [1], int("1")
    assert len(kernel.device_caches[0][0]) == 1
