"""The command line: `python -m pygrad [tour|bench|ops|info]`. Owns the layout; what it shows is the library's."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="pygrad", description="An autograd core for the CPU. Without a command: a tour in under ten seconds."
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("tour", help="a neuron, its chain rule spelled out, and a classifier trained on real data")
    commands.add_parser("bench", help="quick figures on this machine, against Python floats and the reference")
    ops = commands.add_parser("ops", help="the op table: value, gradients, domain, kinks")
    ops.add_argument("names", nargs="*", help="rows to show, by name or alias; all where none is given")
    ops.add_argument("--markdown", action="store_true", help="as docs/ops.md has it")
    commands.add_parser("info", help="version, build flags, NumPy, CPU features in use")
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "bench":
            from pygrad import bench

            bench.main()
        elif arguments.command == "ops":
            return _ops(arguments.names, arguments.markdown)
        elif arguments.command == "info":
            _info()
        else:
            from pygrad import tour

            tour.main(width())
    except BrokenPipeError:  # the reader of a pipe has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def width() -> int:
    """Columns to fill: the terminal's, within reason; 80 into a pipe."""
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 100)) if sys.stdout.isatty() else 80


def _ops(names: list[str], markdown: bool) -> int:
    from pygrad import ops

    unknown = [name for name in names if name not in ops.FUNCTIONS]
    if unknown:
        print(f"pygrad ops: no op is called {', '.join(unknown)}; `pygrad ops` lists them", file=sys.stderr)
        return 2
    if markdown:
        print(ops.markdown(), end="")
    elif names:
        print("\n\n".join(ops.describe(ops.TABLE[ops.ALIASES.get(name, name)]) for name in names))
    else:
        print(ops.text(width()))
    return 0


def _info() -> None:
    import numpy

    import pygrad
    from pygrad import _core

    regions, nodes = _core.heap_stats()
    rows = {
        "pygrad": pygrad.__version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "NumPy": numpy.__version__,
        "machine": f"{platform.machine()}, {platform.system()}, {os.cpu_count()} CPUs",
        "compiler": _core.build_info()["compiler"],
        "C flags": _core.build_info()["flags"],
        "CPU features in use": "the compiler's baseline; libm chooses its own at run time",
        "node": f"{_core.build_info()['node_bytes']} bytes",
        "ops": f"{len(pygrad.ops.TABLE)} rows, {len(pygrad.ops.ALIASES)} aliases",
        "heap": f"{regions} regions of 2 MiB, {nodes} nodes alive",
    }
    for name, value in rows.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    sys.exit(main())
