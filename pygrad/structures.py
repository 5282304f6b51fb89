"""Nested arguments and results: lists, tuples, dicts, dataclasses and (on request) arrays of numbers, flat and back.

Owns what counts as a number to differentiate and what as structure; knows nothing of graphs.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pygrad._core import Value, pack

__all__ = [
    "exact_key",
    "flatten",
    "is_array",
    "is_number",
    "key_of",
    "map_array",
    "map_structure",
    "nested_lists",
    "refill",
]

_NUMBERS = "fiuO"  # kinds of dtype that are looked into; an array of bools or texts is no structure of numbers


def is_number(x: Any) -> bool:
    """Whether `x` is differentiated where it stands: a Value, an int or float, a NumPy number; a bool is not."""
    return isinstance(x, (Value, float, np.floating, np.integer)) or (isinstance(x, int) and not isinstance(x, bool))


def is_array(x: Any) -> bool:
    """Whether `x` is an array of numbers."""
    return isinstance(x, np.ndarray) and x.dtype.kind in _NUMBERS


def map_array(x: Any, mapped: Callable[[Any], Any]) -> Any:
    """An array of what `mapped` gives, float64 where that is floats throughout, else dtype object."""
    items = x.ravel().tolist()
    made = [mapped(item) for item in items]
    if items and all(new is old for new, old in zip(made, items, strict=True)):
        return x
    array = np.empty(len(made), dtype=float if all(isinstance(item, float) for item in made) else object)
    for i, item in enumerate(made):  # one by one: an item may be a sequence
        array[i] = item
    return array.reshape(x.shape)


def nested_lists(x: Any, mapped: Callable[[Any], Any]) -> Any:
    """What `mapped` gives for the items of an array, as nested lists; for an array of no dimension the item itself."""
    array = np.empty(x.size, dtype=object)
    for i, item in enumerate(x.ravel().tolist()):
        array[i] = mapped(item)
    return array.reshape(x.shape).tolist() if x.ndim else array[0]


def map_structure(
    function: Callable[[Any], Any], x: Any, other: Callable[[Any], Any] = lambda leaf: leaf,
    array: Callable[[Any, Callable[[Any], Any]], Any] = map_array,
) -> Any:  # fmt: skip
    """`x` with `function` applied to every number in it, and `other` to what is neither number nor structure.

    An array of numbers becomes what `array(x, mapped)` gives: by default an array again, float64 where `function` gives
    floats throughout, else dtype object.

    >>> map_structure(lambda v: 2 * v, {"a": [1.0, 2.0], "b": (3.0, "text")})
    {'a': [2.0, 4.0], 'b': (6.0, 'text')}
    """

    def mapped(x: Any) -> Any:
        kind = type(x)
        if kind is float or kind is Value:  # the common kinds first
            return function(x)
        if kind is list:
            return [mapped(item) for item in x]
        if kind is tuple:
            return tuple([mapped(item) for item in x])
        if is_number(x):
            return function(x)
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return kind(*(mapped(item) for item in x))
        if isinstance(x, (list, tuple)):
            return kind(mapped(item) for item in x)
        if isinstance(x, dict):
            return _map_dict(mapped, x)
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            return _map_dataclass(mapped, x)
        return array(x, mapped) if is_array(x) else other(x)

    try:
        return mapped(x)
    finally:
        mapped = None  # type: ignore  # it refers to itself, and would keep what `function` holds for the collector


def _map_dict(mapped: Callable[[Any], Any], x: dict[Any, Any]) -> dict[Any, Any]:
    if type(x) is dict:
        return {key: mapped(item) for key, item in x.items()}
    made = copy.copy(x)  # a subclass keeps what else it knows, such as the factory of a defaultdict
    for key, item in x.items():
        made[key] = mapped(item)
    return made


def _map_dataclass(mapped: Callable[[Any], Any], x: Any) -> Any:
    """A dataclass with its fields mapped; neither __init__ nor __post_init__ runs.

    What else hangs on the instance is carried over, but for what holds numbers: those were computed from the fields
    (a cached property, say), and would be constants where the fields are differentiated.
    """
    made = object.__new__(type(x))
    for name in _carried(x):
        object.__setattr__(made, name, getattr(x, name))
    for field in dataclasses.fields(x):
        if hasattr(x, field.name):
            object.__setattr__(made, field.name, mapped(getattr(x, field.name)))
    return made


def _carried(x: Any) -> list[str]:
    """The names of what hangs on a dataclass besides its fields, and holds no number."""
    fields = {field.name for field in dataclasses.fields(x)}
    return [name for name, item in getattr(x, "__dict__", {}).items() if name not in fields and not flatten(item)]


def key_of(x: Any) -> Any:
    """Something hashable that is equal for structures which differ in their numbers alone.

    Raises TypeError where what is neither number nor structure is not hashable.

    >>> key_of([1.0, 2.0]) == key_of([3.0, 4.0]), key_of([1.0, 2.0]) == key_of((1.0, 2.0))
    (True, False)
    """
    return _key(x, False)


def exact_key(x: Any) -> Any:
    """The same, equal for structures with the same numbers, of the same types: 0.0 differs from -0.0, 1 from True.

    >>> exact_key([1, 2.0]) == exact_key([1, 2.0]), exact_key([1, 2.0]) == exact_key([1.0, 2.0])
    (True, False)
    """
    return _key(x, True)


def _key(x: Any, exact: bool) -> Any:
    kind = type(x)
    if is_number(x):
        if not exact:
            return None
        return kind, float(x).hex() if isinstance(x, (float, np.floating)) else x
    if not exact and pack(x) is not None:
        return kind, len(x)
    if isinstance(x, (list, tuple)):
        keys = [_key(item, exact) for item in x]
        return (kind, len(keys)) if all(key is None for key in keys) else (kind, *keys)
    if isinstance(x, dict):
        return kind, *((name, _key(item, exact)) for name, item in x.items())
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = [field.name for field in dataclasses.fields(x) if hasattr(x, field.name)]
        return kind, *((name, _key(getattr(x, name), exact)) for name in [*fields, *_carried(x)])
    if isinstance(x, np.ndarray):
        if x.dtype == object:
            return kind, x.shape, *(_key(item, exact) for item in x.ravel().tolist())
        return (kind, x.shape, x.dtype.str, x.tobytes()) if exact or not is_array(x) else (kind, x.shape)
    try:
        hash(x)
    except TypeError:
        raise TypeError(
            f"compile: an argument holds {x!r} of type {kind.__name__}, which is no number, and is not hashable, so "
            "that calls cannot be told apart by it; pass something that is"
        ) from None
    return kind, x


def flatten(x: Any) -> list[Any]:
    """The numbers in `x`, in the order in which map_structure meets them.

    >>> flatten({"a": [1.0, 2.0], "b": (3.0, None)})
    [1.0, 2.0, 3.0]
    """
    if pack(x) is not None:
        return list(x)
    found: list[Any] = []

    def take(number: Any) -> Any:
        found.append(number)
        return number

    map_structure(take, x)
    return found


def refill(x: Any, numbers: Iterator[Any], other: Callable[[Any], Any] = lambda leaf: leaf) -> Any:
    """`x` with its numbers replaced by those of an iterator, in the order of flatten."""
    return map_structure(lambda _: next(numbers), x, other)
