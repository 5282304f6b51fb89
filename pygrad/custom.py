"""Ops of the user's own, in Python. The core calls `gradients` in backward, `gradients_graph` with create_graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pygrad import _core
from pygrad._core import Value

__all__ = ["custom_op"]


class CustomOp:
    """A function on Values with a gradient of the user's. Made by custom_op."""

    def __init__(self, value: Callable[..., float], gradient: Callable[..., Any], name: str, module: str) -> None:
        for what, function in (("value", value), ("gradient", gradient)):
            if not callable(function):
                raise TypeError(f"custom_op: {what} must be callable, found {function!r}")
        self.value = value
        self.gradient = gradient
        self.__name__ = self.__qualname__ = name
        self.__module__ = module
        self.__doc__ = value.__doc__

    def __call__(self, *operands: Any) -> Any:
        y = self.value(*_core.numbers_of(operands))
        if isinstance(y, Value):
            raise TypeError(f"{self.__name__}: the value must be computed from floats and be one, found {y!r}")
        return _core.record_custom(self, y, operands) if any(isinstance(o, Value) for o in operands) else y

    def __repr__(self) -> str:
        return f"<custom op {self.__name__}>"

    def __reduce__(self) -> Any:
        """By name where its module has it under that, as a function does; else by its parts."""
        if getattr(sys.modules.get(self.__module__), self.__name__, None) is self:
            return self.__name__
        return CustomOp, (self.value, self.gradient, self.__name__, self.__module__)

    def _contributions(self, g: Any, y: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.gradient(g, y, *operands)
        contributions = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(contributions) != len(operands):
            raise ValueError(
                f"{self.__name__}: gradient must give one number an operand, "
                f"found {len(contributions)} for {len(operands)}"
            )
        return contributions

    def gradients(self, g: float, y: float, operands: tuple[float, ...]) -> tuple[float, ...]:
        """Contributions to the operands' gradients, as floats; None counts as zero."""
        found = self._contributions(g, y, operands)
        return tuple(0.0 if c is None else _core.as_float(c, f"{self.__name__}: gradient") for c in found)

    def gradients_graph(self, g: Any, y: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same on Values: a gradient written with Python's operators and pygrad's functions is recorded.

        Where nothing records, as in a first derivative in forward mode, floats will do, and so will `math`.
        """
        if not _core.is_grad_enabled():
            g, y = _core.numbers_of((g, y))  # float(v) is an error within a transform around this one
            return self.gradients(g, y, _core.numbers_of(operands))
        _core.enter_trace()
        try:
            found = self._contributions(g, y, operands)
        finally:
            _core.leave_trace()
        what = f"{self.__name__}: gradient"
        return tuple(0.0 if c is None else c if isinstance(c, Value) else _core.as_float(c, what) for c in found)


def custom_op(value: Callable[..., float], gradient: Callable[..., Any], *, name: str | None = None) -> CustomOp:
    """An op from a value on floats and a gradient.

    value(*operands) takes floats and gives a float. gradient(g, y, *operands) takes the adjoint g of the result, the
    result y and the operands, and gives one contribution an operand (a tuple, or one number for one operand; None for
    zero). Written with Python's operators and pygrad's functions, the gradient can be differentiated itself, to any
    order; written with `math` on floats it serves first derivatives, and a second one raises TypeError. A node of the
    op pickles where the op is a global of its module under its name, or where both functions pickle.

    Raises TypeError where value or gradient is not callable.

    >>> import math, pygrad
    >>> from pygrad import Value, custom_op
    >>> logistic = custom_op(lambda a: 1 / (1 + math.exp(-a)), lambda g, y, a: g * y * (1 - y), name="logistic")
    >>> x = Value(0.0)
    >>> logistic(x).backward()
    >>> x.grad
    0.25
    >>> pygrad.grad(pygrad.grad(logistic))(1.0)
    -0.09085774767294841
    """
    module = sys._getframe(1).f_globals.get("__name__", "")
    return CustomOp(value, gradient, name or str(getattr(value, "__name__", "custom")), module)
