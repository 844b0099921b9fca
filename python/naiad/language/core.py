"""Objects of ``triton.language`` that are more than a name, and what makes the rest.

Nothing here computes: kernels are compiled from their text. The objects exist so that modules can be
imported, dtypes compared, and constants held.
"""

import operator

from .. import _naiad
from .._naiad import dtype, pointer_type

TRITON_MAX_TENSOR_NUMEL = _naiad.MAX_NUMEL


class builtin:
    """A function of the language. Only kernels can call it."""

    __slots__ = ("__name__", "__naiad_builtin__")

    def __init__(self, path):
        self.__name__ = path.rsplit(".", 1)[-1]
        self.__naiad_builtin__ = path

    def __repr__(self):
        return f"<function triton.language.{self.__naiad_builtin__}>"

    def __call__(self, *args, **kwargs):
        raise ValueError(
            f"`{self.__name__}` works only in a kernel. Did you forget to add `@triton.jit` to the "
            "function that calls it?"
        )


def functions(module):
    """The functions of a module of the language, by name."""
    prefix = module + "." if module else ""
    return {name: builtin(prefix + name) for name in dict(_naiad.language_names())[module]}


def dtypes():
    """The scalar types, by name."""
    return {name: dtype(short) for name, short in _naiad.dtype_names()}


class constexpr:
    """A value that is known while a kernel is compiled.

    As an annotation it marks a parameter; as an instance it is the one kind of plain value that
    kernels may read as a global.
    """

    __naiad_builtin__ = "constexpr"
    __slots__ = ("value",)

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    def __repr__(self):
        return f"constexpr[{self.value}]"

    def __hash__(self):
        return hash(self.value)

    def __bool__(self):
        return bool(self.value)

    def __index__(self):
        return operator.index(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __getitem__(self, index):
        return self.value[_unwrap(index)]

    def __call__(self, *args, **kwargs):
        return self.value(*args, **kwargs)


def _unwrap(x):
    return x.value if isinstance(x, constexpr) else x


def _add_operators():
    binary = "add sub mul truediv floordiv mod pow lshift rshift and or xor".split()
    for name in binary:
        # `and` and `or` are keywords, so the module spells them `and_` and `or_`.
        f = getattr(operator, name, None) or getattr(operator, name + "_")
        setattr(constexpr, f"__{name}__", lambda a, b, f=f: constexpr(f(a.value, _unwrap(b))))
        setattr(constexpr, f"__r{name}__", lambda a, b, f=f: constexpr(f(_unwrap(b), a.value)))
    for name in "eq ne lt le gt ge".split():
        f = getattr(operator, name)
        setattr(constexpr, f"__{name}__", lambda a, b, f=f: constexpr(f(a.value, _unwrap(b))))
    for name in "neg pos invert abs".split():
        f = getattr(operator, name)
        setattr(constexpr, f"__{name}__", lambda a, f=f: constexpr(f(a.value)))


_add_operators()


class constexpr_type:
    """The type of a constexpr, which is its value."""

    __naiad_builtin__ = "constexpr_type"

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, constexpr_type) and bool(self.value == other.value)

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"constexpr_type[{self.value}]"


class const:
    """As an annotation: a pointer through which nothing is stored."""


class tensor:
    """The type of run-time values. There are none outside of kernels."""


class tuple(tuple):
    """The type of tuples in kernels."""

    __naiad_builtin__ = "tuple"


class slice:
    """A range of indices."""

    def __init__(self, start, stop=None, step=None):
        self.start, self.stop, self.step = start, stop, step


class block_type:
    """The type of a tile."""

    def __init__(self, element_ty, shape):
        self.element_ty = self.scalar = element_ty
        self.shape = [_unwrap(extent) for extent in shape]
        self.numel = 1
        for extent in self.shape:
            if extent < 1 or extent & (extent - 1):
                raise ValueError(f"shape element {extent} must be a power of 2")
            self.numel *= extent
        if self.numel > TRITON_MAX_TENSOR_NUMEL:
            raise ValueError(f"numel ({self.numel}) exceeds the maximum ({TRITON_MAX_TENSOR_NUMEL})")

    def is_block(self):
        return True

    def __eq__(self, other):
        same = isinstance(other, block_type)
        return same and self.element_ty == other.element_ty and self.shape == other.shape

    def __repr__(self):
        return f"<{self.shape}, {self.element_ty}>"


class void:
    """The type of what returns nothing."""


class tensor_descriptor:
    """The type of a tensor descriptor."""


class PropagateNan:
    """What `maximum`, `minimum` and `clamp` do with a NaN."""

    NONE = builtin("PropagateNan.NONE")
    ALL = builtin("PropagateNan.ALL")


def get_int_dtype(bitwidth, signed):
    """The integer type of this width. Kernels may call it too."""
    return dtype(f"{'' if _unwrap(signed) else 'u'}int{_unwrap(bitwidth)}")


get_int_dtype.__naiad_builtin__ = "get_int_dtype"

# Some names are more than a function, and stand above.
globals().update({name: f for name, f in functions("").items() if name not in globals()})
globals().update(dtypes())
pi32_t = pointer_type(dtype("int32"))
