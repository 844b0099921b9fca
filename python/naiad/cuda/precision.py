"""What is computed of half precision "on cuda" in single precision, as a GPU does it.

*Norms and cross entropy*: torch's CPU rounds in between, and adds the gradients of weights up in half precision:
errors of 1 in 20, where suites for GPUs allow less.

*Products of float16*: their sums are single precision on both, but where a CPU has no such products torch takes 45
times as long as in float32 for 1024^3. The references of suites and tutorials are such products. Those of bfloat16 it
has a library for.
"""

import functools

import torch

from .tensors import _PLAIN, is_cuda

_HALF = (torch.float16, torch.bfloat16)
_NORMS = "cross_entropy group_norm layer_norm rms_norm".split()
_PRODUCTS = "addmm addmv baddbmm bmm matmul mm mv".split()
# Elements of one operand beyond which its copy costs too much memory: 1 GiB.
_MOST = 1 << 28


def patch():
    functional = torch.nn.functional
    for name in _NORMS:
        if hasattr(functional, name):
            setattr(functional, name, _norm(getattr(functional, name)))
    for name in _PRODUCTS:
        setattr(torch, name, _product(getattr(torch, name)))
        setattr(torch.Tensor, name, _product(getattr(torch.Tensor, name)))
    torch.Tensor.__matmul__ = _product(torch.Tensor.__matmul__)
    torch.einsum = torch.functional.einsum = _product(torch.einsum)
    functional.linear = _product(functional.linear)


def _norm(norm):
    @functools.wraps(norm)
    def run(input, *args, **kwargs):
        if input.dtype not in _HALF or not is_cuda(input):
            return norm(input, *args, **kwargs)

        def widen(x):
            return x.float() if isinstance(x, torch.Tensor) and x.dtype in _HALF else x

        args = [widen(x) for x in args]
        kwargs = {name: widen(x) for name, x in kwargs.items()}
        return norm(input.float(), *args, **kwargs).to(input.dtype)

    return run


def _product(product):
    @functools.wraps(product)
    def run(*args, **kwargs):
        if "out" in kwargs or not (_are_float16(args) and _are_float16(kwargs.values())):
            return product(*args, **kwargs)
        args = [_widened(x) for x in args]
        kwargs = {name: _widened(x) for name, x in kwargs.items()}
        result = product(*args, **kwargs)
        # An operator leaves what it does not know to the other operand.
        return result if result is NotImplemented else result.to(torch.float16)

    return run


def _are_float16(arguments):
    """Whether all tensors among them are, and on cuda."""
    for x in arguments:
        if type(x) in _PLAIN:
            if x.dtype is not torch.float16 or x.numel() > _MOST or not is_cuda(x):
                return False
        # Torch refuses what is no tensor; of classes that derive from its own they know what to do.
        elif not isinstance(x, (str, int, float, type(None))):
            return False
    return True


def _widened(x):
    return x.float() if isinstance(x, torch.Tensor) else x
