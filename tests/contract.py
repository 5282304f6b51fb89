"""What is promised of each row of the op table, with the reason: one table, the policy of the tests.

Owns the bounds; truth.py has the exact values, domains.py the points. An ulp is the distance of two neighbouring floats
at the true result. Where an error relative to the result means nothing (a root that is reached by cancellation, a
result made from a subnormal), `of` gives the magnitude whose ulp counts instead, and the reason says which.
Results that overflow must be inf; where the value does, its gradient is not promised.

For every row the C core and the reference are equal bit for bit, values, gradients and second derivatives; of a nan
nothing counts but that it is one. One exception, by construction: copysign(a, nan) has the sign bit of a nan, which
arithmetic leaves unspecified, so rows that copy a sign are not compared there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from formulas import CONSTANTS, Reader, parse
from mpmath import mp, mpf
from truth import PRECISION, TRUTH, true_ndtr, true_norm_pdf, true_sigmoid

from pygrad import _core
from pygrad.ops import Row


class Promise(NamedTuple):
    """Bounds in ulps, of the value and of each operand's gradient, and what an ulp is of where not of the result."""

    ulps: tuple[float, ...]
    why: str
    of: tuple[Callable[..., Any] | None, ...]


def ulps(*bounds: float, why: str, of: dict[int, Callable[..., Any]] | None = None) -> Promise:
    """`of` maps 0 for the value, 1 for the gradient by a, 2 by b, to a magnitude."""
    return Promise(bounds, why, tuple((of or {}).get(i) for i in range(len(bounds))))


def at_least(bound: float) -> Callable[..., Any]:
    return lambda *operands: bound


def times(i: int, name: str, factor: Callable[..., Any]) -> Callable[..., Any]:
    """The magnitude of result `i` of a row, times a factor of at least 1."""
    return lambda *operands: abs(TRUTH[name][i](*operands)) * max(mpf(1), abs(factor(*operands)))


rounded_exponent = times(1, "pow_less_one", lambda a, b: (1 + abs(b)) * mp.log(a))


def envelope(n: Any, x: Any) -> Any:
    """The size of the oscillation of sinc's n-th derivative at x."""
    return mp.pi**n / (n + 1 + mp.pi * abs(x))


ONCE = "IEEE 754 rounds the result once"
LIBM = "libm's function, within an ulp on the platforms tested"
SELECTS = "chooses among operands, and computes nothing"
TRUTHS = "a truth is 1 or 0 exactly, and its gradient of zero is exact"
STEPS = "steps are exact, and so is their gradient of zero"
REMAINDER = "a remainder is exact until a last addition of b; its gradient is a quotient, rounded"
SUBNORMAL = "; below 1e-304 it is a multiple of a subnormal, up to 745 ulps of it"

