"""Names of Triton's compiler that other code imports."""

from collections import namedtuple

from . import errors
from .._naiad import CompiledKernel
from .errors import CompilationError

__all__ = ["CompilationError", "CompiledKernel", "errors"]

_FIELDS = """
    name hash num_warps num_stages num_ctas maxnreg enable_fp_fusion debug sanitize_overflow shared
    tmem_size global_scratch_size target triton_version
""".split()

KernelMetadata = namedtuple("KernelMetadata", _FIELDS)


def metadata(**known):
    """The metadata of a compiled kernel, with what is the same for all here."""
    from ..alias import TRITON_VERSION
    from ..runtime.driver import active

    return KernelMetadata(
        **known,
        # No memory is shared out among programs. Kernels that size their grid by it divide by this.
        shared=1,
        tmem_size=0,
        global_scratch_size=0,
        target=active.get_current_target(),
        triton_version=TRITON_VERSION,
    )
