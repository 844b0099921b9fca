"""How the types of arguments are written in signatures."""

from .. import _naiad
from .._naiad import dtype as dtype_class
from .._naiad import pointer_type

_LIBRARIES = {
    "bool": "i1",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}
# From the names of torch, NumPy and `tl` to the short ones.
type_canonicalisation_dict = {name: dtype_class(short).mangled for name, short in _naiad.dtype_names()}
type_canonicalisation_dict.update(_LIBRARIES)
type_canonicalisation_dict.update({short: short for short in list(type_canonicalisation_dict.values())})


def canonicalize_dtype(dtype):
    """The short name of a dtype of torch's, NumPy's or `tl`'s: `fp32`, `i32`."""
    if isinstance(dtype, dtype_class):
        return dtype.mangled
    name = str(dtype).rsplit(".", 1)[-1]
    return type_canonicalisation_dict[name]


def mangle_type(arg, specialize=False):
    """The type that an argument has in a signature, tuples item by item.

    With ``specialize`` an integer that is 1 is a constexpr, as it is in a launch.
    """
    from ..language import core
    from ..tools.tensor_descriptor import TensorDescriptor

    if arg is None or isinstance(arg, core.constexpr):
        return "constexpr"
    if isinstance(arg, tuple):
        return tuple(mangle_type(x, specialize) for x in arg)
    if isinstance(arg, bool):
        return "u1"
    if isinstance(arg, int):
        if specialize and arg == 1:
            return "constexpr"
        if -(2**31) <= arg < 2**31:
            return "i32"
        return "u64" if 2**63 <= arg < 2**64 else "i64"
    if isinstance(arg, float):
        return "fp32"
    if isinstance(arg, TensorDescriptor):
        return f"tensordesc<{canonicalize_dtype(arg.base.dtype)}{list(arg.block_shape)}>"
    if hasattr(arg, "data_ptr"):
        return "*" + canonicalize_dtype(arg.dtype)
    if hasattr(arg, "cache_key"):
        return "constexpr"
    raise TypeError(f"{type(arg).__name__} is no type of an argument")


def str_to_ty(name, *unused):
    """The type that a signature writes so."""
    from ..language import core

    if isinstance(name, tuple):
        return core.tuple(str_to_ty(x) for x in name)
    if name.startswith("*"):
        is_const = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if is_const else 1 :]), 1, is_const)
    if name.startswith("tensordesc<"):
        return core.tensor_descriptor
    if name == "constexpr":
        return core.constexpr
    return dtype_class(_SHORT.get(name, name))



# `dtype` takes floats by their short names and integers by their long ones.
_SHORT = {"u1": "int1", "B": "int1"}
_SHORT.update({dtype_class(short).mangled: short for _, short in _naiad.dtype_names()})