CONTRACT: dict[str, Promise] = {
    # Arithmetic
    "add": ulps(0.5, 0, 0, why=ONCE),
    "sub": ulps(0.5, 0, 0, why=ONCE),
    "mul": ulps(0.5, 0, 0, why=ONCE),
    "div": ulps(0.5, 0.5, 1.5, why=ONCE + "; the gradient by b divides the rounded quotient once more"),
    "neg": ulps(0, 0, why="the sign alone changes"),
    "pos": ulps(0, 0, why="nothing changes"),
    "abs": ulps(0, 0, why="the sign alone changes"),
    "square": ulps(0.5, 0, why=ONCE),
    "reciprocal": ulps(0.5, 2, why=ONCE + "; the gradient squares it"),
    "zmul": ulps(0.5, 0, 0, why=ONCE),
    "relu": ulps(0, 0, why=SELECTS),
    "pow": ulps(1, 4, 4, why=LIBM, of={1: at_least(1e-304), 2: at_least(1e-304)}),
    "pow_less_one": ulps(
        2, 4, 4,
        why="pow, and a division; its gradient rounds b - 1 in an exponent, which costs |b log a| ulps" + SUBNORMAL,
        of={1: lambda a, b: max(1e-304, rounded_exponent(a, b)), 2: at_least(1e-304)},
    ),
    "floordiv": ulps(1, 0, 0, why="as Python's //, whose quotient is rounded; its gradient of zero is exact"),
    "mod": ulps(0.5, 0, 1, why=REMAINDER),
    "fmod": ulps(0, 0, 2, why=REMAINDER),
    "ieee_remainder": ulps(0, 0, 2, why=REMAINDER),
    "fma": ulps(0.5, 0, 0, 0, why=ONCE),
    # Powers and logarithms
    "sqrt": ulps(0.5, 2, why=ONCE),
    "cbrt": ulps(0.6, 4, why="corrected with an exact residual; the gradient squares it and divides"),
    "exp": ulps(1, 1, why=LIBM),
    "exp2": ulps(1, 2, why="C's pow(2, a); the gradient times the rounded log 2"),
    "expm1": ulps(1, 1, why=LIBM),
    "log": ulps(1, 0.5, why=LIBM),
    "log2": ulps(1, 1, why=LIBM),
    "log10": ulps(2, 1, why="libm's function, within two ulps"),
    "log1p": ulps(1, 2, why=LIBM),
    "ldexp": ulps(2, 1, 3, why="rounded once for integers b, times a power of 2 between 1/2 and 2 otherwise"),
    # Trigonometry
    "sin": ulps(1, 1, why=LIBM),
    "cos": ulps(1, 1, why=LIBM),
    "tan": ulps(1, 2, why=LIBM),
    "asin": ulps(1, 2, why=LIBM + "; 1 - a and 1 + a are exact where they matter"),
    "acos": ulps(1, 2, why=LIBM + "; 1 - a and 1 + a are exact where they matter"),
    "atan": ulps(1, 4, why=LIBM + "; two divisions by a length, which does not overflow"),
    "atan2": ulps(1, 4, 4, why=LIBM + "; two divisions by a length"),
    "degrees": ulps(1, 0.5, why="one product with a rounded constant"),
    "radians": ulps(1, 0.5, why="one product with a rounded constant"),
    "hypot": ulps(1, 2, 2, why=LIBM),
    "sinc": ulps(
        3, 8, why="the gradient is relative to its envelope, since sine and cosine cancel; below 1e-292 it is 0",
        of={1: lambda a: max(1e-292, envelope(1, a)) if abs(a) > 0.25 else 0},
    ),
    "sinc_derivative": ulps(
        8, 0, 8, why="relative to the envelope of the oscillation; nan by the order, which is a whole number",
        of={0: envelope, 2: lambda a, b: max(1e-292, envelope(a + 1, b))},
    ),
    # Hyperbolic
    "sinh": ulps(3, 3, why="libm's function, within three ulps"),
    "cosh": ulps(3, 3, why="libm's function, within three ulps"),
    "tanh": ulps(2, 5, why="1 - y * y amplifies y's error by up to 1.3 below 0.625; from there on 1 / cosh squared"),
    "asinh": ulps(2, 2, why="libm's function, within two ulps"),
    "acosh": ulps(2, 3, why="libm's function, within two ulps; a - 1 is exact where it matters"),
    "atanh": ulps(2, 2, why="libm's function, within two ulps; 1 - a and 1 + a are exact where they matter"),
    # Error function, normal distribution, gamma family
    "erf": ulps(1, 3, why=LIBM),
    "erfc": ulps(3, 3, why="libm's function, within three ulps"),
    "erfcx": ulps(2, 4, why="fitted polynomials; the gradient by a recurrence that does not cancel"),
    "ierfcx": ulps(8, 0, 8, why="a recurrence in the direction in which it is stable; nan by the order"),
    "gaussian": ulps(2, 3, why="a * a is carried in two floats" + SUBNORMAL, of={1: at_least(1e-305)}),
    "norm_pdf": ulps(4, 5, why="a * a is carried in two floats" + SUBNORMAL, of={1: at_least(1e-305)}),
    "ndtr": ulps(4, 5, why="a density, carried in two floats, times erfcx"),
    "log_ndtr": ulps(6, 5, why="a logarithm of erfcx to the left, log1p of a tail to the right"),
    "gamma": ulps(5, 6, why="Stirling's series, the power split in two; fitted polynomials below 7"),
    "lgamma": ulps(4, 4, why="the zeros at 1 and 2 are factors of fitted polynomials"),
    "digamma": ulps(4, 4, why="its zero is taken out in two floats"),
    "polygamma": ulps(4, 0, 4, why="a sum of positive terms; nan by the order, which is a whole number"),
    # Activations
    "leaky_relu": ulps(0.5, 0, 0, why=ONCE),
    "elu": ulps(2, 2, 1, why="expm1, times b"),
    "gelu": ulps(
        5, 6, why="the gradient's two terms cancel at -0.75: relative to ndtr" + SUBNORMAL,
        of={0: at_least(1e-305), 1: lambda a: max(1e-304, true_ndtr(a), abs(a) * true_norm_pdf(a))},
    ),
    "silu": ulps(
        3, 4, why="the gradient's two terms cancel at -1.28: relative to the larger" + SUBNORMAL,
        of={0: at_least(1e-305), 1: lambda a: max(1e-304, true_sigmoid(a) * max(1, abs(a) * true_sigmoid(-a)))},
    ),
    "sigmoid": ulps(2, 4, why="no branch overflows or cancels"),
    "logsigmoid": ulps(2, 2, why="the terms have one sign, so that they do not cancel"),
    "softplus": ulps(2, 2, why="the terms have one sign, so that they do not cancel"),
    # Selection and rounding
    "maximum": ulps(0, 0, 0, why=SELECTS),
    "minimum": ulps(0, 0, 0, why=SELECTS),
    "fmax": ulps(0, 0, 0, why=SELECTS),
    "fmin": ulps(0, 0, 0, why=SELECTS),
    "clip": ulps(0, 0, 0, 0, why=SELECTS),
    "where": ulps(0, 0, 0, 0, why=SELECTS),
    **{
        name: ulps(0, 0, 0, why=TRUTHS)
        for name in (
            "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or",
        )
    },
    "logical_not": ulps(0, 0, why=TRUTHS),
    "copysign": ulps(0, 0, 0, why="the sign alone changes"),
    "sign": ulps(0, 0, why=STEPS),
    "floor": ulps(0, 0, why=STEPS),
    "ceil": ulps(0, 0, why=STEPS),
    "trunc": ulps(0, 0, why=STEPS),
    "round": ulps(0, 0, why=STEPS),
    "frozen": ulps(0, 0, why="nothing changes; its gradient of zero is what it is for"),
    # Products and sums of exponentials and logarithms
    "logaddexp": ulps(
        2, 2, 2,
        why="the value is relative to its larger term, since they cancel where it is zero; the gradient is the "
        "exponential of a rounded difference, and so has |a - b| times that difference's rounding error",
        of={
            0: lambda a, b: max(abs(a), abs(b)),
            1: times(1, "logaddexp", lambda a, b: a - b),
            2: times(2, "logaddexp", lambda a, b: a - b),
        },
    ),
    "logaddexp2": ulps(
        2, 2, 2, why="as logaddexp",
        of={
            0: lambda a, b: max(abs(a), abs(b)),
            1: times(1, "logaddexp2", lambda a, b: a - b),
            2: times(2, "logaddexp2", lambda a, b: a - b),
        },
    ),
    "xlogy": ulps(2, 1, 2, why="a product with a logarithm"),
    "xlog1py": ulps(2, 1, 2, why="a product with a logarithm"),
}  # fmt: skip

