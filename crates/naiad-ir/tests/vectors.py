"""Makes vectors.txt: exact values of functions at random points, by mpmath.

    python vectors.py 30 > vectors.txt

The number is that of points for each function and range. A line is a name, the arguments as images of
fp64, and the exact value as `(high + low) 2^n` with the images of high and low.
"""

import math
import random
import struct
import sys

from mpmath import (
    acos, acosh, asin, asinh, atan, atan2, atanh, besseli, besselj, bessely, cbrt, cos, cosh, erfc,
    erfinv, exp, expm1, floor, gamma, isfinite, log, log10, log1p, loggamma, mp, mpc, mpf, nint, pi, power,
    re, sign, sinh, sinpi, cospi, sqrt, tan,
)

mp.prec = 180


def flat(low, high):
    return lambda: random.uniform(low, high)


def wide(low, high, signed=True):
    def draw():
        x = 2.0 ** random.uniform(low, high)
        return -x if signed and random.random() < 0.5 else x

    return draw


def scaled_erfc(x):
    if x < 50:
        return exp(x * x) * erfc(x)
    total, term = mpf(0), mpf(1)
    for k in range(60):
        total += term
        term *= -(2 * k + 1) / (2 * x * x)
    return total / (x * sqrt(pi))


def inverse_erfc(q):
    if q > 1:
        return -inverse_erfc(2 - q)
    z = erfinv(1 - q) if q > 0.05 else sqrt(-log(q))
    for _ in range(60):
        e = erfc(z)
        step = (log(e) - log(q)) * e / (-2 / sqrt(pi) * exp(-z * z))
        z -= step
        if abs(step) <= mpf(2) ** -150 * abs(z):
            break
    return z


def exactly(f):
    def g(x, y):
        mp.prec = 2300
        try:
            return f(x, y)
        finally:
            mp.prec = 180

    return g


