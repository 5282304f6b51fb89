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


@pytest.fixture(scope="module")
def objects(tmp_path_factory) -> tuple[list[str], list[str]]:
    """The plain files compiled once, under the sanitizers where the compiler has them: (command, objects)."""
    directory = tmp_path_factory.mktemp("plain")
    texts = subprocess.run([sys.executable, ROOT / "csrc/emit_texts.py"], check=True, capture_output=True, text=True)
    (directory / "emit_texts.h").write_text(texts.stdout)
    command = [compiler(), *FLAGS, "-I", str(ROOT / "csrc"), "-I", str(directory)]
    (directory / "try.c").write_text("int main(void) { return 0; }\n")
    tried = subprocess.run([*command, *SANITIZE, str(directory / "try.c"), "-o", str(directory / "try")], check=False)
    if tried.returncode == 0:
        command += SANITIZE
    subprocess.run([*command, "-c", *plain_sources()], check=True, cwd=directory)
    return command, [str(path) for path in sorted(directory.glob("*.o"))]


def built(name: str, objects: tuple[list[str], list[str]], directory: Path) -> str:
    command, compiled = objects
    program = str(directory / name)
    subprocess.run([*command, str(ROOT / f"tests/c/{name}.c"), *compiled, "-o", program, "-lm"], check=True)
    return program


def assert_ok(*command: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert ran.stdout.strip() == "ok" and ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "tests/c").glob("*.c")))
def test_plain_c(name, objects, tmp_path):
    assert_ok(built(name, objects, tmp_path))


def test_emitted_regions(objects, tmp_path):
    """Sources of loops and conditions, made and drawn, compiled as C99 without a warning: the bits of evaluation."""
    made = tmp_path / "made"
    made.mkdir()
    assert_ok(built("test_emit_regions", objects, tmp_path), str(made))
    sources = sorted(str(path) for path in made.glob("*.c"))
    assert len(sources) > 40
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([compiler(), *flags, *sources, "-o", str(tmp_path / "run"), "-lm"], check=True)
    assert_ok(str(tmp_path / "run"))
