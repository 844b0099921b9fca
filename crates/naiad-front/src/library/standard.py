"""Functions of the language that are written in it."""

import triton
import triton.language as tl

# Philox 4x32-10 and 4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
# two multipliers, and what is added to the two halves of the key after each round.
MULTIPLIER_A = tl.constexpr((0xD2511F53, 0xD2E7470EE14C6C93))
MULTIPLIER_B = tl.constexpr((0xCD9E8D57, 0xCA5A826395121157))
KEY_A = tl.constexpr((0x9E3779B9, 0x9E3779B97F4A7C15))
KEY_B = tl.constexpr((0xBB67AE85, 0xBB67AE8584CAA73B))

# A little less than 2**-31 and 2**-63: the largest word still gives less than 1.
SCALE_32 = tl.constexpr(4.6566127342e-10)
SCALE_64 = tl.constexpr(1.0842020432385337e-19)
TWO_PI = tl.constexpr(6.283185307179586)


@triton.jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: tl.constexpr = 10):
    wide: tl.constexpr = 1 if c0.dtype.primitive_bitwidth == 64 else 0
    a = tl.full((), MULTIPLIER_A[wide], c0.dtype)
    b = tl.full((), MULTIPLIER_B[wide], c0.dtype)
    for _ in tl.static_range(n_rounds):
        next0 = tl.umulhi(b, c2) ^ c1 ^ k0
        next2 = tl.umulhi(a, c0) ^ c3 ^ k1
        c1 = b * c2
        c3 = a * c0
        c0 = next0
        c2 = next2
        k0 = k0 + tl.full((), KEY_A[wide], k0.dtype)
        k1 = k1 + tl.full((), KEY_B[wide], k1.dtype)
    return c0, c1, c2, c3


@triton.jit
def philox(seed, c0, c1, c2, c3, n_rounds: tl.constexpr = 10):
    seed = tl.to_tensor(seed)
    tl.static_assert(seed.dtype.is_int(), "the seed must be an integer")
    seed = seed.to(tl.uint64)
    c0 = tl.to_tensor(c0)
    c1 = tl.to_tensor(c1)
    c2 = tl.to_tensor(c2)
    c3 = tl.to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 64:
        k0 = seed
        k1 = tl.zeros_like(seed)
        words = c0.to(tl.uint64), c1.to(tl.uint64), c2.to(tl.uint64), c3.to(tl.uint64)
    else:
        k0 = seed.to(tl.uint32)
        k1 = (seed >> 32).to(tl.uint32)
        words = c0.to(tl.uint32), c1.to(tl.uint32), c2.to(tl.uint32), c3.to(tl.uint32)
    return philox_impl(words[0], words[1], words[2], words[3], k0, k1, n_rounds)


@triton.jit
def randint4x(seed, offset, n_rounds: tl.constexpr = 10):
    offset = tl.to_tensor(offset)
    low = offset.to(tl.uint32)
    zero = low * 0
    if offset.dtype.primitive_bitwidth > 32:
        high = (offset >> 32).to(tl.uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@triton.jit
def randint(seed, offset, n_rounds: tl.constexpr = 10):
    return randint4x(seed, offset, n_rounds)[0]


@triton.jit
def uint_to_uniform_float(x):
    # A word as a signed number, folded onto the numbers that are not negative.
    if x.dtype.primitive_bitwidth == 64:
        signed = x.to(tl.int64, bitcast=True)
        scale: tl.constexpr = SCALE_64
    else:
        signed = x.to(tl.int32, bitcast=True)
        scale: tl.constexpr = SCALE_32
    return tl.where(signed < 0, ~signed, signed) * scale


@triton.jit
def rand(seed, offset, n_rounds: tl.constexpr = 10):
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@triton.jit
def rand4x(seed, offset, n_rounds: tl.constexpr = 10):
    i0, i1, i2, i3 = randint4x(seed, offset, n_rounds)
    return (
        uint_to_uniform_float(i0),
        uint_to_uniform_float(i1),
        uint_to_uniform_float(i2),
        uint_to_uniform_float(i3),
    )


@triton.jit
def pair_uniform_to_normal(u1, u2):
    # Box and Muller's transform; the logarithm of 0 is kept away from.
    u1 = tl.maximum(1.0e-7, u1)
    radius = tl.sqrt(-2.0 * tl.log(u1))
    angle = TWO_PI * u2
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def randn(seed, offset, n_rounds: tl.constexpr = 10):
    i0, i1, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))[0]


@triton.jit
def randn4x(seed, offset, n_rounds: tl.constexpr = 10):
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3


@triton.jit
def e2m1_as_bf16(nibble):
    """The numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives."""
    nibble = nibble.to(tl.uint16)
    magnitude = nibble & 7
    # Exponent and mantissa fall in their place; the exponent's bias differs by 126. The one
    # subnormal, 0.5, has an exponent of its own.
    number = (magnitude << 6) + (126 << 7)
    half = tl.full(nibble.shape, 0x3F00, tl.uint16)
    number = tl.where(magnitude == 1, half, number)
    number = tl.where(magnitude == 0, tl.zeros_like(half), number)
    return (((nibble & 8) << 12) | number).to(tl.bfloat16, bitcast=True)


