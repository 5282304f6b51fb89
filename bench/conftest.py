"""What the benchmarks share: their options, the check of gradients that comes before any timing, and how long to time.

`pytest bench` runs them, `python bench/table.py` makes one table of them. Rows are named by their first column there.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from peers import CONTESTANTS, Contestant, NotInstalledError, load
from workloads import SIZES, Workload

SECONDS = {"toy": (0.0, 0.0), "full": (2.0, 0.5)}  # in one row, for floats and pygrad each, and for each other one
FEWEST, MOST = 2, 500  # rounds


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--size", choices=("toy", "full"), default="full", help="of the workloads: see workloads.SIZES")
    parser.addoption("--contestants", default=",".join(CONTESTANTS), help="who takes part, names separated by commas")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "contestant" in metafunc.fixturenames:
        names = metafunc.config.getoption("--contestants").split(",")
        metafunc.parametrize("contestant", names, indirect=True)
    if "nodes" in metafunc.fixturenames:
        metafunc.parametrize("nodes", SIZES["chain"][metafunc.config.getoption("--size") == "full"])


@pytest.fixture
def size(request: pytest.FixtureRequest) -> str:
    return request.config.getoption("--size")


@pytest.fixture
def contestant(request: pytest.FixtureRequest) -> Contestant:
    try:
        return load(request.param)
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Each test starts with what is alive set aside, so that nobody's collector walks over somebody else's objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def check(contestant: Contestant, workload: Workload) -> None:
    """Value and gradient against pygrad's, before anything is timed; Python floats have a value only."""
    value, gradient = contestant.ready(workload)()
    expected_value, expected = load("pygrad").ready(workload)()
    largest = max(map(abs, expected))
    assert value == pytest.approx(expected_value, rel=1e-9)
    if contestant.name == "floats":
        return
    if contestant.tolerance:
        bound = contestant.tolerance
        assert list(gradient) == pytest.approx(expected, rel=bound, abs=bound * 1e-3 * largest), contestant.name
    else:
        assert list(gradient) == expected, contestant.name


@pytest.fixture
def race(benchmark: Any, size: str) -> Callable[..., None]:
    """Times `run` for one contestant, in as many rounds as fit; `items` of the row's unit are done by one call."""

    def race(
        row: str, contestant: Contestant, run: Callable[[], Any], items: int = 1, setup: Callable[[], Any] | None = None
    ) -> None:
        benchmark.group = row
        benchmark.extra_info.update(row=row, contestant=contestant.name, items=items)

        def between() -> None:
            gc.collect()
            if setup:
                setup()

        if not contestant.collector:
            gc.disable()
        try:
            start = time.perf_counter()
            between()
            run()  # warms up, too
            once = time.perf_counter() - start
            calls = 1 if setup or size == "toy" else max(1, round(1e-3 / once))
            seconds = SECONDS[size][contestant.name not in ("floats", "pygrad")]
            rounds = int(min(max(seconds / (calls * once), FEWEST), MOST))
            if calls > 1:
                benchmark.pedantic(run, rounds=rounds, iterations=calls)
            else:
                benchmark.pedantic(run, rounds=rounds, setup=between)
        finally:
            gc.enable()

    return race
