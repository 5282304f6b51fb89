"""The examples run and give what they claim; README, ARCHITECTURE and the files they name agree."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_micrograd_example():
    assert load("micrograd").main(steps=12, count=30) > 0.8


def test_optimize_example():
    found, errors = load("optimize").main(count=100)
    assert abs(found[0] - 0.5) < 4 * errors[0] and abs(found[1] - 0.8) < 4 * errors[1]


def test_greeks_example():
    """Black-Scholes: price 9.41, delta 0.599, vega 38.7, rho 50.4; three standard errors at 2,000 paths."""
    price, greeks = load("greeks").main(paths=2000, steps=4)
    assert price == pytest.approx(9.41, abs=0.95)
    assert greeks["spot"] == pytest.approx(0.599, abs=0.04)
    assert greeks["volatility"] == pytest.approx(38.7, abs=8)
    assert greeks["rate"] == pytest.approx(50.4, abs=3.5)


@pytest.mark.parametrize("how", ["threads", "processes"])
def test_paths_example(how):
    """The same numbers whoever computes them; tests/test_batch.py does it through Dask and MPI."""
    example = load("paths")
    sys.modules[example.__name__] = example  # so that the function is found in a worker
    alone = example.GREEKS.map(example.MARKET, example.simulated(500, 12), threads=1)
    found = example.main(how, paths=500, steps=12, workers=2)
    assert all(np.array_equal(a, b) for a, b in zip(alone, found, strict=True))
    assert found[0].mean() == pytest.approx(10.2, abs=2.0) and found[1].shape == (500, 6)


def test_every_example_is_listed_and_tested():
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    listed = set(re.findall(r"`(\w+)\.py`", (ROOT / "examples" / "README.md").read_text()))
    tested = set(re.findall(r'load\("(\w+)"\)', Path(__file__).read_text()))
    assert names == listed == tested


def test_architecture_names_every_file():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in [*(ROOT / "csrc").glob("*.[ch]"), *(ROOT / "pygrad").glob("*.py"), *(ROOT / "csrc").glob("*.def")]:
        stem = path.stem.removesuffix("_end").removesuffix("_tables")
        assert stem in text, f"ARCHITECTURE.md does not name {path.name}"


def test_links_of_the_docs_exist():
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
