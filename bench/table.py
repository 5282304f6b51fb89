"""Runs the benchmarks and prints one table of ratios: `make bench`, or `python bench/table.py [--size toy]`.

With --programs those of programs instead (`make bench-programs`): program_tables.py.

An entry is the fastest round of a contestant over the fastest round of Python floats doing the same arithmetic forward
only, in the same run. Below it the machine; absolute times of one machine say little about another. Owns the layout;
what is timed and how is in test_*.py and conftest.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import program_tables
from layout import aligned, machine, ratio, seconds
from mappers import MAPPERS
from peers import CONTESTANTS
from replayers import REPLAYERS
from workloads import size_of

HERE = Path(__file__).parent
NOTES = (
    """
floats: fastest round, forward only. Others: theirs over it, in the same run. Chains: per node; slower
contestants run the first length or a shorter one. Gradients were compared before anything was timed.""",
    """
Fastest rounds, one thread unless a name ends in -2; calls from Python are in the times (of C through ctypes, about
0.5 us). Values and derivatives were compared before anything was timed. c-simd is built with -ffast-math, for exp from
libmvec; all else in C without. A Jacobian of ba leaves out what is zero for every input. Set-up imports nothing.""",
)


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


def run(files: list[str], arguments: argparse.Namespace) -> list[dict]:
    """Runs pytest in this folder, so that the installed pygrad is the one that is timed; NumPy in one thread."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", *files, f"--size={arguments.size}", "-q", "-rs", "--tb=short"]
        command += [f"--contestants={arguments.contestants}", "--benchmark-quiet"]
        command += ["--benchmark-enable", f"--benchmark-json={report}", f"--benchmark-storage=file://{folder}"]
        if arguments.adbench:
            command.append(f"--adbench={os.path.abspath(arguments.adbench)}")
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        environment = {**os.environ, **threads}
        done = subprocess.run(command, cwd=HERE, stdout=sys.stderr, env=environment)  # standard output is for the table
        if done.returncode:
            sys.exit(done.returncode)
        return json.loads(report.read_text())["benchmarks"]


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
    return aligned(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs the benchmarks and prints one table of ratios.")
    parser.add_argument("--size", choices=("toy", "full"), default="full")
    parser.add_argument("--programs", action="store_true", help="compiled functions instead, and their batches")
    parser.add_argument("--contestants", default="", help="names separated by commas; all without it")
    parser.add_argument("--adbench", default="", help="the folder data of microsoft/ADBench, for --programs")
    arguments = parser.parse_args()
    kinds = [*REPLAYERS, *MAPPERS] if arguments.programs else list(CONTESTANTS)
    programs = sorted(path.name for path in HERE.glob("test_program_*.py"))
    files = programs if arguments.programs else sorted({path.name for path in HERE.glob("test_*.py")} - {*programs})
    benchmarks = run(files, arguments)
    make = program_tables.tables if arguments.programs else table
    print("\n".join(make(benchmarks, arguments.size)))
    ran = {benchmark["extra_info"]["contestant"] for benchmark in benchmarks}
    asked = arguments.contestants.split(",") if arguments.contestants else kinds
    missing = [name for name in asked if name not in ran]
    print(NOTES[arguments.programs])
    if missing:
        print("Not installed: " + ", ".join(missing))
    print(machine())


if __name__ == "__main__":
    main()
