"""Functions of real numbers to some forty digits, by series in `decimal`: what results are held to.

Each takes and gives `Decimal`; `evaluate` runs one on floats. Arguments at which a function has no
finite value, or no sign, are not for here.
"""

import decimal
import functools
import statistics
from decimal import Decimal as D
from fractions import Fraction

DIGITS = 60
EULER = D(
    "0.57721566490153286060651209008240243104215933593992359880576723488486772677766467093694706329"
)


def evaluate(f, *columns):
    """The function of each row of floats, which Decimal holds as they are."""
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, decimal.MAX_EMAX, decimal.MIN_EMIN
        return [f(*map(D, row)) for row in zip(*(c.tolist() for c in columns))]


def more(digits):
    """A context with so many digits more."""
    context = decimal.getcontext().copy()
    context.prec += int(digits)
    return decimal.localcontext(context)


def series(term, ratio):
    """The sum of the terms, of which the k-th is that before by `ratio(k)`."""
    total, k = term, 0
    while term and (total == 0 or term.adjusted() > total.adjusted() - decimal.getcontext().prec - 2):
        k += 1
        term *= ratio(k)
        total += term
    return total


@functools.cache
def _pi(digits):
    with more(digits - decimal.getcontext().prec + 10):
        a, b, t, p = D(1), 1 / D(2).sqrt(), D(1) / 4, D(1)
        while abs(a - b) > D(10) ** (-digits - 4):
            a, b, before = (a + b) / 2, (a * b).sqrt(), a
            t -= p * (before - a) ** 2
            p *= 2
        return (a + b) ** 2 / (4 * t)


def pi():
    return _pi(decimal.getcontext().prec + 5)


# ---- exponentials and logarithms ------------------------------------------------------------------


def expm1(x):
    return series(x, lambda k: x / (k + 1)) if abs(x) < D("0.1") else x.exp() - 1


def log1p(x):
    if abs(x) > D("0.1"):
        return (1 + x).ln()
    z = x / (2 + x)
    k, total, power = 1, D(0), z
    while power and (total == 0 or power.adjusted() > total.adjusted() - DIGITS - 2):
        total += power / k
        k += 2
        power *= z * z
    return 2 * total


def sinh(x):
    e = expm1(abs(x))
    return ((e + e / (e + 1)) / 2).copy_sign(x)


def cosh(x):
    return (x.exp() + (-x).exp()) / 2


def tanh(x):
    # Beyond that, 1 - 2 exp(-2 |x|) is 1 to forty digits.
    e = expm1(2 * max(min(x, D(60)), D(-60)))
    return e / (e + 2)


def asinh(x):
    size = abs(x)
    return log1p(size + x * x / (1 + (1 + x * x).sqrt())).copy_sign(x)


def acosh(x):
    t = x - 1
    return log1p(t + (t * (t + 2)).sqrt())


def atanh(x):
    return log1p(2 * x / (1 - x)) / 2


def cbrt(x):
    return (abs(x).ln() / 3).exp().copy_sign(x)


def power(x, y):
    """Of a positive number, or of a negative one to an integer."""
    size = (y * abs(x).ln()).exp()
    return -size if x < 0 and y % 2 else size


def norm(*x):
    return sum(v * v for v in x).sqrt()


# ---- angles ---------------------------------------------------------------------------------------


def _quadrant(r, quadrant):
    """The sine of r and so many right angles; r at most half of one."""
    if quadrant % 2:
        result = series(D(1), lambda k: -r * r / (2 * k * (2 * k - 1)))
    else:
        result = series(r, lambda k: -r * r / (2 * k * (2 * k + 1)))
    return -result if quadrant & 2 else result


def _sine(x, quadrants):
    with more(max(x.adjusted(), 0) + 10):
        n = (2 * x / pi()).to_integral_value()
        return _quadrant(x - n * pi() / 2, int(n) + quadrants & 3)


def sin(x):
    return _sine(x, 0)


def cos(x):
    return _sine(x, 1)


def tan(x):
    return sin(x) / cos(x)


def _sine_of_turns(x, quadrants):
    n = (2 * x).to_integral_value()
    return _quadrant((x - n / 2) * pi(), int(n) + quadrants & 3)


def sinpi(x):
    return _sine_of_turns(x, 0)


def cospi(x):
    return _sine_of_turns(x, 1)


def atan(x):
    if abs(x) > 1:
        return (pi() / 2).copy_sign(x) - atan(1 / x)
    for _ in range(3):
        x = x / (1 + (1 + x * x).sqrt())
    k, total, power = 1, D(0), x
    while power and (total == 0 or power.adjusted() > total.adjusted() - DIGITS - 2):
        total += power / k
        k += 2
        power *= -x * x
    return 8 * total


def atan2(y, x):
    if x == 0:
        return (pi() / 2).copy_sign(y)
    return atan(y / x) + (pi().copy_sign(y) if x < 0 else 0)


def asin(x):
    return atan2(x, ((1 - x) * (1 + x)).sqrt())


def acos(x):
    return atan2(((1 - x) * (1 + x)).sqrt(), x)


# ---- the error function and its kin ---------------------------------------------------------------


