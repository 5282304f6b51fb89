"""The ops of the reference: what each one computes, and the rule of its gradient, by hand.

Read `reference.py` first. This file owns three things: arithmetic on floats as IEEE 754 has it (Python raises where
C gives inf or nan), the class Op, and the list of rules. It knows no graph: a rule is plain arithmetic that floats and
Values both understand, so the same rule gives a gradient and, on Values, the graph of a gradient.

Rounding is part of a result: a formula here has the order of operations of its row in `csrc/ops.def`, on purpose
written twice.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from fractions import Fraction
from math import inf, isnan, nan
from numbers import Real
from typing import Any

from pygrad import reference_special as special

# ---------------------------------------------------------------------------------------- floats as IEEE 754 has them


def real(x: Any, what: str) -> float:
    """`x` as a float, or a TypeError that opens with `what`, which was to be a real number."""
    if not is_real(x):
        raise TypeError(f"{what}, found {x!r} of type {type(x).__name__}")
    return float(x)


def is_real(x: Any) -> bool:
    """Whether `x` is a number on the real line: int, bool, float, Fraction, a NumPy scalar (not an array)."""
    return isinstance(x, Real) or (type(x).__module__ == "numpy" and type(x).__name__ in ("bool", "bool_"))


def total(function: Callable[..., float], at_pole: dict[int, float] | None = None) -> Callable[..., float]:
    """A function of `math`, with inf for an OverflowError and nan (or the value `at_pole`) for a ValueError."""

    def call(a: float, *rest: float) -> float:
        try:
            return function(a, *rest)
        except OverflowError:
            return inf
        except ValueError:
            return (at_pole or {}).get(a, nan)

    return call


def rounding(function: Callable[[float], int]) -> Callable[[float], float]:
    """A function from float to int as one from float to float, which keeps -0.0, inf and nan."""
    return lambda a: math.copysign(function(a), a) if math.isfinite(a) else a


def float_div(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return a * math.copysign(inf, b)  # 0 / 0 is nan, as 0 * inf is


def float_zmul(a: float, b: float) -> float:
    product = a * b
    return a if isnan(product) and a == 0 else product


def float_fma(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # exact as well, with the sign that a sum of zeros has
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


def float_pow(a: float, b: float) -> float:
    return a * a if b == 2 else special.power(a, b)


def float_sinh(a: float) -> float:
    try:
        return math.sinh(a)
    except OverflowError:
        return math.copysign(inf, a)


def float_hypot(a: float, b: float) -> float:
    """C's hypot, which `abs` of a complex number calls; `math.hypot` may differ from it in the last bit."""
    if isnan(a) or isnan(b):
        return inf if math.isinf(a) or math.isinf(b) else nan
    try:
        return builtins.abs(complex(a, b))
    except OverflowError:
        return inf


# ------------------------------------------------------------------------------------------------------------- an op


class Op:
    """A function that knows its gradient: on floats it returns a float, on Values it records a Value.

    `value` computes on floats. `rules` has a function of (g, y, *operands) for each operand: what the operand's
    gradient receives, from the gradient `g` of the result `y`. `defaults` are the trailing operands' default values.
    """

    def __init__(self, name: str, value: Callable[..., float], *rules: Callable[..., Any], **defaults: float):
        self.name = name
        self.value = value
        self.rules = rules
        self.defaults = defaults

    def __call__(self, *operands: Any, **named: Any) -> Any:
        operands = self.complete(operands, named)
        for x in operands:
            if hasattr(x, "record"):  # a Value: see Value.record
                return x.record(self, operands)
        return float(self.value(*self.numbers(operands)))

    def complete(self, operands: tuple, named: dict[str, Any]) -> tuple:
        """All operands: those left out, or None, come from `named`, else from the defaults."""
        arity, required = len(self.rules), len(self.rules) - len(self.defaults)
        if not required <= len(operands) <= arity:
            expected = f"{required}{' or more' if required < arity else ''} operand{'' if arity == 1 else 's'}"
            raise TypeError(f"{self.name}: needs {expected}, found {len(operands)}")
        trailing = dict(zip(self.defaults, operands[required:], strict=False))
        for keyword in named:
            if keyword in trailing:
                raise TypeError(f"{self.name}: operand '{keyword}' is given twice")
            if keyword not in self.defaults:
                raise TypeError(f"{self.name}: unknown keyword '{keyword}'")
        given = {keyword: x for keyword, x in (trailing | named).items() if x is not None}
        return (*operands[:required], *(self.defaults | given).values())

    def numbers(self, operands: tuple) -> list[float]:
        """The operands' values, as floats."""
        data = [x.data if hasattr(x, "record") else x for x in operands]
        return [real(x, f"{self.name}: {self.place(i)} must be a Value or a real number") for i, x in enumerate(data)]

    def place(self, i: int) -> str:
        """What an error calls operand `i`."""
        return f"operand {i}"

    def contribution(self, i: int, g: Any, y: Any, operands: Any) -> Any:
        """What operand `i` receives when `y = op(*operands)` receives `g`."""
        return self.rules[i](g, y, *operands)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


