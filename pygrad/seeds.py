"""Jacobians by sweeps over seeds: for those that would be too long written out entry by entry.

One sweep of reverse or forward mode is a program whose further inputs are the seed; several seeds go through it as
lanes. Columns (in reverse mode rows) that meet in no row share a seed: after Curtis, Powell and Reid (1974). Looks like
the program of the entries from outside; where that is differentiated again, it is written out after all.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from pygrad import _core
from pygrad._core import Program

__all__ = ["SeededJacobian"]


class SeededJacobian:
    """The outputs of a program, and then the entries of its Jacobian, of which `outputs` are chosen."""

    def __init__(self, program: Program, wrt: list[int], forward: bool, rows: Any, columns: Any) -> None:
        self._program, self._wrt, self._forward = program, wrt, forward
        self._rows, self._columns = rows, columns
        self.inputs, primal, self._guards = program.counts
        self._outputs = list(range(primal + len(rows)))
        seeded, others = (columns, rows) if forward else (rows, columns)
        count = len(wrt) if forward else primal
        order = np.lexsort((seeded, others))
        colours = _core.colour_columns(others[order], seeded[order], count)
        self._seeds = np.zeros((count, int(colours.max(initial=-1)) + 1))
        self._seeds[np.arange(count), colours] = 1.0
        self._at = others, colours[seeded]  # of each entry: which derivative of the sweep, and which lane
        sweep = program.tangent(wrt) if forward else program.gradient(wrt)
        self._sweep = sweep.select(list(range(primal, sweep.counts[1])))

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.inputs, len(self._outputs), self._guards

    @property
    def work(self) -> float:
        return self._program.work + self._seeds.shape[1] * self._sweep.work

    def expected(self) -> list[float]:
        return self._program.expected()

    def stats(self) -> dict[str, int]:
        return {**self._sweep.stats(), "outputs": len(self._outputs), "seeds": self._seeds.shape[1]}

    def __str__(self) -> str:
        return str(self._sweep)

    def select(self, outputs: list[int]) -> SeededJacobian:
        chosen = copy.copy(self)
        chosen._outputs = [self._outputs[number] for number in outputs]
        return chosen

    def run(self, inputs: list[float]) -> Any:
        primal = self._program.run(inputs)
        if type(primal) is tuple:
            return primal
        lanes = self._seeds.shape[1]
        found, _ = self._sweep.run_lanes([*inputs, *self._seeds], lanes, exact=True)
        everything = np.concatenate([primal, found[self._at]])
        return everything[self._outputs].tolist()

    def run_lanes(self, inputs: list[Any], lanes: int, out: Any = None, *, threads: int = 1) -> tuple[Any, Any]:
        primal, failed = self._program.run_lanes(inputs, lanes, threads=threads)
        seeds = self._seeds.shape[1]
        columns = [x if np.ndim(x) == 0 or x.shape[1] != lanes else np.repeat(x, seeds, axis=1) for x in inputs]
        tiled = [np.tile(seed, lanes) for seed in self._seeds]
        found, _ = self._sweep.run_lanes([*columns, *tiled], lanes * seeds, threads=threads)
        which, colour = self._at
        entries = found.reshape(-1, lanes, seeds)[which, :, colour]
        everything = np.concatenate([primal, entries])
        return np.take(everything, self._outputs, axis=0, out=out), failed

    # ---- written out, for what is made of it ----

    def written_out(self) -> Program:
        program, rows, columns = self._program.jacobian(self._wrt, self._forward)
        primal = self._program.counts[1]
        places = {entry: primal + k for k, entry in enumerate(zip(rows, columns, strict=True))}
        entries = zip(self._rows.tolist(), self._columns.tolist(), strict=True)
        numbers = [*range(primal), *(places.get(entry) for entry in entries)]
        return program.select([numbers[output] for output in self._outputs])

    def gradient(self, wrt: list[int], of: int | None = None) -> Program:
        return self.written_out().gradient(wrt, of)

    def tangent(self, wrt: list[int]) -> Program:
        return self.written_out().tangent(wrt)

    def jacobian(self, wrt: list[int], forward: bool) -> tuple[Program, list[int], list[int]]:
        return self.written_out().jacobian(wrt, forward)

    def jacobian_pattern(self, wrt: list[int], forward: bool) -> Any:
        return self.written_out().jacobian_pattern(wrt, forward)
