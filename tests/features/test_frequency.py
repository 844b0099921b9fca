"""The commonest features of public kernels, each in the smallest kernel that uses it.

Next to a feature stands how many percent of 4,430 hand-written entry kernels of 30 public
collections have it: all that at least 0.2 % have are here. What Naiad lacks says why under `lacks`
and must fail, so that the list is put right on the day it compiles.
"""

import linecache
import textwrap
from dataclasses import dataclass

import pytest

import naiad as triton
import naiad.language as tl

# What a body finds: `x` *fp32, `h` *fp16, `i` *i32, `q` *fp8e4nv, `n` i32, `f` fp32, and tiles.
PARAMS = "x, h, i, q, n, f, B: tl.constexpr"
TILES = """\
o = tl.arange(0, B)
at = o[:, None] * B + o[None, :]
v, k = tl.load(x + o), tl.load(i + o)
t, a = tl.load(x + at), tl.load(h + at)
"""


@dataclass
class F:
    name: str
    percent: float
    body: str
    # Where the feature lies in the parameters, they are `p` (*fp32), `n` and `B`.
    params: str | None = None
    # What stands over the kernel in place of a plain `@triton.jit`, and before it.
    over: str = "@triton.jit"
    before: str = ""
    lacks: str | None = None

    def source(self):
        over = self.over
        # Tuners stand over `jit` and do not replace it.
        if "triton.jit" not in over:
            over += "\n@triton.jit"
        body = (TILES if self.params is None else "") + self.body
        return (
            f"{self.before}{over}\ndef kernel({self.params or PARAMS}):\n"
            + textwrap.indent(body, "    ")
            + "\n"
        )

    def arguments(self):
        if self.params is None:
            dtypes = dict(x=tl.float32, h=tl.float16, i=tl.int32, q=tl.float8e4nv)
            return {**{name: triton.MockTensor(d) for name, d in dtypes.items()}, "n": 5, "f": 0.5}
        return {"p": triton.MockTensor(tl.float32), "n": 5}


PTX = '"mov.b32 $0, $1;"'
BLOCK = "tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (B, B), (1, 0))"
DESC = "tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B])"
COMBINE = "@triton.jit\ndef combine(a, b):\n    return a + b\n\n\n"

