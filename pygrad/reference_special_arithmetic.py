"""Powers, roots and scaling; division with remainder: the twin of csrc/special_arithmetic.c.

Owns what the standard library rounds, signs or refuses otherwise than pygrad promises.
The contract is in reference_special.py.
"""

import math

from pygrad.reference_special_blocks import INF, NAN, divide, pow, two_product

# Powers and roots.


def cbrt(x: float) -> float:
    """Cube root: pow as a start, then one Newton step on an exactly computed residual."""
    if x == 0.0 or x - x != 0.0:
        return x
    m, e = math.frexp(abs(x))
    shift = e % 3
    m = math.ldexp(m, shift)
    y = math.pow(m, 0.3333333333333333)
    square, square_low = two_product(y, y)
    cube, cube_low = two_product(square, y)
    y = y + (((m - cube) - cube_low) - square_low * y) / (3.0 * square)
    return math.copysign(math.ldexp(y, (e - shift) // 3), x)


def power(a: float, b: float) -> float:
    """C pow(a, b), but the exponents 1 and 2 are exact respectively rounded once."""
    if b == 2.0:
        return a * a
    if b == 1.0:
        return a
    return pow(a, b)


def pow_less_one(a: float, b: float) -> float:
    """a ** (b - 1), without the rounding error of b - 1 in the exponent."""
    if b == 2.0:
        return a
    if (b - 1.0) + 1.0 == b:
        return power(a, b - 1.0)
    y = pow(a, b)
    if 1e-290 < abs(y) < 1e290:
        return y / a
    return power(a, b - 1.0)


def ldexp(a: float, b: float) -> float:
    """a * 2^b for a float b, also where 2^b alone overflows; rounded once if b is an integer."""
    if b - b != 0.0:
        return a * pow(2.0, b)  # inf, nan
    whole = math.trunc(b)
    try:
        scaled = math.ldexp(a, min(max(whole, -1000000), 1000000))
    except OverflowError:
        scaled = math.copysign(INF, a)
    return scaled * pow(2.0, b - whole)


# Division with remainder.


def mod(a: float, b: float) -> float:
    """Python's a % b (sign of b), nan at b == 0."""
    return a % b if b != 0.0 else NAN


def floordiv(a: float, b: float) -> float:
    """Python's a // b, a / b at b == 0."""
    return a // b if b != 0.0 else divide(a, b)


def ieee_remainder(a: float, b: float) -> float:
    """IEEE 754 remainder: a - n b with n the integer nearest to a / b, ties to even."""
    try:
        return math.remainder(a, b)
    except ValueError:
        return NAN
