"""Random functions with loops and conditions, nested, drawn from a seed: functions of a list of numbers.

Steps use rows that stay within bounds, so that many of them can be taken; what is drawn is how they hang together: what
is carried, stacked, closed over, swapped, left unused, and which way each condition goes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pygrad
from pygrad import cond, scan

UNARY = [pygrad.sin, pygrad.cos, pygrad.tanh, pygrad.sigmoid, pygrad.atan, lambda v: 0.7 * v, lambda v: -v, lambda v: v]
BINARY = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (1.0 + b * b), pygrad.hypot,
    pygrad.maximum, lambda a, b: pygrad.where(a > b, a, 0.5 * b),
]  # fmt: skip


class Plan:
    """The same choices again and again, whatever the numbers: each run of a function draws from the same seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.inputs = 1 + seed % 4

    def __call__(self, xs: list[Any]) -> list[Any]:
        rng = random.Random(self.seed)
        found = _block(rng, list(xs), 2, rng.randint(2, 6))
        return [pygrad.tanh(v) for v in found[-rng.randint(1, 4) :]]

    def at(self, number: int) -> list[float]:
        rng = random.Random(self.seed * 1000 + number)
        return [rng.uniform(-1.5, 1.5) for _ in range(self.inputs)]


def _block(rng: random.Random, seen: list[Any], depth: int, count: int) -> list[Any]:
    """Numbers computed one after the other from those seen: the last of them."""
    seen = list(seen)
    start = len(seen)
    for _ in range(count):
        kind = rng.random()
        if depth and kind < 0.25:
            seen += _loop(rng, seen, depth)
        elif depth and kind < 0.4:
            seen += _condition(rng, seen, depth)
        elif kind < 0.6:
            seen.append(rng.choice(UNARY)(rng.choice(seen)))
        else:
            seen.append(rng.choice(BINARY)(rng.choice(seen), rng.choice(seen)))
    return seen[start:]


def _frozen(rng: random.Random) -> Callable[[], random.Random]:
    """A source of the same draws for each run of a body."""
    seed = rng.random()
    return lambda: random.Random(seed)


def _pick(rng: random.Random, found: list[Any], seen: list[Any]) -> Any:
    return rng.choice(found) if rng.random() < 0.8 else rng.choice(seen)


def _loop(rng: random.Random, seen: list[Any], depth: int) -> list[Any]:
    carried = [rng.choice(seen) for _ in range(rng.randint(0, 3))]
    length, width, stacks = rng.randint(1, 5), rng.randint(0, 2), rng.randint(0, 2)
    xs = [[rng.choice(seen) if rng.random() < 0.5 else rng.uniform(-1, 1) for _ in range(width)] for _ in range(length)]
    outer = [rng.choice(seen) for _ in range(rng.randint(0, 2))]
    again = _frozen(rng)

    def step(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        own = again()
        given = [*carry, *(x or []), *outer, 0.3]
        found = _block(own, given, depth - 1, own.randint(1, 4))
        after = [_pick(own, found, given) for _ in carry]
        after = [pygrad.tanh(v) if own.random() < 0.7 else v for v in after]
        if after and own.random() < 0.2:
            after[0] = carry[-1]
        return after, [_pick(own, found, given) for _ in range(stacks)]

    carry, ys = scan(
        step, carried, xs if width else None, None if width else length, reverse=rng.random() < 0.3,
        checkpoint=rng.random() < 0.3,
    )  # fmt: skip
    stacked = [v for y in ys or [] for v in y]
    return [*carry, *(rng.sample(stacked, min(3, len(stacked)))), 0.1 * rng.choice(seen)]


def _condition(rng: random.Random, seen: list[Any], depth: int) -> list[Any]:
    operands = [rng.choice(seen) for _ in range(rng.randint(0, 3))]
    outer = [rng.choice(seen) for _ in range(rng.randint(1, 2))]
    results, sources = rng.randint(1, 3), (_frozen(rng), _frozen(rng))

    def branch(again: Callable[[], random.Random]) -> Callable[..., list[Any]]:
        def run(*given: Any) -> list[Any]:
            own = again()
            found = _block(own, [*given, *outer], depth - 1, own.randint(1, 3))
            return [_pick(own, found, [*given, *outer]) for _ in range(results)]

        return run

    truth = rng.choice(seen) > rng.choice([0.0, rng.choice(seen)])
    return list(cond(truth, *map(branch, sources), *operands))
