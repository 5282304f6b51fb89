"""Ops of the user's own, in Python. The core calls `gradients` in backward, `gradients_graph` with create_graph."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from pygrad import _core
from pygrad._core import Program, Value

__all__ = ["custom_op"]

MOST_ORDERS = 8  # where gradients call their own op, or each other's: each order is a program within the one before


class _Making(threading.local):
    """The gradients whose programs are made at the moment, one for the other."""

    depth = 0

    def __init__(self) -> None:
        self.kept: list[Program] = []  # until the outermost one is done


_making = _Making()


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
        # Of the gradient, by the number of operands and by depth. Not held: they may hold the op in turn, unseen by gc.
        self._programs: WeakValueDictionary[tuple[int, int], Program] = WeakValueDictionary()

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

    def numbers(self, operands: tuple[float, ...]) -> tuple[float, ...]:
        """The value, for a program that calls back."""
        return (_core.as_float(self.value(*operands), self.__name__),)

    def gradient_program(self, y: float, operands: tuple[float, ...]) -> Program:
        """The program of the gradient, from (g, y, *operands), captured at these numbers: for py_program.c."""
        key = len(operands), _making.depth
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._gradient_program([1.0, y, *operands])
        if _making.depth:
            _making.kept.append(program)
        return program

    def _gradient_program(self, numbers: list[float]) -> Program:
        """Captured where the gradient is written for Values and goes one way; else one that calls back too."""
        inputs, count = [Value(number) for number in numbers], len(numbers)
        _making.depth += 1
        try:
            if _making.depth <= MOST_ORDERS:
                program, outside, _ = _core.capture(lambda: (self._on_values(inputs), None), inputs)
                if not outside and program.counts == (count, count - 2, 0):
                    return program
        except Exception:  # whatever a gradient that is written for floats does with a Value
            pass
        finally:
            _making.depth -= 1
            if not _making.depth:
                _making.kept.clear()
        refusal = _core.rolled_call(_Refusal(self.__name__), count + 2, count)
        return _core.rolled_call(_Gradient(self), count, count - 2, refusal)

    def _on_values(self, inputs: list[Value]) -> list[Any]:
        g, y, *operands = inputs
        return list(self.gradients_graph(g, y, tuple(operands)))

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


class _Gradient:
    """The gradient of an op on floats, called back by a program: from (g, y, *operands)."""

    def __init__(self, op: CustomOp) -> None:
        self.op = op

    def numbers(self, operands: tuple[float, ...]) -> tuple[float, ...]:
        g, y, *rest = operands
        return self.op.gradients(g, y, tuple(rest))


class _Refusal:
    """What stands for the derivative of a gradient on floats; a program that runs it raises."""

    def __init__(self, name: str) -> None:
        self.name = name

    def numbers(self, operands: tuple[float, ...]) -> tuple[float, ...]:
        raise TypeError(
            f"{self.name}: its gradient serves first derivatives alone in a compiled function, since it is computed on "
            "floats, or branches; write it with Python's operators, pygrad's functions and pygrad.where"
        )


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
