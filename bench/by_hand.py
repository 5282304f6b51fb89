"""Values and derivatives of the batches by hand in NumPy: the measure that the others are held to, and a contestant.

A function here takes a batch and gives a function without arguments, whose results are (values, derivatives): of shapes
(lanes,) and (leaves, lanes); of a Jacobian (None, (outputs, leaves, lanes)); of a mixture a number and (leaves,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from batches import Batch

Run = Callable[[], tuple[Any, Any]]
CHUNK = 4096  # lanes at once: fewer, and NumPy's calls outweigh what the cache saves


def _in_chunks(batch: Batch, buffers: int, run: Callable[[Any, Any, Any, Any], None]) -> Run:
    """run(noise, values, gradients, kept) over pieces of the batch, with arrays that are made once."""
    assert batch.loop
    lanes, steps = batch.lanes, batch.loop.steps
    kept = np.empty((buffers, steps, CHUNK))
    values, gradients = np.empty(lanes), np.empty((len(batch.leaves), lanes))

    def call() -> tuple[Any, Any]:
        for first in range(0, lanes, CHUNK):
            some = slice(first, min(first + CHUNK, lanes))
            run(batch.data[:, some], values[some], gradients[:, some], kept[:, :, : some.stop - first])
        return values, gradients

    return call


def path(batch: Batch) -> Run:
    assert batch.loop
    steps = batch.loop.steps
    start, rate, log_start, speed, level, vol_of_vol, strike = batch.leaves
    dt = 1.0 / steps
    drift, pull = rate * dt, speed * dt

    def run(noise: Any, values: Any, gradients: Any, kept: Any) -> None:
        spots, log_vols, shocks, growths = kept
        lanes = len(values)
        spot, log_vol, t = np.full(lanes, start), np.full(lanes, log_start), np.empty(lanes)
        for i in range(steps):
            spots[i], log_vols[i] = spot, log_vol
            np.exp(log_vol, out=t)
            np.multiply(t, noise[2 * i], out=shocks[i])
            np.add(shocks[i], 1.0 + drift, out=growths[i])
            np.multiply(spots[i], growths[i], out=spot)
            np.multiply(log_vols[i], 1.0 - pull, out=log_vol)
            np.multiply(noise[2 * i + 1], vol_of_vol, out=t)
            t += pull * level
            log_vol += t
        discount = np.exp(-rate)
        d_spot = np.where(spot > strike, discount, 0.0)
        np.multiply(d_spot, spot - strike, out=values)
        d_strike = -d_spot
        d_log_vol, d_drift, d_pull, d_level, d_vol_of_vol = np.zeros((5, lanes))
        u = np.empty(lanes)
        for i in reversed(range(steps)):
            np.multiply(d_spot, spots[i], out=t)
            d_drift += t
            np.subtract(level, log_vols[i], out=u)
            u *= d_log_vol
            d_pull += u
            d_level += d_log_vol
            np.multiply(d_log_vol, noise[2 * i + 1], out=u)
            d_vol_of_vol += u
            d_log_vol *= 1.0 - pull
            t *= shocks[i]
            d_log_vol += t
            d_spot *= growths[i]
        gradients[:] = (
            d_spot, d_drift * dt - values, d_log_vol, d_pull * dt, d_level * pull, d_vol_of_vol, d_strike,
        )  # fmt: skip

    return _in_chunks(batch, 4, run)


def asian(batch: Batch) -> Run:
    assert batch.loop
    steps = batch.loop.steps
    start, rate, vol = batch.leaves
    strike, dt = 100.0, 1.0 / steps
    drift, discount = (rate - 0.5 * vol * vol) * dt, np.exp(-rate)

    def run(noise: Any, values: Any, gradients: Any, kept: Any) -> None:
        (spots,) = kept
        lanes = len(values)
        spot, total, t = np.full(lanes, start), np.zeros(lanes), np.empty(lanes)
        for i in range(steps):
            np.multiply(noise[i], vol, out=t)
            t += drift
            np.multiply(spot, np.exp(t), out=spots[i])
            spot = spots[i]
            total += spot
        over = total / steps - strike
        seed = np.where(over > 0.0, discount / steps, 0.0)
        values[:] = np.where(over > 0.0, discount * over, 0.0)
        later, d_rate, d_vol = np.zeros((3, lanes))
        for i in reversed(range(steps)):
            later += spots[i]
            d_rate += later
            np.subtract(noise[i], vol * dt, out=t)
            t *= later
            d_vol += t
        gradients[:] = seed * total / start, seed * d_rate * dt - values, seed * d_vol

    return _in_chunks(batch, 1, run)


def ba(batch: Batch) -> Run:
    """The rotation's derivative by the formula of Gallego and Yezzi (2015)."""
    leaves, feature = batch.leaves, batch.data

    def crossing(v: Any) -> Any:
        zero = np.zeros_like(v[0])
        return np.array([[zero, -v[2], v[1]], [v[2], zero, -v[0]], [-v[1], v[0], zero]])

    def product(a: Any, b: Any) -> Any:
        return np.einsum("ij...,jk...->ik...", a, b)

    def call() -> tuple[Any, Any]:
        rotation, centre, focal, principal, (k1, k2) = np.split(leaves[:11], [3, 6, 7, 9])
        a, weight = leaves[11:14] - centre, leaves[14]
        square = (rotation * rotation).sum(0)
        theta = np.sqrt(square)
        unit = rotation / theta
        k = crossing(unit)
        eye = np.eye(3)[:, :, None]
        turn = eye + np.sin(theta) * k + (1.0 - np.cos(theta)) * product(k, k)
        x, y, z = np.einsum("ij...,j...->i...", turn, a)
        back = np.swapaxes(turn, 0, 1) - eye
        inner = rotation[:, None] * rotation[None, :] + product(back, crossing(rotation))
        by_rotation = -product(product(turn, crossing(a)), inner) / square
        by_camera = np.concatenate([by_rotation, -turn], axis=1)
        p = np.array([x / z, y / z])
        r = (p * p).sum(0)
        bend = 1.0 + k1 * r + k2 * r * r
        zero = np.zeros_like(z)
        flat = np.array([[1.0 / z, zero, -x / (z * z)], [zero, 1.0 / z, -y / (z * z)]])
        bent = focal * (bend * np.eye(2)[:, :, None] + 2.0 * (k1 + 2.0 * k2 * r) * p[:, None] * p[None, :])
        through = weight * product(bent, flat)
        jacobian = np.zeros((2, 15, len(z)))
        jacobian[:, :6] = product(through, by_camera)
        jacobian[:, 6] = weight * bend * p
        jacobian[0, 7] = jacobian[1, 8] = weight
        jacobian[:, 9] = weight * focal * r * p
        jacobian[:, 10] = weight * focal * r * r * p
        jacobian[:, 11:14] = product(through, turn)
        jacobian[:, 14] = focal * bend * p + principal - feature
        return None, jacobian

    return call


