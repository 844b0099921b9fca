"""Kernels that are tuned, and what trials do to their tensors."""

import numpy as np
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})]


def double(x_ptr, n, BLOCK: tl.constexpr):  # finds: warning[autotune-hazard]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + x, mask=i < n)


# naiad: allow(autotune-hazard)
def triple(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, 3 * x, mask=i < n)


def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def grid(meta):
    return (triton.cdiv(100, meta["BLOCK"]),)


hazard = triton.autotune(configs=CONFIGS, key=["n"])(triton.jit(double))
restored = triton.autotune(configs=CONFIGS, key=["n"], restore_value=["x_ptr"])(triton.jit(double))
apart = triton.autotune(configs=CONFIGS, key=["n"])(triton.jit(copy))

allowed = triton.autotune(configs=CONFIGS, key=["n"])(triton.jit(triple))
for kernel in hazard, restored, allowed:
    x = np.ones(100, np.float32)
    kernel[grid](x, 100)
    # One configuration, once.
    assert (x == (3 if kernel is allowed else 2)).all()
apart[grid](np.ones(100, np.float32), np.empty(100, np.float32), 100)


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}), *CONFIGS], key=["n"], reset_to_zero=["out_ptr"])
@triton.jit
def accumulate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 64, "a configuration that does not fit is passed over")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def zero_first(arguments):
    arguments["out_ptr"][:] = 0


# Zeroed by a hook, what was uninitialized no longer is.
hooked = [triton.Config({"BLOCK": size}, pre_hook=zero_first) for size in (32, 64)]
out = np.empty(100, np.float32)
triton.autotune(configs=hooked, key=["n"])(accumulate.fn)[grid](np.ones(100, np.float32), out, 100)
assert (out == 1).all()

# As without checks: zeroed where it is tuned, and left alone where the key is known.
out = np.full(100, 7, np.float32)
for times in 1, 2:
    accumulate[grid](np.ones(100, np.float32), out, 100)
    assert (out == times).all()
    assert accumulate.best_config is CONFIGS[0] and list(accumulate.cache.values()) == [CONFIGS[0]]