OPS: dict[str, Op] = {}


def op(name: str, value: Callable[..., float], *rules: Callable[..., Any], **defaults: float) -> Op:
    OPS[name] = Op(name, value, *rules, **defaults)
    return OPS[name]


def zero(g: Any, y: Any, *operands: Any) -> float:
    """The rule of an operand that has no influence, or none between jumps."""
    return 0.0


# --------------------------------------------------------------------------------------------------------- the rules
#
# name = op("name", value, rule of a, rule of b, rule of c)
#
# g: the gradient that arrives; y: the value; a, b, c: the operands. From here on abs, pow and round are ops.
# zmul(g, p) is g * p, but zero where g is zero: a branch that was not taken stays out, even where p is inf or nan.

# Arithmetic
add = op("add", lambda a, b: a + b, lambda g, y, a, b: g, lambda g, y, a, b: g)
sub = op("sub", lambda a, b: a - b, lambda g, y, a, b: g, lambda g, y, a, b: -g)
mul = op("mul", lambda a, b: a * b, lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zmul(g, a))
div = op("div", float_div, lambda g, y, a, b: zmul(g, div(1, b)), lambda g, y, a, b: zmul(g, div(-y, b)))
neg = op("neg", lambda a: -a, lambda g, y, a: -g)
pos = op("pos", lambda a: a, lambda g, y, a: g)
abs = op("abs", math.fabs, lambda g, y, a: zmul(g, sign(a)))
pow = op(
    "pow",
    float_pow,
    lambda g, y, a, b: zmul(g, zmul(b, pow_less_one(a, b))),
    lambda g, y, a, b: zmul(g, zmul(y, log(a))),
)
pow_less_one = op(
    "pow_less_one",
    special.pow_less_one,
    lambda g, y, a, b: zmul(g, zmul(b - 1, pow_less_one(a, b - 1))),
    lambda g, y, a, b: zmul(g, zmul(y, log(a))),
)
floordiv = op("floordiv", special.floordiv, zero, zero)
mod = op("mod", special.mod, lambda g, y, a, b: g, lambda g, y, a, b: zmul(g, -floordiv(a, b)))
fmod = op("fmod", total(math.fmod), lambda g, y, a, b: g, lambda g, y, a, b: zmul(g, -round(div(a - y, b))))
ieee_remainder = op(
    "ieee_remainder",
    special.ieee_remainder,
    lambda g, y, a, b: g,
    lambda g, y, a, b: zmul(g, -round(div(a - y, b))),
)
fma = op(
    "fma",
    float_fma,
    lambda g, y, a, b, c: zmul(g, b),
    lambda g, y, a, b, c: zmul(g, a),
    lambda g, y, a, b, c: g,
)
square = op("square", lambda a: a * a, lambda g, y, a: zmul(g, 2 * a))
reciprocal = op("reciprocal", lambda a: div(1, a), lambda g, y, a: zmul(g, -y * y))
zmul = op("zmul", float_zmul, lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zmul(g, a))

