"""Methods of Value that need not be fast: conversions, copies, pickles. The rest of Value is csrc/py_value.c."""

from __future__ import annotations

import copy
import functools
import math
import types
from collections.abc import Callable
from typing import Any

from pygrad import _core
from pygrad._core import Value
from pygrad.structures import flatten, map_structure

__all__ = ["Value", "copied_closure", "real", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """`x` as a constant: a Value becomes a leaf that does not require a gradient, a float stays what it is.

    >>> from pygrad import Value, stop_gradient
    >>> x = Value(3.0)
    >>> y = x * stop_gradient(x)
    >>> y.backward()
    >>> x.grad
    3.0
    """
    return x.detach() if isinstance(x, Value) else x


def real(number: Any) -> Any:
    """A real number that is neither float nor int, as a float; NotImplemented for what is no real number.

    NumPy scalars of up to 64 bits and numbers.Real (Fraction) are known. A longdouble or a Decimal would lose digits
    without notice, so they are not.
    """
    kind = type(number)
    if kind.__module__ == "numpy":
        dtype = getattr(number, "dtype", None)
        known = dtype is not None and dtype.kind in "fiub" and dtype.itemsize <= 8 and getattr(number, "shape", 1) == ()
        return float(number) if known and not hasattr(number, "__array_finalize__") else NotImplemented
    import numbers

    return float(number) if isinstance(number, numbers.Real) else NotImplemented


def copied_closure(closure: Any, replace: Callable[[Any], Any]) -> Any:
    """A backward_fn as a copied node needs it: with replace(v) in place of every Value v that it holds.

    Looks into a function's cells and defaults, a partial's arguments and an object's attributes, and into lists, tuples
    and dicts there; what holds no Value stays the same object.
    """

    def replaced(x: Any) -> Any:
        if not any(isinstance(v, Value) for v in flatten(x)):
            return x
        return map_structure(lambda v: replace(v) if isinstance(v, Value) else v, x)

    def cell(old: Any) -> Any:
        try:
            return types.CellType(replaced(old.cell_contents))
        except ValueError:  # a name that is not bound yet
            return old

    if isinstance(closure, types.FunctionType):
        cells = tuple(map(cell, closure.__closure__ or ()))
        made = types.FunctionType(closure.__code__, closure.__globals__, closure.__name__,
                                  replaced(closure.__defaults__), cells or None)  # fmt: skip
        made.__kwdefaults__ = replaced(closure.__kwdefaults__)
        made.__dict__.update(closure.__dict__)
        made.__qualname__, made.__doc__ = closure.__qualname__, closure.__doc__
        return made
    if isinstance(closure, types.MethodType):
        return types.MethodType(closure.__func__, copied_closure(closure.__self__, replace))
    if isinstance(closure, functools.partial):
        return functools.partial(
            copied_closure(closure.func, replace), *replaced(closure.args), **replaced(closure.keywords)
        )
    if not hasattr(closure, "__dict__") or isinstance(closure, type):
        return closure
    made = copy.copy(closure)
    for name, item in vars(closure).items():
        object.__setattr__(made, name, replaced(item))
    return made


def _format(self: Any, spec: str) -> str:
    return format(self.data, spec) if spec else repr(self)


def _round(self: Any, ndigits: int | None = None) -> Any:
    return round(self.data) if ndigits is None else round(self.data, ndigits)


def _copy(self: Any) -> Any:
    return _core.copy_node(self)


def _deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
    return _core.copy_graph(self, memo)


def _reduce(self: Any, protocol: int) -> Any:
    return _core.reduce_graph(self)


_METHODS = {
    "__format__": _format,
    "__round__": _round,
    "conjugate": lambda self: self,  # NumPy's var, std and vdot of an object array call it
    "__floor__": lambda self: math.floor(self.data),
    "__ceil__": lambda self: math.ceil(self.data),
    "__trunc__": lambda self: math.trunc(self.data),
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce,
}
for _name, _method in _METHODS.items():
    _core.add_to_type(_name, _method)
