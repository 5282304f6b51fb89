"""Predicates of floats as truths that are Values, made of rows of the table: what a capture records for np.isnan(v)
and guards for math.isnan(v). Knows the table; outside of a capture the standard library and NumPy answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pygrad import _core
from pygrad._core import Value
from pygrad.ops import FUNCTIONS

__all__ = ["TRUTHS", "is_captured", "isclose"]

_INF = float("inf")
_ABS, _COPYSIGN = FUNCTIONS["abs"], FUNCTIONS["copysign"]
_LESS, _LESS_EQUAL, _EQUAL, _NOT_EQUAL = (FUNCTIONS[name] for name in ("less", "less_equal", "equal", "not_equal"))
_AND, _OR, _NOT = (FUNCTIONS[f"logical_{name}"] for name in ("and", "or", "not"))

# By their names in NumPy. Each takes floats too.
TRUTHS: dict[str, Callable[..., Any]] = {
    "isnan": lambda x: _NOT_EQUAL(x, x),
    "isinf": lambda x: _EQUAL(_ABS(x), _INF),
    "isfinite": lambda x: _LESS(_ABS(x), _INF),
    "signbit": lambda x: _LESS(_COPYSIGN(1.0, x), 0.0),
    "logical_xor": lambda x, y: _NOT_EQUAL(_NOT(x), _NOT(y)),
    **{name: FUNCTIONS[name] for name in (
        "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or",
        "logical_not",
    )},
}  # fmt: skip


def isclose(a: Any, b: Any, rel_tol: float, abs_tol: float) -> Any:
    """math.isclose as one truth."""
    difference = _ABS(b - a)
    near = _OR(_LESS_EQUAL(difference, _ABS(rel_tol * b)), _LESS_EQUAL(difference, _ABS(rel_tol * a)))
    near = _OR(near, _LESS_EQUAL(difference, abs_tol))
    return _OR(_EQUAL(a, b), _AND(_LESS(difference, _INF), near))


def is_captured(*operands: Any) -> bool:
    """Whether a capture is under way, and a Value that it may have to record is among the operands."""
    return _core.is_capturing() and any(isinstance(x, Value) and x.requires_grad for x in operands)