def gmm(batch: Batch) -> Run:
    mixture = batch.mixture
    assert mixture
    k, d, x = mixture.k, mixture.d, mixture.points
    rows, columns = (list(places) for places in zip(*mixture.below, strict=True))

    def softmax(terms: Any) -> tuple[Any, Any]:
        """(logsumexp, its gradient) along the last axis."""
        top = terms.max(-1, keepdims=True)
        weights = np.exp(terms - top)
        total = weights.sum(-1, keepdims=True)
        return (np.log(total) + top)[..., 0], weights / total

    def call() -> tuple[Any, Any]:
        alphas, means, icf = np.split(batch.leaves, [k, k + k * d])
        means, icf = means.reshape(k, d), icf.reshape(k, -1)
        factor = np.zeros((k, d, d))
        factor[:, rows, columns] = icf[:, d:]
        diagonal = np.exp(icf[:, :d])
        factor[:, range(d), range(d)] = diagonal
        off = x - means[:, None, :]
        y = off @ factor.transpose(0, 2, 1)
        terms = (alphas + icf[:, :d].sum(1))[:, None] - 0.5 * np.einsum("kni,kni->kn", y, y)
        values, shares = softmax(terms.T)
        of_alphas, alpha_shares = softmax(alphas)
        y *= shares.T[:, :, None]
        by_factor = -(y.transpose(0, 2, 1) @ off)
        total = shares.sum(0)
        by_means = np.einsum("kij,ki->kj", factor, y.sum(1))
        square = mixture.gamma**2
        by_icf = np.empty_like(icf)
        by_icf[:, :d] = total[:, None] + diagonal * (by_factor[:, range(d), range(d)] + square * diagonal) - mixture.m
        by_icf[:, d:] = by_factor[:, rows, columns] + square * icf[:, d:]
        squares = (diagonal * diagonal).sum() + (icf[:, d:] ** 2).sum()
        rest = 0.5 * square * squares - mixture.m * icf[:, :d].sum() - len(x) * of_alphas + mixture.constant
        gradient = total - len(x) * alpha_shares, by_means.ravel(), by_icf.ravel()
        return values.sum() + rest, np.concatenate(gradient)

    return call


BY_HAND: dict[str, Callable[[Batch], Run]] = {"path": path, "asian": asian, "ba": ba, "gmm": gmm}
