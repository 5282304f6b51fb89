"""The extension: its sources and flags. Everything else is in pyproject.toml.

PYGRAD_DEBUG=1      -O0 -g
PYGRAD_SANITIZE=1   address and undefined-behaviour sanitizers; the heap poisons freed nodes
PYGRAD_COVERAGE=1   gcov counters
PYGRAD_WERROR=1     warnings in csrc are errors (as in CI)
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCES = sorted(str(path) for path in Path("csrc").glob("*.c"))
DEPENDS = sorted(str(path) for pattern in ("*.h", "*.def", "*.inc") for path in Path("csrc").glob(pattern))


def texts() -> str:
    """The directory of emit_texts.h, made by csrc/emit_texts.py, which says why. Written where it changes alone."""
    made = subprocess.run([sys.executable, "csrc/emit_texts.py"], check=True, capture_output=True, text=True).stdout
    header = Path("build/generated/emit_texts.h")
    header.parent.mkdir(parents=True, exist_ok=True)
    if not header.exists() or header.read_text(encoding="utf-8") != made:
        header.write_text(made, encoding="utf-8")
    DEPENDS.append(str(header))
    return str(header.parent)


def flags() -> tuple[list[str], list[str], list[tuple[str, str | None]]]:
    """Compile flags, link flags and macros. Rounding is part of the result: no contraction, no fast-math."""
    if sys.platform == "win32":
        return ["/O2", "/std:c11", "/fp:precise"], [], []
    compile_flags = [
        "-std=c11",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",  # no result depends on it; loops that select vectorise
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
    ]
    link_flags: list[str] = []
    macros: list[tuple[str, str | None]] = []
    if os.environ.get("PYGRAD_DEBUG"):
        compile_flags += ["-O0", "-g"]
    if os.environ.get("PYGRAD_SANITIZE"):
        sanitize = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
        compile_flags += [*sanitize, "-O1", "-g"]
        link_flags += sanitize
    if os.environ.get("PYGRAD_COVERAGE"):
        compile_flags += ["-O1", "--coverage"]
        link_flags.append("--coverage")
    macros.append(("PG_FLAGS", f'"{" ".join(compile_flags)}"'))
    if os.environ.get("PYGRAD_WERROR"):
        compile_flags.append("-Werror")
    return compile_flags, link_flags, macros


compile_flags, link_flags, macros = flags()
core = Extension(
    "pygrad._core",
    ["pygrad/_core.pyx", *SOURCES],
    include_dirs=["csrc", texts(), numpy.get_include()],
    depends=DEPENDS,
    extra_compile_args=compile_flags,
    extra_link_args=link_flags,
    define_macros=macros,
)
# Objects of one set of flags are never taken for another's.
variant = "-".join(
    name for name in ("debug", "sanitize", "coverage", "werror") if os.environ.get(f"PYGRAD_{name.upper()}")
)
build_base = f"build/{variant or 'plain'}"
setup(
    ext_modules=cythonize([core], language_level=3, build_dir=f"{build_base}/cython"),
    options={"build": {"build_base": build_base}},
)