# Where a row has no derivative, or an infinite one: no truth to be close to, but a subgradient: test_subgradients.py.
KINKS: dict[str, Callable[..., bool]] = {
    "abs": lambda a: a == 0, "relu": lambda a: a == 0, "sqrt": lambda a: a == 0, "cbrt": lambda a: a == 0,
    "asin": lambda a: abs(a) == 1, "acos": lambda a: abs(a) == 1, "acosh": lambda a: a == 1,
    "atan2": lambda a, b: a == 0, "hypot": lambda a, b: a == b == 0, "leaky_relu": lambda a, b: a == 0,
    "elu": lambda a, b: a == 0, "maximum": lambda a, b: a == b, "minimum": lambda a, b: a == b,
    "fmax": lambda a, b: a == b, "fmin": lambda a, b: a == b, "clip": lambda a, b, c: a in (b, c) or b == c,
    "copysign": lambda a, b: a == 0 or b == 0, "sign": lambda a: a == 0,
}  # fmt: skip

# Rows whose gradient is on purpose not the derivative of their value.
NO_DERIVATIVE = {"frozen"}

# Of a row that has no promise of its own; one bound for its value and its gradients.
DEFAULT = ulps(4, why="a few roundings")


def truth_of(row: Row) -> tuple[Callable[..., Any], ...]:
    """The exact value and gradients: those of truth.py, else the formulas in exact arithmetic.

    The formulas of a row that has no truth of its own are exact as far as the rows that it calls are, and its gradients
    are held against SymPy: what is left to measure is rounding.
    """
    if row.name in TRUTH:
        return TRUTH[row.name]
    value = lambda *operands: Exact(dict(zip("abc", operands, strict=False))).read(parse(row.value))  # noqa: E731

    def gradient(text: str) -> Callable[..., Any]:
        node = parse(text)
        return lambda *operands: Exact(
            dict(zip("abc", operands, strict=False)) | {"y": value(*operands), "g": mpf(1)}
        ).read(node)

    return (value, *map(gradient, row.gradients))


