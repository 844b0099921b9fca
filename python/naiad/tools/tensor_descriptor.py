"""Tensor descriptors made on the host, to be passed to kernels."""

from dataclasses import dataclass
from typing import Any, List


@dataclass
class TensorDescriptor:
    """A tensor that a kernel reads and writes in blocks of ``block_shape``.

    ``strides`` are in elements; the last must be 1 and the others multiples of 16 bytes. Outside of
    the tensor a kernel reads 0, or NaN if ``padding`` is "nan".
    """

    base: Any
    shape: List[int]
    strides: List[int]
    block_shape: List[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self):
        rank = len(self.shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"a tensor descriptor has 1 to 5 axes, not {rank}")
        if len(self.strides) != rank or len(self.block_shape) != rank:
            raise ValueError(
                f"shape, strides and block_shape must be of one length: {rank}, "
                f"{len(self.strides)} and {len(self.block_shape)}"
            )
        if self.padding not in ("zero", "nan"):
            raise ValueError(f'padding must be "zero" or "nan", not {self.padding!r}')

    @classmethod
    def from_tensor(cls, tensor, block_shape, padding="zero", round_f32_to_tf32=False):
        """A descriptor of all of a tensor."""
        return cls(
            tensor,
            list(tensor.shape),
            _strides(tensor),
            list(block_shape),
            padding,
            round_f32_to_tf32,
        )


def _strides(tensor):
    """In elements. NumPy has them in bytes."""
    if callable(getattr(tensor, "stride", None)):
        return list(tensor.stride())
    return [stride // tensor.dtype.itemsize for stride in tensor.strides]
