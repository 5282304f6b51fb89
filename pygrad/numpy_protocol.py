"""NumPy's functions on Values: what np.tanh(v), np.float64(2) * v and np.sinc(v) mean. Knows the table, no formula.

Arrays of Values are arrays of dtype object: NumPy's own operators, np.sum, np.dot and @ work on them element by
element, since a Value has Python's operators, and methods under NumPy's names.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pygrad import _core
from pygrad._core import Value
from pygrad.ops import FUNCTIONS, TABLE
from pygrad.truths import TRUTHS, is_captured

__all__: list[str] = []

# Ufuncs that look at numbers and give truths: they see the data. During a capture they are recorded.
_PREDICATES = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit",
    "logical_and", "logical_or", "logical_xor", "logical_not",
}  # fmt: skip

# What Python's operators call where a bool or array of bools meets a truth that is a Value.
_LOGIC: dict[str, Callable[..., Any]] = {
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "invert": operator.invert,
}  # fmt: skip

# Functions of NumPy's that make a bool of a Value where pygrad.math has one that a capture guards.
_IN_MATH = {np.isclose: "isclose", np.allclose: "isclose"}

# Functions of NumPy's that are no ufuncs, and have a row in the table.
_FUNCTIONS: dict[Callable[..., Any], str] = {np.sinc: "sinc", np.where: "where", np.clip: "clip", np.fix: "trunc"}


def _elements(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`function` over broadcast operands of which one is an array: float64 where no Value is left, else object."""
    boxed = []
    for operand in operands:
        if isinstance(operand, Value):
            box = np.empty((), dtype=object)
            box[()] = operand
            operand = box
        boxed.append(operand)
    with np.errstate(all="ignore"):  # IEEE 754 without warnings, as for a number alone
        result = np.frompyfunc(function, len(boxed), 1)(*boxed)
    return result if any(isinstance(item, Value) for item in result.flat) else result.astype(float)


def array_operands(op: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """An op of the table on operands of which one is an array; NotImplemented where none is."""
    if not any(isinstance(operand, np.ndarray) for operand in operands):
        return NotImplemented
    scalars = all(isinstance(o, Value) or np.ndim(o) == 0 for o in operands)
    if scalars:
        return op(*(o if isinstance(o, Value) else o.item() if isinstance(o, np.ndarray) else o for o in operands))
    return _elements(op, operands)


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    name = ufunc.__name__
    outs: tuple[Any, ...] = kwargs.pop("out", None) or ()
    if any(out is not None and not (isinstance(out, np.ndarray) and out.dtype == object) for out in outs):
        raise TypeError(f"np.{name}: out= would lose the graph of a Value; use the result")
    result = _result(ufunc, method, inputs, kwargs)
    if not any(out is not None for out in outs):
        return result
    if not isinstance(result, tuple):
        return _written(name, outs[0], result)
    return tuple(item if out is None else _written(name, out, item) for out, item in zip(outs, result, strict=True))


def _written(name: str, out: Any, result: Any) -> Any:
    """`out`, an array of dtype object, with the result broadcast into it, as NumPy's ufuncs do it."""
    shape = np.shape(result)
    if len(shape) > out.ndim or any(n not in (1, m) for n, m in zip(shape[::-1], out.shape[::-1], strict=False)):
        raise ValueError(f"np.{name}: out has shape {out.shape}, needs one that the result's, {shape}, broadcasts to")
    out[...] = result
    return out


def _result(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ufunc, or a method of one, gives for inputs of which one is a Value."""
    name = ufunc.__name__
    if kwargs.pop("where", True) is not True:
        raise TypeError(f"np.{name}: where= leaves elements undefined; use pygrad.where")
    if method == "reduce" and isinstance(inputs[0], Value):
        return inputs[0]
    if method != "__call__":
        raise TypeError(f"np.{name}.{method}: is not defined for a Value")
    if kwargs:
        raise TypeError(f"np.{name}: unexpected keyword {next(iter(kwargs))!r} for a Value")
    if name in _PREDICATES and _is_captured(inputs):
        return _applied(TRUTHS[name], inputs)
    if name in _PREDICATES:
        return ufunc(*(_data(x) for x in inputs))
    if name in _LOGIC and any(isinstance(x, Value) and x.op in TRUTHS for x in inputs):
        return _applied(_LOGIC[name], tuple(bool(x) if isinstance(x, np.bool_) else x for x in inputs))
    if name == "divmod":
        return _applied(FUNCTIONS["floor_divide"], inputs), _applied(FUNCTIONS["remainder"], inputs)
    if name not in FUNCTIONS:
        raise TypeError(f"np.{name}: is not defined for a Value; `python -m pygrad ops` lists what is")
    return _applied(FUNCTIONS[name], inputs)


def _is_captured(inputs: tuple[Any, ...]) -> bool:
    return any(is_captured(*x.flat) if isinstance(x, np.ndarray) else is_captured(x) for x in inputs)


def _applied(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """A function of the table's kind on inputs of which one is a Value."""
    if any(isinstance(x, np.ndarray) for x in inputs):
        return array_operands(function, inputs)
    return function(*inputs)


def _data(x: Any) -> Any:
    """The number of a Value, those of the Values in an array; what else there is stays as it is."""
    if isinstance(x, Value):
        return x.data
    if isinstance(x, np.ndarray) and x.dtype == object:
        return np.array([_data(item) for item in x.flat]).reshape(x.shape)
    return x


def _round(x: Any, decimals: int = 0, out: None = None) -> Any:
    """np.round of a Value, a gradient of zero: scaled, rounded and scaled back, as NumPy does it."""
    if out is not None:
        raise TypeError("np.round: out= would lose the graph of a Value; use the result")
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return FUNCTIONS["round"](x / scale) * scale
    return FUNCTIONS["round"](x * scale) / scale if decimals else FUNCTIONS["round"](x)


def _array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if func in (np.round, np.around) and isinstance(args[0] if args else None, Value):
        return _round(*args, **kwargs)
    if func in _IN_MATH:
        for item in args[:2]:
            _core.refuse_leaving(item, f"np.{func.__name__}", f"use pygrad.math.{_IN_MATH[func]}")
    name = _FUNCTIONS.get(func)
    if name is not None and not kwargs.keys() - {"a_min", "a_max", "min", "max", "out"}:
        kwargs = {{"a_min": "min", "a_max": "max"}.get(key, key): value for key, value in kwargs.items()}
        if len(args) < TABLE[name].arity - len(TABLE[name].defaults):
            raise TypeError(f"np.{func.__name__}: needs {TABLE[name].arity} operands for a Value, found {len(args)}")
        operands = [np.asarray(arg) if isinstance(arg, (list, tuple)) else arg for arg in args]
        return FUNCTIONS[name](*operands, **kwargs)
    return func._implementation(*args, **kwargs)  # NumPy's own, which takes a Value for an object


_core.add_to_type("__array_ufunc__", _array_ufunc)
_core.add_to_type("__array_function__", _array_function)