# Powers and logarithms
sqrt = op("sqrt", total(math.sqrt), lambda g, y, a: zmul(g, div(0.5, abs(y))))
cbrt = op("cbrt", special.cbrt, lambda g, y, a: zmul(g, div(1, 3 * y * y)))
exp = op("exp", total(math.exp), lambda g, y, a: zmul(g, y))
exp2 = op("exp2", lambda a: pow(2, a), lambda g, y, a: zmul(g, y * 0.6931471805599453))  # log(2)
expm1 = op("expm1", total(math.expm1), lambda g, y, a: zmul(g, exp(a)))
log = op("log", total(math.log, {0: -inf}), lambda g, y, a: zmul(g, div(1, a)))
log2 = op("log2", total(math.log2, {0: -inf}), lambda g, y, a: zmul(g, div(1.4426950408889634, a)))  # 1 / log(2)
log10 = op("log10", total(math.log10, {0: -inf}), lambda g, y, a: zmul(g, div(0.4342944819032518, a)))  # 1 / log(10)
log1p = op("log1p", total(math.log1p, {-1: -inf}), lambda g, y, a: zmul(g, div(1, 1 + a)))
ldexp = op(
    "ldexp",
    special.ldexp,
    lambda g, y, a, b: zmul(g, ldexp(1, b)),
    lambda g, y, a, b: zmul(g, y * 0.6931471805599453),
)

# Trigonometry
sin = op("sin", total(math.sin), lambda g, y, a: zmul(g, cos(a)))
cos = op("cos", total(math.cos), lambda g, y, a: zmul(g, -sin(a)))
tan = op("tan", total(math.tan), lambda g, y, a: zmul(g, 1 + y * y))
asin = op("asin", total(math.asin), lambda g, y, a: zmul(g, div(1, sqrt((1 - a) * (1 + a)))))
acos = op("acos", total(math.acos), lambda g, y, a: zmul(g, div(-1, sqrt((1 - a) * (1 + a)))))
atan = op("atan", math.atan, lambda g, y, a: zmul(g, div(div(1, hypot(1, a)), hypot(1, a))))
atan2 = op(
    "atan2",
    math.atan2,
    lambda g, y, a, b: 0.0 if hypot(a, b) == 0 else zmul(g, div(div(b, hypot(a, b)), hypot(a, b))),
    lambda g, y, a, b: 0.0 if hypot(a, b) == 0 else zmul(g, div(div(-a, hypot(a, b)), hypot(a, b))),
)
degrees = op("degrees", lambda a: a * 57.29577951308232, lambda g, y, a: g * 57.29577951308232)  # 180 / pi
radians = op("radians", lambda a: a * 0.017453292519943295, lambda g, y, a: g * 0.017453292519943295)  # pi / 180
hypot = op(
    "hypot",
    float_hypot,
    lambda g, y, a, b: 0.0 if y == 0 else zmul(g, div(a, y)),
    lambda g, y, a, b: 0.0 if y == 0 else zmul(g, div(b, y)),
)
sinc = op("sinc", special.sinc, lambda g, y, a: zmul(g, sinc_derivative(1, a)))
sinc_derivative = op(
    "sinc_derivative",
    special.sinc_derivative,
    lambda g, y, a, b: zmul(g, nan),  # the order of a derivative is a whole number
    lambda g, y, a, b: zmul(g, sinc_derivative(a + 1, b)),
)

# Hyperbolic
sinh = op("sinh", float_sinh, lambda g, y, a: zmul(g, cosh(a)))
cosh = op("cosh", total(math.cosh), lambda g, y, a: zmul(g, sinh(a)))
tanh = op("tanh", math.tanh, lambda g, y, a: zmul(g, 1 - y * y if abs(y) < 0.625 else div(div(1, cosh(a)), cosh(a))))
asinh = op("asinh", math.asinh, lambda g, y, a: zmul(g, div(1, hypot(1, a))))
acosh = op("acosh", total(math.acosh), lambda g, y, a: zmul(g, div(1, sqrt(a - 1) * sqrt(a + 1))))
atanh = op("atanh", total(math.atanh, {-1: -inf, 1: inf}), lambda g, y, a: zmul(g, div(1, (1 - a) * (1 + a))))

