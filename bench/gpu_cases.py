"""What `gpu.py` measures: each case with its inputs, its reference in float64, and what runs it."""

import math
from dataclasses import dataclass, field
from typing import Callable

import torch


@dataclass
class Case:
    """One row of the table. `sides` of a compiler are made by `ours(modules)`."""

    name: str
    group: str
    ours: Callable
    """Gives functions without arguments by the name of a configuration; each launches, and writes `out`."""
    want: Callable
    """The results in float64."""
    out: list
    tolerance: float
    bytes: int = 0
    flops: int = 0
    eager: Callable = None
    """torch, into `out` where it can."""
    compiled: Callable = None
    """A function that torch.compile is given, with its arguments."""
    notes: dict = field(default_factory=dict)


def cases(device, small):
    """Names with functions that make the cases, as memory is needed for one at a time. The safest come
    first: what breaks the GPU's context ends the process that measures."""

    def size(large, little):
        return little if small else large

    for rows, cols, how in (
        (16384, 4096, "row"),
        (16384, 4096, "wide"),
        (512, 128000, "wide"),
    ):
        rows, cols = size((rows, cols), (rows // 512, cols // 32))
        yield f"bias add {rows}x{cols}, {how}", lambda r=rows, c=cols, h=how: bias_add(device, r, c, h)
    rows = size(1 << 20, 1 << 8)
    yield f"bias add {rows}x17, stride 32", lambda: bias_add(device, rows, 17, "row", 32)
    n = size(1 << 28, 1 << 12)
    yield f"GELU {n}", lambda: gelu(device, n)
    for rows, cols in ((16384, 4096), (65536, 1000)):
        rows = size(rows, rows // 1024)
        yield f"mean and variance {rows}x{cols}", lambda r=rows, c=cols: row_stats(device, r, c)
    for rows, cols in ((16384, 4096), (65536, 1000), (1024, 1024)):
        rows = size(rows, rows // 256)
        yield f"softmax {rows}x{cols}", lambda r=rows, c=cols: softmax(device, r, c)
    rows, cols = size((4096, 65536), (4, 4096))
    yield f"row sum {rows}x{cols}", lambda r=rows, c=cols: row_sum(device, r, c)
    for rows, cols in ((16384, 16384), (8191, 16385)):
        rows, cols = size((rows, cols), (rows // 128, cols // 128))
        for tile in (32, 64):
            yield (
                f"transpose {rows}x{cols}, tile {tile}",
                lambda r=rows, c=cols, t=tile: transpose(device, r, c, t),
            )
        if rows % 2:
            for tile in (32, 64):
                yield (
                    f"transpose fp16 {rows}x{cols}, tile {tile}",
                    lambda r=rows, c=cols, t=tile: transpose(device, r, c, t, torch.float16),
                )
    for cols in (1024, 4096, 16384):
        rows = size(8192, 8)
        yield f"layer norm fp16 {rows}x{cols}", lambda r=rows, c=cols: layer_norm(device, r, c)
        yield f"layer norm fp16 {rows}x{cols}, passes", lambda r=rows, c=cols: layer_norm(device, r, c, True)
    for n in (4096, 8192, 1000):
        for dtype in ("fp16", "bf16", "tf32"):
            if n == 1000 and dtype == "bf16":
                continue
            m = size(n, n // 16)
            yield f"matmul {dtype} {m}", lambda m=m, d=dtype: matmul(device, m, d)
            if n == 4096:
                yield f"matmul + GELU {dtype} {m}", lambda m=m, d=dtype: matmul(device, m, d, fused=True)


def normal(*shape, device, dtype=torch.float32):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


def power_of_2(n):
    return 1 << (n - 1).bit_length()


def bias_add(device, rows, cols, how, width=None):
    x = normal(rows, width or cols, device=device)[:, :cols]
    bias = normal(cols, device=device)
    out = torch.empty(rows, width or cols, device=device)[:, :cols]

    def ours(m):
        arguments = (x, bias, out, cols, *x.stride(), *bias.stride(), *out.stride())
        if how == "row":
            kernel, grid, block = m["bias_add"].bias_add_kernel, (rows,), power_of_2(cols)
        else:
            kernel, grid, block = m["bias_add"].bias_add_wide_kernel, (rows, -(-cols // 1024)), 1024
        return {"": lambda: kernel[grid](*arguments, BLOCK=block)}

    return Case(
        "", "bias add", ours, lambda: [x.double() + bias.double()], [out], 1e-6, 8 * rows * cols,
        eager=lambda: torch.add(x, bias, out=out), compiled=(lambda x, b: x + b, (x, bias)),
    )


def gelu(device, n):
    x, out = normal(n, device=device), torch.empty(n, device=device)
    kernel = lambda m: lambda: m["gelu"].gelu_kernel[(-(-n // 1024),)](x, out, n, 1, 1, BLOCK=1024)  # noqa: E731

    def torch_gelu(x):
        return torch.nn.functional.gelu(x, approximate="tanh")

    return Case(
        "", "GELU", lambda m: {"": kernel(m)}, lambda: [torch_gelu(x.double())], [out], 1e-5, 8 * n,
        eager=lambda: torch_gelu(x), compiled=(torch_gelu, (x,)),
    )


def row_stats(device, rows, cols):
    x = normal(rows, cols, device=device) + 100
    mean, var = torch.empty(rows, device=device), torch.empty(rows, device=device)
    def ours(m):
        kernel = m["row_stats"].row_stats_kernel
        return {"": lambda: kernel[(rows,)](x, mean, var, cols, *x.stride(), BLOCK=power_of_2(cols))}

    def torch_stats(x):
        return torch.var_mean(x, dim=1, correction=0)

    return Case(
        "", "mean and variance", ours, lambda: list(reversed(torch_stats(x.double()))), [mean, var], 1e-4,
        4 * rows * cols, eager=lambda: torch_stats(x), compiled=(torch_stats, (x,)),
    )


def softmax(device, rows, cols):
    x, out = normal(rows, cols, device=device), torch.empty(rows, cols, device=device)

    def ours(m):
        kernel, strides = m["softmax"].softmax_kernel, (*x.stride(), *out.stride())
        return {"": lambda: kernel[(rows,)](x, out, cols, *strides, BLOCK=power_of_2(cols))}

    return Case(
        "", "softmax", ours,
        lambda: [torch.softmax(x.double(), 1)], [out], 1e-5, 8 * rows * cols,
        eager=lambda: torch.softmax(x, 1, out=out), compiled=(lambda x: torch.softmax(x, 1), (x,)),
    )


def row_sum(device, rows, cols):
    x, out = normal(rows, cols, device=device), torch.empty(rows, device=device)

    def ours(m):
        kernel = m["row_sum"].row_sum_kernel
        return {"": lambda: kernel[(rows,)](x, out, cols, *x.stride(), BLOCK=2048)}

    return Case(
        "", "row sum", ours, lambda: [x.double().sum(1)], [out], 1e-5, 4 * rows * cols,
        eager=lambda: torch.sum(x, 1, out=out), compiled=(lambda x: x.sum(1), (x,)),
    )


def transpose(device, rows, cols, tile, dtype=torch.float32):
    x, out = normal(rows, cols, device=device, dtype=dtype), torch.empty(cols, rows, device=device, dtype=dtype)
    grid, blocks = (-(-rows // tile), -(-cols // tile)), {"BLOCK_ROWS": tile, "BLOCK_COLS": tile}

    def ours(m):
        kernel, strides = m["transpose"].transpose_kernel, (*x.stride(), *out.stride())
        return {"": lambda: kernel[grid](x, out, rows, cols, *strides, **blocks)}

    return Case(
        "", "transpose", ours,
        lambda: [x.t()], [out], 0.0, 2 * x.element_size() * rows * cols,
        eager=lambda: out.copy_(x.t()), compiled=(lambda x: x.t().contiguous(), (x,)),
    )


def layer_norm(device, rows, cols, passes=False):
    half = torch.float16
    x, out = normal(rows, cols, device=device, dtype=half), torch.empty(rows, cols, device=device, dtype=half)
    weight, bias = normal(cols, device=device, dtype=half), normal(cols, device=device, dtype=half)
    norm = torch.nn.functional.layer_norm

    def want():
        return [norm(x.double(), (cols,), weight.double(), bias.double())]

    def torch_norm(x, weight, bias):
        return norm(x, (cols,), weight, bias)

    mean, rstd = torch.empty(rows, device=device), torch.empty(rows, device=device)

    def ours(m):
        kernels = m["gpu_kernels"]
        if passes:
            return {"": lambda: kernels.layer_norm_passes(x, weight, bias, out, mean, rstd)}
        return {"": lambda: kernels.layer_norm(x, weight, bias, out)}

    return Case(
        "", "layer norm", ours, want, [out], 2e-3, 4 * rows * cols,
        eager=lambda: torch_norm(x, weight, bias), compiled=(torch_norm, (x, weight, bias)),
    )


# Tile, warps, stages; for fp32 operands, which are twice as wide, half of K.
CONFIGS = [
    ((128, 256, 64), 8, 3),
    ((128, 128, 64), 8, 3),
    ((128, 128, 64), 4, 4),
    ((128, 64, 64), 4, 4),
    ((64, 128, 32), 4, 4),
]
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}


def matmul(device, n, dtype, fused=False):
    ty = DTYPES[dtype]
    a, b = normal(n, n, device=device, dtype=ty), normal(n, n, device=device, dtype=ty)
    out = torch.empty(n, n, device=device, dtype=ty)

    def activation(c):
        return torch.nn.functional.gelu(c, approximate="tanh") if fused else c

    def ours(m):
        found = {}
        for tile, warps, stages in CONFIGS:
            tile = (*tile[:2], tile[2] // 2) if dtype == "tf32" else tile
            name = f"{'x'.join(map(str, tile))}, {warps} warps, {stages} stages"
            found[name] = lambda t=tile, w=warps, s=stages: m["gpu_kernels"].matmul(a, b, out, t, w, s, gelu=fused)
        return found

    def eager():
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.matmul(a, b, out=out)
        return activation(out) if fused else out

    # The operands are rounded to 11 bits, the sum of n products of which the result is, to as many.
    tolerance = {"fp16": 2e-3, "bf16": 1.2e-2, "tf32": 2e-3}[dtype]
    return Case(
        "", "matmul", ours, lambda: [activation(a.double() @ b.double())], [out], tolerance,
        flops=2 * n**3, eager=eager, compiled=(lambda a, b: activation(a @ b), (a, b)),
        notes={"norm": math.sqrt(n)},
    )
