"""Where each row of the op table is sampled: points of its domain, its edges, and operands that IEEE 754 makes special.

Owns the reading of a row's domain and the points. Next: test_table.py, which evaluates rows there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from pygrad.ops import Row

INF, NAN, TINY, HUGE, NORMAL = math.inf, math.nan, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308


class Interval(NamedTuple):
    """One operand's domain: `low` to `high`, without the excluded points; of integers alone where `integers`."""

    low: float
    high: float
    excluded: tuple[float, ...] = ()
    integers: bool = False

    def __contains__(self, x: object) -> bool:
        assert isinstance(x, float)
        inside = self.low <= x <= self.high and x not in self.excluded and math.isfinite(x)
        return inside and (not self.integers or x == math.floor(x))


def interval(text: str) -> Interval:
    """The interval of a domain's text: R, R\\0, N, or bounds in brackets, round where the bound is excluded.

    >>> interval("(0, inf)")
    Interval(low=0.0, high=inf, excluded=(0.0, inf), integers=False)
    """
    named = {"R": Interval(-INF, INF), "R\\0": Interval(-INF, INF, (0.0,)), "N": Interval(0.0, INF, (), True)}
    if text in named:
        return named[text]
    low, high = (float(bound) for bound in text[1:-1].split(","))
    excluded = tuple(bound for bound, edge in ((low, text[0]), (high, text[-1])) if edge in "()")
    return Interval(low, high, excluded)


def in_domain(row: Row, operands: tuple[float, ...]) -> bool:
    return all(x in interval(text) for x, text in zip(operands, row.domain, strict=True))


SPECIALS = [
    0.0, -0.0, TINY, -TINY, NORMAL, -NORMAL, 1e-160, -1e-9, 1e-8, 0.25, -0.25, 0.5, -0.5, 0.625, 0.75, 1 - 2**-53, 1.0,
    -1.0, 1 + 2**-52, -1 - 2**-52, 1.5, -1.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, 7.0, 26.6, -26.7, 38.0, -40.0, 170.0,
    -710.0, 710.0, 745.2, -745.2, 1024.0, -1075.0, 2.0**53, -1e16, 1e155, -1e200, 1e308, HUGE, -HUGE, INF, -INF, NAN,
]  # fmt: skip
FEW_SPECIALS = [0.0, -0.0, TINY, 0.5, -1.0, 1.0, 2.0, -3.0, 710.0, 1e200, -HUGE, INF, -INF, NAN]


def special_operands(row: Row) -> Iterator[tuple[float, ...]]:
    """Every combination of special numbers, in the domain or not."""
    return product(SPECIALS if row.arity < 3 else FEW_SPECIALS, repeat=row.arity)


# Points that a random draw would miss: roots of values and gradients, where a formula changes branch, and overflow.
NEAR: dict[str, tuple[float, ...]] = {
    "sinh": (710.47,), "cosh": (710.47,), "exp": (709.78, -708.4, -745.1), "expm1": (709.78, -36.0),
    "tanh": (0.7331685343967135, -0.7331685343967135, 19.0, 350.0), "log": (1.0,), "log2": (1.0, 2.0),
    "log10": (1.0, 10.0), "log1p": (0.0,), "acosh": (1.0, 2.0), "atanh": (0.5, -0.5), "asinh": (1.0,),
    "sinc": (1.0, 0.25),
    "erf": (0.84375,), "erfc": (0.84375, 26.5, 27.2), "erfcx": (-0.5, 0.5, 1.5, 3.0, 5.0, -26.6),
    "gaussian": (26.4, 26.6, 27.2), "norm_pdf": (37.4, 37.6, 38.5), "ndtr": (-37.4, -37.6, -38.4, 0.0),
    "log_ndtr": (-1.0, 0.0, -37.5, 8.3, 37.5), "gamma": (1.0, 2.0, 7.0, 23.0, 1.4616321449683622, 171.5),
    "lgamma": (1.0, 2.0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 7.0, 1.4616321449683622),
    "digamma": (1.4616321449683622, 1.0, 3.0, 7.0), "gelu": (-0.7517915251953, -37.5),
    "silu": (-1.2784645427610738, -709.0),
    "sigmoid": (-709.8, -744.0, 36.7), "logsigmoid": (-36.7, 744.0), "softplus": (36.7, -744.0),
    "exp2": (1023.9, -1022.0, -1074.0), "sin": (math.pi, 3e5), "cos": (math.pi / 2, 11.0),
    "tan": (math.pi / 2, math.pi),
    "asin": (0.5, 1.0, -1.0), "acos": (0.5, 1.0, -1.0), "cbrt": (1.0,), "sqrt": (1.0,),
}  # fmt: skip
ORDERS = {"sinc_derivative": 6, "ierfcx": 6, "polygamma": 4}  # N: the largest order that is sampled


def spread(rng: random.Random, low: int = -1022, high: int = 1023) -> float:
    """A float whose exponent is uniform over the range, of either sign."""
    return math.copysign(math.ldexp(rng.uniform(0.5, 1.0), rng.randint(low + 1, high)), rng.random() - 0.5)


def draw(rng: random.Random, domain: Interval, near: tuple[float, ...], highest: int) -> float:
    """A point of an interval: of any exponent, moderate, close to an edge or close to one of the points `near`."""
    if domain.integers:
        return float(rng.randint(0, highest))
    edges = [x for x in (domain.low, domain.high) if math.isfinite(x)]
    while True:
        kind = rng.random()
        if kind < 0.3:
            x = spread(rng)
        elif kind < 0.45:
            x = spread(rng, -30, 10)
        elif kind < 0.6 or not (near or edges):
            x = rng.uniform(-1, 1) * rng.choice([1.5, 4, 40, 700])
        else:
            centre = rng.choice([*near, *edges])
            step = 2.0 ** rng.uniform(-53, 0) * (abs(centre) or 1.0)
            x = centre + math.copysign(step, rng.random() - 0.5)
        if x in domain and math.isfinite(x):
            return x


def samples(row: Row, count: int, seed: int = 0) -> list[tuple[float, ...]]:
    """`count` points of a row's domain. Operands are zero or normal numbers, drawn apart or close to each other."""
    rng = random.Random(f"{row.name} {seed}")
    domains = [interval(text) for text in row.domain]
    near = NEAR.get(row.name, ())
    found = []
    while len(found) < count:
        point = [draw(rng, domain, near, ORDERS.get(row.name, 0)) for domain in domains]
        if row.arity > 1 and not domains[0].integers and rng.random() < 0.4:
            close = point[0] * (1 + rng.choice([-1, 1]) * 2.0 ** rng.uniform(-52, 1)) * rng.choice([1, -1])
            scale = 2.0 ** rng.randint(-60, 60)
            point[rng.randrange(1, row.arity)] = rng.choice([close, close * scale])
        if row.arity > 1 and rng.random() < 0.3:
            point = [rng.choice([x, rng.uniform(-3, 3), float(rng.randint(-9, 9))]) if not d.integers else x
                     for x, d in zip(point, domains, strict=True)]  # fmt: skip
        operands = tuple(float(x) for x in point)
        if in_domain(row, operands) and all(x == 0 or abs(x) >= NORMAL for x in operands):
            found.append(operands)
    return found
