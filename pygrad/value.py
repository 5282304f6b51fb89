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
from pygrad.structures import map_structure

__all__ = ["Value", "copied_closure", "real", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """`x` as a constant: a Value becomes a leaf that does not require a gradient, a float stays what it is.

    In a function that is being captured it becomes a node of op `frozen`, through which no gradient goes.

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

    Looks into a function's cells, defaults and attributes, a method's object and function, a partial's parts and the
    attributes of an object that is called, into lists, tuples and dicts there, and into all callables that it finds on
    the way. What holds no Value stays the same object.

    Raises RecursionError where lists, tuples and dicts are nested too deeply, or in themselves.
    """
    try:
        return _ClosureCopy(closure, replace).made_of(closure)
    except RecursionError:
        raise RecursionError(
            "copy: a backward_fn holds lists, tuples, dicts or methods that are nested too deeply, or in themselves; "
            "hold the Values in its cells"
        ) from None


def _is_called(x: Any) -> bool:
    """Whether `x` is a callable of Python code, which may hold Values; a class or an op of the table holds none."""
    if isinstance(x, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    return callable(x) and hasattr(x, "__dict__") and not isinstance(x, (type, types.ModuleType))


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None


def _found(x: Any) -> list[Any]:
    """The Values and callables in a structure."""
    found = []

    def take(item: Any) -> Any:
        found.append(item)
        return item

    map_structure(take, x, take)
    return [item for item in found if isinstance(item, Value) or _is_called(item)]


def _held(x: Any) -> list[Any]:
    """The Values and callables that `x` holds itself."""
    if isinstance(x, types.MethodType):
        return [x.__func__, x.__self__]
    if isinstance(x, types.FunctionType):
        cells = [_contents(cell) for cell in x.__closure__ or ()]
        return _found([*cells, x.__defaults__, x.__kwdefaults__, x.__dict__])
    if isinstance(x, functools.partial):
        return _found([x.func, x.args, x.keywords, x.__dict__])
    return _found(list(vars(x).values())) if hasattr(x, "__dict__") and not isinstance(x, type) else []


class _ClosureCopy:
    """Callables made anew. Each is made empty and filled later: they may hold one another, and nothing recurses."""

    def __init__(self, closure: Any, replace: Callable[[Any], Any]) -> None:
        self.replace = replace
        self.holding = self._holding(closure)
        self.made: dict[int, Any] = {}  # by the id of the callable or the cell, which self.holding keeps alive
        self.empty: list[tuple[Any, Any]] = []

    @staticmethod
    def _holding(closure: Any) -> dict[int, Any]:
        """The callables by id from which a Value can be reached."""
        holders: dict[int, list[Any]] = {id(closure): []}  # of each callable those that hold it
        stack, reaching = [closure], []
        while stack:
            x = stack.pop()
            for item in _held(x):
                if isinstance(item, Value):
                    reaching.append(x)
                    continue
                if id(item) not in holders:
                    holders[id(item)] = []
                    stack.append(item)
                holders[id(item)].append(x)
        found: dict[int, Any] = {}
        while reaching:
            x = reaching.pop()
            if id(x) not in found:
                found[id(x)] = x
                reaching += holders[id(x)]
        return found

    def made_of(self, closure: Any) -> Any:
        made = self._anew(closure)
        while self.empty:
            self._fill(*self.empty.pop())
        return made

    def _holds(self, x: Any) -> bool:
        return any(isinstance(item, Value) or id(item) in self.holding for item in _found(x))

    def _replaced(self, x: Any) -> Any:
        if not self._holds(x):
            return x
        return map_structure(self._anew, x, self._anew)

    def _anew(self, x: Any) -> Any:
        """What stands for a Value, or the copy of a callable, which may be empty yet; anything else itself."""
        if isinstance(x, Value):
            return self.replace(x)
        if id(x) not in self.holding:
            return x
        if id(x) not in self.made:
            if isinstance(x, types.MethodType):
                made: Any = types.MethodType(self._anew(x.__func__), self._anew(x.__self__))
            elif isinstance(x, types.FunctionType):
                cells = tuple(self._cell(cell) for cell in x.__closure__ or ())
                made = types.FunctionType(x.__code__, x.__globals__, x.__name__, None, cells or None)
            else:
                made = functools.partial(x.func) if isinstance(x, functools.partial) else copy.copy(x)
            self.made[id(x)] = made
            if made is not x and not isinstance(x, types.MethodType):
                self.empty.append((x, made))
        return self.made[id(x)]

    def _cell(self, cell: Any) -> Any:
        """An empty cell for one that holds a Value, one and the same for all functions that share it."""
        if not self._holds(_contents(cell)):
            return cell
        return self.made.setdefault(id(cell), types.CellType())

    def _fill(self, x: Any, made: Any) -> None:
        if isinstance(x, types.FunctionType):
            for old, new in zip(x.__closure__ or (), made.__closure__ or (), strict=True):
                if new is not old:
                    new.cell_contents = self._replaced(old.cell_contents)
            made.__defaults__, made.__kwdefaults__ = self._replaced(x.__defaults__), self._replaced(x.__kwdefaults__)
            made.__dict__.update(self._replaced(x.__dict__))
            made.__qualname__, made.__doc__ = x.__qualname__, x.__doc__
        elif isinstance(x, functools.partial):
            made.__setstate__(tuple(map(self._replaced, (x.func, x.args, x.keywords, x.__dict__))))
        else:
            for name, item in vars(x).items():
                object.__setattr__(made, name, self._replaced(item))


def _format(self: Any, spec: str) -> str:
    return format(_core.numbers_of((self,))[0], spec) if spec else repr(self)  # text for the eye: a capture allows it


def _round(self: Any, ndigits: int | None = None) -> Any:
    if ndigits is None:
        return round(_core.guarded_number(self, "round", "round"))
    _core.refuse_leaving(self, "round(x, n)", "use pygrad.round(x * 10**n) / 10**n")
    return round(self.data, ndigits)


def _integer(name: str) -> Callable[[Any], int]:
    function = getattr(math, name)
    return lambda self: function(_core.guarded_number(self, name, name))


def _copy(self: Any) -> Any:
    if self.op == "leaf":
        _core.refuse_leaving(self, "copy.copy(x) of a leaf", "use +x, which depends on x")
    return _core.copy_node(self)


def _deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
    _core.refuse_leaving(self, "copy.deepcopy(x)", "use the Value itself: computing with it does not change it")
    return _core.copy_graph(self, memo)


def _reduce(self: Any, protocol: int) -> Any:
    _core.refuse_leaving(self, "pickling x", "return it as a further result, and pickle that")
    return _core.reduce_graph(self)


_METHODS = {
    "__format__": _format,
    "__round__": _round,
    "conjugate": lambda self: self,  # NumPy's var, std and vdot of an object array call it
    "__floor__": _integer("floor"),
    "__ceil__": _integer("ceil"),
    "__trunc__": _integer("trunc"),
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce,
}
for _name, _method in _METHODS.items():
    _core.add_to_type(_name, _method)