# Error function, normal distribution, gamma family
erf = op("erf", math.erf, lambda g, y, a: zmul(g, 1.1283791670955126 * gaussian(a)))  # 2 / sqrt(pi)
erfc = op("erfc", math.erfc, lambda g, y, a: zmul(g, -1.1283791670955126 * gaussian(a)))
erfcx = op("erfcx", special.erfcx, lambda g, y, a: zmul(g, -2 * ierfcx(1, a)))
ierfcx = op(
    "ierfcx",
    special.ierfcx,
    lambda g, y, a, b: zmul(g, nan),  # an integral is repeated a whole number of times
    lambda g, y, a, b: zmul(g, -2 * (a + 1) * ierfcx(a + 1, b)),
)
gaussian = op("gaussian", special.gaussian, lambda g, y, a: zmul(g, -2 * zmul(y, a)))
norm_pdf = op("norm_pdf", special.norm_pdf, lambda g, y, a: zmul(g, -zmul(y, a)))
ndtr = op("ndtr", special.ndtr, lambda g, y, a: zmul(g, norm_pdf(a)))
log_ndtr = op(  # 0.707... is sqrt(1 / 2), 0.797... is sqrt(2 / pi)
    "log_ndtr",
    lambda a: log(0.5 * erfcx(-0.7071067811865476 * a)) - 0.5 * a * a if a < -1 else log1p(-ndtr(-a)),
    lambda g, y, a: zmul(
        g, div(0.7978845608028654, erfcx(-0.7071067811865476 * a)) if a < 0 else div(norm_pdf(a), ndtr(a))
    ),
)
gamma = op("gamma", special.gamma, lambda g, y, a: zmul(g, y * digamma(a)))
lgamma = op("lgamma", special.lgamma, lambda g, y, a: zmul(g, digamma(a)))
digamma = op("digamma", special.digamma, lambda g, y, a: zmul(g, polygamma(1, a)))
polygamma = op(
    "polygamma",
    special.polygamma,
    lambda g, y, a, b: zmul(g, nan),  # the order of a derivative is a whole number
    lambda g, y, a, b: zmul(g, polygamma(a + 1, b)),
)

# Activations
relu = op("relu", lambda a: 0.0 if a < 0 else a, lambda g, y, a: g if a > 0 else 0.0)
leaky_relu = op(
    "leaky_relu",
    lambda a, b: a if a > 0 else a * b,
    lambda g, y, a, b: g if a > 0 else zmul(g, b),
    lambda g, y, a, b: 0.0 if a > 0 else zmul(g, a),
    negative_slope=0.01,
)
elu = op(
    "elu",
    lambda a, b: a if a > 0 else b * expm1(a),
    lambda g, y, a, b: g if a > 0 else zmul(g, b * exp(a)),
    lambda g, y, a, b: 0.0 if a > 0 else zmul(g, expm1(a)),
    alpha=1.0,
)
gelu = op("gelu", lambda a: zmul(ndtr(a), a), lambda g, y, a: zmul(g, ndtr(a) + zmul(norm_pdf(a), a)))
silu = op(
    "silu",
    lambda a: zmul(sigmoid(a), a),
    lambda g, y, a: zmul(g, zmul(sigmoid(a), 1 + zmul(sigmoid(-a), a))),
)
sigmoid = op(
    "sigmoid",
    lambda a: div(exp(a), 1 + exp(a)) if a < 0 else div(1, 1 + exp(-a)),
    lambda g, y, a: zmul(g, y * sigmoid(-a)),
)
logsigmoid = op(
    "logsigmoid",
    lambda a: a - log1p(exp(a)) if a < 0 else -log1p(exp(-a)),
    lambda g, y, a: zmul(g, sigmoid(-a)),
)
softplus = op(
    "softplus",
    lambda a: a + log1p(exp(-a)) if a > 0 else log1p(exp(a)),
    lambda g, y, a: zmul(g, sigmoid(a)),
)

