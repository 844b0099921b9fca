"""Types that name a device: ``torch.cuda.FloatTensor`` and its kin, as older scripts have them."""

import torch

from .tensors import CPU, CUDA, _Base, is_cuda, mark, to

_real_type = _Base.type

NAMES = """
    BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor
    LongTensor ShortTensor
""".split()


class _Kind(type):
    """The type of such types: what is one of theirs is told by device and dtype."""

    def __call__(cls, *args, device=None, **kwargs):
        if device is not None and torch.device(device).type != "cuda":
            raise RuntimeError(f"a {cls.__module__}.{cls.__name__} cannot be on `{device}`")
        return mark(cls._on_cpu(*args, **kwargs), CUDA)

    def __instancecheck__(cls, x):
        return isinstance(x, torch.Tensor) and x.dtype == cls.dtype and is_cuda(x)

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _kinds():
    for name in NAMES:
        on_cpu = getattr(torch, name)
        facts = {"_on_cpu": on_cpu, "dtype": on_cpu.dtype, "layout": torch.strided, "is_cuda": True}
        yield name, _Kind(name, (), {**facts, "__module__": "torch.cuda"})


def type_of(self, dtype=None, non_blocking=False, **kwargs):
    """`Tensor.type`: the name of the tensor's type, or the tensor as one of another type."""
    if dtype is None:
        name = _real_type(self)
        return name.replace("torch.", "torch.cuda.", 1) if is_cuda(self) else name
    if isinstance(dtype, torch.dtype):
        return to(self, dtype)
    kind = _named(dtype) if isinstance(dtype, str) else dtype
    if isinstance(kind, _Kind):
        return to(self, CUDA, kind.dtype)
    if isinstance(kind, type(torch.FloatTensor)):
        return to(self, CPU, kind.dtype)
    return _real_type(self, dtype, non_blocking, **kwargs)


def _named(name):
    """The type of this name; the name itself where it is none."""
    module, _, kind = name.rpartition(".")
    where = {"torch": torch, "torch.cuda": torch.cuda}.get(module)
    return getattr(where, kind, name) if kind in NAMES else name


def patch():
    """Puts them into torch."""
    for name, kind in _kinds():
        setattr(torch.cuda, name, kind)
    torch.Tensor.type = type_of
    default = torch.set_default_tensor_type

    def set_default_tensor_type(t, /):
        kind = _named(t) if isinstance(t, str) else t
        if isinstance(kind, _Kind):
            torch.set_default_dtype(kind.dtype)
            torch.set_default_device(CUDA)
        else:
            default(t)
            torch.set_default_device(None)

    torch.set_default_tensor_type = set_default_tensor_type
