"""Quick figures on the user's own machine: `pygrad bench`. Ratios against Python floats and against the reference.

The programs are small copies of what bench/ in the repository times against other libraries: the package must not need
the repository. Knows only the public API. Gradients are compared with the reference's before anything is timed.
"""

from __future__ import annotations

import gc
import math
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pygrad
from pygrad import Value, reference

__all__ = ["main"]

NODES = 1_000_000  # of the chain
REFERENCE_NODES = 20_000  # of the reference's chain: figures are per node
SECONDS = 0.7  # spent on each figure


class Figure(NamedTuple):
    """Nanoseconds for one piece of work; None where there is no such thing."""

    what: str
    floats: float
    pygrad: float
    reference: float


def main() -> None:
    """Prints the table; takes less than 15 seconds."""
    _check()
    print(f"{'':32}{'floats':>9}{'pygrad':>9}{'reference':>11}{'pygrad':>9}{'reference':>10}")
    print(f"{'':32}{'':>9}{'':>9}{'':>11}{'/ floats':>9}{'/ pygrad':>10}")
    size = _resident_bytes_a_node()  # first, while the process has kept no memory from before
    for measure in (_op, _neuron, _rosenbrock, _chain):
        for figure in measure():
            times = f"{_time(figure.floats):>9}{_time(figure.pygrad):>9}{_time(figure.reference):>11}"
            ratios = f"{figure.pygrad / figure.floats:>8.2f}x{figure.reference / figure.pygrad:>9,.0f}x"
            print(f"{figure.what:32}{times}{ratios}", flush=True)
    print("\nfloats: the same arithmetic, forward only. Each time: the fastest round.")
    print(f"Chain: time a node{f', each of {size:.0f} bytes of resident memory' if size else ''}.")
    print(f"{_processor()}, Python {platform.python_version()}, NumPy {np.__version__}, pygrad {pygrad.__version__}")


# ---- the programs, over floats and Values alike


def _products(x: Any, a: Any, count: int) -> Any:
    for _ in range(count):
        y = x * a
    return y


def _neurons(tanh: Callable[[Any], Any], x: float, w: float, b: float, count: int) -> Any:
    for _ in range(count):
        y = tanh(x * w + b)
    return y


def _neuron_gradients(make: Any, count: int) -> tuple[float, float, float]:
    tanh = make.tanh
    for _ in range(count):
        x, w, b = make(2.0), make(-0.5), make(0.3)
        y = tanh(x * w + b)
        y.backward()
        gradients = x.grad, w.grad, b.grad
    return gradients


def _rosenbrock_of(x: list[Any]) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        t = x[i + 1] - x[i] * x[i]
        s = 1.0 - x[i]
        total = total + (100.0 * t * t + s * s)
    return total


def _rosenbrock_gradient(make: Any, numbers: list[float]) -> list[float]:
    x = [make(number) for number in numbers]
    _rosenbrock_of(x).backward()
    return [leaf.grad for leaf in x]


def _chain_of(y: Any, nodes: int) -> Any:
    for _ in range(nodes // 2):
        y = y * 0.999999 + 1e-6
    return y


# ---- the figures


def _op() -> list[Figure]:
    count = 10_000
    pairs = ((make(1.1), make(1.5)) for make in (float, Value, reference.Value))
    return [_figure("one op, y = x * a", count, *(lambda x=x, a=a: _products(x, a, count) for x, a in pairs))]


def _neuron() -> list[Figure]:
    count = 1_000
    kinds = (lambda make=make: _neuron_gradients(make, count) for make in (Value, reference.Value))
    return [_figure("neuron, 3 gradients", count, lambda: _neurons(math.tanh, 2.0, -0.5, 0.3, count), *kinds)]


def _start(variables: int) -> list[float]:
    rng = np.random.default_rng(7)
    return [float(number) for number in rng.uniform(-1.5, 1.5, variables)]


def _rosenbrock() -> list[Figure]:
    x = _start(1_000)
    kinds = (lambda make=make: _rosenbrock_gradient(make, x) for make in (Value, reference.Value))
    return [_figure("Rosenbrock, n = 1,000, gradient", 1, lambda: _rosenbrock_of(x), *kinds)]


def _chain() -> list[Figure]:
    floats = _fastest([lambda: _chain_of(1.1, NODES)])[0] / NODES
    figures = zip(_chain_phases(Value, NODES), _chain_phases(reference.Value, REFERENCE_NODES), strict=True)
    return [
        Figure(f"chain of {NODES:,}, {phase}", floats, *pair)
        for phase, pair in zip(("build", "backward", "free"), figures, strict=True)
    ]


def _chain_phases(make: Any, nodes: int) -> list[float]:
    """Nanoseconds a node to build a chain, to go back over it and to free it: the fastest of five."""
    rounds = []
    for _ in range(5):
        gc.collect()
        start = time.perf_counter_ns()
        y = _chain_of(make(1.1), nodes)
        built = time.perf_counter_ns()
        y.backward()
        back = time.perf_counter_ns()
        del y
        rounds.append((built - start, back - built, time.perf_counter_ns() - back))
    return [min(phase) / nodes for phase in zip(*rounds, strict=True)]


def _figure(what: str, items: int, *runs: Callable[[], Any]) -> Figure:
    return Figure(what, *(nanoseconds / items for nanoseconds in _fastest(runs)))


def _fastest(runs: Any) -> list[float]:
    """The fastest time of each, in nanoseconds, taken in turn, so that a busy moment meets them all."""
    runs = list(runs)
    best = [math.inf] * len(runs)
    end = time.perf_counter() + SECONDS
    for done in range(1_000):
        if done >= 3 and time.perf_counter() > end:
            break
        for i, run in enumerate(runs):
            start = time.perf_counter_ns()
            run()
            best[i] = min(best[i], time.perf_counter_ns() - start)
    return best


def _check() -> None:
    """The reference agrees to the last bit on what is timed, else the figures mean nothing."""
    x = _start(10)
    for gradient in (lambda make: _neuron_gradients(make, 1), lambda make: _rosenbrock_gradient(make, x)):
        if gradient(Value) != gradient(reference.Value):
            raise RuntimeError("bench: gradients of pygrad and of pygrad.reference differ; run the tests")


def _resident_bytes_a_node() -> float | None:
    """Resident memory that the chain adds, a node; None where there is no /proc."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    before = int(statm.read_text().split()[1])
    y = _chain_of(Value(1.1), NODES)
    y.backward()
    return (int(statm.read_text().split()[1]) - before) * os.sysconf("SC_PAGE_SIZE") / NODES


def _time(nanoseconds: float) -> str:
    unit, scale = next(((u, s) for u, s in (("ms", 1e6), ("us", 1e3)) if nanoseconds >= s), ("ns", 1.0))
    shown = nanoseconds / scale
    return f"{shown:.{0 if shown >= 100 else 1}f} {unit}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.processor() or platform.machine())
