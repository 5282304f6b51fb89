"""Random graphs over every op, built the same way on either engine. Drawn from a seed, so that one number names a case.

A graph has a few leaves (some frozen), nodes that share operands freely, constants on either side, n-ary nodes, and a
root that sees most of it.
"""

from __future__ import annotations

import random
from typing import Any

from pygrad.ops import TABLE

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324]
ORDERS = {"sinc_derivative", "ierfcx", "polygamma"}  # whose operand 0 is the order of a derivative
ROWS = sorted(TABLE)


def number(rng: random.Random) -> float:
    kind = rng.random()
    if kind < 0.05:
        return rng.choice(SPECIAL)
    if kind < 0.15:
        return rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-8, 8)
    return rng.uniform(-3, 3)


def plan(seed: int) -> list[tuple[Any, ...]]:
    """The steps of a graph: ("leaf", number, requires_grad), ("n-ary", name, operands) or (row, operands).

    An operand is ("node", index) or ("constant", number).
    """
    rng = random.Random(seed)
    steps: list[tuple[Any, ...]] = [
        ("leaf", number(rng), k == 0 or rng.random() < 0.8) for k in range(rng.randint(1, 4))
    ]

    def operand() -> tuple[str, Any]:
        if rng.random() < 0.2:
            return ("constant", number(rng))
        recent = rng.random() < 0.6
        return ("node", rng.randrange(max(0, len(steps) - 4) if recent else 0, len(steps)))

    for _ in range(rng.randint(1, 14)):
        if rng.random() < 0.08:
            name = rng.choice(["sum", "dot"])
            count = 2 * rng.randint(1, 3)
            steps.append(("n-ary", name, [operand() for _ in range(count)]))
            continue
        name = rng.choice(ROWS)
        operands = [operand() for _ in range(TABLE[name].arity)]
        if name in ORDERS:
            operands[0] = ("constant", float(rng.randint(0, 4)))
        if all(kind == "constant" for kind, _ in operands):
            operands[-1] = ("node", rng.randrange(len(steps)))
        steps.append((name, operands))
    steps.append(("n-ary", "sum", [("node", k) for k in range(len(steps)) if rng.random() < 0.7] or [("node", 0)]))
    return steps


def build(steps: list[tuple[Any, ...]], engine: Any, leaves: dict[int, Any] | None = None) -> list[Any]:
    """The nodes of a plan on an engine, one a step; some leaves may be given, by step."""
    nodes: list[Any] = []
    for name, *rest in steps:
        if leaves and len(nodes) in leaves:
            nodes.append(leaves[len(nodes)])
            continue
        if name == "leaf":
            nodes.append(engine.Value(rest[0], requires_grad=rest[1]))
            continue
        operands = [nodes[x] if kind == "node" else x for kind, x in rest[-1]]
        if name == "n-ary" and rest[0] == "sum":
            nodes.append(engine.sum(operands))
        elif name == "n-ary":
            half = len(operands) // 2
            nodes.append(engine.dot(operands[:half], operands[half:]))
        else:
            nodes.append(engine.function(name)(*operands))
    return nodes


def sign_of_nan_matters(steps: list[tuple[Any, ...]], nodes: list[Any]) -> bool:
    """Whether a copysign takes the sign of a nan, which IEEE 754 leaves open: see contract.py."""
    for name, *rest in steps:
        if name == "copysign":
            kind, x = rest[-1][1]
            sign = nodes[x].data if kind == "node" and not isinstance(nodes[x], float) else x
            if kind == "node" and isinstance(nodes[x], float):
                sign = nodes[x]
            if sign != sign:
                return True
    return False
