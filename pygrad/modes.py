"""Modes of the running thread: no_grad, enable_grad, detect_anomaly. Each is a context manager and a decorator.

The flags themselves are in the core (csrc/py_node.c), where every new node looks at them.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import numpy as np

from pygrad import _core
from pygrad._core import is_grad_enabled
from pygrad.errors import AnomalyError

__all__ = ["detect_anomaly", "enable_grad", "is_grad_enabled", "no_grad"]

# Code that is not the user's, where it calls an op: pygrad's, NumPy's and that of copy.
_OTHERS = (*(os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, np.__file__)), copy.__file__)

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """A context manager and decorator, bare or called: `@no_grad` and `@no_grad()` are the same.

    Each `with` and each call keeps its own state, so one object may nest, and may be shared by threads.
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        mode._entered = threading.local()
        return mode if function is None else mode(function)

    _entered: Any
    _enter: Callable[..., bool]  # switches the mode on; gives what was before
    _leave: Callable[..., None]  # takes that

    def __enter__(self) -> None:
        before = self._enter()
        self._entered.stack = (before, getattr(self._entered, "stack", None))

    def __exit__(self, *exception: object) -> None:
        before, self._entered.stack = self._entered.stack
        self._leave(before)

    def __call__(self, function: F) -> F:
        """`function` run in this mode; of a generator or coroutine each step is, and between steps the caller's mode is
        back.

        Raises TypeError for an asynchronous generator, and for what is no function.
        """
        wrapped: Any
        if not callable(function) or isinstance(function, type) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{type(self).__name__}: can decorate a function, found {function!r}; use a with block")
        if inspect.iscoroutinefunction(function):

            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                return await _Steps(self._drive(function(*args, **kwargs).__await__()))

        elif inspect.isgeneratorfunction(function):

            def wrapped(*args: Any, **kwargs: Any) -> Any:
                return (yield from self._drive(function(*args, **kwargs)))

        else:

            def wrapped(*args: Any, **kwargs: Any) -> Any:
                before = self._enter()
                try:
                    return function(*args, **kwargs)
                finally:
                    self._leave(before)

        return functools.wraps(function)(wrapped)  # type: ignore[return-value]

    def _drive(self, generator: Any) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = functools.partial(next, generator)
        while True:
            before = self._enter()
            try:
                item = step()
            except StopIteration as end:
                return end.value
            finally:
                self._leave(before)
            try:
                step = functools.partial(generator.send, (yield item))
            except GeneratorExit:
                before = self._enter()
                try:
                    generator.close()
                finally:
                    self._leave(before)
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)


class _Steps:
    """What a coroutine awaits to run the steps of a generator as its own."""

    def __init__(self, steps: Generator[Any, Any, Any]) -> None:
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._steps


class no_grad(_Mode):  # noqa: N801 - PyTorch's spelling
    """Nothing is recorded: results are Values that do not require a gradient. Of the running thread alone.

    A generator function that is decorated gives its caller's mode back between steps; one that has a `with` block of
    its own around a `yield` keeps the mode switched for whoever runs it, as any context manager would.

    >>> from pygrad import Value, no_grad
    >>> x = Value(2.0)
    >>> with no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def _enter(self) -> bool:
        return _core.set_no_grad(True)

    def _leave(self, before: bool) -> None:
        _core.set_no_grad(before)


class enable_grad(_Mode):  # noqa: N801 - PyTorch's spelling
    """Records again, inside no_grad().

    >>> from pygrad import Value, enable_grad, no_grad
    >>> x = Value(2.0)
    >>> with no_grad():
    ...     with enable_grad():
    ...         y = x * x
    >>> y.requires_grad
    True
    """

    def _enter(self) -> bool:
        return _core.set_no_grad(False)

    def _leave(self, before: bool) -> None:
        _core.set_no_grad(before)


class detect_anomaly(_Mode):  # noqa: N801 - PyTorch's spelling
    """Raises AnomalyError at the op where the first nan or inf appears, forward or backward.

    The error names the op, its operands, and the line of the user's program where the node was made. Nodes made
    before are watched in backward too, without their line. Costs nothing when off.

    >>> from pygrad import Value, detect_anomaly
    >>> with detect_anomaly():
    ...     Value(0.0).log()
    Traceback (most recent call last):
    pygrad.errors.AnomalyError: log: forward gave -inf from operands (0.0,), at <doctest ...
    """

    def _enter(self) -> bool:
        _core.enter_anomaly()
        return True

    def _leave(self, before: bool) -> None:
        _core.leave_anomaly()


def place() -> tuple[str, int, str]:
    """File, line and function of the innermost frame that is the user's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OTHERS):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def raise_anomaly(
    op: str, operands: tuple[float, ...], found: float, where: tuple[str, int, str] | None, phase: str
) -> None:
    """Called by the core where an op made a number that is not finite."""
    made = f"at {where[0]}:{where[1]} in {where[2]}" if where else "made outside detect_anomaly()"
    what = f"{phase} gave {found}" if phase == "forward" else f"backward gave a gradient of {found}"
    raise AnomalyError(f"{op}: {what} from operands {operands}, {made}")
