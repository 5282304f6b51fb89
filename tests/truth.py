"""What each row of the op table computes, and its partial derivatives, exactly: in mpmath, from mathematics.

Owns the truth that the contract's ulps are measured from. Written apart from csrc/ops.def and the reference, in forms
that do not cancel, for operands in the interior of a row's domain; kinks have no truth, their subgradients are in
test_subgradients.py. Operands are mpf. Next: contract.py, which says how close the library comes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
from mpmath import mp, mpf

PRECISION = 260  # bits: 78 digits
FAR = 1e4  # from where the asymptotic series of the error function is exact to more digits than that


def true_erfc(x: mpf) -> mpf:
    if abs(x) < FAR:
        return mp.erfc(x)
    return mp.exp(-x * x) * true_erfcx(x) if x > 0 else 2 - true_erfc(-x)


def true_erfcx(x: mpf) -> mpf:
    return true_ierfcx(mpf(0), x)


def true_ierfcx(n: mpf, x: mpf) -> mpf:
    """The scaled repeated integrals of erfc: a recurrence upwards from n = -1, with the digits added that it cancels.

    Far to the right the asymptotic series (DLMF 7.18.14), sixteen terms of which give more than 100 digits there.
    """
    if x > FAR:
        term = total = 2 / (mp.sqrt(mp.pi) * (2 * x) ** (n + 1))
        for m in range(16):
            term *= -(2 * m + n + 2) * (2 * m + n + 1) / ((m + 1) * 4 * x * x)
            total += term
        return total
    if x < -FAR:
        return mp.inf  # far beyond the range of floats, and slow
    with mp.workprec(mp.prec + int(8 * (n + 1) * (1 + mp.log(1 + abs(x), 2)))):
        before, value = 2 / mp.sqrt(mp.pi), mp.exp(x * x) * mp.erfc(x)
        for k in range(1, int(n) + 1):
            before, value = value, (before / 2 - x * value) / k
    return +value


def true_polygamma(n: mpf, x: mpf) -> mpf:
    n = int(n)
    return mp.digamma(x) if n == 0 else (-1) ** (n + 1) * mp.factorial(n) * mp.zeta(n + 1, x)


def true_sinc_derivative(n: mpf, x: mpf) -> mpf:
    """pi^n times the n-th derivative of sin(u) / u: the integral of t^n cos(u t + n pi / 2) over [0, 1].

    A power series for small u. Elsewhere the recurrence u g(k) + k g(k-1) = sin(u + k pi / 2), with digits added.
    """
    n = int(n)
    if n == 0 and x:
        return mp.sinpi(x) / (mp.pi * x)
    if abs(x) < 3:
        with mp.workprec(mp.prec + 60):
            u, total, m = mp.pi * x, mpf(0), n % 2
            power = u**m
            while True:
                term = power / (m + n + 1)
                total += -term if ((m + n) // 2) % 2 else term
                if m > abs(u) and abs(term) <= abs(total) * mpf(2) ** -mp.prec:
                    break
                power *= u * u / ((m + 1) * (m + 2))
                m += 2
            return total * mp.pi**n
    with mp.workprec(mp.prec + 40 + 10 * n):
        u = mp.pi * x
        sines = [mp.sinpi(x), mp.cospi(x), -mp.sinpi(x), -mp.cospi(x)]
        g = sines[0] / u
        for k in range(1, n + 1):
            g = (sines[k % 4] - k * g) / u
        return g * mp.pi**n


def true_ndtr(x: mpf) -> mpf:
    return true_erfc(-x / mp.sqrt(2)) / 2


def true_norm_pdf(x: mpf) -> mpf:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def true_sigmoid(x: mpf) -> mpf:
    return 1 / (1 + mp.exp(-x))


def true_lgamma(x: mpf) -> mpf:
    return mp.loggamma(x)


def true_logaddexp(a: mpf, b: mpf) -> mpf:
    return max(a, b) + mp.log1p(mp.exp(-abs(a - b)))


def true_cbrt(a: mpf) -> mpf:
    return mp.sign(a) * mp.cbrt(abs(a))


def quotient(a: mpf, b: mpf, rounded: Callable[[Fraction], int]) -> mpf:
    """a / b as an integer, from exact rational arithmetic."""
    return mpf(rounded(fraction(a) / fraction(b)))


def fraction(x: mpf) -> Fraction:
    return Fraction(float(x))


def remainder(a: mpf, b: mpf, rounded: Callable[[Fraction], int]) -> mpf:
    rest = fraction(a) - rounded(fraction(a) / fraction(b)) * fraction(b)
    return mpf(rest.numerator) / rest.denominator


def floor(q: Fraction) -> int:
    return q.numerator // q.denominator


def truncated(q: Fraction) -> int:
    return int(q)


def zero(*operands: Any) -> mpf:
    return mpf(0)


def one(*operands: Any) -> mpf:
    return mpf(1)


def first(a: Any, *rest: Any) -> Any:
    return a


def choose(condition: Callable[..., bool], p: Callable[..., Any], q: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: p(*operands) if condition(*operands) else q(*operands)


def less(a: mpf, b: mpf) -> bool:
    return a < b


def positive(a: mpf, *rest: mpf) -> bool:
    return a > 0


def _undefined(*operands: Any) -> mpf:
    return mp.nan


two_over_root_pi = mpmath.workprec(PRECISION)(lambda: 2 / mp.sqrt(mp.pi))()
log_2 = mpmath.workprec(PRECISION)(lambda: mp.log(2))()

# name: (value, derivative by a, by b, by c)
TRUTH: dict[str, tuple[Callable[..., Any], ...]] = {
    # Arithmetic
    "add": (lambda a, b: a + b, one, one),
    "sub": (lambda a, b: a - b, one, lambda a, b: mpf(-1)),
    "mul": (lambda a, b: a * b, lambda a, b: b, lambda a, b: a),
    "div": (lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / b**2),
    "neg": (lambda a: -a, lambda a: mpf(-1)),
    "pos": (lambda a: a, one),
    "abs": (abs, mp.sign),
    "square": (lambda a: a**2, lambda a: 2 * a),
    "reciprocal": (lambda a: 1 / a, lambda a: -1 / a**2),
    "zmul": (lambda a, b: a * b, lambda a, b: b, lambda a, b: a),
    "relu": (lambda a: max(a, mpf(0)), lambda a: mpf(a > 0)),
    "pow": (lambda a, b: a**b, lambda a, b: b * a ** (b - 1), lambda a, b: a**b * mp.log(a)),
    "pow_less_one": (
        lambda a, b: a ** (b - 1),
        lambda a, b: (b - 1) * a ** (b - 2),
        lambda a, b: a ** (b - 1) * mp.log(a),
    ),
    "floordiv": (lambda a, b: quotient(a, b, floor), zero, zero),
    "mod": (lambda a, b: remainder(a, b, floor), one, lambda a, b: -quotient(a, b, floor)),
    "fmod": (lambda a, b: remainder(a, b, truncated), one, lambda a, b: -quotient(a, b, truncated)),
    "ieee_remainder": (lambda a, b: remainder(a, b, round), one, lambda a, b: -quotient(a, b, round)),
    "fma": (lambda a, b, c: a * b + c, lambda a, b, c: b, lambda a, b, c: a, one),
    # Powers and logarithms
    "sqrt": (mp.sqrt, lambda a: 1 / (2 * mp.sqrt(a))),
    "cbrt": (true_cbrt, lambda a: 1 / (3 * true_cbrt(a) ** 2)),
    "exp": (mp.exp, mp.exp),
    "exp2": (lambda a: mpf(2) ** a, lambda a: mpf(2) ** a * log_2),
    "expm1": (mp.expm1, mp.exp),
    "log": (mp.log, lambda a: 1 / a),
    "log2": (lambda a: mp.log(a) / log_2, lambda a: 1 / (a * log_2)),
    "log10": (mp.log10, lambda a: 1 / (a * mp.log(10))),
    "log1p": (mp.log1p, lambda a: 1 / (1 + a)),
    "ldexp": (lambda a, b: a * mpf(2) ** b, lambda a, b: mpf(2) ** b, lambda a, b: a * mpf(2) ** b * log_2),
    # Trigonometry
    "sin": (mp.sin, mp.cos),
    "cos": (mp.cos, lambda a: -mp.sin(a)),
    "tan": (mp.tan, lambda a: mp.sec(a) ** 2),
    "asin": (mp.asin, lambda a: 1 / mp.sqrt((1 - a) * (1 + a))),
    "acos": (mp.acos, lambda a: -1 / mp.sqrt((1 - a) * (1 + a))),
    "atan": (mp.atan, lambda a: 1 / (1 + a**2)),
    "atan2": (mp.atan2, lambda a, b: b / (a**2 + b**2), lambda a, b: -a / (a**2 + b**2)),
    "degrees": (lambda a: a * 180 / mp.pi, lambda a: 180 / mp.pi),
    "radians": (lambda a: a * mp.pi / 180, lambda a: mp.pi / 180),
    "hypot": (mp.hypot, lambda a, b: a / mp.hypot(a, b), lambda a, b: b / mp.hypot(a, b)),
    "sinc": (lambda a: true_sinc_derivative(mpf(0), a), lambda a: true_sinc_derivative(mpf(1), a)),
    "sinc_derivative": (true_sinc_derivative, _undefined, lambda a, b: true_sinc_derivative(a + 1, b)),
    # Hyperbolic
    "sinh": (mp.sinh, mp.cosh),
    "cosh": (mp.cosh, mp.sinh),
    "tanh": (mp.tanh, lambda a: mp.sech(a) ** 2),
    "asinh": (mp.asinh, lambda a: 1 / mp.sqrt(1 + a**2)),
    "acosh": (mp.acosh, lambda a: 1 / mp.sqrt((a - 1) * (a + 1))),
    "atanh": (mp.atanh, lambda a: 1 / ((1 - a) * (1 + a))),
    # Error function, normal distribution, gamma family
    "erf": (mp.erf, lambda a: two_over_root_pi * mp.exp(-(a**2))),
    "erfc": (true_erfc, lambda a: -two_over_root_pi * mp.exp(-(a**2))),
    "erfcx": (true_erfcx, lambda a: -2 * true_ierfcx(mpf(1), a)),
    "ierfcx": (true_ierfcx, _undefined, lambda a, b: -2 * (a + 1) * true_ierfcx(a + 1, b)),
    "gaussian": (lambda a: mp.exp(-(a**2)), lambda a: -2 * a * mp.exp(-(a**2))),
    "norm_pdf": (true_norm_pdf, lambda a: -a * true_norm_pdf(a)),
    "ndtr": (true_ndtr, true_norm_pdf),
    "log_ndtr": (
        lambda a: mp.log(true_erfcx(-a / mp.sqrt(2)) / 2) - a * a / 2 if a < 0 else mp.log1p(-true_ndtr(-a)),
        lambda a: mp.sqrt(2 / mp.pi) / true_erfcx(-a / mp.sqrt(2)) if a < 0 else true_norm_pdf(a) / true_ndtr(a),
    ),
    "gamma": (mp.gamma, lambda a: mp.gamma(a) * mp.digamma(a)),
    "lgamma": (true_lgamma, mp.digamma),
    "digamma": (mp.digamma, lambda a: true_polygamma(mpf(1), a)),
    "polygamma": (true_polygamma, _undefined, lambda a, b: true_polygamma(a + 1, b)),
    # Activations
    "leaky_relu": (
        choose(positive, first, lambda a, b: a * b),
        choose(positive, one, lambda a, b: b),
        choose(positive, zero, first),
    ),
    "elu": (
        choose(positive, first, lambda a, b: b * mp.expm1(a)),
        choose(positive, one, lambda a, b: b * mp.exp(a)),
        choose(positive, zero, lambda a, b: mp.expm1(a)),
    ),
    "gelu": (lambda a: a * true_ndtr(a), lambda a: true_ndtr(a) + a * true_norm_pdf(a)),
    "silu": (
        lambda a: a * true_sigmoid(a),
        lambda a: true_sigmoid(a) + a * true_sigmoid(a) * true_sigmoid(-a),
    ),
    "sigmoid": (true_sigmoid, lambda a: true_sigmoid(a) * true_sigmoid(-a)),
    "logsigmoid": (lambda a: -true_logaddexp(mpf(0), -a), lambda a: true_sigmoid(-a)),
    "softplus": (lambda a: true_logaddexp(mpf(0), a), true_sigmoid),
    # Selection and rounding
    "maximum": (max, choose(less, zero, one), choose(less, one, zero)),
    "minimum": (min, choose(less, one, zero), choose(less, zero, one)),
    "fmax": (max, choose(less, zero, one), choose(less, one, zero)),
    "fmin": (min, choose(less, one, zero), choose(less, zero, one)),
    "clip": (
        lambda a, b, c: min(max(a, b), c),
        lambda a, b, c: mpf(b < a < c),
        lambda a, b, c: mpf(a < b < c),
        lambda a, b, c: mpf(max(a, b) > c),
    ),
    "where": (
        lambda a, b, c: b if a else c,
        zero,
        lambda a, b, c: mpf(a != 0),
        lambda a, b, c: mpf(a == 0),
    ),
    **{
        name: (lambda a, b, compare=compare: mpf(compare(a, b)), zero, zero)
        for name, compare in {
            "less": operator.lt,
            "less_equal": operator.le,
            "greater": operator.gt,
            "greater_equal": operator.ge,
            "equal": operator.eq,
            "not_equal": operator.ne,
            "logical_and": lambda a, b: bool(a and b),
            "logical_or": lambda a, b: bool(a or b),
        }.items()
    },
    "logical_not": (lambda a: mpf(not a), zero),
    "copysign": (
        lambda a, b: abs(a) * mp.sign(b),
        lambda a, b: mp.sign(a) * mp.sign(b),
        zero,
    ),
    "sign": (mp.sign, zero),
    "floor": (mp.floor, zero),
    "ceil": (mp.ceil, zero),
    "trunc": (lambda a: mpf(truncated(fraction(a))), zero),
    "round": (lambda a: mpf(round(fraction(a))), zero),
    "frozen": (first, zero),
    # Products and sums of exponentials and logarithms
    "logaddexp": (true_logaddexp, lambda a, b: true_sigmoid(a - b), lambda a, b: true_sigmoid(b - a)),
    "logaddexp2": (
        lambda a, b: true_logaddexp(a * log_2, b * log_2) / log_2,
        lambda a, b: true_sigmoid((a - b) * log_2),
        lambda a, b: true_sigmoid((b - a) * log_2),
    ),
    "xlogy": (lambda a, b: a * mp.log(b) if a else mpf(0), lambda a, b: mp.log(b), lambda a, b: a / b),
    "xlog1py": (lambda a, b: a * mp.log1p(b) if a else mpf(0), lambda a, b: mp.log1p(b), lambda a, b: a / (1 + b)),
}
