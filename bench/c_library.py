"""bench/c/*.c as shared libraries: finds a C compiler, builds, loads by ctypes. Knows no workload.

What is built lies in a temporary folder, one build a process.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from peers import NotInstalledError

HERE = Path(__file__).parent / "c"
FLAGS = ["-std=c11", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]


def compiler() -> str:
    """gcc, or what cc is."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        raise NotInstalledError("no C compiler is found, neither gcc nor cc")
    return found


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="pygrad-bench-")


def build(source: Path, *flags: str) -> Path:
    """The shared library of a C file."""
    library = Path(_folder().name) / f"{source.stem}.so"
    command = [compiler(), *FLAGS, *flags, "-I", str(HERE), str(source), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    return library


def function(name: str, *flags: str) -> Any:
    """The function of the same name in bench/c/<name>.c; NotInstalledError where there is none."""
    source = HERE / f"{name}.c"
    if not source.exists():
        raise NotInstalledError(f"{name}: not written in C by hand")
    return getattr(ctypes.CDLL(str(build(source, *flags))), name)


def pointer(array: Any) -> Any:
    return ctypes.c_void_p(array.ctypes.data)
