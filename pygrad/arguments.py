"""The arguments of a compiled function: which of them are inputs, in which order, and what tells their structure apart.

Knows structures, and no program.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from pygrad.structures import exact_key, flatten, key_of, map_structure, nested_lists

__all__ = ["Arguments", "Static", "static_of"]


def static_of(f: Callable[..., Any], static: Any) -> frozenset[int | str]:
    """Positions and names of static arguments: both of each, where the signature tells them."""
    given = frozenset([static] if isinstance(static, (int, str)) else static)
    for name in given:
        if not isinstance(name, (int, str)) or isinstance(name, bool) or (isinstance(name, int) and name < 0):
            raise TypeError(f"compile: static must hold positions from 0 on and names of arguments, found {name!r}")
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # some functions do not tell
        return given
    both = [(i, p.name) for i, p in enumerate(parameters) if p.kind is p.POSITIONAL_OR_KEYWORD]
    return given.union(*(pair for pair in both if not given.isdisjoint(pair)))


class Static:
    """A static argument on its way through transforms, to which it is no number."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __repr__(self) -> str:
        return repr(self.held)


class Arguments:
    """The arguments of a call: their numbers, and a key that tells their structure.

    The numbers of keyword arguments come first, by name, then those of positional ones, each in the order of flatten.
    """

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], static: frozenset[int | str], vectors: int
    ) -> None:  # fmt: skip
        self.args = args
        self.kwargs = kwargs
        self.static = static
        self.vectors = vectors  # so many at the end are hvp's, and none of the function's

    def is_static(self, name: int | str) -> bool:
        return name in self.static and not (isinstance(name, int) and name >= len(self.args) - self.vectors)

    def wrapped(self) -> tuple[Any, ...]:
        """The positional ones, with the static ones as Static."""
        return tuple([Static(arg) if self.is_static(i) else arg for i, arg in enumerate(self.args)])

    def without_vector(self) -> Arguments:
        return Arguments(self.args[:-1], self.kwargs, self.static, self.vectors - 1)

    @functools.cached_property
    def key(self) -> Any:
        named = tuple((name, self._key(name, arg)) for name, arg in sorted(self.kwargs.items()))
        return tuple(self._key(i, arg) for i, arg in enumerate(self.args)), named

    def _key(self, name: int | str, arg: Any) -> Any:
        if self.is_static(name):
            return "static", exact_key(arg)
        return key_of(arg)

    @functools.cached_property
    def parts(self) -> list[list[Any]]:
        """The numbers of each argument, those with a name first."""
        everything: list[tuple[int | str, Any]] = [*sorted(self.kwargs.items()), *enumerate(self.args)]
        return [[] if self.is_static(name) else flatten(arg) for name, arg in everything]

    @property
    def numbers(self) -> list[Any]:
        return [number for part in self.parts for number in part]

    def range(self, position: int) -> range:
        """Where the numbers of a positional argument lie among all."""
        place = len(self.kwargs) + position
        start = sum(map(len, self.parts[:place]))
        return range(start, start + len(self.parts[place]))

    def filled(self, values: Iterator[Any], as_values: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments with other numbers; arrays as nested lists, with as_values."""

        def made(name: int | str, arg: Any) -> Any:
            if self.is_static(name):
                return arg
            if not as_values:
                return map_structure(lambda _: next(values), arg, array=_refuse_array)
            return map_structure(lambda _: next(values), arg, array=nested_lists)

        kwargs = {name: made(name, arg) for name, arg in sorted(self.kwargs.items())}
        return tuple([made(i, arg) for i, arg in enumerate(self.args)]), kwargs

    def skeleton(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments with 0.0 for each number."""

        def made(name: int | str, arg: Any) -> Any:
            return copy.deepcopy(arg) if self.is_static(name) else map_structure(lambda _: 0.0, arg)

        return tuple([made(i, arg) for i, arg in enumerate(self.args)]), {k: made(k, v) for k, v in self.kwargs.items()}


def _refuse_array(array: Any, mapped: Callable[[Any], Any]) -> Any:
    raise TypeError(
        f"compile: found an array of shape {array.shape}; pass as_values=True to compile over its elements (the "
        "function gets nested lists of Values), or convert it with .tolist()"
    )
