"""Scratch memory of the host's, which kernels here never need: who sets an allocator finds it again."""

import contextvars


class NullAllocator:
    """Stands where no allocator was set."""

    def __call__(self, size, alignment, stream):
        raise RuntimeError(
            f"{size} bytes of scratch memory are asked for and no allocator is set: call "
            "`triton.set_allocator`"
        )


_allocator = contextvars.ContextVar("allocator", default=NullAllocator())
_profile_allocator = contextvars.ContextVar("profile_allocator", default=NullAllocator())


def set_allocator(allocator):
    """Accepted: kernels here need no scratch memory of the host's."""
    _allocator.set(allocator)


def set_profile_allocator(allocator):
    """Accepted: kernels here are not instrumented."""
    _profile_allocator.set(NullAllocator() if allocator is None else allocator)