UNARY = {
    "exp10": (lambda x: power(10, x), [flat(-307, 308), flat(-1, 1), wide(-40, 5)]),
    "expm1": (expm1, [flat(-40, 709), flat(-2, 2), wide(-60, 2)]),
    "log10": (log10, [wide(-1000, 1000, False), flat(0.5, 2)]),
    "log1p": (log1p, [flat(-0.9999, 3), wide(-60, -1), wide(0, 1000, False)]),
    "tan": (tan, [flat(-10, 10), wide(-30, 2), wide(0, 1000)]),
    "sinpi": (sinpi, [flat(-3, 3), wide(-40, 50)]),
    "cospi": (cospi, [flat(-3, 3), wide(-40, 50)]),
    "asin": (asin, [flat(-1, 1), wide(-40, 0)]),
    "acos": (acos, [flat(-1, 1), wide(-40, 0), flat(0.99, 1)]),
    "atan": (atan, [flat(-4, 4), wide(-40, 60)]),
    "sinh": (sinh, [flat(-710, 710), flat(-2, 2), wide(-40, 2)]),
    "cosh": (cosh, [flat(-710, 710), flat(-2, 2)]),
    "asinh": (asinh, [flat(-4, 4), wide(-40, 1000)]),
    "acosh": (acosh, [flat(1, 4), flat(1, 1.01), wide(0, 1000, False)]),
    "atanh": (atanh, [flat(-1, 1), wide(-40, 0)]),
    "cbrt": (lambda x: sign(x) * cbrt(abs(x)), [flat(-10, 10), wide(-1070, 1020)]),
    "erfc": (erfc, [flat(-6, 26.4), flat(-1, 3), wide(-40, 1)]),
    "erfcx": (scaled_erfc, [flat(-26, 30), flat(-1, 3), wide(0, 100, False)]),
    "erfinv": (
        lambda x: sign(x) * inverse_erfc(1 - abs(x)) if abs(x) > 0.9 else erfinv(x),
        [flat(-1, 1), wide(-40, -1), lambda: 1 - 2.0 ** random.uniform(-50, -3)],
    ),
    "erfcinv": (inverse_erfc, [flat(0, 2), wide(-1020, 0, False)]),
    "normcdf": (lambda x: erfc(-x / sqrt(mpf(2))) / 2, [flat(-37, 8), flat(-2, 2)]),
    "normcdfinv": (
        lambda x: -sqrt(mpf(2)) * inverse_erfc(2 * x),
        [flat(0, 1), wide(-1020, -1, False)],
    ),
    "lgamma": (
        lambda x: re(loggamma(x)) if x > 0 else log(abs(gamma(x))),
        [flat(0, 10), flat(0.5, 2.5), wide(-50, 900, False), flat(-5, 0)],
    ),
    "tgamma": (gamma, [flat(0, 10), flat(8, 171), wide(-50, 1), flat(-170, 0)]),
    "j0": (lambda x: besselj(0, x), [flat(0, 8), flat(8, 100), wide(3, 40, False)]),
    "j1": (lambda x: besselj(1, x), [flat(-8, 8), flat(8, 100), wide(-30, 3)]),
    "y0": (lambda x: bessely(0, x), [flat(0, 4), flat(4, 8), flat(8, 100)]),
    "y1": (lambda x: bessely(1, x), [flat(0, 4), flat(4, 8), flat(8, 100)]),
    "i0": (lambda x: besseli(0, x), [flat(0, 8), flat(8, 30), flat(-713, 713)]),
    "i1": (lambda x: besseli(1, x), [flat(0, 8), flat(8, 30), flat(-713, 713)]),
}
BINARY = {
    "pow": (
        power,
        [
            (flat(0, 10), flat(-200, 200)),
            (wide(-1000, 1000, False), flat(-1, 1)),
            (flat(0.99, 1.01), flat(-20000, 20000)),
        ],
    ),
    "atan2": (
        lambda y, x: atan2(y, x),
        [(flat(-1, 1), flat(-1, 1)), (wide(-500, 500), wide(-500, 500))],
    ),
    "hypot": (
        lambda x, y: sqrt(x * x + y * y),
        [(flat(-1, 1), flat(-1, 1)), (wide(-1020, 1000), wide(-1020, 1000))],
    ),
    "fmod": (
        exactly(lambda x, y: sign(x) * (abs(x) - abs(y) * floor(abs(x) / abs(y)))),
        [
            (flat(-10, 10), flat(-1, 1)),
            (wide(-1000, 1000), wide(-1000, 1000)),
            (wide(-1070, -900), wide(-1070, -1000)),
        ],
    ),
    "remainder": (
        exactly(lambda x, y: x - y * nint(x / y)),
        [
            (flat(-10, 10), flat(-1, 1)),
            (wide(-1000, 1000), wide(-1000, 1000)),
            (lambda: float(random.randint(-40, 40)), lambda: float(random.randint(1, 8))),
        ],
    ),
}


def image(x):
    return struct.pack(">d", x).hex()


def line(name, arguments, value):
    n = int(floor(log(abs(value), 2))) if value != 0 else 0
    scaled = value * mpf(2) ** -n
    high = float(scaled) if value != 0 else math.copysign(0.0, arguments[0])
    low = float(scaled - mpf(high))
    return " ".join([name, *map(image, arguments), image(high), image(low), str(n)])


def main():
    random.seed(7)
    count = int(sys.argv[1])
    for name, (f, ranges) in [*UNARY.items(), *BINARY.items()]:
        for r in ranges:
            for _ in range(count):
                arguments = [d() for d in r] if name in BINARY else [r()]
                if any(a == 0 or math.isinf(a) for a in arguments):
                    continue
                value = f(*(mpf(a) for a in arguments))
                if isinstance(value, mpc) or not isfinite(value):
                    continue
                if value != 0 and not -1022 <= log(abs(value), 2) < 1023.9:
                    continue
                print(line(name, arguments, value))


main()
