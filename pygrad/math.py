"""The standard library's `math`, for floats and Values alike: `from pygrad import math` in place of `import math`.

Floats stay floats, and a Value gives a Value. Poles and overflow follow IEEE 754 for both: log(-1.0) is nan and
exp(1000.0) is inf, where the standard library raises. What is about integers or about the bits of a number is the
standard library's own, and looks at a Value's data: floor, ceil and trunc give ints, isnan and isclose truths. In a
function that is being captured these become guards, as int(x) and bool(x) do.
"""

from __future__ import annotations

import math as _math
from collections.abc import Iterable, Sequence
from typing import Any

from pygrad import _core
from pygrad._core import Value, dot, sum
from pygrad.ops import FUNCTIONS as _FUNCTIONS
from pygrad.truths import TRUTHS as _TRUTHS
from pygrad.truths import is_captured as _is_captured
from pygrad.truths import isclose as _isclose

globals().update(_FUNCTIONS)

e, inf, nan, pi, tau = _math.e, _math.inf, _math.nan, _math.pi, _math.tau

remainder = _FUNCTIONS["ieee_remainder"]

# Of integers: no Value makes sense there.
comb, factorial, gcd, isqrt, lcm, perm = (
    _math.comb, _math.factorial, _math.gcd, _math.isqrt, _math.lcm, _math.perm,
)  # fmt: skip


def _data(x: Any) -> float:
    number: float = x.data if isinstance(x, Value) else x
    return number


def _refuse(call: str, instead: str, *operands: Any) -> None:
    """CaptureError where `call` would take the number of an operand out of a graph that is being captured."""
    for x in operands:
        _core.refuse_leaving(x, f"math.{call}", instead)


def floor(x: Any) -> int:
    """The largest integer not above x, an int. The op with a gradient of zero is pygrad.floor."""
    whole: int = _math.floor(x)
    return whole


def ceil(x: Any) -> int:
    """The smallest integer not below x, an int. The op with a gradient of zero is pygrad.ceil."""
    whole: int = _math.ceil(x)
    return whole


def trunc(x: Any) -> int:
    """The integer part of x, an int. The op with a gradient of zero is pygrad.trunc."""
    whole: int = _math.trunc(x)
    return whole


def isnan(x: Any) -> bool:
    """Whether x is nan."""
    return bool(_TRUTHS["isnan"](x)) if _is_captured(x) else _math.isnan(_data(x))


def isinf(x: Any) -> bool:
    """Whether x is inf or -inf."""
    return bool(_TRUTHS["isinf"](x)) if _is_captured(x) else _math.isinf(_data(x))


def isfinite(x: Any) -> bool:
    """Whether x is neither inf nor nan."""
    return bool(_TRUTHS["isfinite"](x)) if _is_captured(x) else _math.isfinite(_data(x))


def isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    """Whether a and b are close, as math.isclose has it."""
    if _is_captured(a, b) and rel_tol >= 0 and abs_tol >= 0:
        return bool(_isclose(a, b, rel_tol, abs_tol))
    return _math.isclose(_data(a), _data(b), rel_tol=rel_tol, abs_tol=abs_tol)


def ulp(x: Any) -> float:
    """The value of the least significant bit of x."""
    _refuse("ulp(x)", "a multiple of abs(x) may do", x)
    return _math.ulp(_data(x))


def nextafter(x: Any, y: Any, **steps: Any) -> float:
    """The float next to x towards y; from Python 3.12 on it takes steps=, as the standard library's."""
    _refuse("nextafter(x, y)", "x * (1 + 2**-52) may do", x, y)
    return _math.nextafter(_data(x), _data(y), **steps)


def frexp(x: Any) -> tuple[Any, int]:
    """(m, e) with x == m * 2**e and 0.5 <= |m| < 1; e is a constant.

    >>> from pygrad import math
    >>> math.frexp(6.0)
    (0.75, 3)
    """
    _refuse("frexp(x)", "pygrad.floor(pygrad.log2(abs(x))) + 1 is the exponent, but for rounding", x)
    exponent = _math.frexp(_data(x))[1]
    return _FUNCTIONS["ldexp"](x, float(-exponent)), exponent


