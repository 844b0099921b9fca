"""What is compiled for, under the names that Triton has for it."""

import hashlib
from dataclasses import dataclass, field, fields

from .. import _naiad


@dataclass(frozen=True)
class GPUTarget:
    """A device: its kind, its generation, the width of its warps."""

    backend: str
    arch: object
    warp_size: int

    def __iter__(self):
        return iter((self.backend, self.arch, self.warp_size))


@dataclass(frozen=True)
class Options:
    """Launch options with their defaults."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    warp_size: int = 32
    maxnreg: object = None
    enable_fp_fusion: bool = True
    debug: bool = False
    sanitize_overflow: bool = True
    launch_cooperative_grid: bool = False
    backend_name: str = "cpu"
    arch: object = None
    extern_libs: tuple = ()
    others: dict = field(default_factory=dict)

    def hash(self):
        return hashlib.sha256(repr(self).encode()).hexdigest()


class BaseBackend:
    """A compiler for a kind of device."""

    def __init__(self, target):
        self.target = target

    @staticmethod
    def supports_target(target):
        return False

    def parse_options(self, options):
        known = {f.name for f in fields(Options)} - {"others"}
        given = {name: value for name, value in options.items() if name in known and value is not None}
        return Options(**given, others={k: v for k, v in options.items() if k not in known})

    def hash(self):
        return f"naiad-{_naiad.__version__}-{self.target.backend}"

    @staticmethod
    def get_arg_specialization(arg, ty, **options):
        """Letters for what may be assumed of an argument: D is divisible by 16."""
        if ty == "int":
            return "D" if arg % 16 == 0 and options.get("align") else ""
        return "D" if options.get("align") and arg.data_ptr() % 16 == 0 else ""

    get_int_specialization = classmethod(lambda cls, arg, **o: cls.get_arg_specialization(arg, "int", **o))
    get_tensor_specialization = classmethod(lambda cls, arg, **o: cls.get_arg_specialization(arg, "tensor", **o))

    @staticmethod
    def parse_attr(text):
        return [["tt.divisibility", 16]] if "D" in text else []


class NaiadBackend(BaseBackend):
    """Naiad's own, for the CPU."""

    @staticmethod
    def supports_target(target):
        return target.backend == "cpu"