class Exact(Reader):
    """A formula in exact arithmetic: a name means its row's truth."""

    def literal(self, value: float) -> Any:
        return mp.mpmathify(CONSTANTS[value].evalf(90)) if value in CONSTANTS else mpf(value)

    def divide(self, p: Any, q: Any) -> Any:
        return p / q

    def holds(self, compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
        return bool(compare(self.read(left), self.read(right)))

    def call(self, name: str, args: list[Any]) -> Any:
        return TRUTH[name][0](*(self.read(arg) for arg in args))


def distance(found: float, true: Any, of: Any) -> float:
    """|found - true| in ulps of the larger of `true` and `of`; inf where only one of them is finite, or a number."""
    rounded = float(true)
    if not (math.isfinite(rounded) and math.isfinite(found)):
        return 0.0 if found == rounded or (found != found and rounded != rounded) else math.inf
    return float(abs(mpf(found) - true) / mpf(math.ulp(max(abs(rounded), float(of)))))


def errors(
    row: Row, points: Iterable[tuple[float, ...]], evaluate_value: Callable[..., float] = _core.evaluate
) -> list[tuple[float, Any]]:
    """The largest error over the points, of the value and of each gradient, and where it is."""
    truth, promise = truth_of(row), CONTRACT.get(row.name, DEFAULT)
    units = promise.of if len(promise.of) == row.arity + 1 else (None,) * (row.arity + 1)
    worst: list[tuple[float, Any]] = [(0.0, None)] * (row.arity + 1)
    with mp.workprec(PRECISION):
        for point in points:
            exact = [mpf(x) for x in point]
            y = evaluate_value(row.name, *point)
            gradients = _core.evaluate_vjp(row.name, 1.0, y, *point) if math.isfinite(y) else ()
            for i, found in enumerate((y, *gradients)):
                unit = units[i]
                error = distance(found, truth[i](*exact), unit(*exact) if unit else 0)
                worst[i] = max(worst[i], (error, point), key=lambda pair: pair[0])
    return worst