# Selection and rounding
maximum = op(
    "maximum",
    lambda a, b: a if a >= b else b if b > a else a + b,  # the sum of a nan and anything is nan
    lambda g, y, a, b: g if a > b else 0.0 if b > a else 0.5 * g,
    lambda g, y, a, b: g if b > a else 0.0 if a > b else 0.5 * g,
)
minimum = op(
    "minimum",
    lambda a, b: a if a <= b else b if b < a else a + b,
    lambda g, y, a, b: g if a < b else 0.0 if b < a else 0.5 * g,
    lambda g, y, a, b: g if b < a else 0.0 if a < b else 0.5 * g,
)
fmax = op(
    "fmax",
    lambda a, b: a if isnan(b) or a >= b else b,
    lambda g, y, a, b: g if isnan(b) or a > b else 0.5 * g if a == b else 0.0,
    lambda g, y, a, b: g if isnan(a) or b > a else 0.5 * g if a == b else 0.0,
)
fmin = op(
    "fmin",
    lambda a, b: a if isnan(b) or a <= b else b,
    lambda g, y, a, b: g if isnan(b) or a < b else 0.5 * g if a == b else 0.0,
    lambda g, y, a, b: g if isnan(a) or b < a else 0.5 * g if a == b else 0.0,
)
clip = op(  # Python's own max and min: they keep the first of two that are equal, or where one is nan
    "clip",
    lambda a, b, c: min(max(a, b), c),
    lambda g, y, a, b, c: 0.0 if a < b or a > c else g,
    lambda g, y, a, b, c: g if a < b and not b > c else 0.0,
    lambda g, y, a, b, c: g if max(a, b) > c else 0.0,
    min=-inf,
    max=inf,
)
where = op(
    "where",
    lambda a, b, c: b if a != 0 else c,
    zero,
    lambda g, y, a, b, c: g if a != 0 else 0.0,
    lambda g, y, a, b, c: 0.0 if a != 0 else g,
)
less = op("less", lambda a, b: a < b, zero, zero)  # of floats: a bool, which Op makes 1.0 or 0.0
less_equal = op("less_equal", lambda a, b: a <= b, zero, zero)
greater = op("greater", lambda a, b: a > b, zero, zero)
greater_equal = op("greater_equal", lambda a, b: a >= b, zero, zero)
equal = op("equal", lambda a, b: a == b, zero, zero)
not_equal = op("not_equal", lambda a, b: a != b, zero, zero)
logical_and = op("logical_and", lambda a, b: bool(a) and bool(b), zero, zero)
logical_or = op("logical_or", lambda a, b: bool(a) or bool(b), zero, zero)
logical_not = op("logical_not", lambda a: not a, zero)
copysign = op("copysign", math.copysign, lambda g, y, a, b: zmul(g, sign(a) * copysign(1, b)), zero)
sign = op("sign", lambda a: 1.0 if a > 0 else -1.0 if a < 0 else 0.0 if a == 0 else a, zero)
floor = op("floor", rounding(math.floor), zero)
ceil = op("ceil", rounding(math.ceil), zero)
trunc = op("trunc", rounding(math.trunc), zero)
round = op("round", rounding(builtins.round), zero)
frozen = op("frozen", lambda a: a, zero)

# Products and sums of exponentials and logarithms; the difference of equal infinities is nan
logaddexp = op(
    "logaddexp",
    lambda a, b: a + 0.6931471805599453 if a == b else maximum(a, b) + log1p(exp(-abs(a - b))),
    lambda g, y, a, b: 0.5 * g if isnan(a - b) else zmul(g, sigmoid(a - b)),
    lambda g, y, a, b: 0.5 * g if isnan(a - b) else zmul(g, sigmoid(b - a)),
)
logaddexp2 = op(
    "logaddexp2",
    lambda a, b: a + 1 if a == b else maximum(a, b) + 1.4426950408889634 * log1p(pow(2, -abs(a - b))),
    lambda g, y, a, b: 0.5 * g if isnan(a - b) else zmul(g, sigmoid(0.6931471805599453 * (a - b))),
    lambda g, y, a, b: 0.5 * g if isnan(a - b) else zmul(g, sigmoid(0.6931471805599453 * (b - a))),
)
xlogy = op(
    "xlogy",
    lambda a, b: (b if isnan(b) else 0.0) if a == 0 else a * log(b),
    lambda g, y, a, b: zmul(g, log(b)),
    lambda g, y, a, b: zmul(g, zmul(a, div(1, b))),
)
xlog1py = op(
    "xlog1py",
    lambda a, b: (b if isnan(b) else 0.0) if a == 0 else a * log1p(b),
    lambda g, y, a, b: zmul(g, log1p(b)),
    lambda g, y, a, b: zmul(g, zmul(a, div(1, 1 + b))),
)

# Other spellings: of NumPy and `math`, of PyTorch, of SciPy
ALIASES: dict[str, str] = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "positive": "pos",
    "absolute": "abs", "fabs": "abs", "power": "pow", "float_power": "pow", "floor_divide": "floordiv",
    "remainder": "mod", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "rad2deg": "degrees", "deg2rad": "radians", "rint": "round", "fix": "trunc",
    "clamp": "clip", "swish": "silu", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
    "expit": "sigmoid", "log_expit": "logsigmoid", "gammaln": "lgamma", "psi": "digamma", "norm_cdf": "ndtr",
    "log_norm_cdf": "log_ndtr", "tgamma": "gamma",
}  # fmt: skip
