"""The results of compiled functions: a structure, and which output of a program each of its numbers is.

Knows structures, and no program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pygrad.structures import flatten, map_array, map_structure

__all__ = ["Result", "SparseResult"]


class Result:
    """The structure that a program's outputs are put in: fill(outputs) makes it anew each time.

    `slots` says for each number of the structure which output it is, or None where it is 0.0 whatever the inputs.
    """

    def __init__(self, structure: Any, slots: list[int | None]) -> None:
        self.structure = structure
        self.slots = slots

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether its numbers are the outputs, in order."""
        return self.slots == list(range(len(self.slots))) and len(flatten(self.structure)) == len(self.slots)

    def fill(self, outputs: list[float]) -> Any:
        return refilled(self.structure, iter([0.0 if slot is None else outputs[slot] for slot in self.slots]))

    def recipe(self) -> Any:
        """How the core makes the structure of the outputs (_core_replay.pxi); ... where it cannot."""
        return _recipe(self.structure) if self.slots == list(range(len(self.slots))) else ...


def refilled(structure: Any, numbers: Iterator[float]) -> Any:
    """A result with its floats replaced; ints stay. Its containers are new."""
    return map_structure(
        lambda number: next(numbers) if type(number) is float else number, structure,
        lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, _refilled_array,
    )  # fmt: skip


def _refilled_array(array: Any, mapped: Callable[[Any], Any]) -> Any:
    made = map_array(array, mapped)
    return made.copy() if made is array else made


def _recipe(structure: Any) -> Any:
    kind = type(structure)
    if kind is float:
        return None
    if kind in (list, tuple) and structure and all(type(item) is float for item in structure):
        return kind, len(structure)
    if kind is np.ndarray and structure.dtype == float:
        return kind, structure.shape
    if kind is tuple:
        parts = tuple([_recipe(item) for item in structure])
        return ... if ... in parts else (kind, parts)
    return ...


class SparseResult(Result):
    """A CSR matrix whose entries are the outputs: SciPy's, or (data, indices, indptr) without it."""

    def __init__(self, indices: list[int], indptr: list[int], columns: int) -> None:
        super().__init__(None, [None])
        self.indices = np.array(indices, dtype=np.int32)
        self.indptr = np.array(indptr, dtype=np.int32)
        self.shape = len(indptr) - 1, columns

    is_plain = True  # its entries are the outputs

    def keys(self) -> Any:
        """A number for each entry, growing along the rows."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        return rows * self.shape[1] + self.indices

    def places(self, other: SparseResult) -> Any:
        """Where the entries of another are among those of this one, which has them all."""
        return np.searchsorted(self.keys(), other.keys())

    def united(self, others: list[SparseResult]) -> SparseResult:
        """A matrix with the entries of all."""
        keys = np.unique(np.concatenate([other.keys() for other in others]))
        rows, columns = np.divmod(keys, max(self.shape[1], 1))
        counts = np.bincount(rows, minlength=self.shape[0])
        return SparseResult(columns.tolist(), [0, *np.cumsum(counts).tolist()], self.shape[1])

    def fill(self, outputs: list[float]) -> Any:
        return self.matrix(np.array(outputs, dtype=float))

    def matrix(self, data: Any) -> Any:
        try:
            from scipy.sparse import csr_matrix
        except ImportError:
            return data, self.indices.copy(), self.indptr.copy()
        return csr_matrix((data, self.indices.copy(), self.indptr.copy()), shape=self.shape)
