"""What the modules share: kernels made from an expression, and how they are run and refused."""

import itertools
import linecache
import textwrap

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._numbers import TYPES, Typed, bits_equal, kind

SIZES = [1, 31, 33, 127, 1021]

_cells = itertools.count()


def define(text, **names):
    """Defines what the text says, as a notebook's cell does; returns its names."""
    text = textwrap.dedent(text)
    cell = f"<ops cell {next(_cells)}>"
    linecache.cache[cell] = (len(text), None, text.splitlines(True), cell)
    namespace = {"triton": triton, "tl": tl, "__name__": "cell", **names}
    exec(compile(text, cell, "exec"), namespace)
    return namespace


def functions(text):
    """The jit functions that the text defines, as `names` of kernels."""
    return {name: f for name, f in define(text).items() if hasattr(f, "arg_names")}


def power(n):
    return triton.next_power_of_2(max(n, 1))


def _place(shape, strides):
    """The offsets of a tile's elements, in elements."""
    terms = []
    for axis, (extent, stride) in enumerate(zip(shape, strides)):
        index = ", ".join(":" if i == axis else "None" for i in range(len(shape)))
        terms.append(f"tl.arange(0, {power(extent)})[{index}] * ({stride})")
    return " + ".join(terms)


def _mask(shape):
    terms = []
    for axis, extent in enumerate(shape):
        if extent != power(extent):
            index = ", ".join(":" if i == axis else "None" for i in range(len(shape)))
            terms.append(f"(tl.arange(0, {power(extent)})[{index}] < {extent})")
        elif extent == 0:
            terms.append("(tl.arange(0, 1) < 0)")
    return " & ".join(terms)