def modf(x: Any) -> tuple[Any, Any]:
    """(fractional part, integer part), both with the sign of x; the integer part is a constant float, or in a function
    that is being captured a Value of gradient 0.

    The fraction has gradient 1; that of an infinite x is a zero, of gradient 0.

    >>> from pygrad import math
    >>> math.modf(-2.5)
    (-0.5, -2.0)
    """
    if _is_captured(x):
        infinite, zero = _TRUTHS["isinf"](x), _FUNCTIONS["copysign"](0.0, x)
        return _FUNCTIONS["where"](infinite, zero, _FUNCTIONS["fmod"](x, 1.0)), _FUNCTIONS["trunc"](x)
    fraction, whole = _math.modf(_data(x))
    if not isinstance(x, Value):
        return fraction, whole
    # fmod and not x - whole, which loses the sign of a zero; fmod(inf, 1) is nan.
    return _FUNCTIONS["copysign"](0.0, x) if _math.isinf(whole) else _FUNCTIONS["fmod"](x, 1.0), whole


def _logarithm(name: str, x: Any) -> Any:
    """Of an int of any size, as the standard library has it; else the op."""
    huge = isinstance(x, int) and x > 1 << 1000
    return getattr(_math, name)(x) if huge else _FUNCTIONS[name](x)


def log(x: Any, base: Any = None) -> Any:
    """Natural logarithm, or that to a base.

    >>> from pygrad import math
    >>> math.log(8.0, 2.0)
    3.0
    """
    return _logarithm("log", x) if base is None else _logarithm("log", x) / _logarithm("log", base)


def log2(x: Any) -> Any:
    """Logarithm to base 2."""
    return _logarithm("log2", x)


def log10(x: Any) -> Any:
    """Logarithm to base 10."""
    return _logarithm("log10", x)


def hypot(*coordinates: Any) -> Any:
    """Length of a vector of any number of coordinates; gradient 0 at the origin.

    >>> from pygrad import math
    >>> math.hypot(2.0, 3.0, 6.0)
    7.0
    """
    if not coordinates:
        return 0.0
    length = coordinates[0]
    if len(coordinates) == 1:
        return _FUNCTIONS["abs"](length)
    for coordinate in coordinates[1:]:
        length = _FUNCTIONS["hypot"](length, coordinate)
    return length


def dist(p: Sequence[Any], q: Sequence[Any]) -> Any:
    """Distance of two points of equally many coordinates.

    >>> from pygrad import math
    >>> math.dist([0.0, 0.0], [3.0, 4.0])
    5.0
    """
    if len(p) != len(q):
        raise ValueError(f"dist: points must have equally many coordinates, found {len(p)} and {len(q)}")
    return hypot(*(a - b for a, b in zip(p, q, strict=True)))


def prod(values: Iterable[Any], *, start: Any = 1) -> Any:
    """Product, from left to right from start.

    >>> from pygrad import math
    >>> math.prod([2.0, 3.0])
    6.0
    """
    result = start
    for value in values:
        result = result * value
    return result


def fsum(values: Iterable[Any]) -> Any:
    """Sum: of floats exactly rounded, as math.fsum; with a Value among them as one node, added from left to right."""
    items = list(values)
    return sum(items) if any(isinstance(item, Value) for item in items) else _math.fsum(items)


def sumprod(p: Iterable[Any], q: Iterable[Any]) -> Any:
    """Sum of products of two equally long sequences: with a Value among them as one node, added from left to right; of
    plain numbers as math.sumprod, which is there from Python 3.12 on, and before that from left to right too.

    >>> from pygrad import math
    >>> math.sumprod([1.0, 2.0], [3.0, 4.0])
    11.0
    """
    left, right = list(p), list(q)
    if any(isinstance(item, Value) for item in (*left, *right)) or not hasattr(_math, "sumprod"):
        return dot(left, right)
    return _math.sumprod(left, right)


__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in {
    "annotations", "Any", "Iterable", "Sequence", "Value"})  # fmt: skip
