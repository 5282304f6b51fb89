"""C source compiled and loaded: `build` makes a Python function of what `Program.to_c` gives.

Owns the search for a compiler, its flags and the cache of libraries; knows no ops. The source is csrc/emit_c.c's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pygrad._core import Program
from pygrad.errors import CompilerError

__all__ = ["attach", "build", "cache_directory", "compiler"]

FLAGS = ["-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
"""Rounding is part of the result: no contraction, no fast-math. With vectors a compiler does the same operations."""


def compiler() -> list[str]:
    """The command of the C compiler: $CC, what built Python, cc, gcc or clang; CompilerError if there is none."""
    wanted = [os.environ.get("CC") or "", sysconfig.get_config_var("CC") or "", "cc", "gcc", "clang"]
    commands = [shlex.split(text) for text in wanted if text.strip()]
    for command in commands:
        if shutil.which(command[0]):
            return command
    looked = ", ".join(dict.fromkeys(command[0] for command in commands))
    raise CompilerError(f"build: no C compiler was found; looked for {looked}. Install one, or set CC to its command")


def cache_directory() -> Path:
    """Where libraries are kept: $PYGRAD_CACHE, or `pygrad` in the user's cache directory. It may be deleted."""
    chosen = os.environ.get("PYGRAD_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pygrad"


def build(source: str, name: str) -> Callable[[list[float]], list[float] | int]:
    """The function `name` of emitted source, compiled and loaded: run(inputs) gives what Program.run does.

    The outputs as a list, or the number of the first guard that did not hold. It runs without the GIL, in any number of
    threads. A library is kept by what made it: source, flags, compiler. CompilerError where there is no compiler, or
    where it fails.
    """
    function, inputs, outputs, work = _function(source, name)

    def run(numbers: list[float]) -> list[float] | int:
        if len(numbers) != inputs:
            raise ValueError(f"{name}: needs {inputs} numbers, found {len(numbers)}")
        given = array("d", numbers)
        results = (ctypes.c_double * outputs)()
        arguments = [(ctypes.c_double * inputs).from_buffer(given) if inputs else None, results]
        if work:
            arguments.append((ctypes.c_double * work)())
        failed: int = function(*arguments)
        return results[:] if failed < 0 else failed

    run.__name__ = run.__qualname__ = name
    return run


def _function(source: str, name: str) -> tuple[Any, int, int, int]:
    """The function of a library, and its counts: inputs, outputs, and doubles to work in, which it takes if any."""
    library = _loaded(source, [*compiler(), *FLAGS])
    inputs, outputs, _, work = (ctypes.c_size_t * 4).in_dll(library, f"{name}_counts")
    function = getattr(library, f"{name}_with" if work else name)
    function.restype = ctypes.c_int
    return function, inputs, outputs, work


MOST_INSTRUCTIONS = 50_000
"""Of a program that is attached: longer code no longer fits the processor's caches, and runs slower than a replay."""


def attach(program: Program) -> bool:
    """From now on `program` runs as compiled C, with the same results; False where it is too long to gain by that.

    Raises as build does.
    """
    if program.stats()["instructions"] > MOST_INSTRUCTIONS:
        return False
    function, _, _, work = _function(program.to_c("program"), "program")
    program.use_native(ctypes.cast(function, ctypes.c_void_p).value or 0, work, function)
    return True


def _loaded(source: str, command: list[str]) -> ctypes.CDLL:
    made_by = "\0".join([source, *command, _version(command[0]), platform.machine(), platform.system()])
    key = hashlib.sha256(made_by.encode()).hexdigest()[:32]
    try:
        directory = cache_directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK):
            raise PermissionError
    except (OSError, RuntimeError):  # no home, or not to be written: for this process alone
        with tempfile.TemporaryDirectory(prefix="pygrad-") as temporary:
            path = Path(temporary) / f"{key}.so"
            _compile(source, command, path)
            return ctypes.CDLL(str(path))
    path = directory / f"{key}.so"
    if path.exists():
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            path.unlink(missing_ok=True)  # not whole, or of another system: made anew
    _compile(source, command, path)
    return ctypes.CDLL(str(path))


def _version(compiler: str) -> str:
    asked = subprocess.run([compiler, "--version"], capture_output=True, text=True, errors="replace", check=False)
    return f"{shutil.which(compiler)} {asked.stdout}"


def _compile(source: str, command: list[str], library: Path) -> None:
    """Made beside the library, and then put into its place at once: another process sees all or nothing."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=library.parent) as temporary:
        code, made = Path(temporary) / "program.c", Path(temporary) / "program.so"
        code.write_text(source, encoding="utf-8")
        whole = [*command, "-o", str(made), str(code), "-lm"]
        ran = subprocess.run(whole, capture_output=True, text=True, errors="replace", check=False)
        if ran.returncode or not made.exists():
            said = (ran.stderr or ran.stdout).strip() or f"exit status {ran.returncode}, without a message"
            raise CompilerError(f"build: the C compiler failed.\n{shlex.join(whole)}\n{said[:4000]}")
        os.replace(made, library)
