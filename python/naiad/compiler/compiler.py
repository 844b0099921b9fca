"""Compiling without a launch: ``triton.compile``."""

import functools
import re
from collections import namedtuple

from .. import _naiad
from .._naiad import CompiledKernel
from ..backends.compiler import BaseBackend, GPUTarget, NaiadBackend
from ..errors import CompilationError, LaunchError

_FIELDS = """
    name hash num_warps num_stages num_ctas maxnreg enable_fp_fusion debug sanitize_overflow shared
    tmem_size global_scratch_size profile_scratch_size cluster_dims warp_size target triton_version
""".split()

KernelMetadata = namedtuple("KernelMetadata", _FIELDS)


def metadata(**known):
    """The metadata of a compiled kernel, with what is the same for all here."""
    from ..alias import TRITON_VERSION
    from ..runtime import driver

    # On a CPU no memory is shared out among programs. Kernels that size their grid by it divide by this.
    known.setdefault("shared", 1)
    return KernelMetadata(
        **known,
        tmem_size=0,
        global_scratch_size=0,
        profile_scratch_size=0,
        cluster_dims=(1, 1, 1),
        warp_size=32,
        target=driver.active.get_current_target(),
        triton_version=TRITON_VERSION,
    )


class AttrsDescriptor:
    """What may be assumed of parameters, as older code hands it over. Nothing here depends on it."""

    def __init__(self, divisible_by_16=(), equal_to_1=(), *others):
        self.divisible_by_16 = tuple(divisible_by_16)
        self.equal_to_1 = tuple(equal_to_1)

    @classmethod
    def from_hints(cls, hints):
        return cls([name for name, hint in hints.items() if hint == 16])

    @classmethod
    def from_dict(cls, data):
        return cls()


class ASTSource:
    """A jit function with the types of its parameters: what there is to compile.

    ``signature`` has a type for each parameter by name, as ``{"x": "*fp32", "n": "i32"}``, and
    "constexpr" for those whose value ``constexprs`` has, by name, by position, or by the path of an
    item in a tuple. It may also be one string with the types, separated by commas. ``attrs`` is
    accepted: code here does not depend on alignment.
    """

    ext = "tile"

    def __init__(self, fn, signature, constexprs=None, attrs=None, constants=None):
        self.fn = fn
        self.name = fn.__name__
        if isinstance(signature, str):
            signature = dict(enumerate(re.split(r"\s*,\s*", signature.strip())))
        name = functools.partial(_name_of, fn.arg_names)
        self.signature = {name(key): ty for key, ty in signature.items()}
        self.constants = {}
        for key, value in {**(constants or {}), **(constexprs or {})}.items():
            path = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, tuple) else (key,)
            first = path[0] if isinstance(path[0], int) else fn.arg_names.index(name(path[0]))
            self.constants[(first, *path[1:])] = value
        self.constexprs = self.constants
        self.attrs = attrs or {}

    def hash(self):
        import hashlib

        facts = (self.fn.cache_key, sorted(self.signature.items(), key=str), sorted(self.constants.items(), key=str))
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def parse_options(self):
        return {}

    def arguments(self):
        """For each parameter a value of its type, and the type that it is annotated with."""
        values, types = [], []
        for index, name in enumerate(self.fn.arg_names):
            ty = self.signature.get(name, "constexpr")
            values.append(self._argument((index,), name, ty))
            # Of a tuple's items the types are those of the values.
            types.append(ty if isinstance(ty, str) and not ty.startswith("tensordesc") else None)
        return values, types

    def _argument(self, path, name, ty):
        from ..language.core import constexpr

        if path in self.constants:
            # As such, since the parameter may not be annotated so; items of tuples never are.
            return constexpr(self.constants[path])
        if isinstance(ty, (tuple, list)):
            items = (self._argument((*path, i), f"{name}.{i}", item) for i, item in enumerate(ty))
            return tuple(items)
        if ty == "constexpr":
            param = self.fn.signature.parameters[self.fn.arg_names[path[0]]]
            if len(path) == 1 and param.default is not param.empty:
                return param.default
            raise LaunchError(
                f"`{name}` of `{self.name}` is constexpr and `constexprs` has no value for it"
            )
        return _stand_in(ty)


def _name_of(names, key):
    """Parameters are given by name, by position, or by a path that starts with one of these."""
    if isinstance(key, tuple):
        key = key[0]
    name = names[key] if isinstance(key, int) and key < len(names) else key
    if name not in names:
        raise LaunchError(f"there is no parameter `{key}`: they are {', '.join(names)}")
    return name


def _stand_in(ty):
    """Something of a type that a signature names."""
    from ..runtime.jit import MockTensor
    from ..runtime.types import str_to_ty
    from ..tools.tensor_descriptor import TensorDescriptor

    described = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]*)\].*>", ty)
    if described:
        block = [int(n) for n in described[2].split(",")]
        strides = [1]
        for extent in reversed(block[1:]):
            # Whatever satisfies the demands on a descriptor's strides.
            strides.insert(0, strides[0] * max(extent, 16))
        return TensorDescriptor(MockTensor(str_to_ty(described[1]), block), block, strides, block)
    try:
        dtype = str_to_ty(ty)
    except TypeError:
        raise LaunchError(f"a signature has no type '{ty}'") from None
    if dtype.is_ptr():
        return MockTensor(dtype.element_ty)
    if dtype.is_bool():
        return True
    if dtype.is_floating():
        return 2.0
    # Within the type, and beyond what narrower ones hold.
    return {"i64": 1 << 40, "u64": 1 << 63}.get(dtype.mangled, 2)


class IRSource:
    """A file of another compiler's intermediate representation, which cannot be read here."""

    def __init__(self, path, context=None, backend=None):
        raise CompilationError(
            f"`{path}` is of Triton's own intermediate representation, and Naiad compiles the text of "
            "kernels: give `triton.compile` an `ASTSource`"
        )


def compile(src, target=None, options=None, _env_vars=None):
    """Compiles a source; gives what a launch returns, and nothing is launched."""
    if not isinstance(src, ASTSource):
        return IRSource(src)
    backend = make_backend(target) if target is not None else None
    if backend is not None and not isinstance(options, (dict, type(None))):
        options = vars(options)
    values, types = src.arguments()
    kernel = src.fn._kernel_of(types)
    return kernel.compile(False, tuple(values), dict(options or {}))


def make_backend(target):
    """The compiler for a target. All code here is for the CPU, and so is code for other targets: a
    kernel that is only compiled need not run where it was meant to."""
    return NaiadBackend(target)


def max_shared_mem(device=0):
    from ..runtime import driver

    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def triton_key():
    """Names this compiler, for caches."""
    from ..alias import TRITON_VERSION

    return f"naiad-{_naiad.__version__}-{TRITON_VERSION}"


class LazyDict(dict):
    """What is known of a launch, to a hook."""

    def __init__(self, data=()):
        super().__init__(data)
        self.data = self

    def get(self, *args):
        """Everything, as a dictionary; or one item, as of any dictionary."""
        return super().get(*args) if args else self

    def add(self, f, args):
        self.update(f(*args) or {})


__all__ = [
    "ASTSource",
    "AttrsDescriptor",
    "BaseBackend",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "compile",
    "make_backend",
    "max_shared_mem",
    "metadata",
    "triton_key",
]
