"""fast.map: a compiled function over a batch, in blocks of lanes, in threads, and through executors.

Note [Batch]. A lane is one element of the batch. All lanes run the variant of the first; those whose guards fail run
the variant of the first of them, and so on, so that a mixed batch takes as many runs as it meets variants. What a lane
gives depends on its inputs alone (Note [Lanes] in csrc/blocks.h), so threads and workers change no bit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pygrad.structures import flatten, key_of, map_structure, nested_lists, refill
from pygrad.variants import SparseResult

if TYPE_CHECKING:
    from pygrad.compile import Arguments, Compiled

__all__ = ["map_lanes"]


class Batch:
    """Arguments of which some are arrays with a leading axis of lanes: a column for each number, an array or shared."""

    def __init__(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._compiled = compiled
        self.columns: list[Any] = []
        self.lanes: int | None = None
        self._named = {name: self._element(name, arg) for name, arg in sorted(kwargs.items())}  # as Arguments has them
        self._first = [self._element(i, arg) for i, arg in enumerate(args)]
        if self.lanes is None:
            raise TypeError("map: needs an array with the axis of the batch in front among the arguments, found none")

    def _element(self, name: int | str, arg: Any) -> Any:
        """The argument of the first lane; notes the columns of all."""
        if name in self._compiled.static:
            return arg
        return map_structure(self._shared, arg, array=self._split)

    def _shared(self, number: Any) -> float:
        self.columns.append(float(number))
        return 0.0

    def _split(self, array: Any, mapped: Callable[[Any], Any]) -> Any:
        if array.ndim == 0:
            return self._shared(array)
        if self.lanes is not None and self.lanes != len(array):
            raise ValueError(f"map: the arguments have {self.lanes} and {len(array)} lanes; all need the same number")
        self.lanes = len(array)
        shape = array.shape[1:]
        self.columns += list(np.asarray(array, dtype=float).reshape(len(array), math.prod(shape)).T)
        if not shape:
            return 0.0
        element = np.zeros(shape)
        return element if self._compiled.as_values else nested_lists(element, lambda number: number)

    def numbers(self, lane: int) -> list[float]:
        return [column if isinstance(column, float) else float(column[lane]) for column in self.columns]

    def arguments(self, lane: int) -> Arguments:
        """Those of one lane, as a call of the function has them."""
        numbers = iter(self.numbers(lane))
        kwargs = {name: self._filled(name, arg, numbers) for name, arg in self._named.items()}
        args = tuple([self._filled(i, arg, numbers) for i, arg in enumerate(self._first)])
        return self._compiled.arguments(args, kwargs)

    def _filled(self, name: int | str, arg: Any, numbers: Any) -> Any:
        return arg if name in self._compiled.static else refill(arg, numbers)

    def part(self, lanes: Any) -> list[Any]:
        """The columns of some lanes, a slice or their numbers."""
        return [column if isinstance(column, float) else column[lanes] for column in self.columns]


def _outputs(compiled: Compiled, batch: Batch, threads: int) -> tuple[Any, Any]:
    """(result, numbers): the structure, and a row of all lanes for each of its numbers."""
    lanes = batch.lanes or 0
    if lanes == 0:
        raise ValueError("map: the batch has no lanes, so that there is nothing to capture the function for")
    variant = compiled.variant(batch.arguments(0))
    result, rows = variant.result, None
    waiting: Any = slice(None)
    while True:
        columns = batch.part(waiting)
        count = lanes if rows is None else len(waiting)
        found, failed = variant.program.run_lanes(variant.inputs(columns), count, threads=threads)
        held = failed < 0
        if rows is None and held.all():
            return result, _placed(variant, found)
        if rows is None:
            rows, waiting = np.empty((len(variant.result.slots), lanes)), np.arange(lanes)
        if key_of(variant.result.structure) != key_of(result.structure):
            raise TypeError("map: the function returns another structure where it branches otherwise")
        rows[:, waiting[held]] = _placed(variant, found)[:, held]
        left = waiting[~held]
        if len(left) == len(waiting):  # the blocks' exp, say, is an ulp off that of one lane, which decides
            outputs = np.array(compiled.find(batch.arguments(int(left[0])))[1])
            rows[:, left[0]] = _placed(variant, outputs[:, None])[:, 0]
            left = left[1:]
        if len(left) == 0:
            return result, rows
        waiting, variant = left, compiled.variant(batch.arguments(int(left[0])))


def _placed(variant: Any, outputs: Any) -> Any:
    """A row for each number of the result."""
    slots = variant.result.slots
    if slots == list(range(len(outputs))) or isinstance(variant.result, SparseResult):
        return outputs
    rows = np.zeros((len(slots), outputs.shape[1]))
    for row, slot in zip(rows, slots, strict=True):
        if slot is not None:
            row[:] = outputs[slot]
    return rows


def _stacked(structure: Any, rows: Any) -> Any:
    """The structure with an array of all lanes for each number; lists and arrays of numbers as one array."""
    at = 0

    def taken(shape: tuple[int, ...]) -> Any:
        """The next numbers, one of the shape for each lane: a view, in which the lanes of a number lie side by side."""
        nonlocal at
        start, at = at, at + math.prod(shape)
        return np.moveaxis(rows[start:at].reshape(*shape, rows.shape[1]), -1, 0)

    def made(x: Any) -> Any:
        if type(x) is float:
            return taken(())
        if isinstance(x, np.ndarray) or (isinstance(x, list) and _is_regular(x)):
            return taken(np.shape(x))
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(made, x))
        if isinstance(x, (list, tuple)):
            return type(x)(map(made, x))
        if isinstance(x, dict):
            return {key: made(item) for key, item in x.items()}
        return map_structure(lambda number: taken(()) if type(number) is float else number, x)

    return made(structure)


def _is_regular(x: list[Any]) -> bool:
    """Whether nested lists hold floats alone, as many in each."""
    try:
        shape = np.shape(x)
    except ValueError:
        return False
    numbers = flatten(x)
    return len(numbers) == np.prod(shape) and all(type(number) is float for number in numbers)


def _written(made: Any, out: Any) -> Any:
    """`out`, arrays in the structure of the result, with the result in it."""
    if isinstance(out, np.ndarray):
        if not isinstance(made, np.ndarray) or out.shape != made.shape or out.dtype != float:
            needs = made.shape if isinstance(made, np.ndarray) else type(made).__name__
            raise ValueError(f"map: out has shape {out.shape} and dtype {out.dtype}, needs {needs} of float64")
        out[...] = made
        return out
    if isinstance(out, (list, tuple)) and isinstance(made, (list, tuple)) and len(out) == len(made):
        for one, other in zip(made, out, strict=True):
            _written(one, other)
        return out
    if isinstance(out, dict) and isinstance(made, dict) and out.keys() == made.keys():
        for key, other in out.items():
            _written(made[key], other)
        return out
    raise ValueError(
        f"map: out must have the structure of the result, {type(made).__name__}, found {type(out).__name__}"
    )


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _piece(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """What a worker does: the lanes that it was given, in one thread."""
    return _outputs(compiled, Batch(compiled, args, kwargs), 1)


def _cut(x: Any, lanes: slice) -> Any:
    return map_structure(lambda number: number, x, array=lambda array, mapped: array[lanes] if array.ndim else array)


def _through(executor: Any, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], lanes: int) -> Any:
    workers = getattr(executor, "_max_workers", None) or usable_cores()
    pieces = min(lanes, 2 * int(workers))
    edges = [lanes * k // pieces for k in range(pieces + 1)]
    futures = []
    for some in map(slice, edges, edges[1:]):
        cut = tuple([arg if i in compiled.static else _cut(arg, some) for i, arg in enumerate(args)])
        named = {name: arg if name in compiled.static else _cut(arg, some) for name, arg in kwargs.items()}
        futures.append(executor.submit(_piece, compiled, cut, named))
    done = [future.result() for future in futures]
    return done[0][0], np.concatenate([rows for _, rows in done], axis=1)


def map_lanes(
    compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], threads: int | None, executor: Any, out: Any
) -> Any:
    """Compiled.map."""
    batch = Batch(compiled, args, kwargs)
    if executor is None:
        result, rows = _outputs(compiled, batch, threads or usable_cores())
    else:
        compiled.variant(batch.arguments(0))  # so that it is sent along
        result, rows = _through(executor, compiled, args, kwargs, batch.lanes or 0)
    if isinstance(result, SparseResult):
        made = rows.T, result.indices.copy(), result.indptr.copy()
    else:
        made = _stacked(result.structure, rows)
    return made if out is None else _written(made, out)
