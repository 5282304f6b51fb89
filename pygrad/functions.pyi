"""The elementwise ops of the table as functions. Written by `python tests/generated.py`, which also renews it."""

from typing import Any, Protocol, overload

from numpy.typing import NDArray

from pygrad._core import Operand, Real, Value

class _Unary(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, /) -> Value: ...
    @overload
    def __call__(self, a: Real, /) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], /) -> NDArray[Any]: ...

class _Binary(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, b: Operand, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Value, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Real, /) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], b: Operand | NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Operand, b: NDArray[Any], /) -> NDArray[Any]: ...

class _Ternary(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, b: Operand, c: Operand, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Value, c: Operand, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Real, c: Value, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Real, c: Real, /) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], b: Operand | NDArray[Any], c: Operand | NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Operand, b: NDArray[Any], c: Operand | NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Operand, b: Operand, c: NDArray[Any], /) -> NDArray[Any]: ...

class _LeakyRelu(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, /, negative_slope: Operand | None = ...) -> Value: ...
    @overload
    def __call__(self, a: Real, /, negative_slope: Value) -> Value: ...
    @overload
    def __call__(self, a: Real, /, negative_slope: Real | None = ...) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], /, negative_slope: Operand | NDArray[Any] | None = ...) -> NDArray[Any]: ...

class _Elu(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, /, alpha: Operand | None = ...) -> Value: ...
    @overload
    def __call__(self, a: Real, /, alpha: Value) -> Value: ...
    @overload
    def __call__(self, a: Real, /, alpha: Real | None = ...) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], /, alpha: Operand | NDArray[Any] | None = ...) -> NDArray[Any]: ...

class _Clip(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, /, min: Operand | None = ..., max: Operand | None = ...) -> Value: ...
    @overload
    def __call__(self, a: Real, /, min: Value, max: Operand | None = ...) -> Value: ...
    @overload
    def __call__(self, a: Real, /, min: Real | None = ..., *, max: Value) -> Value: ...
    @overload
    def __call__(self, a: Real, /, min: Real | None = ..., max: Real | None = ...) -> float: ...
    @overload
    def __call__(
        self, a: NDArray[Any], /, min: Operand | NDArray[Any] | None = ..., max: Operand | NDArray[Any] | None = ...
    ) -> NDArray[Any]: ...

add: _Binary
sub: _Binary
mul: _Binary
div: _Binary
neg: _Unary
pos: _Unary
abs: _Unary
square: _Unary
reciprocal: _Unary
zmul: _Binary
relu: _Unary
pow: _Binary
pow_less_one: _Binary
floordiv: _Binary
mod: _Binary
fmod: _Binary
ieee_remainder: _Binary
fma: _Ternary
sqrt: _Unary
cbrt: _Unary
exp: _Unary
exp2: _Unary
expm1: _Unary
log: _Unary
log2: _Unary
log10: _Unary
log1p: _Unary
ldexp: _Binary
sin: _Unary
cos: _Unary
tan: _Unary
asin: _Unary
acos: _Unary
atan: _Unary
atan2: _Binary
degrees: _Unary
radians: _Unary
hypot: _Binary
sinc: _Unary
sinc_derivative: _Binary
sinh: _Unary
cosh: _Unary
tanh: _Unary
asinh: _Unary
acosh: _Unary
atanh: _Unary
erf: _Unary
erfc: _Unary
erfcx: _Unary
ierfcx: _Binary
gaussian: _Unary
norm_pdf: _Unary
ndtr: _Unary
log_ndtr: _Unary
gamma: _Unary
lgamma: _Unary
digamma: _Unary
polygamma: _Binary
leaky_relu: _LeakyRelu
elu: _Elu
gelu: _Unary
silu: _Unary
sigmoid: _Unary
logsigmoid: _Unary
softplus: _Unary
maximum: _Binary
minimum: _Binary
fmax: _Binary
fmin: _Binary
clip: _Clip
where: _Ternary
less: _Binary
less_equal: _Binary
greater: _Binary
greater_equal: _Binary
equal: _Binary
not_equal: _Binary
logical_and: _Binary
logical_or: _Binary
logical_not: _Unary
copysign: _Binary
sign: _Unary
floor: _Unary
ceil: _Unary
trunc: _Unary
round: _Unary
frozen: _Unary
logaddexp: _Binary
logaddexp2: _Binary
xlogy: _Binary
xlog1py: _Binary

subtract: _Binary
multiply: _Binary
divide: _Binary
true_divide: _Binary
negative: _Unary
positive: _Unary
absolute: _Unary
fabs: _Unary
power: _Binary
float_power: _Binary
floor_divide: _Binary
remainder: _Binary
arcsin: _Unary
arccos: _Unary
arctan: _Unary
arctan2: _Binary
arcsinh: _Unary
arccosh: _Unary
arctanh: _Unary
rad2deg: _Unary
deg2rad: _Unary
rint: _Unary
fix: _Unary
clamp: _Clip
swish: _Unary
lt: _Binary
le: _Binary
gt: _Binary
ge: _Binary
eq: _Binary
ne: _Binary
expit: _Unary
log_expit: _Unary
gammaln: _Unary
psi: _Unary
norm_cdf: _Unary
log_norm_cdf: _Unary
tgamma: _Unary

__all__ = [  # noqa: RUF022
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "digamma",
    "div",
    "divide",
    "elu",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfcx",
    "exp",
    "exp2",
    "expit",
    "expm1",
    "fabs",
    "fix",
    "float_power",
    "floor",
    "floor_divide",
    "floordiv",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frozen",
    "gamma",
    "gammaln",
    "gaussian",
    "ge",
    "gelu",
    "greater",
    "greater_equal",
    "gt",
    "hypot",
    "ieee_remainder",
    "ierfcx",
    "ldexp",
    "le",
    "leaky_relu",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_expit",
    "log_ndtr",
    "log_norm_cdf",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logsigmoid",
    "lt",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "multiply",
    "ndtr",
    "ne",
    "neg",
    "negative",
    "norm_cdf",
    "norm_pdf",
    "not_equal",
    "polygamma",
    "pos",
    "positive",
    "pow",
    "pow_less_one",
    "power",
    "psi",
    "rad2deg",
    "radians",
    "reciprocal",
    "relu",
    "remainder",
    "rint",
    "round",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinc",
    "sinc_derivative",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "swish",
    "tan",
    "tanh",
    "tgamma",
    "true_divide",
    "trunc",
    "where",
    "xlog1py",
    "xlogy",
    "zmul",
]
