"""Programs with a loop in rolled form, as a step over a carry: for contestants that keep loops rolled, and for batches.

Each is written once and knows no library. `unrolled` makes the plain program of one. Those of workloads.py are written
as a user would, in a loop; the checks before a race hold the two forms equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Leaves = Sequence[Any]


@dataclass(frozen=True)
class Rolled:
    """end(leaves, carry, ops) after a step(leaves, carry, x, ops) for each x, `width` numbers of the data."""

    steps: int
    width: int
    start: Callable[[Leaves], tuple[Any, ...]]
    step: Callable[[Leaves, tuple[Any, ...], Sequence[Any], Any], tuple[Any, ...]]
    end: Callable[[Leaves, tuple[Any, ...], Any], Any]

    def unrolled(self, leaves: Leaves, data: Sequence[Any], ops: Any) -> Any:
        carry = self.start(leaves)
        for i in range(self.steps):
            carry = self.step(leaves, carry, data[i * self.width : (i + 1) * self.width], ops)
        return self.end(leaves, carry, ops)


def path(steps: int) -> Rolled:
    """workloads.path: spot and log-volatility by two Brownian increments a step."""
    dt = 1.0 / steps

    def start(leaves: Leaves) -> tuple[Any, ...]:
        return leaves[0], leaves[2]

    def step(leaves: Leaves, carry: tuple[Any, ...], x: Sequence[Any], ops: Any) -> tuple[Any, ...]:
        spot, log_vol = carry
        dw, dv = x
        _, rate, _, speed, level, vol_of_vol, _ = leaves
        spot = spot + spot * (rate * dt + ops.exp(log_vol) * dw)
        log_vol = log_vol + speed * dt * (level - log_vol) + vol_of_vol * dv
        return spot, log_vol

    def end(leaves: Leaves, carry: tuple[Any, ...], ops: Any) -> Any:
        return ops.exp(-leaves[1]) * ops.relu(carry[0] - leaves[6])

    return Rolled(steps, 2, start, step, end)


def asian(steps: int) -> Rolled:
    """An Asian call on the arithmetic mean of a geometric Brownian motion; spot, rate and volatility are the leaves."""
    dt = 1.0 / steps
    strike = 100.0

    def start(leaves: Leaves) -> tuple[Any, ...]:
        return leaves[0], 0.0 * leaves[0]

    def step(leaves: Leaves, carry: tuple[Any, ...], x: Sequence[Any], ops: Any) -> tuple[Any, ...]:
        spot, total = carry
        _, rate, vol = leaves
        spot = spot * ops.exp((rate - 0.5 * vol * vol) * dt + vol * x[0])
        return spot, total + spot

    def end(leaves: Leaves, carry: tuple[Any, ...], ops: Any) -> Any:
        return ops.exp(-leaves[1]) * ops.relu(carry[1] * (1.0 / steps) - strike)

    return Rolled(steps, 1, start, step, end)


def lorenz(steps: int) -> Rolled:
    """workloads.lorenz: one step of RK4 by 0.01."""
    h = 0.01

    def start(leaves: Leaves) -> tuple[Any, ...]:
        return tuple(leaves[:3])

    def step(leaves: Leaves, carry: tuple[Any, ...], x: Sequence[Any], ops: Any) -> tuple[Any, ...]:
        _, _, _, sigma, rho, beta = leaves

        def slope(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
            return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

        def moved(by: float, slopes: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            return tuple(u + by * du for u, du in zip(carry, slopes, strict=True))  # type: ignore[return-value]

        a = slope(*carry)
        b = slope(*moved(h / 2, a))
        c = slope(*moved(h / 2, b))
        d = slope(*moved(h, c))
        return tuple(
            u + h / 6 * (au + 2.0 * bu + 2.0 * cu + du) for u, au, bu, cu, du in zip(carry, a, b, c, d, strict=True)
        )

    def end(leaves: Leaves, carry: tuple[Any, ...], ops: Any) -> Any:
        return carry[0]

    return Rolled(steps, 0, start, step, end)


def increments(rng: Any, steps: int, width: int, lanes: int) -> Any:
    """Brownian increments over a year, of shape (steps * width, lanes), the lanes of a number side by side."""
    return rng.normal(0.0, math.sqrt(1.0 / steps), (steps * width, lanes))
