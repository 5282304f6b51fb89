"""The C files that know no Python link alone, without a warning, and pass tests/c under the sanitizers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLAGS = ["-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Werror"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def compiler() -> str:
    """The compiler that built Python, where it is here; else `cc`."""
    return next(
        name for name in [(sysconfig.get_config_var("CC") or "cc").split()[0], "cc", "gcc"] if shutil.which(name)
    )


def plain_sources() -> list[str]:
    return [str(path) for path in sorted((ROOT / "csrc").glob("*.c")) if not path.name.startswith("py_")]


def test_plain_c_knows_no_python():
    for path in (ROOT / "csrc").glob("*.[ch]"):
        if not path.name.startswith("py_"):
            assert "Python.h" not in path.read_text() and '"py_' not in path.read_text(), path.name


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "tests/c").glob("*.c")))
def test_plain_c(name, tmp_path):
    program = tmp_path / "plain"
    texts = subprocess.run([sys.executable, ROOT / "csrc/emit_texts.py"], check=True, capture_output=True, text=True)
    (tmp_path / "emit_texts.h").write_text(texts.stdout)
    command = [compiler(), *FLAGS, "-I", str(ROOT / "csrc"), "-I", str(tmp_path), str(ROOT / f"tests/c/{name}.c")]
    command += plain_sources()
    sanitized = subprocess.run([*command, *SANITIZE, "-o", str(program), "-lm"], capture_output=True, text=True)
    if sanitized.returncode:  # a compiler without sanitizer libraries
        subprocess.run([*command, "-o", str(program), "-lm"], check=True)
    ran = subprocess.run([str(program)], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert ran.stdout.strip() == "ok" and ran.returncode == 0, ran.stdout + ran.stderr