def erfcx(x):
    """`exp(x^2) erfc(x)`."""
    if x < 12:
        return (x * x).exp() * erfc(x)
    # The terms shrink until the k-th is about exp(-x^2), so that they sum to forty digits.
    total, term, k = D(1), D(1), 0
    while abs(term) > D(10) ** -45:
        k += 1
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * pi().sqrt())


def erfc(x):
    if x >= 12:
        return (-x * x).exp() * erfcx(x)
    with more(x * x / 2 if x > 0 else 0):
        return 1 - erf(x)


def erf(x):
    if abs(x) >= 12:
        return (1 - erfc(abs(x))).copy_sign(x)
    return 2 / pi().sqrt() * (-x * x).exp() * series(x, lambda k: 2 * x * x / (2 * k + 1))


def normcdf(x):
    return erfc(-x / D(2).sqrt()) / 2


def _slope(x):
    return 2 / pi().sqrt() * (-x * x).exp()


def _solve(f, slope, y, x):
    """The place where f is y, by Newton's method from one where it nearly is."""
    for _ in range(5):
        x -= (f(x) - y) / slope(x)
    return x


def erfcinv(y):
    start = statistics.NormalDist().inv_cdf(float(y if y < 1 else 2 - y) / 2)
    start = D(start) / D(2).sqrt()
    # An erfc above 1 leaves the small part of it to what lies below.
    return _solve(erfc, lambda x: -_slope(x), y, -start if y < 1 else start)


def erfinv(y):
    if abs(y) > D("0.5"):
        return erfcinv(1 - abs(y)).copy_sign(y)
    return _solve(erf, _slope, y, y * pi().sqrt() / 2)


def normcdfinv(y):
    return -D(2).sqrt() * (erfcinv(2 * y) if y < D("0.25") else erfinv(1 - 2 * y))


# ---- gamma ----------------------------------------------------------------------------------------


@functools.cache
def _stirling():
    """The factors of `x^(1-2k)` in the logarithm of the gamma function: B(2k) / (2k (2k - 1))."""
    bernoulli = [Fraction(1)]
    for n in range(1, 62):
        row, choose = Fraction(0), 1
        for k in range(n):
            row += choose * bernoulli[k]
            choose = choose * (n + 1 - k) // (k + 1)
        bernoulli.append(-row / (n + 1))
    return [bernoulli[n] / (n * (n - 1)) for n in range(2, 62, 2)]


def _gamma_parts(x):
    """The logarithm of the gamma function of x and an integer, and the product that takes it there."""
    product = D(1)
    while x < 50:
        product *= x
        x += 1
    factors = [D(f.numerator) / f.denominator for f in _stirling()]
    tail = sum(f * x ** (1 - 2 * k) for k, f in enumerate(factors, 1))
    return (x - D("0.5")) * x.ln() - x + (2 * pi()).ln() / 2 + tail, product


def tgamma(x):
    log, product = _gamma_parts(x)
    return log.exp() / product


def lgamma(x):
    log, product = _gamma_parts(x)
    return log - abs(product).ln()


# ---- Bessel ---------------------------------------------------------------------------------------


def _first(n, x, sign):
    half = x / 2
    start = half if n else D(1)
    return series(start, lambda k: sign * half * half / (k * (k + n)))


def i0(x):
    return _first(0, x, 1)


def i1(x):
    return _first(1, x, 1)


def _far(n, x):
    """Cosine and sine parts of Hankel's expansion; its terms shrink until about `exp(-2 x)`."""
    p, q, term, k = D(1), D(0), D(1), 0
    while abs(term) > D(10) ** -45:
        k += 1
        term *= (4 * n * n - (2 * k - 1) ** 2) / (8 * x * k)
        if k % 2:
            q += term if k % 4 == 1 else -term
        else:
            p += term if k % 4 == 0 else -term
    with more(max(x.adjusted(), 0)):
        angle = x - pi() * (2 * n + 1) / 4
    scale = (2 / (pi() * x)).sqrt()
    return scale, p, q, cos(angle), sin(angle)


def _j(n, x):
    if abs(x) < 60:
        with more(abs(x)):
            return _first(n, x, -1)
    scale, p, q, c, s = _far(n, x)
    return scale * (p * c - q * s)


def j0(x):
    return _j(0, x)


def j1(x):
    return _j(1, x)


def _y(n, x):
    if x >= 60:
        scale, p, q, c, s = _far(n, x)
        return scale * (p * s + q * c)
    with more(x / 2):
        half = x / 2
        # Digamma of k + 1 and k + n + 1 without Euler's constant, which the logarithm takes.
        term, harmonics, total, k = (half if n else D(1)), D(n), D(0), 0
        while k < 4 or abs(term) > D(10) ** -110:
            total += term * harmonics
            k += 1
            term *= -half * half / (k * (k + n))
            harmonics += 1 / D(k) + 1 / D(k + n)
        main = 2 * (half.ln() + EULER) * _first(n, x, -1) - total
        return (main - (2 / x if n else 0)) / pi()


def y0(x):
    return _y(0, x)


def y1(x):
    return _y(1, x)