def _kernel_text(body, results, inputs, pointers, other):
    params, lines = [], []
    for name, value in inputs.items():
        typed = _typed(value)
        if typed is None:
            params.append(name)
            continue
        params.append(f'{name}: "*{TYPES[typed.name].short}"')
        if name in pointers:
            continue
        array = typed.array
        strides = [s // array.itemsize for s in array.strides]
        place, mask = _place(array.shape, strides), _mask(array.shape)
        at = f"{name} + ({place})" if place else name
        masked = f", mask={mask}" if mask else ""
        if mask and name in other:
            masked += f", other={other[name]}"
        lines.append(f"{name} = tl.load({at}{masked})")
    lines += textwrap.dedent(body).strip().splitlines()
    for result, (name, shape) in results.items():
        params.append(f'{result}_: "*{TYPES[name].short}"')
        lines.append(f"tl.static_assert({result}.dtype == tl.{name}, {result}.dtype.name)")
        padded = tuple(power(extent) for extent in shape)
        for axis, extent in enumerate(padded):
            lines.append(f"tl.static_assert({result}.shape[{axis}] == {extent})")
        lines.append(f"tl.static_assert(len({result}.shape) == {len(shape)})")
        place = _place(shape, [int(np.prod(shape[i + 1 :])) for i in range(len(shape))])
        mask = _mask(shape)
        masked = f", mask={mask}" if mask else ""
        at = f"{result}_ + ({place})" if place else f"{result}_"
        lines.append(f"tl.store({at}, {result}{masked})")
    return f"@triton.jit\ndef kernel({', '.join(params)}):\n" + textwrap.indent(
        "\n".join(lines) or "pass", "    "
    )


def _typed(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return Typed(kind(value.dtype), np.asarray(value))
    return value if isinstance(value, Typed) else None


def _arguments(inputs):
    for value in inputs.values():
        typed = _typed(value)
        yield value if typed is None else typed.array


def tiles(body, inputs=None, *, pointers=(), other=None, before="", names=None, **results):
    """Runs `body` once, with each array of `inputs` loaded as one tile, and returns the results.

    A result is given as `name=(dtype, shape)`, and the kernel asserts that `body` leaves a value of
    that type and shape there. Extents that are no power of two are padded and masked. Inputs that
    are no arrays, and those in `pointers`, are passed as they are.
    """
    inputs = inputs or {}
    results = {
        name: (what, ()) if isinstance(what, str) else (what[0], tuple(what[1]))
        for name, what in results.items()
    }
    text = _kernel_text(body, results, inputs, pointers, other or {})
    kernel = define(textwrap.dedent(before) + "\n" + text, **(names or {}))["kernel"]
    # A pattern that no result contains by chance, so that what is not stored is seen.
    outs = [
        np.frombuffer(b"\xa5" * (int(np.prod(shape)) * TYPES[name].storage.itemsize), np.uint8)
        .copy()
        .view(TYPES[name].storage)
        .reshape(shape)
        if TYPES[name].storage != np.bool_
        else np.zeros(shape, np.bool_)
        for name, shape in results.values()
    ]
    kernel[(1,)](*_arguments(inputs), *outs)
    return outs[0] if len(outs) == 1 else tuple(outs)


def value(expression, dtype, shape=None, inputs=None, **options):
    """`tiles` of one expression; the shape is that of the first array unless it is given."""
    inputs = inputs or {}
    if shape is None:
        arrays = [t.array.shape for t in map(_typed, inputs.values()) if t is not None]
        shape = arrays[0] if arrays else ()
    return tiles(f"result = {expression}", inputs, result=(dtype, shape), **options)


def compiles(*lines, **inputs):
    """Compiles the lines as a kernel's body and runs it on what the inputs are, see `sample`."""
    tiles("\n".join(lines), {name: sample(what) for name, what in inputs.items()})


def sample(what):
    """An input for a test of types: `float16` a tile of 8, `float16[4, 2]` one of that shape."""
    if not isinstance(what, str):
        return what
    name, _, shape = what.partition("[")
    shape = (
        tuple(int(extent) for extent in shape.rstrip("]").split(",") if extent) if shape else (8,)
    )
    if name.startswith("scalar "):
        name, shape = name.removeprefix("scalar "), ()
    return Typed(name, np.zeros(shape, TYPES[name].storage))


def refused(
    body,
    id,
    message="",
    *,
    error=triton.CompilationError,
    pointers=(),
    before="",
    names=None,
    **inputs,
):
    """Checks that the kernel is refused with a message of this kind (any if None) and text."""
    inputs = {name: sample(what) for name, what in inputs.items()}
    with pytest.raises(error) as caught:
        tiles(body, inputs, pointers=pointers, before=before, names=names)
    diagnostic = caught.value.diagnostic
    assert id in (None, diagnostic["id"]), diagnostic["message"]
    assert message in diagnostic["message"]


def same(got, want, name=None):
    """Bit for bit, except that any NaN is as good as another."""
    want = np.asarray(want)
    name = name or kind(got.dtype)
    assert got.shape == want.shape, (got.shape, want.shape)
    wrong = ~bits_equal(name, got, want)
    if wrong.any():
        where = np.argwhere(wrong)[:5]
        shown = [(tuple(map(int, at)), got[tuple(at)], want[tuple(at)]) for at in where]
        raise AssertionError(f"{int(wrong.sum())} of {got.size} differ: at, got, want: {shown}")


def close(got, want, ulps, floor=0.0):
    """Within so many units in the last place of the type of `got`; `want` is in float64."""
    want = np.asarray(want, np.float64)
    assert got.shape == want.shape, (got.shape, want.shape)
    rounded = want.astype(got.dtype)
    finite = np.isfinite(rounded) & np.isfinite(got)
    same(np.where(finite, 0, got).astype(got.dtype), np.where(finite, 0, rounded).astype(got.dtype))
    unit = np.spacing(np.maximum(np.abs(rounded), got.dtype.type(floor)))[finite].astype(np.float64)
    error = np.abs(got[finite].astype(np.float64) - want[finite]) / np.abs(unit)
    assert error.size == 0 or error.max() <= ulps, (
        f"{error.max()} ulp at {want[finite][error.argmax()]}"
    )
