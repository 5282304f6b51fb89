"""The tables of programs, from what pytest-benchmark reports: `make bench-programs`, or table.py --programs.

Every figure is the fastest round. Owns the layout; what is timed is in test_program_*.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batches import BATCHES
from layout import aligned, seconds
from mappers import MAPPERS
from replayers import REPLAYERS
from workloads import size_of

Rows = list[tuple[dict[str, Any], float]]  # what a benchmark noted, and the nanoseconds of a call


def tables(benchmarks: list[dict[str, Any]], size: str) -> list[str]:
    """All that have a row, one after the other."""
    found: Rows = [(b["extra_info"], b["stats"]["min"] * 1e9) for b in benchmarks if "table" in b["extra_info"]]
    lines: list[str] = []
    for name, make in _TABLES.items():
        if rows := [row for row in found if row[0]["table"] == name]:
            lines += [*make(rows, size), ""]
    return lines[:-1]


def _replay(rows: Rows, size: str) -> list[str]:
    labels = {
        "rosenbrock": f"Rosenbrock, n = {size_of('rosen', size):,}",
        "path": f"path of {size_of('path', size)} steps, 7 Greeks",
        "lorenz": f"Lorenz by RK4, {size_of('lorenz', size):,} steps",
        "training": f"two moons, batch {size_of('moons', size)}",
    }
    title = "One input at a time: value and gradient"
    return _race(title, rows, labels, list(REPLAYERS), "an instruction", lambda info: 1)


def _batch(rows: Rows, size: str) -> list[str]:
    labels = {name: f"{name}, one {_unit(rows, name)}" for name in BATCHES}
    title = "Batches: values and derivatives of each lane (of gmm: of the sum)"
    return _race(title, rows, labels, list(MAPPERS), "an instruction and lane", lambda info: info["lanes"])


def _unit(rows: Rows, name: str) -> str:
    return next((f"{info['unit']} of {info['lanes']:,}" for info, _ in rows if info["row"] == name), "lane")


def _race(
    title: str, rows: Rows, labels: dict[str, str], order: list[str], instruction: str, share: Callable[[Any], int]
) -> list[str]:
    """Time, time an instruction of pygrad's program, and set-up of each contestant: three tables of one shape."""
    names = [name for name in order if any(info["contestant"] == name for info, _ in rows)]
    times = {(info["row"], info["contestant"]): nanoseconds / share(info) for info, nanoseconds in rows}
    setups = {(info["row"], info["contestant"]): info["setup"] * 1e9 for info, _ in rows}
    counts = {info["row"]: info["instructions"] for info, _ in rows if "instructions" in info}
    keys = [key for key in labels if any(place[0] == key for place in times)]

    def made(show: Callable[[str, str], str]) -> list[list[str]]:
        return [[labels[key], f"{counts.get(key, 0):,}", *(show(key, name) for name in names)] for key in keys]

    def time(key: str, name: str) -> str:
        return seconds(times[key, name]) if (key, name) in times else ""

    def one(key: str, name: str) -> str:
        return f"{times[key, name] / counts[key]:.2f}" if (key, name) in times and key in counts else ""

    def setup(key: str, name: str) -> str:
        return seconds(setups[key, name]) if (key, name) in setups else ""

    head = ["instructions", *names]
    lines = aligned([[title, *head], *made(time)])
    lines += ["", *aligned([[f"ns {instruction} of pygrad's", *head], *made(one)])]
    return [*lines, "", *aligned([["set-up: capture or compile, first call", *head], *made(setup)])]


def _capture(rows: Rows, size: str) -> list[str]:
    cells = [["Capture of Rosenbrock, value and gradient", "instructions", "time", "us an instruction"]]
    for info, nanoseconds in rows:
        count = info["instructions"]
        cells.append(
            [f"{info['row']} asked for", f"{count:,}", seconds(nanoseconds), f"{nanoseconds / count / 1e3:.2f}"]
        )
    return aligned(cells)


def _one_lane(rows: Rows, size: str) -> list[str]:
    head = ["lists", "arrays", "ns an instruction: lists", "arrays", "arrays, less an empty call"]
    cells = [["One lane", "instructions", *head]]
    times = {(info["row"], info["what"]): nanoseconds for info, nanoseconds in rows}
    counts = {info["row"]: info["instructions"] for info, _ in rows}
    for row in sorted(counts, key=lambda row: row.rsplit(" ", 1)[0]):
        count, lists, arrays, empty = counts[row], *(times[row, what] for what in ("lists", "arrays", "empty"))
        each = [f"{nanoseconds / count:.2f}" for nanoseconds in (lists, arrays, arrays - empty)]
        cells.append([row.rsplit(" ", 1)[0], f"{count:,}", seconds(lists), seconds(arrays), *each])
    return aligned(cells)


def _lanes(rows: Rows, size: str) -> list[str]:
    cells = [["Lanes, a tenth of them exp", "instructions", "lanes", "ns an instruction and lane"]]
    for info, nanoseconds in sorted(rows, key=lambda row: (row[0]["threads"], row[0]["length"])):
        count, lanes = info["instructions"], info["lanes"]
        label = "one thread" if info["threads"] == 1 else f"{info['threads']} threads"
        cells.append([label, f"{count:,}", f"{lanes:,}", f"{nanoseconds / count / lanes:.3f}"])
    return aligned(cells)


def _call(rows: Rows, size: str) -> list[str]:
    cells = [["A call", "instructions", "time"]]
    cells += [[info["row"], f"{info['instructions']:,}", seconds(nanoseconds)] for info, nanoseconds in rows]
    return aligned(cells)


_TABLES: dict[str, Callable[[Rows, str], list[str]]] = {
    "replay": _replay,
    "batch": _batch,
    "capture": _capture,
    "one lane": _one_lane,
    "lanes": _lanes,
    "call": _call,
}
