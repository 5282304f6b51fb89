"""gradcheck: gradients against numerical ones. Knows transforms and structures, no op."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pygrad._core import Value
from pygrad.errors import GradcheckError
from pygrad.modes import no_grad
from pygrad.structures import flatten, is_number, refill
from pygrad.transforms import jacobian

__all__ = ["gradcheck"]

COMPLEX_STEP = 1e-100
CENTRAL_STEP = 6e-6  # about the cube root of the unit roundoff, which balances truncation and rounding


def gradcheck(
    f: Callable[..., Any], *args: Any, method: str = "auto", step: float | None = None, rtol: float = 1e-5,
    atol: float = 1e-7, raise_exception: bool = True,
) -> bool:  # fmt: skip
    """Whether the gradients of f at args agree with numerical ones: True, or GradcheckError that shows the worst entry.

    method "central" takes central differences with a step relative to each number; "complex" the complex step
    (f must be plain arithmetic, analytic in its arguments), which has no cancellation and is exact to rounding;
    "auto" takes the complex step where it applies and central differences bear it out, else those. Entries pass where
    |found - expected| <= atol + rtol * |expected|, infinities where both are the same one; nan on either side or both
    is a failure, since it bears nothing out. With raise_exception=False a failure gives False. Numbers are
    differentiated, in any structure of arguments.

    Raises GradcheckError where they disagree, TypeError where there is no number to differentiate, or none in the
    result, or where method "complex" does not apply, ValueError where method is none of the three.

    Source: Squire and Trapp, Using complex variables to estimate derivatives of real functions (1998).

    >>> from pygrad import gradcheck
    >>> gradcheck(lambda x, y: x * y ** 2, 2.0, 3.0)
    True
    """
    if method not in ("auto", "central", "complex"):
        raise ValueError(f"gradcheck: method must be 'auto', 'central' or 'complex', found {method!r}")
    numbers = [float(number) for number in flatten(args)]
    if not numbers:
        raise TypeError("gradcheck: found no number to differentiate in the arguments")
    found = _found(f, args)
    expected, used = None, "complex step"
    if method != "central":
        expected = _complex_step(f, args, numbers, step or COMPLEX_STEP, strict=method == "complex")
    if method != "complex":
        central = _central(f, args, numbers, step or CENTRAL_STEP)
        if expected is None or not _bears_out(central, expected, atol):
            expected, used = central, "central differences"
    assert expected is not None
    worst, excess = _worst(found, expected, rtol, atol)
    if worst is None:
        return True
    if not raise_exception:
        return False
    row, column = worst
    a, b = found[row][column], expected[row][column]
    how = f"off by {excess:.3g} more than rtol={rtol:g}, atol={atol:g} allow"
    if math.isnan(a) or math.isnan(b):
        how = (
            "nan agrees with nothing, nan included; check at a point where the function and its derivative are numbers"
        )
    entry = f"the derivative of result {row} by argument number {column}"
    raise GradcheckError(f"gradcheck: {entry} is {a!r}, expected {b!r} by {used}: {how}")


def _found(f: Callable[..., Any], args: tuple[Any, ...]) -> list[list[float]]:
    flat = jacobian(lambda numbers: flatten(f(*refill(args, iter(numbers)))))([float(n) for n in flatten(args)])
    if not flat:
        raise TypeError("gradcheck: found no number in what the function returned")
    return [[float(v) for v in row] for row in flat]


def _bears_out(central: list[list[float]], exact: list[list[float]], atol: float) -> bool:
    """Whether the complex step is near central differences: abs(), say, is not analytic and would mislead it."""
    for central_row, exact_row in zip(central, exact, strict=True):
        for a, b in zip(central_row, exact_row, strict=True):
            if abs(a - b) > atol + 1e-3 * abs(a):  # where central differences are nan, the complex step stands
                return False
    return True


def _results(f: Callable[..., Any], args: tuple[Any, ...], numbers: list[Any]) -> list[Any]:
    out = f(*refill(args, iter(numbers)))
    if isinstance(out, complex):
        return [out]
    found: list[Any] = []
    _collect(out, found)
    return found


def _collect(out: Any, found: list[Any]) -> None:
    """Results in order; complex numbers are no numbers to differentiate, so flatten would leave them out."""
    if isinstance(out, complex) or is_number(out):
        found.append(out)
    elif isinstance(out, (list, tuple)):
        for item in out:
            _collect(item, found)
    elif isinstance(out, dict):
        for item in out.values():
            _collect(item, found)
    else:
        found.extend(flatten(out))


def _complex_step(
    f: Callable[..., Any], args: tuple[Any, ...], numbers: list[float], step: float, strict: bool
) -> list[list[float]] | None:
    columns = []
    try:
        for i, number in enumerate(numbers):
            shifted: list[Any] = [complex(n) for n in numbers]
            shifted[i] = complex(number, step * max(1.0, abs(number)))
            results = _results(f, args, shifted)
            columns.append([complex(r).imag / (step * max(1.0, abs(number))) for r in results])
        plain = _results(f, args, list(numbers))
        with_zero = _results(f, args, [complex(n) for n in numbers])
        if any(complex(a).real != complex(b).real for a, b in zip(plain, with_zero, strict=True)):
            raise TypeError("the function takes another way on complex numbers")
    except Exception as error:  # whatever a function of floats may raise on complex numbers
        if strict:
            raise TypeError(f"gradcheck: the complex step does not apply to this function: {error}") from error
        return None
    return [list(row) for row in zip(*columns, strict=True)]


def _central(f: Callable[..., Any], args: tuple[Any, ...], numbers: list[float], step: float) -> list[list[float]]:
    columns = []
    with no_grad():
        for i, number in enumerate(numbers):
            column = _difference(f, args, numbers, i, step * max(1.0, abs(number)))
            if any(map(math.isnan, column)) and number != 0.0:  # a small number, beside the end of the domain
                column = _difference(f, args, numbers, i, step * abs(number))
            columns.append(column)
    return [list(row) for row in zip(*columns, strict=True)]


def _difference(f: Callable[..., Any], args: tuple[Any, ...], numbers: list[float], i: int, h: float) -> list[float]:
    above, below = numbers[i] + h, numbers[i] - h  # the step as the numbers hold it
    results = []
    for shifted in (above, below):
        moved = [*numbers[:i], shifted, *numbers[i + 1 :]]
        results.append([r.data if isinstance(r, Value) else float(r) for r in _results(f, args, moved)])
    return [(p - q) / (above - below) for p, q in zip(*results, strict=True)]


def _worst(
    found: list[list[float]], expected: list[list[float]], rtol: float, atol: float
) -> tuple[tuple[int, int] | None, float]:
    worst, most = None, 0.0
    for row, (found_row, expected_row) in enumerate(zip(found, expected, strict=True)):
        for column, (a, b) in enumerate(zip(found_row, expected_row, strict=True)):
            if a == b:
                continue
            excess = abs(a - b) - (atol + rtol * abs(b))
            if math.isnan(excess):
                excess = math.inf
            if excess > most:
                worst, most = (row, column), excess
    return worst, most
