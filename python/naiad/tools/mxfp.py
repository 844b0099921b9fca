"""Microscaling formats on the host: tensors of 4-bit floats, and of the scales of blocks. Needs torch."""

import math

import torch

# What the codes without a sign stand for.
_MAGNITUDES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
_BIAS = 127
_NAN = 255


class _Coded:
    """A tensor of codes of a byte each, in ``data``; made of values, or of a size to be filled."""

    def __init__(self, data=None, size=None, device=None):
        self.device = device
        if data is not None:
            self.device = data.device
            self.data = self._encode(data)
        else:
            self.size = size if isinstance(size, tuple) else (size,)
            self.data = None

    @property
    def shape(self):
        return tuple(self.data.shape) if self.data is not None else self.size

    def to(self, dtype):
        """The values as a tensor of torch's."""
        return self._decode().to(dtype)


class MXFP4Tensor(_Coded):
    """Floats of 4 bits: a sign, two bits of exponent and one of mantissa."""

    def random(self):
        self.data = torch.randint(0, 16, self.shape, dtype=torch.uint8, device=self.device)
        return self

    def _encode(self, values):
        """To the nearest, a tie to the even code; what is larger than 6 to that."""
        values = values.to(torch.float32)
        magnitudes = torch.tensor(_MAGNITUDES, device=values.device)
        middles = (magnitudes[1:] + magnitudes[:-1]) / 2
        x = values.abs().contiguous()
        code = torch.bucketize(x, middles)
        # On a middle `bucketize` takes the lower code.
        tie = x == torch.cat([middles, middles.new_tensor([math.inf])])[code]
        code += tie & (code % 2 == 1) & (code < 7)
        return (code + 8 * torch.signbit(values)).to(torch.uint8)

    def _decode(self):
        magnitudes = torch.tensor(_MAGNITUDES, device=self.data.device)
        values = magnitudes[(self.data & 7).long()]
        return torch.where(self.data & 8 != 0, -values, values)

    def to_packed_tensor(self, dim):
        """Two codes in a byte, neighbours along ``dim``, the first in the low half."""
        assert 0 <= dim < self.data.ndim, f"there is no dimension {dim} to pack along"
        data = self.data.movedim(dim, -1)
        if data.shape[-1] % 2:
            data = torch.nn.functional.pad(data, (0, 1))
        return (data[..., ::2] | data[..., 1::2] << 4).movedim(-1, dim).contiguous()

    def unpack_packed_tensor(self, packed_tensor, dim, original_shape):
        """The codes again, without what was padded."""
        packed = packed_tensor.movedim(dim, -1)
        data = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
        return data[..., : original_shape[dim]].movedim(-1, dim).contiguous()


class MXScaleTensor(_Coded):
    """Powers of two, as the exponent of a byte: the scale of a block."""

    def random(self, low=None, high=None):
        """Between ``low`` and ``high``; by default all that there are."""
        first = 0 if low is None else max(0, math.floor(math.log2(low)) + _BIAS)
        last = _NAN - 1 if high is None else min(_NAN - 1, math.floor(math.log2(high)) + _BIAS)
        if first > last:
            raise ValueError(f"there is no power of two from {low} to {high}")
        self.data = torch.randint(first, last + 1, self.shape, dtype=torch.uint8, device=self.device)
        return self

    def _encode(self, values):
        """The power of two that is not above; 255, which is NaN, for what has no logarithm."""
        values = values.to(torch.float64)
        exponent = torch.frexp(values)[1] - 1 + _BIAS
        fits = torch.isfinite(values) & (values > 0)
        return torch.where(fits, exponent.clamp(0, _NAN - 1), _NAN).to(torch.uint8)

    def _decode(self):
        exponent = self.data.to(torch.int32) - _BIAS
        values = torch.ldexp(torch.ones_like(exponent, dtype=torch.float64), exponent)
        return torch.where(self.data == _NAN, math.nan, values)