@triton.jit
def unpacked_last(packed):
    """Two numbers from each byte along the last axis, the lower nibble first."""
    pair = tl.join(e2m1_as_bf16(packed & 15), e2m1_as_bf16(packed >> 4))
    return tl.reshape(pair, packed.shape[:-1] + (2 * packed.shape[-1],))


@triton.jit
def swapped_last(x):
    """The last two axes exchanged."""
    if len(x.shape) == 3:
        return tl.permute(x, 0, 2, 1)
    else:
        return tl.trans(x)


@triton.jit
def numbers(x, format: tl.constexpr, along_last: tl.constexpr):
    """An operand of `dot_scaled` as float32; `along_last` says where e2m1 is packed."""
    tl.static_assert(
        len(x.shape) == 2 or len(x.shape) == 3, "dot_scaled multiplies tiles of two or three axes"
    )
    if format == "e2m1":
        tl.static_assert(x.dtype == tl.uint8, "an e2m1 operand is uint8, two numbers in a byte")
        if along_last:
            return unpacked_last(x).to(tl.float32)
        else:
            return swapped_last(unpacked_last(swapped_last(x))).to(tl.float32)
    else:
        if format == "e4m3":
            image: tl.constexpr = tl.uint8
            number: tl.constexpr = tl.float8e4nv
        elif format == "e5m2":
            image: tl.constexpr = tl.uint8
            number: tl.constexpr = tl.float8e5
        elif format == "bf16":
            image: tl.constexpr = tl.uint16
            number: tl.constexpr = tl.bfloat16
        else:
            tl.static_assert(
                format == "fp16",
                f"`{format}` is no format of dot_scaled: e2m1, e4m3, e5m2, bf16, fp16",
            )
            image: tl.constexpr = tl.uint16
            number: tl.constexpr = tl.float16
        tl.static_assert(
            x.dtype == number or x.dtype == image,
            f"an operand of the format {format} is of that type or of unsigned integers as wide",
        )
        return x.to(number, bitcast=True).to(tl.float32)


@triton.jit
def scale_factor(scale):
    """Scales as float32: of uint8 the power of two with that biased exponent, 255 for NaN."""
    if scale.dtype == tl.uint8:
        bits = scale.to(tl.uint32) << 23
        # 2**-127 is a subnormal number.
        bits = tl.where(scale == 0, tl.full(scale.shape, 0x00400000, tl.uint32), bits)
        bits = tl.where(scale == 255, tl.full(scale.shape, 0x7FC00000, tl.uint32), bits)
        return bits.to(tl.float32, bitcast=True)
    else:
        tl.static_assert(scale.dtype.is_fp8(), "a scale is uint8 or fp8")
        return scale.to(tl.float32)


@triton.jit
def scaled(x, scale):
    """The operand with its scales, each of which is for a run along the last axis."""
    group: tl.constexpr = x.shape[-1] // scale.shape[-1]
    tl.static_assert(
        scale.shape[-1] * (16 if scale.dtype.is_fp8() else 32) == x.shape[-1],
        "a scale is for 32 elements along K, or for 16 if it is fp8",
    )
    factor = tl.expand_dims(scale_factor(scale), -1)
    factor = tl.broadcast_to(factor, scale.shape + (group,))
    return x * tl.reshape(factor, x.shape)


@triton.jit
def dot_scaled(
    lhs,
    lhs_scale,
    lhs_format: tl.constexpr,
    rhs,
    rhs_scale,
    rhs_format: tl.constexpr,
    acc=None,
    fast_math=False,
    lhs_k_pack: tl.constexpr = True,
    rhs_k_pack: tl.constexpr = True,
    out_dtype: tl.constexpr = tl.float32,
):
    tl.static_assert(out_dtype == tl.float32, "dot_scaled gives float32")
    tl.static_assert(
        (lhs_k_pack or lhs_format == "e2m1") and (rhs_k_pack or rhs_format == "e2m1"),
        "only e2m1 is packed, along K or across it",
    )
    # Scaled exactly, and then rounded to what is multiplied.
    compute: tl.constexpr = (
        tl.float16 if lhs_format == "fp16" or rhs_format == "fp16" else tl.bfloat16
    )
    a = numbers(lhs, lhs_format, lhs_k_pack)
    # K runs along the last axis of the left operand and along the one before it of the right.
    b = numbers(rhs, rhs_format, not rhs_k_pack)
    if lhs_scale is not None:
        a = scaled(a, lhs_scale)
    if rhs_scale is not None:
        b = swapped_last(scaled(swapped_last(b), rhs_scale))
    return tl.dot(a.to(compute), b.to(compute), acc, out_dtype=tl.float32)
