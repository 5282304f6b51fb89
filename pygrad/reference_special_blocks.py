"""What the families of special functions are built of: the twin of csrc/special_blocks.h.

Owns IEEE versions of what the standard library answers with an exception or an int, which
C has already; and Horner's rule, the exact product, sine and cosine of pi x, the check of
an order.  Must know no family.  The contract is in reference_special.py.
Next: reference_special_sinc.py, the shortest of the families.
"""

import math
from collections.abc import Sequence

INF = math.inf
NAN = math.nan
PI = 3.141592653589793
SPLITTER = 134217729.0  # 2^27 + 1
MAX_ORDER = 1e9  # larger orders n count as invalid


# IEEE versions of what the standard library answers with an exception or an int.


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def pow(a: float, b: float) -> float:
    """C pow, signs of zeros and infinities included."""
    try:
        return math.pow(a, b)
    except ValueError:  # pole at zero, or a negative base with a fractional exponent
        if a != 0.0:
            return NAN
        odd = b != -INF and math.fmod(b, 2.0) == -1.0
        return math.copysign(INF, a) if odd else INF
    except OverflowError:
        return -INF if a < 0.0 and math.fmod(b, 2.0) != 0.0 else INF


def divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a or b != b:
        return NAN
    return math.copysign(INF, a) * math.copysign(1.0, b)


def floor(x: float) -> float:
    """floor as a float; inf, nan and -0.0 pass through."""
    return float(math.floor(x)) if abs(x) < 4503599627370496.0 and x != 0.0 else x


# Building blocks.


def polynomial(coefficients: Sequence[float], x: float) -> float:
    """Horner's rule, lowest power first in the table."""
    value = 0.0
    for c in reversed(coefficients):
        value = value * x + c
    return value


def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as an unevaluated sum of two floats (Dekker 1971); exact for |a|, |b| < 1e150
    unless the low part underflows."""
    t = SPLITTER * a
    ah = t - (t - a)
    al = a - ah
    t = SPLITTER * b
    bh = t - (t - b)
    bl = b - bh
    p = a * b
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def is_order(n: float) -> bool:
    return 0.0 <= n <= MAX_ORDER and n == floor(n)


def sin_pi(x: float) -> float:
    """sin(pi x) for x >= 0: the reduction modulo 2 and into [0, 1/4] is exact."""
    r = math.fmod(x, 2.0)
    sign = 1.0
    if r >= 1.0:
        r = r - 1.0
        sign = -1.0
    if r == 0.0:
        return 0.0
    if r > 0.5:
        r = 1.0 - r
    if r <= 0.25:
        return sign * math.sin(PI * r)
    return sign * math.cos(PI * (0.5 - r))


def cos_pi(x: float) -> float:
    """cos(pi x) for x >= 0, reduced like sin_pi."""
    r = math.fmod(x, 2.0)
    sign = 1.0
    if r > 1.0:
        r = 2.0 - r
    if r > 0.5:
        r = 1.0 - r
        sign = -1.0
    if r <= 0.25:
        return sign * math.cos(PI * r)
    return sign * math.sin(PI * (0.5 - r))
