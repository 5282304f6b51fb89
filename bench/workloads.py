"""The programs that are timed, each written once: plain Python over numbers, whatever kind of number it is given.

A program takes its leaves (a list of numbers of one kind) and `ops`, a namespace with `exp`, `tanh` and `relu` for that
kind, and returns one number. It knows no library. Sizes are the table below, `toy` for the tests. The kinds of number
are in peers.py, the timing in test_*.py and conftest.py, the printing in table.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

SIZES = {
    #         toy            full
    "op":     (100,          100_000),                             # products in the loop
    "neuron": (10,           1_000),                               # neurons, one after the other
    "chain":  ((100, 1_000), (1_000_000, 2_000_000, 10_000_000)),  # nodes; peers run the first alone
    "moons":  (10,           100),                                 # points
    "rosen":  (10,           1_000),                               # variables
    "path":   (10,           252),                                 # steps
    "lorenz": (10,           1_000),                               # steps
}  # fmt: skip


def size_of(name: str, size: str) -> Any:
    return SIZES[name][("toy", "full").index(size)]


@dataclass(frozen=True)
class Workload:
    """A program with the numbers to run it at, which are what the gradient is taken with respect to.

    What it reads besides is said again for those who write it by hand: how many steps, and its constants.
    """

    name: str
    program: Callable[[Sequence[Any], Any], Any]
    numbers: list[float]
    steps: int = 0
    constants: list[float] = field(default_factory=list)


def _relu(x: float) -> float:
    return x if x > 0.0 else 0.0


FLOAT_OPS = SimpleNamespace(exp=math.exp, tanh=math.tanh, relu=_relu)


def op(size: str) -> Workload:
    """One product in a loop, forward only; each result is dropped as the next one comes."""
    count = size_of("op", size)

    def program(leaves: Sequence[Any], ops: Any) -> Any:
        x, a = leaves
        y = x
        for _ in range(count):
            y = x * a
        return y

    return Workload("op", program, [1.1, 1.5])


def neuron() -> Workload:
    """One neuron with one input: tanh(x * w + b)."""

    def program(leaves: Sequence[Any], ops: Any) -> Any:
        x, w, b = leaves
        return ops.tanh(x * w + b)

    return Workload("neuron", program, [2.0, -0.5, 0.3])


def chain(nodes: int) -> Workload:
    """A chain of y * c + d with constants, one node an operation; no two of them can be folded into one."""

    def program(leaves: Sequence[Any], ops: Any) -> Any:
        (y,) = leaves
        for _ in range(nodes // 2):
            y = y * 0.999999 + 1e-6
        return y

    return Workload("chain", program, [1.1])


def moons(size: str, hidden: int = 16, count: int | None = None) -> Workload:
    """The step of micrograd's demo: a 2-16-16-1 net on two moons, max-margin loss and L2, batch 100; 337 parameters."""
    points, labels = two_moons(count or size_of("moons", size))
    widths = [2, hidden, hidden, 1]
    rng = np.random.default_rng(1337)
    numbers: list[float] = []
    for inputs, outputs in pairwise(widths):
        for _ in range(outputs):
            numbers += [*rng.uniform(-1.0, 1.0, inputs).tolist(), 0.0]  # weights, then the bias

    def neuron(w: Sequence[Any], b: Any, x: Sequence[Any]) -> Any:
        return sum((wi * xi for wi, xi in zip(w, x)), b)  # noqa: B905  # micrograd's line

    def program(leaves: Sequence[Any], ops: Any) -> Any:
        relu = ops.relu
        layers, i = [], 0
        for inputs, outputs in pairwise(widths):
            ends = range(i + inputs, i + outputs * (inputs + 1), inputs + 1)
            layers.append([(leaves[end - inputs : end], leaves[end]) for end in ends])
            i += outputs * (inputs + 1)
        first, second, ((last_w, last_b),) = layers
        scores = []
        for x in points:
            x = [relu(neuron(w, b, x)) for w, b in first]
            x = [relu(neuron(w, b, x)) for w, b in second]
            scores.append(neuron(last_w, last_b, x))
        losses = [relu(1 + -yi * score) for yi, score in zip(labels, scores, strict=True)]
        data_loss = sum(losses) * (1.0 / len(losses))
        reg_loss = 1e-4 * sum(p * p for p in leaves)
        return data_loss + reg_loss

    return Workload("moons", program, numbers)


