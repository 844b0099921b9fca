# The type of every operator's result, as Triton 3.9 has it.
import triton
import triton.language as tl


# kernel(h: *fp16, b: *bf16, f: *fp32, d: *fp64, i8: *i8, i32: *i32, i64: *i64, u32: *u32, u8: *u8, t: *i1, e: *fp8e4nv, e5: *fp8e5, n: i32)
@triton.jit
def operators(h, b, f, d, i8, i32, i64, u32, u8, t, e, e5, n):
    h = tl.load(h)
    b = tl.load(b)
    f = tl.load(f)
    d = tl.load(d)
    i8 = tl.load(i8)
    i32 = tl.load(i32)
    i64 = tl.load(i64)
    u32 = tl.load(u32)
    u8 = tl.load(u8)
    t = tl.load(t)
    e = tl.load(e)
    e5 = tl.load(e5)
    x = 2.0
    tl.static_assert((h * 2.0).dtype == tl.float16)
    tl.static_assert((h + 1).dtype == tl.float16)
    tl.static_assert((h * x).dtype == tl.float32)
    tl.static_assert((h * n).dtype == tl.float16)
    tl.static_assert((h / 2).dtype == tl.float32)
    tl.static_assert((2 / h).dtype == tl.float32)
    tl.static_assert((h / h).dtype == tl.float32)
    tl.static_assert((b / b).dtype == tl.float32)
    tl.static_assert((h + b).dtype == tl.float16)
    tl.static_assert((b * 2.0).dtype == tl.bfloat16)
    tl.static_assert((b * i32).dtype == tl.float32)
    tl.static_assert((h * i64).dtype == tl.float16)
    tl.static_assert((t + t).dtype == tl.int1)
    tl.static_assert((t + 1).dtype == tl.int32)
    tl.static_assert((t * 1.0).dtype == tl.float32)
    tl.static_assert((t * h).dtype == tl.float16)
    tl.static_assert((e + e).dtype == tl.float8e4nv)
    tl.static_assert((e * 2.0).dtype == tl.float8e4nv)
    tl.static_assert((e + e5).dtype == tl.float16)
    tl.static_assert((tl.maximum(h, 0.0)).dtype == tl.float16)
    tl.static_assert((i8 + 1).dtype == tl.int8)
    tl.static_assert((i8 + n).dtype == tl.int32)
    tl.static_assert((i8 * 2.0).dtype == tl.float32)
    tl.static_assert((i32 * 2.0).dtype == tl.float32)
    tl.static_assert((i32 * 1e300).dtype == tl.float64)
    tl.static_assert((f * 1e300).dtype == tl.float32)
    tl.static_assert((i32 / 2).dtype == tl.float32)
    tl.static_assert((i64 / i64).dtype == tl.float32)
    tl.static_assert((i32 // 2).dtype == tl.int32)
    tl.static_assert((i32 % 3).dtype == tl.int32)
    tl.static_assert((u32 + i32).dtype == tl.uint32)
    tl.static_assert((u32 + i64).dtype == tl.int64)
    tl.static_assert((u8 + i8).dtype == tl.uint8)
    tl.static_assert((u8 + i32).dtype == tl.int32)
    tl.static_assert((i32 << 1).dtype == tl.int32)
    tl.static_assert((i32 & True).dtype == tl.int32)
    tl.static_assert((n + 0.5).dtype == tl.float32)
    tl.static_assert((d + f).dtype == tl.float64)
    tl.static_assert((tl.where(t, h, 0.0)).dtype == tl.float16)
    tl.static_assert((tl.sum(tl.full((8,), 1, tl.int8), 0)).dtype == tl.int32)
    tl.static_assert((i32 < u32).dtype == tl.int1)


# kernel(i32: *i32)
@triton.jit
def literal_too_large(i32):
    tl.load(i32) + 3000000000  # error: [literal-range] the literal 3000000000 is out of range for int32


# kernel(u32: *u32)
@triton.jit
def negative_with_unsigned(u32):
    tl.load(u32) * -1  # error: [literal-range] the literal -1 is out of range for uint32


# kernel(u32: *u32, i32: *i32)
@triton.jit
def signs_differ(u32, i32):
    tl.load(u32) // tl.load(i32)  # error: [type-mismatch] Cannot use `//` between uint32 and int32 because they have different signedness


# kernel(f: *fp32)
@triton.jit
def floor_division_of_floats(f):
    tl.load(f) // 2  # error: [type-mismatch] `//` is not defined between float32 and the constexpr 2


# kernel(f: *fp32)
@triton.jit
def power(f):
    tl.load(f) ** 2  # error: [type-mismatch] `**` is not defined


# kernel(f: *fp32)
@triton.jit
def bits_of_floats(f):
    tl.load(f) & 2  # error: [type-mismatch] invalid operands of type float32 and the constexpr 2 for `&`


# kernel(f: *fp32, g: *fp32)
@triton.jit
def pointers_do_not_add(f, g):
    f + g  # error: [type-mismatch] `+` is not defined between pointer to float32 and pointer to float32


# kernel(h: *fp16)
@triton.jit
def exp_of_half(h):
    tl.exp(tl.load(h))  # error: [type-mismatch] `tl.exp` wants float32 or float64, not float16


# kernel(n: i32)
@triton.jit
def not_of_int(n):
    not n  # error: [type-mismatch] `not` wants booleans


# kernel(x: *fp32, n=1)
@triton.jit
def one_is_a_constexpr(x, n):
    y = (n - 6) // 2  # ir: const value=-3:i32
    tl.store(x, y.to(tl.float32) + n.to(tl.float32))


# kernel(x: *fp32, n: i32)
@triton.jit
def constexpr_arithmetic_is_pythons(x, n):
    a: tl.constexpr = -7 // 2
    b: tl.constexpr = -7 % 3
    c: tl.constexpr = 7 / 2
    d: tl.constexpr = 2**10
    tl.static_assert(a == -4 and b == 2 and c == 3.5 and d == 1024)
    tl.static_assert(-7 // -2 == 3 and 7 // -2 == -4 and -7 % -3 == -1)
    tl.static_assert(min(3, 2) == 2 and max(3.5, 2) == 3.5 and len((1, 2)) == 2)


# kernel(u32: *u32, i32: *i32)
@triton.jit
def shifts_follow_the_left_operand(u32, i32):
    tl.load(i32) >> 1  # ir: binary.shr
    tl.load(i32) >> tl.load(u32)  # ir: cast %7 to=i32 : i32


# kernel(x: *fp32, n: i32)
@triton.jit
def boolean_operators(x, n):
    tl.static_assert((n and 3) is n)
    tl.static_assert((n or 5) == 5)
    if x is not None and n > 3:
        tl.store(x, 1.0)
