"""fast.map: a compiled function over a batch, in blocks of lanes, in threads, and through executors.

Note [Batch]. A lane is one element of the batch. All lanes run the variant of the first; those whose guards fail run
the variant of the first of them, and so on, so that a mixed batch takes as many runs as it meets variants. What a lane
gives depends on its inputs alone (Note [Lanes] in csrc/blocks.h), so threads and workers change no bit of it, but for
a lane at the very edge of a branch, which docs/limits.md tells of. Sums are over segments of lanes (Note [Sums] there),
and then over the segments in order; of a mixed batch, over the rows of its lanes, in the same order.
"""

from __future__ import annotations

import copy
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pygrad import _core
from pygrad._core import Program
from pygrad.results import Result, SparseResult
from pygrad.structures import flatten, is_array, is_number, key_of, map_structure, nested_lists, refill

if TYPE_CHECKING:
    from pygrad.arguments import Arguments
    from pygrad.compile import Compiled
    from pygrad.variants import Variant

__all__ = ["Recycled", "map_lanes"]

SEGMENT, MOST_SEGMENTS = 256, 256  # lanes that are summed at least, and segments of a batch at most
MOST_BYTES = 1 << 25  # of rows at once, where sums need them


class Batch:
    """Arguments of which some are arrays with a leading axis of lanes."""

    def __init__(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._compiled = compiled
        self._is_static = compiled.arguments(args, kwargs).is_static
        self._lanes: int | None = None
        self._named = {name: self._split(name, arg) for name, arg in sorted(kwargs.items())}  # as Arguments has them
        self._first = [self._split(i, arg) for i, arg in enumerate(args)]
        if self._lanes is None:
            raise TypeError("map: needs an array with the axis of the batch in front among the arguments, found none")
        if self._lanes == 0:
            raise ValueError("map: the batch has no lanes, so that there is nothing to capture the function for")
        self.lanes: int = self._lanes

    def _split(self, name: int | str, arg: Any) -> tuple[Any, list[Any]]:
        """The argument as one lane has it, numbers aside, and columns of its numbers.

        A column is an array of shape (numbers, lanes), or (numbers, 1) where all lanes share them.
        """
        if self._is_static(name):
            return arg, []
        if (numbers := _core.pack(arg)) is not None:
            return arg, [numbers[:, None]]
        columns: list[Any] = []
        shared: list[float] = []

        def take(number: Any) -> float:
            shared.append(float(number))
            return 0.0

        def put_shared() -> None:
            if shared:
                columns.append(np.array(shared)[:, None])
                shared.clear()

        def split(array: Any, mapped: Callable[[Any], Any]) -> Any:
            if array.ndim == 0:
                return take(array)
            put_shared()
            columns.append(self._column(array))
            if array.ndim == 1:
                return 0.0
            element = np.zeros(array.shape[1:])
            return element if self._compiled.as_values else nested_lists(element, lambda number: number)

        element = map_structure(take, arg, array=split)
        put_shared()
        return element, columns

    def _column(self, array: Any) -> Any:
        lanes = len(array)
        if self._lanes is not None and self._lanes != lanes:
            raise ValueError(f"map: the arguments have {self._lanes} and {lanes} lanes; all need the same number")
        self._lanes = lanes
        return np.asarray(array, dtype=float).reshape(lanes, math.prod(array.shape[1:])).T

    @property
    def columns(self) -> list[Any]:
        return [column for _, columns in [*self._named.values(), *self._first] for column in columns]

    def part(self, lanes: Any) -> Batch:
        """A batch of some lanes, a slice or their numbers."""
        made = copy.copy(self)

        def cut(element: Any, columns: list[Any]) -> tuple[Any, list[Any]]:
            return element, [column if column.shape[1] != self.lanes else column[:, lanes] for column in columns]

        made._named = {name: cut(*split) for name, split in self._named.items()}
        made._first = [cut(*split) for split in self._first]
        made.lanes = len(range(self.lanes)[lanes]) if isinstance(lanes, slice) else len(lanes)
        return made

    def arguments(self, lane: int) -> Arguments:
        """Those of one lane, as a call of the function has them."""

        def filled(name: int | str, element: Any, columns: list[Any]) -> Any:
            if self._is_static(name):
                return element
            numbers = [x for column in columns for x in column[:, min(lane, column.shape[1] - 1)].tolist()]
            return type(element)(numbers) if _core.pack(element) is not None else refill(element, iter(numbers))

        kwargs = {name: filled(name, *split) for name, split in self._named.items()}
        args = tuple([filled(i, *split) for i, split in enumerate(self._first)])
        return self._compiled.arguments(args, kwargs)


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


def _outputs(compiled: Compiled, batch: Batch, threads: int | None, out: Any = None) -> tuple[Result, Any]:
    """(result, rows): the structure, and a row of all lanes for each of its numbers; None where they are in `out`."""
    lanes = batch.lanes
    parts: list[tuple[Result, Any, Any]] = []  # of each variant met: its result, its lanes, their rows
    waiting, variant = np.arange(lanes), compiled.variant(batch.arguments(0))
    into = _into(variant, batch, out)
    while True:
        _check_outside(compiled, variant)
        first = not parts
        some = batch if first else batch.part(waiting)
        room = into or compiled.recycled.take((variant.program.counts[1], lanes)) if first else None
        found, failed = variant.program.run_lanes(
            variant.columns(some.columns), len(waiting), out=room,
            threads=threads or _threads(variant.program, len(waiting)),
        )  # fmt: skip
        held = failed < 0
        if first and held.all():
            if into:
                return variant.result, None
            compiled.recycled.keep(found)
            return variant.result, _placed(variant.result, found)
        found = np.concatenate(into) if into and first else found
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


def _into(variant: Variant, batch: Batch, out: Any) -> list[Any]:
    """The arrays of `out` as what a run can fill: no number is moved, and no array is read meanwhile. Else nothing."""
    result = variant.result
    if out is None or not isinstance(variant.program, Program):
        return []
    if isinstance(result, SparseResult) or not result.is_plain:
        return []
    arrays = [array for _, array in _pairs(_shapes(result.structure, batch.lanes), out)]
    if any(np.may_share_memory(array, column) for array in arrays for column in batch.columns):
        return []
    if not all(array.flags.writeable for array in arrays):
        return []
    return [rows for array in arrays for rows in _rows(np.moveaxis(array, 0, -1))]


def _rows(array: Any) -> list[Any]:
    """Views of shape (k, lanes) of an array with lanes as its last axis."""
    if array.ndim < 3:
        return [np.atleast_2d(array)]
    return [rows for part in array for rows in _rows(part)]


def _sums(compiled: Compiled, batch: Batch, threads: int | None, segment: int) -> tuple[Result, Any]:
    """(result, rows): the structure, and a row of the sums over segments for each of its numbers."""
    variant = compiled.variant(batch.arguments(0))
    _check_outside(compiled, variant)
    if isinstance(variant.program, Program):
        sums = variant.program.run_sums(
            variant.columns(batch.columns), batch.lanes, segment,
            threads=threads or _threads(variant.program, batch.lanes),
        )  # fmt: skip
        if sums is not None:
            rows = _placed(variant.result, sums.T, lambda number: _repeated(number, batch.lanes, segment))
            return variant.result, rows
    some = max(1, MOST_BYTES // (8 * segment * (variant.program.counts[1] + 1))) * segment
    parts: list[tuple[Result, Any]] = []
    for start in range(0, batch.lanes, some):
        result, rows = _outputs(compiled, batch.part(slice(start, start + some)), threads)
        parts.append((result, _core.sum_rows(rows, segment).T))
    return _joined(parts)


def _repeated(number: float, lanes: int, segment: int) -> Any:
    """The sums of a row of this number."""
    return _core.sum_rows(np.broadcast_to(float(number), (1, lanes)), segment)[:, 0]


def _joined(parts: list[tuple[Result, Any]]) -> tuple[Result, Any]:
    """One after the other what is of pieces of a batch."""
    result = _common([own for own, _ in parts])
    return result, np.concatenate([_moved(result, own, rows) for own, rows in parts], axis=1)


def _placed(result: Result, outputs: Any, row_of: Callable[[float], Any] = lambda number: number) -> Any:
    """A row for each number of the result."""
    if result.is_plain:
        return outputs
    numbers = flatten(result.structure)
    rows, slots = np.zeros((len(numbers), outputs.shape[1])), iter(result.slots)
    for row, number in zip(rows, numbers, strict=True):
        if type(number) is not float:
            row[:] = row_of(number)  # an int, to which the guards hold: another variant has another
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


def _structured(structure: Any, taken: Callable[[tuple[int, ...]], Any]) -> Any:
    """The structure with what is taken for each number, and for lists and arrays of numbers, by shape."""

    def made(x: Any) -> Any:
        if is_number(x):
            return taken(())
        if is_array(x) or (isinstance(x, list) and _is_regular(x)):
            return taken(np.shape(x) if _core.pack(x) is None else (len(x),))
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(made, x))
        if isinstance(x, (list, tuple)):
            return type(x)(map(made, x))
        if isinstance(x, dict):
            return {key: made(item) for key, item in x.items()}
        return map_structure(lambda _: taken(()), x)

    return made(structure)


def _of_rows(structure: Any, rows: Any) -> Any:
    """The structure with arrays of the rows: views of shape (lanes, ...), in which lanes of a number lie side by side.

    Of sums, which have no axis of lanes, floats and arrays.
    """
    at = 0

    def taken(shape: tuple[int, ...]) -> Any:
        nonlocal at
        start, at = at, at + math.prod(shape)
        found = rows[start:at].reshape(shape + rows.shape[1:])
        if rows.ndim > 1:
            return np.moveaxis(found, -1, 0)
        return found if shape else found.item()

    return _structured(structure, taken)


def _shapes(structure: Any, lanes: int) -> Any:
    """What _of_rows will give, without numbers."""
    return _structured(structure, lambda shape: np.broadcast_to(0.0, (lanes, *shape)))


def _is_regular(x: list[Any]) -> bool:
    """Whether nested lists hold numbers alone, as many in each."""
    if _core.pack(x) is not None:
        return True
    try:
        shape = np.shape(x)
    except ValueError:
        return False
    numbers = flatten(x)
    return len(numbers) == math.prod(shape)


def _pairs(made: Any, out: Any) -> Iterator[tuple[Any, Any]]:
    """Each array of the result with that of `out`, which has the same structure."""
    if isinstance(out, np.ndarray):
        if isinstance(made, (list, tuple, dict)) or out.shape != np.shape(made) or out.dtype != float:
            needs = type(made).__name__ if isinstance(made, (list, tuple, dict)) else np.shape(made)
            raise ValueError(f"map: out has shape {out.shape} and dtype {out.dtype}, needs {needs} of float64")
        yield made, out
    elif isinstance(out, (list, tuple)) and isinstance(made, (list, tuple)) and len(out) == len(made):
        for one, other in zip(made, out, strict=True):
            yield from _pairs(one, other)
    elif isinstance(out, dict) and isinstance(made, dict) and out.keys() == made.keys():
        for key, one in made.items():
            yield from _pairs(one, out[key])
    else:
        raise ValueError(
            f"map: out must have the structure of the result, {type(made).__name__}, found {type(out).__name__}"
        )


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads(program: Any, lanes: int) -> int:
    """As many as there are cores, if each has enough to do: starting one takes as long as some 500,000 instructions."""
    return max(1, min(usable_cores(), int(program.work * lanes / 2_500_000)))


def _piece(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], segment: int) -> tuple[Any, Any]:
    """What a worker does: the lanes that it was given, in one thread."""
    batch = Batch(compiled, args, kwargs)
    return _sums(compiled, batch, 1, segment) if segment else _outputs(compiled, batch, 1)


