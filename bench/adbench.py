"""Two objectives of ADBench (Srajer, Kukelova and Fitzgibbon 2018), from their formulas: bundle adjustment and GMM.

Programs over numbers, or arrays of lanes, that know no library; no code of ADBench is here, and no file of its data.
Those are read from the folder that --adbench or ADBENCH_DATA names (github.com/microsoft/ADBench, `data`, MIT); the toy
size makes numbers of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

CAMERA, POINT = 11, 3  # rotation 3, centre 3, focal length, principal point 2, radial distortion 2


def reprojection(leaves: Sequence[Any], feature: Sequence[Any], ops: Any) -> list[Any]:
    """The weighted error of one observation by camera, point and weight; the rotation (Rodrigues) must not be zero."""
    rotation, centre, (focal, *principal), (k1, k2) = leaves[:3], leaves[3:6], leaves[6:9], leaves[9:11]
    point, weight = leaves[11:14], leaves[14]
    a = [p - c for p, c in zip(point, centre, strict=True)]
    theta = ops.sqrt(rotation[0] * rotation[0] + rotation[1] * rotation[1] + rotation[2] * rotation[2])
    cos, sin = ops.cos(theta), ops.sin(theta)
    inverse = 1.0 / theta
    w = [r * inverse for r in rotation]
    cross = [w[1] * a[2] - w[2] * a[1], w[2] * a[0] - w[0] * a[2], w[0] * a[1] - w[1] * a[0]]
    along = (w[0] * a[0] + w[1] * a[1] + w[2] * a[2]) * (1.0 - cos)
    x, y, z = (ai * cos + ci * sin + wi * along for ai, ci, wi in zip(a, cross, w, strict=True))
    flat = [x / z, y / z]
    square = flat[0] * flat[0] + flat[1] * flat[1]
    bend = 1.0 + k1 * square + k2 * square * square
    return [weight * (p * bend * focal + c - f) for p, c, f in zip(flat, principal, feature, strict=True)]


def ba_numbers(path: Path | None) -> tuple[Any, Any]:
    """(leaves of shape (15, observations), features of shape (2, observations)), each observation's own copies."""
    if path is None:
        rng, count = np.random.default_rng(5), 20
        camera = np.array([-0.76, -1.11, -0.85, 34.6, 39.7, 53.9, 419.0, 5.9, -8.5, 0.088, 0.0027])
        leaves = np.concatenate([camera, [7.2, 0.0011, 3.0, 0.42]])[:, None] * rng.uniform(0.9, 1.1, (15, count))
        return leaves, rng.uniform(200.0, 900.0, (2, count))
    numbers = np.array(path.read_text().split(), dtype=float)
    count = int(numbers[2])
    one = numbers[3:]  # camera, point, weight, feature: the file's only ones, which its readers repeat
    return np.tile(one[:15, None], count), np.tile(one[15:17, None], count)


class Mixture:
    """The log-likelihood of a Gaussian mixture under a Wishart prior, by alphas, means and icf (Cholesky factors).

    `icf` holds for each component D logarithms of the diagonal and the entries below it, column by column. The sum over
    points of `point`, and `rest`, make the objective; `total` is the same over arrays.
    """

    def __init__(self, alphas: Any, means: Any, icf: Any, points: Any, gamma: float, m: float) -> None:
        self.k, self.d = means.shape
        self.points = points
        self.gamma, self.m = gamma, m
        self.leaves = np.concatenate([alphas, means.ravel(), icf.ravel()])
        k, d = self.k, self.d
        self.below = [(row, column) for column in range(d) for row in range(column + 1, d)]
        n = d + m + 1
        log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (n - j)) for j in range(d))
        prior = n * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma
        self.constant = -0.5 * len(points) * d * math.log(2.0 * math.pi) - k * prior

    @classmethod
    def read(cls, path: Path) -> Mixture:
        numbers = np.array(path.read_text().split(), dtype=float)
        d, k, n = (int(x) for x in numbers[:3])
        sizes = [k, k * d, k * d * (d + 1) // 2, n * d]
        alphas, means, icf, points = np.split(numbers[3:-2], np.cumsum(sizes)[:-1])
        gamma, m = numbers[-2:]
        return cls(alphas, means.reshape(k, d), icf.reshape(k, -1), points.reshape(n, d), gamma, m)

    @classmethod
    def toy(cls) -> Mixture:
        rng, d, k = np.random.default_rng(11), 2, 3
        draw = rng.normal
        return cls(draw(size=k), draw(size=(k, d)), draw(size=(k, d * (d + 1) // 2)), draw(size=(20, d)), 1.5, 2.0)

    def _parts(self, leaves: Sequence[Any]) -> tuple[Any, list[Any], list[Any], list[Any]]:
        """alphas, and for each component means, logarithms of the diagonal, entries below it."""
        k, d = self.k, self.d
        width = d * (d + 1) // 2
        means = [leaves[k + i * d : k + (i + 1) * d] for i in range(k)]
        icf = [leaves[k + k * d + i * width : k + k * d + (i + 1) * width] for i in range(k)]
        return leaves[:k], means, [row[:d] for row in icf], [row[d:] for row in icf]

    def point(self, leaves: Sequence[Any], x: Sequence[Any], ops: Any) -> Any:
        terms = []
        for alpha, mean, diagonal, lower in zip(*self._parts(leaves), strict=True):
            off = [xi - mi for xi, mi in zip(x, mean, strict=True)]
            rows = [ops.exp(q) * o for q, o in zip(diagonal, off, strict=True)]
            for (row, column), entry in zip(self.below, lower, strict=True):
                rows[row] = rows[row] + entry * off[column]
            squares = sum(row * row for row in rows[1:]) + rows[0] * rows[0]
            terms.append(alpha + sum(diagonal[1:], diagonal[0]) - 0.5 * squares)
        return ops.logsumexp(terms)

    def rest(self, leaves: Sequence[Any], ops: Any) -> Any:
        """What does not depend on the points."""
        alphas, _, diagonals, lowers = self._parts(leaves)
        total = self.constant - len(self.points) * ops.logsumexp(list(alphas))
        for diagonal, lower in zip(diagonals, lowers, strict=True):
            squares = sum(ops.exp(2.0 * q) for q in diagonal) + sum(entry * entry for entry in lower)
            total = total + 0.5 * self.gamma**2 * squares - self.m * sum(diagonal)
        return total

    def total(self, leaves: Any, xp: Any) -> Any:
        """The objective over arrays: `xp` has those names of NumPy that are used, and logsumexp over the last axis."""
        k, d = self.k, self.d
        alphas, means, icf = leaves[:k], leaves[k : k + k * d].reshape(k, d), leaves[k + k * d :].reshape(k, -1)
        place = np.full((d, d), len(self.below))  # of each entry below the diagonal; of the others the zero at the end
        for number, (row, column) in enumerate(self.below):
            place[row, column] = number
        entries = xp.concatenate([icf[:, d:], xp.zeros((k, 1))], 1)
        lower = entries[:, place.ravel()].reshape(k, d, d)
        diagonal = xp.exp(icf[:, :d])
        off = xp.asarray(self.points)[:, None, :] - means
        rows = diagonal * off + xp.einsum("kij,nkj->nki", lower, off)
        terms = alphas + icf[:, :d].sum(1) - 0.5 * (rows * rows).sum(2)
        prior = (
            0.5 * self.gamma**2 * ((diagonal * diagonal).sum() + (icf[:, d:] ** 2).sum()) - self.m * icf[:, :d].sum()
        )
        return self.constant + xp.logsumexp(terms).sum() - len(self.points) * xp.logsumexp(alphas) + prior
