"""fast.map: a compiled function over a batch, in blocks of lanes, in threads, and through executors.

Note [Batch]. A lane is one element of the batch. All lanes run the variant of the first; those whose guards fail run
the variant of the first of them, and so on, so that a mixed batch takes as many runs as it meets variants. What a lane
gives depends on its inputs alone (Note [Lanes] in csrc/blocks.h), so threads and workers change no bit of it, but for
a lane at the very edge of a branch, which docs/limits.md tells of.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pygrad import _core
from pygrad.results import Result, SparseResult
from pygrad.structures import flatten, is_array, is_number, key_of, map_structure, nested_lists, refill

if TYPE_CHECKING:
    from pygrad.arguments import Arguments
    from pygrad.compile import Compiled
    from pygrad.variants import Variant

__all__ = ["Recycled", "map_lanes"]


class Batch:
    """Arguments of which some are arrays with a leading axis of lanes: a column for each number, an array or shared."""

    def __init__(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._compiled = compiled
        self._is_static = compiled.arguments(args, kwargs).is_static
        self.columns: list[Any] = []
        self.lanes: int | None = None
        self._named = {name: self._element(name, arg) for name, arg in sorted(kwargs.items())}  # as Arguments has them
        self._first = [self._element(i, arg) for i, arg in enumerate(args)]
        if self.lanes is None:
            raise TypeError("map: needs an array with the axis of the batch in front among the arguments, found none")
        if self.lanes == 0:
            raise ValueError("map: the batch has no lanes, so that there is nothing to capture the function for")

    def _element(self, name: int | str, arg: Any) -> Any:
        """The argument of the first lane; notes the columns of all."""
        if self._is_static(name):
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
        return arg if self._is_static(name) else refill(arg, numbers)

    def part(self, lanes: Any) -> list[Any]:
        """The columns of some lanes, a slice or their numbers."""
        return [column if isinstance(column, float) else column[lanes] for column in self.columns]


class Recycled:
    """The array of the last map, to be filled again once its results are gone: fresh pages cost more than a run."""

    MOST = 1 << 25  # bytes that are kept

    def __init__(self) -> None:
        self._arrays: list[Any] = []

    def take(self, shape: tuple[int, int]) -> Any:
        """An array of the shape that nobody else holds."""
        try:
            array = self._arrays.pop()
        except IndexError:  # none yet, or another thread has it
            return np.empty(shape)
        return array if array.shape == shape and sys.getrefcount(array) == 2 else np.empty(shape)

    def keep(self, array: Any) -> None:
        if array.nbytes <= self.MOST and not self._arrays:
            self._arrays.append(array)


def _outputs(compiled: Compiled, batch: Batch, threads: int) -> tuple[Result, Any]:
    """(result, rows): the structure, and a row of all lanes for each of its numbers."""
    lanes = batch.lanes or 0
    parts: list[tuple[Result, Any, Any]] = []  # of each variant met: its result, its lanes, their rows
    waiting, variant = np.arange(lanes), compiled.variant(batch.arguments(0))
    while True:
        _check_outside(compiled, variant)
        first = not parts
        columns = batch.part(slice(None) if first else waiting)
        room = compiled.recycled.take((variant.program.counts[1], lanes)) if first else None
        found, failed = variant.program.run_lanes(variant.inputs(columns), len(waiting), out=room, threads=threads)
        held = failed < 0
        if first and held.all():
            compiled.recycled.keep(found)
            return variant.result, _placed(variant.result, found)
        parts.append((variant.result, waiting[held], _placed(variant.result, found[:, held])))
        left = waiting[~held]
        if len(left) == len(waiting) and not first:
            # A guard at its very edge: the exp of blocks, say, is an ulp off that of one lane, which decides.
            alone, outputs = compiled.find(batch.arguments(int(left[0])))
            parts.append((alone.result, left[:1], _placed(alone.result, np.array(outputs)[:, None])))
            left = left[1:]
        if len(left) == 0:
            break
        waiting, variant = left, compiled.variant(batch.arguments(int(left[0])))
    result = _common([part[0] for part in parts])
    rows = np.empty((_count(result), lanes))
    for own, some, found in parts:
        rows[:, some] = _moved(result, own, found)
    return result, rows


def _check_outside(compiled: Compiled, variant: Variant) -> None:
    """An error where a transform around would take what comes out for a constant; a capture has one of its own."""
    if variant.is_traced() and _core.is_grad_enabled():
        raise TypeError(
            f"map: {compiled.name} reads Values from outside, and what map gives cannot be part of a transform around "
            "it; call it for each lane, or use no_grad() to take them as numbers"
        )


def _placed(result: Result, outputs: Any) -> Any:
    """A row for each number of the result."""
    if isinstance(result, SparseResult):
        return outputs
    numbers = flatten(result.structure)
    if len(numbers) == len(outputs) and result.slots == list(range(len(outputs))):
        return outputs
    rows, slots = np.zeros((len(numbers), outputs.shape[1])), iter(result.slots)
    for row, number in zip(rows, numbers, strict=True):
        if type(number) is not float:
            row[:] = number  # an int, to which the guards hold: another variant has another
        elif (slot := next(slots)) is not None:
            row[:] = outputs[slot]
    return rows


def _count(result: Result) -> int:
    return len(result.indices) if isinstance(result, SparseResult) else len(flatten(result.structure))


def _common(results: list[Result]) -> Result:
    """The structure that all have; of sparse matrices one with the entries of all."""
    sparse = [result for result in results if isinstance(result, SparseResult)]
    if len(sparse) == len(results):
        return sparse[0].united(sparse)
    if sparse or any(key_of(result.structure) != key_of(results[0].structure) for result in results):
        raise TypeError("map: the function returns another structure where it branches otherwise")
    return results[0]


def _moved(result: Result, own: Result, rows: Any) -> Any:
    """The rows of a result in the places that they have in the common one."""
    if not (isinstance(result, SparseResult) and isinstance(own, SparseResult)):
        return rows
    moved = np.zeros((len(result.indices), rows.shape[1]))
    moved[result.places(own)] = rows
    return moved


def _stacked(structure: Any, rows: Any) -> Any:
    """The structure with an array of all lanes for each number; lists and arrays of numbers as one array."""
    at = 0

    def taken(shape: tuple[int, ...]) -> Any:
        """The next numbers, one of the shape for each lane: a view, in which the lanes of a number lie side by side."""
        nonlocal at
        start, at = at, at + math.prod(shape)
        return np.moveaxis(rows[start:at].reshape(*shape, rows.shape[1]), -1, 0)

    def made(x: Any) -> Any:
        if is_number(x):
            return taken(())
        if is_array(x) or (isinstance(x, list) and _is_regular(x)):
            return taken(np.shape(x))
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(made, x))
        if isinstance(x, (list, tuple)):
            return type(x)(map(made, x))
        if isinstance(x, dict):
            return {key: made(item) for key, item in x.items()}
        return map_structure(lambda _: taken(()), x)

    return made(structure)


def _is_regular(x: list[Any]) -> bool:
    """Whether nested lists hold numbers alone, as many in each."""
    try:
        shape = np.shape(x)
    except ValueError:
        return False
    numbers = flatten(x)
    return len(numbers) == math.prod(shape)


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
    is_static = compiled.arguments(args, kwargs).is_static
    workers = getattr(executor, "_max_workers", None) or usable_cores()
    pieces = min(lanes, 2 * int(workers))
    edges = [lanes * k // pieces for k in range(pieces + 1)]
    futures = []
    for some in map(slice, edges, edges[1:]):
        cut = tuple([arg if is_static(i) else _cut(arg, some) for i, arg in enumerate(args)])
        named = {name: arg if is_static(name) else _cut(arg, some) for name, arg in kwargs.items()}
        futures.append(executor.submit(_piece, compiled, cut, named))
    done = [future.result() for future in futures]
    result = _common([own for own, _ in done])
    return result, np.concatenate([_moved(result, own, rows) for own, rows in done], axis=1)


def map_lanes(
    compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], threads: int | None, executor: Any, out: Any
) -> Any:
    """Compiled.map."""
    batch = Batch(compiled, args, kwargs)
    if executor is None:
        result, rows = _outputs(compiled, batch, threads or usable_cores())
    else:
        _check_outside(compiled, compiled.variant(batch.arguments(0)))  # which is captured, and so sent along
        result, rows = _through(executor, compiled, args, kwargs, batch.lanes or 0)
    if isinstance(result, SparseResult):
        made = rows.T, result.indices.copy(), result.indptr.copy()
    else:
        made = _stacked(result.structure, rows)
    return made if out is None else _written(made, out)
