"""Runs the benchmarks and prints one table of ratios: `make bench`, or `python bench/table.py [--size toy]`.

An entry is the fastest round of a contestant over the fastest round of Python floats doing the same arithmetic forward
only, in the same run. Below it the machine; absolute times of one machine say little about another. Owns the layout;
what is timed and how is in test_*.py and conftest.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from peers import CONTESTANTS
from workloads import size_of

HERE = Path(__file__).parent


def rows(size: str) -> list[tuple[str, str, str]]:
    """(key, label, key of the floats to compare with), from top to bottom."""
    chain = size_of("chain", size)
    return [
        ("op", "one op, y = x * a: forward", "op"),
        ("neuron", "neuron: value, 3 gradients", "neuron"),
        *(
            (f"chain {phase} {n}", f"chain of {n:,}: {phase}", f"chain build {n}")
            for phase in ("build", "backward", "free")
            for n in chain
        ),
        ("training", f"two moons 2-16-16-1, batch {size_of('moons', size)}", "training"),
        ("rosenbrock", f"Rosenbrock, n = {size_of('rosen', size):,}", "rosenbrock"),
        ("path", f"path of {size_of('path', size)} steps, 7 Greeks", "path"),
        ("lorenz", f"Lorenz by RK4, {size_of('lorenz', size):,} steps", "lorenz"),
    ]


def run(size: str, contestants: str) -> list[dict]:
    """Runs pytest in this folder, so that the pygrad that is installed is the one that is timed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", ".", f"--size={size}", f"--contestants={contestants}", "-q"]
        command += ["--benchmark-enable", f"--benchmark-json={report}", f"--benchmark-storage=file://{folder}"]
        command += ["--benchmark-quiet", "--tb=short"]
        done = subprocess.run(command, cwd=HERE, stdout=sys.stderr)  # standard output is for the table
        if done.returncode:
            sys.exit(done.returncode)
        return json.loads(report.read_text())["benchmarks"]


def seconds(nanoseconds: float) -> str:
    unit, scale = next(((u, s) for u, s in (("ms", 1e6), ("us", 1e3)) if nanoseconds >= s), ("ns", 1.0))
    shown = nanoseconds / scale
    return f"{shown:.{0 if shown >= 100 else 1 if shown >= 10 else 2}f} {unit}"


def ratio(x: float) -> str:
    return f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:,.0f}"


def table(benchmarks: list[dict], size: str) -> list[str]:
    times, sizes = {}, {}
    for benchmark in benchmarks:
        info = benchmark["extra_info"]
        place = info["row"], info["contestant"]
        if "bytes" in info:
            sizes[place] = info["bytes"]
        else:
            times[place] = benchmark["stats"]["min"] / info["items"] * 1e9
    names = [name for name in CONTESTANTS if any(contestant == name for _, contestant in times)]
    others = [name for name in names if name != "floats"]
    cells = [["", "floats", *others]]
    for key, label, base in rows(size):
        floats = times.get((base, "floats"))
        if floats is None:
            continue
        found = [ratio(times[key, name] / floats) if (key, name) in times else "" for name in others]
        cells.append([label, seconds(floats), *found])
    for n in size_of("chain", size):
        found = [f"{sizes[place]:,.0f}" if (place := (f"chain bytes {n}", name)) in sizes else "" for name in others]
        cells.append([f"chain of {n:,}: bytes a node", "", *found])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for label, *numbers in cells:
        aligned = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([label.ljust(widths[0]), *aligned]))
    return [lines[0].rstrip(), "-" * len(lines[0]), *(line.rstrip() for line in lines[1:])]


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as cpuinfo:
            cpu = next((line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")), cpu)
    parts = [f"{cpu}, {os.cpu_count()} cores", platform.platform(terse=True), f"Python {platform.python_version()}"]
    return "; ".join([*parts, f"NumPy {version('numpy')}", f"pygrad {version('pygrad')}"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs the benchmarks and prints one table of ratios.")
    parser.add_argument("--size", choices=("toy", "full"), default="full")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS), help="names separated by commas")
    arguments = parser.parse_args()
    benchmarks = run(arguments.size, arguments.contestants)
    print("\n".join(table(benchmarks, arguments.size)))
    ran = {benchmark["extra_info"]["contestant"] for benchmark in benchmarks}
    missing = [name for name in arguments.contestants.split(",") if name not in ran]
    print("\nfloats: fastest round, forward only. Others: theirs over it, in the same run. Chains: per node; slower")
    print("contestants run the first length or a shorter one. Gradients were compared before anything was timed.")
    if missing:
        print("Not installed: " + ", ".join(missing))
    print(machine())


if __name__ == "__main__":
    main()
