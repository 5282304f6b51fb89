"""Nested arguments and results: lists, tuples, dicts, dataclasses and (on request) arrays of numbers, flat and back.

Owns what counts as a number to differentiate and what as structure; knows nothing of graphs.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pygrad._core import Value

__all__ = ["flatten", "is_number", "map_structure"]


def is_number(x: Any) -> bool:
    """Whether `x` is differentiated where it stands: a Value, an int or float, a NumPy number; a bool is not."""
    return isinstance(x, (Value, float, np.floating, np.integer)) or (isinstance(x, int) and not isinstance(x, bool))


def map_structure(function: Callable[[Any], Any], x: Any, other: Callable[[Any], Any] = lambda leaf: leaf) -> Any:
    """`x` with `function` applied to every number in it, and `other` to what is neither number nor structure.

    An array becomes an array of what `function` gives, float64 where that is floats throughout, else dtype object.

    >>> map_structure(lambda v: 2 * v, {"a": [1.0, 2.0], "b": (3.0, "text")})
    {'a': [2.0, 4.0], 'b': (6.0, 'text')}
    """
    if is_number(x):
        return function(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(map_structure(function, item, other) for item in x))
    if isinstance(x, (list, tuple)):
        return type(x)(map_structure(function, item, other) for item in x)
    if isinstance(x, dict):
        return {key: map_structure(function, item, other) for key, item in x.items()}
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        made = copy.copy(x)
        for field in dataclasses.fields(x):
            object.__setattr__(made, field.name, map_structure(function, getattr(x, field.name), other))
        return made
    if isinstance(x, np.ndarray):
        items = [function(item) for item in x.ravel().tolist()]
        floats = all(isinstance(item, float) for item in items)
        made = np.empty(len(items), dtype=float if floats else object)
        made[:] = items
        return made.reshape(x.shape)
    return other(x)


def flatten(x: Any) -> list[Any]:
    """The numbers in `x`, in the order in which map_structure meets them.

    >>> flatten({"a": [1.0, 2.0], "b": (3.0, None)})
    [1.0, 2.0, 3.0]
    """
    found: list[Any] = []
    map_structure(lambda number: found.append(number) or number, x)  # type: ignore[func-returns-value]
    return found


def refill(x: Any, numbers: Iterator[Any], other: Callable[[Any], Any] = lambda leaf: leaf) -> Any:
    """`x` with its numbers replaced by those of an iterator, in the order of flatten."""
    return map_structure(lambda _: next(numbers), x, other)
