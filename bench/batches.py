"""The batches that are timed: a program over one lane's numbers, for many lanes, with values and derivatives of each.

Knows no library. Sizes are the table below, `toy` for the tests. Who takes part is in mappers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rolled
from adbench import Mixture, ba_numbers, reprojection

SIZES = {
    #         toy          full
    "paths":  ((10, 30),   (252, 10_000)),  # steps, paths
    "asian":  ((10, 30),   (252, 1_000)),   # steps, paths
}  # fmt: skip


class NoDataError(Exception):
    """The files of ADBench are not there."""


@dataclass(frozen=True)
class Batch:
    """program(leaves, data, ops) gives a number, or a list of `outputs`; derivatives are by the leaves.

    `leaves` has shape (d,), shared by all lanes, or (d, lanes); `data`, (k, lanes). A contiguous row holds one number
    of all lanes: each contestant gets the layout that suits it, made before the clock starts. With `mixture` what is
    wanted is the sum over lanes and the mixture's rest.
    """

    name: str
    unit: str
    program: Callable[[Sequence[Any], Sequence[Any], Any], Any]
    leaves: Any
    data: Any
    outputs: int = 0  # 0: a number, of which value and gradient are wanted; else the Jacobian alone
    loop: rolled.Rolled | None = None
    mixture: Mixture | None = None

    @property
    def lanes(self) -> int:
        return self.data.shape[1]

    @property
    def shared(self) -> bool:
        return self.leaves.ndim == 1

    def columns(self) -> list[Any]:
        """Each leaf as an array over lanes."""
        leaves = np.repeat(self.leaves[:, None], self.lanes, axis=1) if self.shared else self.leaves
        return list(np.ascontiguousarray(leaves))


def _of_loop(name: str, loop: rolled.Rolled, leaves: list[float], lanes: int) -> Batch:
    data = rolled.increments(np.random.default_rng(17), loop.steps, loop.width, lanes)
    return Batch(name, "path", loop.unrolled, np.array(leaves), data, loop=loop)


def paths(size: str, data: Path | None = None) -> Batch:
    """The path of workloads.py, each with its own noise; 7 Greeks of each."""
    steps, lanes = SIZES["paths"][size == "full"]
    return _of_loop("path", rolled.path(steps), [100.0, 0.03, -1.6, 2.0, -1.5, 0.4, 80.0], lanes)


def asian(size: str, data: Path | None = None) -> Batch:
    """An Asian call on each path; Greeks by spot, rate and volatility."""
    steps, lanes = SIZES["asian"][size == "full"]
    return _of_loop("asian", rolled.asian(steps), [100.0, 0.03, 0.2], lanes)


def _file(size: str, folder: Path | None, name: str) -> Path | None:
    if size == "toy":
        return None
    if folder is None or not (folder / name).exists():
        raise NoDataError(f"{name}: needs --adbench=FOLDER or ADBENCH_DATA, the folder data of microsoft/ADBench")
    return folder / name


def ba(size: str, folder: Path | None = None) -> Batch:
    """The Jacobian of the reprojection errors by each observation's camera, point and weight."""
    leaves, features = ba_numbers(_file(size, folder, "ba/ba1_n49_m7776_p31843.txt"))
    return Batch("ba", "observation", reprojection, leaves, features, outputs=2)


def gmm(name: str, size: str, folder: Path | None = None) -> Batch:
    """The gradient of a mixture's log-likelihood: a lane is a point, the parameters are shared."""
    path = _file(size, folder, f"gmm/1k/gmm_{name}.txt")
    mixture = Mixture.toy() if path is None else Mixture.read(path)
    data = np.ascontiguousarray(mixture.points.T)
    return Batch("gmm", "point", mixture.point, mixture.leaves, data, mixture=mixture)


BATCHES: dict[str, Callable[[str, Path | None], Batch]] = {
    "paths": paths,
    "asian": asian,
    "ba": ba,
    "gmm d2_K5": lambda size, folder: gmm("d2_K5", size, folder),
    "gmm d10_K5": lambda size, folder: gmm("d10_K5", size, folder),
    "gmm d10_K25": lambda size, folder: gmm("d10_K25", size, folder),
}