def two_moons(count: int) -> tuple[list[list[float]], list[float]]:
    """Two interleaving half circles with noise 0.1, and their labels -1 and 1."""
    rng = np.random.default_rng(1337)
    angle = rng.uniform(0.0, math.pi, count)
    upper = np.arange(count) % 2 == 0
    x = np.where(upper, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], axis=1) + rng.normal(0.0, 0.1, (count, 2))
    return points.tolist(), np.where(upper, -1.0, 1.0).tolist()


def rosenbrock(size: str) -> Workload:
    """Rosenbrock's function (1960) of n variables, in a loop over neighbours: 8 operations a term."""
    return rosenbrock_of(size_of("rosen", size))


def rosenbrock_of(count: int) -> Workload:
    def program(x: Sequence[Any], ops: Any) -> Any:
        total = 0.0
        for i in range(count - 1):
            t = x[i + 1] - x[i] * x[i]
            s = 1.0 - x[i]
            total = total + (100.0 * t * t + s * s)
        return total

    return Workload("rosen", program, np.random.default_rng(7).uniform(-1.5, 1.5, count).tolist(), count)


def path(size: str) -> Workload:
    """A call on one Monte-Carlo path under Scott's (1987) stochastic volatility, by Euler: 9 operations and exp a step.

    Greeks by spot, rate, strike, and the log-volatility's start, speed, level and volatility. The path takes a year and
    ends in the money.
    """
    steps = size_of("path", size)
    dt = 1.0 / steps
    noise = (np.random.default_rng(3).normal(0.0, 1.0, (steps, 2)) * math.sqrt(dt)).tolist()

    def program(leaves: Sequence[Any], ops: Any) -> Any:
        spot, rate, log_vol, speed, level, vol_of_vol, strike = leaves
        exp = ops.exp
        drift, pull = rate * dt, speed * dt
        for dw, dv in noise:
            spot = spot + spot * (drift + exp(log_vol) * dw)
            log_vol = log_vol + pull * (level - log_vol) + vol_of_vol * dv
        return exp(-rate) * ops.relu(spot - strike)

    constants = [number for pair in noise for number in pair]
    return Workload("path", program, [100.0, 0.03, -1.6, 2.0, -1.5, 0.4, 80.0], steps, constants)


def lorenz(size: str) -> Workload:
    """The last x of the Lorenz (1963) system by RK4 with steps of 0.01: 71 operations a step.

    Derivatives by the three starts and the three parameters.
    """
    steps = size_of("lorenz", size)
    h = 0.01

    def program(leaves: Sequence[Any], ops: Any) -> Any:
        x, y, z, sigma, rho, beta = leaves

        def slope(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
            return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

        half, sixth = h / 2, h / 6
        for _ in range(steps):
            ax, ay, az = slope(x, y, z)
            bx, by, bz = slope(x + half * ax, y + half * ay, z + half * az)
            cx, cy, cz = slope(x + half * bx, y + half * by, z + half * bz)
            dx, dy, dz = slope(x + h * cx, y + h * cy, z + h * cz)
            x = x + sixth * (ax + 2.0 * bx + 2.0 * cx + dx)
            y = y + sixth * (ay + 2.0 * by + 2.0 * cy + dy)
            z = z + sixth * (az + 2.0 * bz + 2.0 * cz + dz)
        return x

    return Workload("lorenz", program, [1.0, 1.0, 1.0, 10.0, 28.0, 8.0 / 3.0], steps)


WORKLOADS: dict[str, Callable[[str], Workload]] = {
    "op": op,
    "neuron": lambda size: neuron(),
    "chain": lambda size: chain(size_of("chain", size)[0]),
    "moons": moons,
    "rosen": rosenbrock,
    "path": path,
    "lorenz": lorenz,
}