def _cut(x: Any, lanes: slice) -> Any:
    return map_structure(lambda number: number, x, array=lambda array, mapped: array[lanes] if array.ndim else array)


def _through(
    executor: Any, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], lanes: int, segment: int
) -> tuple[Result, Any]:
    is_static = compiled.arguments(args, kwargs).is_static
    workers = getattr(executor, "_max_workers", None) or usable_cores()
    unit = segment or 1
    units = -(-lanes // unit)
    pieces = min(units, 2 * int(workers))
    edges = [min(lanes, units * k // pieces * unit) for k in range(pieces + 1)]
    futures = []
    for some in map(slice, edges, edges[1:]):
        cut = tuple([arg if is_static(i) else _cut(arg, some) for i, arg in enumerate(args)])
        named = {name: arg if is_static(name) else _cut(arg, some) for name, arg in kwargs.items()}
        futures.append(executor.submit(_piece, compiled, cut, named, segment))
    return _joined([future.result() for future in futures])


def map_lanes(
    compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], threads: int | None, executor: Any, out: Any,
    reduction: str | None,
) -> Any:  # fmt: skip
    """Compiled.map."""
    if reduction not in (None, "sum"):
        raise ValueError(f"map: reduction must be None or 'sum', found {reduction!r}")
    batch = Batch(compiled, args, kwargs)
    segment = SEGMENT * -(-batch.lanes // (SEGMENT * MOST_SEGMENTS)) if reduction else 0
    if executor is not None:
        _check_outside(compiled, compiled.variant(batch.arguments(0)))  # which is captured, and so sent along
        result, rows = _through(executor, compiled, args, kwargs, batch.lanes, segment)
    elif segment:
        result, rows = _sums(compiled, batch, threads, segment)
    else:
        result, rows = _outputs(compiled, batch, threads, out)
    if rows is None:
        return out
    if segment:
        rows = sum(rows.T, np.zeros(len(rows)))
    if isinstance(result, SparseResult):
        made = result.matrix(rows) if segment else (rows.T, result.indices.copy(), result.indptr.copy())
    else:
        made = _of_rows(result.structure, rows)
    if out is None:
        return made
    for one, other in list(_pairs(made, out)):
        other[...] = one
    return out
