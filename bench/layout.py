"""How tables look: times with their units, columns aligned, the machine below."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version


def seconds(nanoseconds: float) -> str:
    units = (("s", 1e9), ("ms", 1e6), ("us", 1e3))
    unit, scale = next(((u, s) for u, s in units if nanoseconds >= s), ("ns", 1.0))
    shown = nanoseconds / scale
    return f"{shown:.{0 if shown >= 100 else 1 if shown >= 10 else 2}f} {unit}"


def ratio(x: float) -> str:
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:,.0f}"


def aligned(cells: list[list[str]]) -> list[str]:
    """Rows of a table, the first of them its head: labels to the left, all else to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for label, *numbers in cells:
        right = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([label.ljust(widths[0]), *right]))
    return [lines[0].rstrip(), "-" * len(lines[0]), *(line.rstrip() for line in lines[1:])]


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as cpuinfo:
            cpu = next((line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")), cpu)
    parts = [f"{cpu}, {os.cpu_count()} cores", platform.platform(terse=True), f"Python {platform.python_version()}"]
    return "; ".join([*parts, f"NumPy {version('numpy')}", f"pygrad {version('pygrad')}"])
