"""Kernels that are tuned, and what trials do to their tensors."""

import numpy as np
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})]


def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + x, mask=i < n)


def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def grid(meta):
    return (triton.cdiv(100, meta["BLOCK"]),)


hazard = triton.autotune(configs=CONFIGS, key=["n"])(triton.jit(double))  # finds nowhere: warning[autotune-hazard]
restored = triton.autotune(configs=CONFIGS, key=["n"], restore_value=["x_ptr"])(triton.jit(double))
apart = triton.autotune(configs=CONFIGS, key=["n"])(triton.jit(copy))

for kernel in hazard, restored:
    x = np.ones(100, np.float32)
    kernel[grid](x, 100)
    # One configuration, once.
    assert (x == 2).all()
apart[grid](np.ones(100, np.float32), np.empty(100, np.float32), 100)