FEATURES = [
    # Constructs.
    F("op Add", 98.9, "tl.store(x + o, v + n + 1)"),
    F("param: constexpr", 98.5, "tl.static_assert(B == 16)"),
    F("op Mult", 97.2, "tl.store(x + o, v * n * 2.0)"),
    F("op Sub", 64.4, "tl.store(x + o, v - n - 1)"),
    F("dtype cast", 63.8, "tl.store(h + o, v.to(tl.float16))"),
    F("index [:, None] style", 50.3, "tl.store(x + at, v[:, None] + v[None, :])"),
    F("augassign", 50.1, "v += 1\nv *= f\nx += B\ntl.store(x + o, v)"),
    F("op FloorDiv", 47.0, "tl.store(i + o, k // n // 4)"),
    F("reductions", 44.9, "tl.store(x, tl.sum(v) + tl.max(v, axis=0) + tl.min(v, 0))"),
    F("op BitAnd", 44.7, "tl.store(x + o, v, mask=(o < n) & (k > 0))"),
    F("if on constexpr", 44.5, "if B > 8:\n    tl.store(x, f)\nelse:\n    nothing()"),
    F("op Mod", 40.8, "tl.store(i + o, k % n % 4)"),
    F("range bounds runtime", 33.4, "s = 0\nfor j in range(n):\n    s += j\ntl.store(i, s)"),
    F("unary USub", 32.9, "tl.store(x + o, -v)"),
    F("if on runtime value", 31.6, "if n > 3:\n    v = v + 1\ntl.store(x + o, v)"),
    F("op Div", 29.9, "tl.store(x + o, v / n)"),
    F("list literal", 29.6, "tl.store(x + at, tl.zeros([B, B], dtype=tl.float32))"),
    F("ptr.dtype.element_ty", 27.1, "tl.store(h + o, v.to(h.dtype.element_ty))"),
    F("tuple unpack", 26.2, "u, w = v, k\ntl.store(x + o, u + w)"),
    F("dot", 25.9, "tl.store(x + at, tl.dot(a, a))"),
    F("if inside loop", 23.4, "for j in range(n):\n    if j > 2:\n        tl.store(i, j)"),
    F("return value", 23.0, "tl.store(x + o, combine(v, 1))", before=COMBINE),
    F("param: string annotation", 21.3, "tl.store(p + tl.arange(0, B), n)", params="p, n: 'i32', B: 'tl.constexpr'"),
    F("decorator: autotune", 20.9, "tl.store(p, n + B)", params="p, n, B: tl.constexpr", over="@triton.autotune([triton.Config({'B': 16})], key=['n'])"),
    F("for range(3)", 19.9, "for j in range(0, n, B):\n    tl.store(i + j + o, k)"),
    F("for range(1)", 16.2, "for j in range(n):\n    tl.store(i + j, j)"),
    F("early return", 16.0, "if n < 3:\n    return\ntl.store(x, f)"),
    F("jit option: do_not_specialize", 15.7, "tl.store(p, n)", params="p, n, B: tl.constexpr", over="@triton.jit(do_not_specialize=['n'])"),
    F("range bounds all constexpr", 15.1, "for j in range(0, B, 4):\n    tl.store(i + j, j)"),
    F("early return (bare)", 13.8, "if tl.program_id(0) >= n:\n    return\ntl.store(x, f)"),
    F("for range(2)", 13.6, "for j in range(1, n):\n    tl.store(i + j, j)"),
    F("decorator: heuristics", 12.9, "tl.store(p, n + B)", params="p, n, B: tl.constexpr", over="@triton.heuristics({'B': lambda args: 16})"),
    F("and/or", 10.4, "tl.store(x + o, v, mask=o < n and k > 0 or v > 1)"),
    F("tl.math.*", 9.5, "tl.store(x + o, tl.math.exp(v))"),
    F("constexpr local (x: tl.constexpr = ..)", 9.1, "H: tl.constexpr = B // 2\ntl.store(x + tl.arange(0, H), 1.0)"),
    F("block pointers", 9.1, f"p = {BLOCK}\ntl.store(p, tl.load(p, boundary_check=(0, 1)))"),
    F("unary Not", 9.0, "if not n > 3:\n    tl.store(x, f)\ntl.store(x + o, v, mask=not (k > 0))"),
    F("conditional expression", 8.8, "tl.store(x + o, v if B == 16 else k)"),
    F("elif", 7.9, "if n < 3:\n    v = v + 1\nelif n < 5:\n    v = v + 2\nelse:\n    v = v + 3\ntl.store(x + o, v)"),
    F("param: other annotation", 7.8, "tl.store(p, n)", params="p: tl.tensor, n: int, B: tl.constexpr"),
    F("conditional expression on constexpr", 7.7, "m = 1 if B == 3 else 2\ntl.store(i, m)"),
    F("for tl.range", 7.2, "for j in tl.range(0, n, B):\n    tl.store(i + j, j)"),
    F("nested loop", 7.2, "for j in range(n):\n    for m in range(j, n):\n        tl.store(i + j * B + m, m)"),
    F("for tl.static_range", 6.8, "for j in tl.static_range(4):\n    tl.store(i + j, j)"),
    F("param: default value", 6.6, "tl.store(p, n + B)", params="p, n=3, B: tl.constexpr = 16"),
    F("op RShift", 5.8, "tl.store(i + o, k >> 2)"),
    F("atomics", 5.5, "tl.atomic_add(x + o, v)"),
    F("return tuple", 5.4, "u, w = two(v)\ntl.store(x + o, u + w)", before="@triton.jit\ndef two(a):\n    return a, a + 1\n\n\n"),
    F("return annotation", 5.3, "tl.store(x + o, one(v))", before="@triton.jit\ndef one(a) -> tl.tensor:\n    return a + 1\n\n\n"),
    F("op LShift", 4.7, "tl.store(i + o, k << 2)"),
    F("scans", 4.4, "tl.store(x + at, tl.cumsum(t, 1))"),
    F("op BitOr", 4.3, "tl.store(x + o, v, mask=(o < n) | (k > 0))"),
    F("fp8 dtype", 3.5, "tl.store(q + o, v.to(tl.float8e4nv))"),
    F("is (not) None", 3.5, "if m is not None:\n    tl.store(p, m)\nif m is None:\n    tl.store(p, n)", params="p, n, B: tl.constexpr, m=None"),
    F("libdevice", 3.3, "tl.store(x + o, tl.extra.libdevice.tanh(v))"),
    F("static_assert", 3.2, "tl.static_assert(B % 8 == 0, 'B must be a multiple of 8')"),
    F("early return (value)", 3.1, "tl.store(x + o, pick(v, n))", before="@triton.jit\ndef pick(a, n):\n    if n > 3:\n        return a + 1\n    return a\n\n\n"),
    F("tl.extra (other than libdevice)", 2.9, "tl.extra.cuda.gdc_wait()"),
    F("for range negative step", 2.8, "for j in range(n, 0, -1):\n    tl.store(i + j, j)"),
    F("index rank>=3 expand", 2.5, "tl.store(x + o[:, None, None] + o[None, :, None], v[:, None, None] + t[:, :, None])"),
    F("string constexpr compare", 2.4, "if ACT == 'relu':\n    tl.store(p, n)\nelif ACT in ('silu', 'gelu'):\n    nothing()", params="p, n, B: tl.constexpr, ACT: tl.constexpr = 'relu'"),
    F("while loop", 2.4, "j = 0\nwhile j < n:\n    j += 1\ntl.store(i, j)"),
    F("param: default None", 1.8, "tl.static_assert(m is None)", params="p, n, B: tl.constexpr, m=None"),
    F("inline asm", 1.8, f"tl.store(i + o, tl.inline_asm_elementwise({PTX}, '=r,r', [k], tl.int32, True, 1))"),
    F("op BitXor", 1.8, "tl.store(i + o, k ^ n)"),
    F("op Pow", 1.7, "tl.static_assert(2 ** 3 == 8)"),
    F("int->pointer cast (tl.pointer_type)", 1.7, "p = n.to(tl.int64).to(tl.pointer_type(tl.float32))\ntl.store(p, f)"),
    F("descriptor-style .load/.store methods", 1.6, f"d = {DESC}\nd.store([0, 0], d.load([0, 0]))"),
    F("unary Invert", 1.6, "tl.store(i + o, ~k, mask=~(o < n))"),
    F("conditional expression on runtime value", 1.5, "tl.store(x + o, v if n > 3 else v + 1)"),
    F("random", 1.4, "tl.store(x + o, tl.rand(n, o))"),
    F("tensor descriptors (device side names)", 1.1, f"d = {DESC}\nd.store([0, 0], t)"),
    F("index [:]", 1.0, "tl.store(x + o, v[:])"),
    F("device_assert", 1.0, "tl.device_assert(n > 0, 'n must be positive')"),
    F("index [int const]", 0.9, "s = (v, k)\ntl.store(x + o, s[0] + t.shape[1])"),
    F("stmt Pass", 0.9, "if n > 3:\n    pass"),
    F("index [expr]", 0.9, "s = (v, k)\ntl.store(x + o, s[B // 16])"),
    F("f-string", 0.7, "tl.static_assert(B > 1, f'{B} is too small')"),
    F("sort/topk", 0.7, "tl.store(x + o, tl.sort(v))\ntl.store(x + tl.arange(0, 4), tl.topk(v, 4))"),
    F("jit option: launch_metadata", 0.6, "tl.store(p, n)", params="p, n, B: tl.constexpr", over="@triton.jit(launch_metadata=lambda grid, kernel, args: {})"),
    # Names of the language.
    F("tl.load", 97.9, "tl.store(x, tl.load(x))"),
    F("tl.program_id", 97.4, "tl.store(i, tl.program_id(0))"),
    F("tl.store", 96.1, "tl.store(x, 1.0)"),
    F("tl.arange", 95.2, "tl.store(i + o, tl.arange(0, B))"),
    F("tl.float32", 62.3, "tl.store(x + o, k.to(tl.float32))"),
    F("tl.where", 43.1, "tl.store(x + o, tl.where(o < n, v, float('-inf')))"),
    F("tl.zeros", 40.1, "tl.store(x + o, tl.zeros((B,), tl.float32))"),
    F("tl.sum", 37.9, "tl.store(x, tl.sum(v))"),
    F("tl.int64", 37.0, "tl.store(x + k.to(tl.int64), v)"),
    F("tl.dot", 25.9, "tl.store(x + at, tl.dot(a, a, t))"),
    F("tl.cdiv", 23.0, "tl.store(i, tl.cdiv(n, B))"),
    F("tl.int32", 20.2, "tl.store(i + o, v.to(tl.int32))"),
    F("tl.maximum", 18.8, "tl.store(x + o, tl.maximum(v, 0.0))"),
    F("tl.exp", 18.5, "tl.store(x + o, tl.exp(v))"),
    F("tl.max", 17.1, "tl.store(x + o, tl.max(t, 1))"),
    F("tl.minimum", 13.0, "tl.store(x + o, tl.minimum(v, k))"),
    F("tl.full", 9.2, "tl.store(x + o, tl.full((B,), float('inf'), tl.float32))"),
    F("tl.make_block_ptr", 9.0, f"tl.store({BLOCK}, t)"),
    F("tl.constexpr", 9.0, "u: tl.constexpr = tl.constexpr(4)\ntl.static_assert(u == 4)"),
    F("tl.trans", 8.2, "tl.store(x + at, tl.trans(t))"),
    F("tl.range", 7.3, "for j in tl.range(n):\n    tl.store(i + j, j)"),
    F("tl.static_range", 6.9, "for j in tl.static_range(0, B, 4):\n    tl.store(i + j, j)"),
    F("tl.math.exp2", 6.9, "tl.store(x + o, tl.math.exp2(v))"),
    F("tl.abs", 6.9, "tl.store(x + o, tl.abs(v))"),
    F("tl.sigmoid", 6.7, "tl.store(x + o, tl.sigmoid(v))"),
    F("tl.num_programs", 6.5, "tl.store(i, tl.num_programs(0))"),
    F("tl.multiple_of", 5.9, "tl.store(x + tl.multiple_of(o, 16), v)"),
    F("tl.log", 5.7, "tl.store(x + o, tl.log(v))"),
    F("tl.bfloat16", 5.6, "tl.store(x + o, v.to(tl.bfloat16))"),
    F("tl.sqrt", 5.0, "tl.store(x + o, tl.sqrt(v))"),
    F("tl.reshape", 4.8, "tl.store(x + at, tl.reshape(t, (B, B)))"),
    F("tl.atomic_add", 4.7, "tl.store(i, tl.atomic_add(i, 1))"),
    F("tl.cumsum", 4.1, "tl.store(x + o, tl.cumsum(v))"),
    F("tl.debug_barrier", 4.0, "tl.debug_barrier()"),
    F("tl.cast", 3.6, "tl.store(h + o, tl.cast(v, tl.float16))"),
    F("tl.float16", 3.4, "tl.store(h + o, v.to(tl.float16))"),
    F("tl.static_assert", 3.2, "tl.static_assert(True)"),
    F("tl.float8e4nv", 3.0, "tl.store(q + o, v.to(tl.float8e4nv))"),
    F("tl.clamp", 3.0, "tl.store(x + o, tl.clamp(v, 0.0, 1.0))"),
    F("tl.rsqrt", 2.9, "tl.store(x + o, tl.rsqrt(v))"),
    F("tl.uint8", 2.9, "tl.store(i + o, k.to(tl.uint8))"),
    F("tl.max_contiguous", 2.8, "tl.store(x + tl.max_contiguous(tl.multiple_of(o, B), B), v)"),
    F("tl.exp2", 2.8, "tl.store(x + o, tl.exp2(v))"),
    F("tl.advance", 2.6, f"p = {BLOCK}\np = tl.advance(p, (0, B))\ntl.store(p, t)"),
    F("tl.uint32", 2.6, "tl.store(i + o, k.to(tl.uint32))"),
    F("tl.extra.cuda.gdc_wait", 2.4, "tl.extra.cuda.gdc_wait()"),
    F("tl.log2", 2.1, "tl.store(x + o, tl.log2(v))"),
    F("tl.extra.cuda.gdc_launch_dependents", 2.0, "tl.extra.cuda.gdc_launch_dependents()"),
    F("tl.int1", 2.0, "tl.store(x + o, v, mask=k.to(tl.int1))"),
    F("tl.broadcast_to", 2.0, "tl.store(x + at, tl.broadcast_to(v[:, None], (B, B)))"),
    F("tl.inline_asm_elementwise", 1.8, f"tl.store(i + o, tl.inline_asm_elementwise({PTX}, '=r,r', [k], tl.int32, True, 1))"),
    F("tl.split", 1.8, "u, w = tl.split(tl.reshape(t, (B, B // 2, 2)))\ntl.store(x, tl.sum(u + w))"),
    F("tl.math.log2", 1.7, "tl.store(x + o, tl.math.log2(v))"),
    F("tl.pointer_type", 1.7, "tl.store(x.to(tl.pointer_type(tl.int32)) + o, k)"),
    F("tl.min", 1.6, "tl.store(x, tl.min(v, axis=0))"),
    F("tl.math.rsqrt", 1.2, "tl.store(x + o, tl.math.rsqrt(v))"),
    F("tl.zeros_like", 1.2, "tl.store(x + o, tl.zeros_like(v))"),
    F("tl.ceil", 1.1, "tl.store(x + o, tl.ceil(v))"),
    F("tl.uint64", 1.1, "tl.store(i + o, k.to(tl.uint64))"),
    F("tl.join", 1.1, "tl.store(x + tl.arange(0, 2 * B), tl.reshape(tl.join(v, v), (2 * B,)))"),
    F("tl.rand", 1.0, "tl.store(x + o, v, mask=tl.rand(n, o) > 0.5)"),
    F("tl.device_assert", 1.0, "tl.device_assert(k > 0)"),
    F("tl.div_rn", 1.0, "tl.store(x + o, tl.div_rn(v, f))"),
    F("tl.reduce", 0.9, "tl.store(x, tl.reduce(v, 0, combine))", before=COMBINE),
    F("tl.int8", 0.8, "tl.store(i + o, k.to(tl.int8))"),
    F("tl.fma", 0.8, "tl.store(x + o, tl.fma(v, v, v))"),
    F("tl.interleave", 0.8, "tl.store(x + tl.arange(0, 2 * B), tl.interleave(v, v))"),
    F("tl.float64", 0.8, "tl.store(x + o, v.to(tl.float64))"),
    F("tl.make_tensor_descriptor", 0.8, f"{DESC}.store([0, 0], t)"),
    F("tl.argmax", 0.8, "tl.store(i, tl.argmax(v, 0))"),
    F("tl.float8e5", 0.7, "tl.store(x + o, v.to(tl.float8e5).to(tl.float32))"),
    F("tl.int16", 0.7, "tl.store(i + o, k.to(tl.int16))"),
    F("tl.uint16", 0.7, "tl.store(i + o, k.to(tl.uint16))"),
    F("tl.floor", 0.6, "tl.store(x + o, tl.floor(v))"),
    F("tl.atomic_xchg", 0.6, "tl.atomic_xchg(i, 0)"),
    F("tl.permute", 0.6, "tl.store(x + at, tl.permute(t, (1, 0)))"),
    F("tl.sort", 0.6, "tl.store(x + o, tl.sort(v))"),
    F("tl.atomic_max", 0.5, "tl.atomic_max(x + o, v)"),
    F("tl.float8e4b8", 0.5, "tl.store(x + o, v.to(tl.float8e4b8).to(tl.float32))"),
    F("tl.atomic_cas", 0.5, "while tl.atomic_cas(i, 0, 1) == 1:\n    pass"),
    F("tl.math.pow", 0.4, "tl.store(x + o, tl.math.pow(v, v))"),
    F("tl.softmax", 0.4, "tl.store(x + at, tl.softmax(t))"),
    F("tl.assume", 0.4, "tl.assume(n > 0)"),
    F("tl._log2", 0.3, "tl.static_assert(tl.standard._log2(16) == 4)"),
    F("tl.dot_scaled", 0.3, "w = tl.full((B, 32), 1.0, tl.float8e5)\ns = tl.full((B, 1), 127, tl.uint8)\ntl.store(x + at, tl.dot_scaled(w, s, 'e5m2', w.T, s, 'e5m2'))"),
    F("tl.float8e4b15", 0.3, "tl.store(x + o, v.to(tl.float8e4b15).to(tl.float32))"),
    F("tl.view", 0.3, "tl.store(x + tl.arange(0, B * B), tl.view(t, (B * B,)))"),
    F("tl.expand_dims", 0.3, "tl.store(x + at, tl.expand_dims(v, 0) + t)"),
    F("tl.PropagateNan.ALL", 0.3, "tl.store(x + o, tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL))"),
    F("tl._experimental_descriptor_store", 0.3, "tl._experimental_descriptor_store(x, t, [0, 0])", lacks="a name that Triton has taken out"),
    F("tl.cos", 0.3, "tl.store(x + o, tl.cos(v))"),
    F("tl.associative_scan", 0.3, "tl.store(x + o, tl.associative_scan(v, 0, combine))", before=COMBINE),
    F("tl.sin", 0.3, "tl.store(x + o, tl.sin(v))"),
    F("tl.gather", 0.3, "tl.store(x + o, tl.gather(v, k, 0))"),
    F("tl.math.tanh", 0.3, "tl.store(x + o, tl.math.tanh(v))"),
    F("tl.philox", 0.3, "u0, u1, u2, u3 = tl.philox(n, o, o, o, o)\ntl.store(i + o, u0 + u3)"),
    F("tl._experimental_descriptor_load", 0.2, "tl._experimental_descriptor_load(x, [0, 0], [B, B], tl.float32)", lacks="a name that Triton has taken out"),
    F("tl.math.erf", 0.2, "tl.store(x + o, tl.math.erf(v))"),
    F("tl.topk", 0.2, "tl.store(x + tl.arange(0, 4), tl.topk(v, 4))"),
    F("tl.flip", 0.2, "tl.store(x + o, tl.flip(v, 0))"),
    F("tl.get_int_dtype", 0.2, "tl.store(i + o, v.to(tl.core.get_int_dtype(32, True), bitcast=True))"),
    F("tl.xor_sum", 0.2, "tl.store(i, tl.xor_sum(k, 0))"),
    F("tl.tensor", 0.2, "tl.static_assert(isinstance(v, tl.tensor))"),
    F("tl.ravel", 0.2, "tl.store(x + tl.arange(0, B * B), tl.ravel(t))"),
    F("tl.math.log1p", 0.2, "tl.store(x + o, tl.math.log1p(v))"),
    F("tl.math.exp", 0.2, "tl.store(x + o, tl.math.exp(v))"),
    F("tl.swizzle2d", 0.2, "u, w = tl.swizzle2d(n, n, 8, 8, 2)\ntl.store(i, u + w)"),
    F("tl.fdiv", 0.2, "tl.store(x + o, tl.fdiv(v, f))"),
    F("tl.cat", 0.2, "tl.store(x + tl.arange(0, 2 * B), tl.cat(v, v, can_reorder=True))"),
    F("tl.dtype", 0.2, "tl.static_assert(isinstance(v.dtype, tl.dtype))"),
    F("tl.math.ceil", 0.2, "tl.store(x + o, tl.math.ceil(v))"),
    F("tl.static_print", 0.2, "tl.static_print('B', B)"),
    F("tl.core", 0.2, "tl.store(x + o, tl.core.broadcast_to(tl.core.reshape(v, (B,)), (B,)))"),
    # Names of libdevice, of `triton` and of Python.
    F("libdevice.tanh", 0.8, "tl.store(x + o, tl.extra.cuda.libdevice.tanh(v))"),
    F("libdevice.exp", 0.6, "tl.store(x + o, tl.extra.cuda.libdevice.exp(v))"),
    F("libdevice.erf", 0.4, "tl.store(x + o, tl.extra.cuda.libdevice.erf(v))"),
    F("libdevice.pow", 0.3, "tl.store(x + o, tl.extra.cuda.libdevice.pow(v, v))"),
    F("libdevice.rsqrt", 0.3, "tl.store(x + o, tl.extra.cuda.libdevice.rsqrt(v))"),
    F("libdevice.log1p", 0.3, "tl.store(x + o, tl.extra.cuda.libdevice.log1p(v))"),
    F("libdevice.rint", 0.2, "tl.store(x + o, tl.extra.cuda.libdevice.rint(v))"),
    F("libdevice.round", 0.2, "tl.store(x + o, tl.extra.cuda.libdevice.round(v))"),
    F("triton.next_power_of_2", 0.5, "P: tl.constexpr = triton.next_power_of_2(B - 3)\ntl.store(x + tl.arange(0, P), 1.0)"),
    F("triton.cdiv", 0.3, "tl.store(i, triton.cdiv(B, 3))"),
    F("range", 46.0, "for j in range(B):\n    tl.store(i + j, j)"),
    F("float", 16.1, "tl.store(x + o, tl.where(k > 0, v, float('-inf')))"),
    F("min", 11.5, "tl.store(i, min(n, B))"),
    F("max", 0.6, "tl.store(i, max(n, 1))"),
    F("len", 0.3, "tl.static_assert(len(t.shape) == 2)"),
    F("isinstance", 0.2, "tl.static_assert(isinstance(B, tl.constexpr) or not isinstance(v, tl.constexpr))"),
    # Keyword arguments.
    F("tl.load(mask=)", 77.5, "tl.store(x + o, tl.load(x + o, mask=o < n))"),
    F("tl.store(mask=)", 70.9, "tl.store(x + o, v, mask=o < n)"),
    F("tl.load(other=)", 65.6, "tl.store(x + o, tl.load(x + o, mask=o < n, other=0))"),
    F("tl.zeros(dtype=)", 38.4, "tl.store(x + o, tl.zeros([B], dtype=tl.float32))"),
    F("tl.sum(axis=)", 23.0, "tl.store(x + o, tl.sum(t, axis=1))"),
    F("tl.program_id(axis=)", 16.3, "tl.store(i, tl.program_id(axis=0))"),
    F("tl.max(axis=)", 8.9, "tl.store(x + o, tl.max(t, axis=1))"),
    F("tl.load(boundary_check=)", 8.3, f"tl.store(x + at, tl.load({BLOCK}, boundary_check=(0, 1)))"),
    F("tl.store(boundary_check=)", 7.5, f"tl.store({BLOCK}, t, boundary_check=[0])"),
    F("tl.dot(allow_tf32=)", 7.1, "tl.store(x + at, tl.dot(t, t, allow_tf32=False))"),
    F("tl.full(dtype=)", 5.0, "tl.store(i + o, tl.full([B], 1, dtype=tl.int32))"),
    F(".to(bitcast=)", 4.7, "tl.store(i + o, v.to(tl.int32, bitcast=True))"),
    F("tl.atomic_add(mask=)", 3.3, "tl.atomic_add(x + o, v, mask=o < n)"),
    F("tl.load(eviction_policy=)", 2.8, "tl.store(x, tl.load(x, eviction_policy='evict_last'))"),
    F("tl.cumsum(axis=)", 2.7, "tl.store(x + at, tl.cumsum(t, axis=0))"),
    F("tl.dot(out_dtype=)", 2.5, "tl.store(h + at, tl.dot(a, a, out_dtype=tl.float16))"),
    F("tl.make_block_ptr(all by name)", 2.3, "tl.store(tl.make_block_ptr(base=x, shape=(n, n), strides=(n, 1), offsets=(0, 0), block_shape=(B, B), order=(1, 0)), t)"),
    F("tl.inline_asm_elementwise(all by name)", 1.7, f"tl.store(i + o, tl.inline_asm_elementwise(asm={PTX}, constraints='=r,r', args=[k], dtype=tl.int32, is_pure=True, pack=1))"),
    F("tl.range(num_stages=)", 1.6, "for j in tl.range(0, n, num_stages=2):\n    tl.store(i + j, j)"),
    F("tl.dot(acc=)", 1.4, "tl.store(x + at, tl.dot(a, a, acc=t))"),
    F("tl.atomic_add(sem=)", 1.2, "tl.atomic_add(x + o, v, sem='relaxed')"),
    F("tl.dot(input_precision=)", 0.9, "tl.store(x + at, tl.dot(t, t, input_precision='ieee') + tl.dot(t, t, input_precision='tf32x3'))"),
    F("tl.min(axis=)", 0.8, "tl.store(x + o, tl.min(t, axis=1))"),
    F("tl.full(value=)", 0.8, "tl.store(x + o, tl.full(shape=(B,), value=0.0, dtype=tl.float32))"),
    F("tl.load(cache_modifier=)", 0.8, "tl.store(x, tl.load(x, cache_modifier='.cg'))"),
    F("tl.load(padding_option=)", 0.8, f"tl.store(x + at, tl.load({BLOCK}, boundary_check=(0,), padding_option='zero'))"),
    F("tl.clamp(min=)", 0.7, "tl.store(x + o, tl.clamp(v, min=0.0, max=1.0))"),
    F("tl.clamp(max=)", 0.7, "tl.store(x + o, tl.clamp(v, 0.0, max=1.0))"),
    F("tl.make_tensor_descriptor(by name)", 0.7, "d = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[B, B])\nd.store([0, 0], t)"),
    F("tl.argmax(axis=)", 0.7, "tl.store(i + o, tl.argmax(t, axis=1))"),
    F("tl.store(eviction_policy=)", 0.7, "tl.store(x, f, eviction_policy='evict_first')"),
    F("tl.cast(dtype=)", 0.6, "tl.store(h + o, tl.cast(v, dtype=tl.float16))"),
    F("tl.store(cache_modifier=)", 0.6, "tl.store(x, f, cache_modifier='.wt')"),
    F("tl.cumsum(reverse=)", 0.5, "tl.store(x + o, tl.cumsum(v, 0, reverse=True))"),
    F("tl.sum(keep_dims=)", 0.5, "tl.store(x + at, t / tl.sum(t, 1, keep_dims=True))"),
    F("tl.num_programs(axis=)", 0.5, "tl.store(i, tl.num_programs(axis=1))"),
    F(".to(fp_downcast_rounding=)", 0.4, "tl.store(h + o, v.to(tl.float16, fp_downcast_rounding='rtne'))"),
    F("tl.max(keep_dims=)", 0.4, "tl.store(x + at, t - tl.max(t, 1, keep_dims=True))"),
    F("tl.max(return_indices=)", 0.4, "u, w = tl.max(v, 0, return_indices=True)\ntl.store(i, w)"),
    F("tl.range(warp_specialize=)", 0.4, "for j in tl.range(0, n, warp_specialize=True):\n    tl.store(i + j, j)"),
    F("tl.range(flatten=)", 0.4, "for j in tl.range(0, n, flatten=True):\n    tl.store(i + j, j)"),
    F("tl.cast(fp_downcast_rounding=)", 0.3, "tl.store(h + o, tl.cast(v, tl.float16, fp_downcast_rounding='rtz'))"),
    F("tl.reduce(combine_fn=)", 0.3, "tl.store(x, tl.reduce(v, axis=0, combine_fn=combine))", before=COMBINE),
    F("tl.reduce(axis=)", 0.3, "tl.store(x + o, tl.reduce(t, axis=1, combine_fn=combine))", before=COMBINE),
    F("tl.sort(descending=)", 0.3, "tl.store(x + o, tl.sort(v, descending=True))"),
    F("tl.maximum(propagate_nan=)", 0.3, "tl.store(x + o, tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.NONE))"),
    F("tl.dot(trans_b=)", 0.3, "tl.store(x + at, tl.dot(a, a, trans_b=True))"),
    F("tl.cast(bitcast=)", 0.3, "tl.store(i + o, tl.cast(v, tl.int32, bitcast=True))"),
    F("tl.atomic_add(scope=)", 0.2, "tl.atomic_add(x, f, sem='acq_rel', scope='gpu')"),
    F("tl.reshape(can_reorder=)", 0.2, "tl.store(x + o, tl.reshape(v, (B,), can_reorder=True))"),
    F(".to(dtype=)", 0.2, "tl.store(h + o, v.to(dtype=tl.float16))"),
    F("tl.atomic_max(sem=)", 0.2, "tl.atomic_max(i, n, sem='relaxed')"),
    F("tl.rand(n_rounds=)", 0.2, "tl.store(x + o, tl.rand(n, o, n_rounds=7))"),
    F("tl.load(volatile=)", 0.2, "tl.store(x, tl.load(x, volatile=True))"),
    F("tl.get_int_dtype(bitwidth=)", 0.2, "tl.static_assert(tl.core.get_int_dtype(bitwidth=8, signed=True) == tl.int8)"),
    F("tl.get_int_dtype(signed=)", 0.2, "tl.static_assert(tl.core.get_int_dtype(8, signed=False) == tl.uint8)"),
    F("tl.ravel(can_reorder=)", 0.2, "tl.store(x + tl.arange(0, B * B), tl.ravel(t, can_reorder=True))"),
    F("tl.sort(dim=)", 0.2, "tl.store(x + at, tl.sort(t, dim=1))"),
    F("tl.softmax(dim=)", 0.2, "tl.store(x + at, tl.softmax(t, dim=1))"),
    F("tl.atomic_or(mask=)", 0.1, "tl.atomic_or(i + o, k, mask=o < n)"),
    # Methods and attributes.
    F(".to", 63.1, "tl.store(x + o, k.to(tl.float32) + n.to(tl.float32))"),
    F(".element_ty", 27.1, "tl.store(x, f.to(x.type.element_ty))"),
    F(".dtype", 13.8, "tl.store(x + o, k.to(v.dtype))"),
    F(".reshape", 2.1, "tl.store(x + at, t.reshape(B, B) + t.reshape((B, B)))"),
    F(".shape", 1.9, "tl.static_assert(t.shape[0] == B)"),
    F(".load", 1.6, f"tl.store(x + at, {DESC}.load([0, 0]))"),
    F(".store", 1.4, f"{DESC}.store([0, n], t)"),
    F(".T", 1.3, "tl.store(x + at, t.T)"),
    F(".is_int_unsigned()", 0.8, "tl.static_assert(not k.dtype.is_int_unsigned())"),
    F(".value", 0.8, "tl.static_assert(B.value == 16)"),
    F(".is_floating()", 0.7, "tl.static_assert(v.dtype.is_floating())"),
    F(".is_int_signed()", 0.7, "tl.static_assert(k.dtype.is_int_signed())"),
    F(".cast", 0.6, "tl.store(h + o, v.cast(tl.float16))"),
    F(".trans", 0.5, "tl.store(x + at, t.trans() + t.trans(1, 0))"),
    F(".primitive_bitwidth", 0.5, "tl.static_assert(v.dtype.primitive_bitwidth == 32)"),
    F(".numel", 0.5, "tl.static_assert(t.numel == B * B)"),
    F(".is_ptr()", 0.4, "tl.static_assert(x.dtype.is_ptr())"),
    F(".is_fp8()", 0.3, "tl.static_assert(q.dtype.element_ty.is_fp8())"),
    F(".split", 0.3, "u, w = t.reshape(B, B // 2, 2).split()\ntl.store(x, tl.sum(u + w))"),
    F(".permute", 0.2, "tl.store(x + at, t.permute(1, 0))"),
    F(".is_fp64()", 0.2, "tl.static_assert(not v.dtype.is_fp64())"),
    F(".broadcast_to", 0.2, "tl.store(x + at, v[None, :].broadcast_to(B, B))"),
    F(".is_int()", 0.2, "tl.static_assert(k.dtype.is_int())"),
    F(".is_int64(), .is_uint64()", 0.1, "tl.static_assert(not (k.dtype.is_int64() or k.dtype.is_uint64()))"),
    F(".is_bf16(), .is_fp16()", 0.1, "tl.static_assert(a.dtype.is_fp16() and not a.dtype.is_bf16())"),
    F(".__rshift__", 0.1, "tl.store(i + o, k.__rshift__(4).__lshift__(4))"),
    F(".gather", 0.1, "tl.store(x + o, v.gather(k, 0))"),
    F(".sum", 0.1, "tl.store(x + o, t.sum(axis=1) + t.max(1))"),
]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_feature(feature, request):
    if feature.lacks is not None:
        request.applymarker(pytest.mark.xfail(strict=True, reason=feature.lacks))
    text = feature.source()
    file = f"<{feature.name}>"
    # Kernels are compiled from their text, which the line cache holds for code without a file.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = {"triton": triton, "tl": tl}
    exec(compile(text, file, "exec"), namespace)
    arguments = feature.arguments()
    # A tuner brings the block's size itself, and a default is one.
    if "'B'" not in feature.over and "B: tl.constexpr =" not in (feature.params or ""):
        arguments["B"] = 16
    namespace["kernel"].warmup(**arguments)
