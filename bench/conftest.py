"""What the benchmarks share: their options, the check of gradients that comes before any timing, and how long to time.

`pytest bench` runs them, `python bench/table.py` makes one table of them. Rows are named by their first column there.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mappers import MAPPERS, Mapper, load_mapper
from peers import CONTESTANTS, Contestant, NotInstalledError, load
from replayers import REPLAYERS, load_replayer
from workloads import SIZES, Workload

SECONDS = {"toy": (0.0, 0.0), "full": (2.0, 0.5)}  # in one row, for floats and pygrad each, and for each other one
FEWEST, MOST = 2, 500  # rounds


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--size", choices=("toy", "full"), default="full", help="of the workloads: see workloads.SIZES")
    parser.addoption("--contestants", default="", help="who takes part, names separated by commas; all without it")
    parser.addoption("--adbench", default=os.environ.get("ADBENCH_DATA"), help="the folder data of microsoft/ADBench")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    asked = metafunc.config.getoption("--contestants")
    for fixture, kinds in (("contestant", CONTESTANTS), ("replayer", REPLAYERS), ("mapper", MAPPERS)):
        if fixture in metafunc.fixturenames:
            names = [name for name in kinds if not asked or name in asked.split(",")]
            metafunc.parametrize(fixture, names, indirect=True)
    if "nodes" in metafunc.fixturenames:
        metafunc.parametrize("nodes", SIZES["chain"][metafunc.config.getoption("--size") == "full"])


@pytest.fixture
def size(request: pytest.FixtureRequest) -> str:
    return request.config.getoption("--size")


@pytest.fixture
def adbench(request: pytest.FixtureRequest) -> Path | None:
    folder = request.config.getoption("--adbench")
    return Path(folder) if folder else None


def loaded(load: Callable[[str], Any], name: str) -> Any:
    try:
        return load(name)
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture
def contestant(request: pytest.FixtureRequest) -> Contestant:
    return loaded(load, request.param)


@pytest.fixture
def replayer(request: pytest.FixtureRequest) -> Contestant:
    return loaded(load_replayer, request.param)


@pytest.fixture
def mapper(request: pytest.FixtureRequest) -> Mapper:
    return loaded(load_mapper, request.param)


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Each test starts with what is alive set aside, so that nobody's collector walks over somebody else's objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def check(contestant: Contestant, workload: Workload, found: tuple[float, Any] | None = None) -> None:
    """Value and gradient against pygrad's, before anything is timed; Python floats have a value only."""
    value, gradient = found or contestant.ready(workload)()
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


@pytest.fixture
def replay(benchmark: Any, size: str) -> Callable[..., Any]:
    """Sets up with ready(), which gives what is timed, and has the first result checked; then times it, as `race` does.

    What else the tables of programs need goes along as `info`. Set-up is all until the first result is there.
    """

    def replay(
        table: str, row: str, name: str, ready: Callable[[], Callable[[], Any]], check: Callable[[Any], None],
        **info: Any,
    ) -> Any:  # fmt: skip
        try:
            start = time.perf_counter()
            run = ready()
            found = run()
            setup = time.perf_counter() - start
        except NotInstalledError as error:
            pytest.skip(str(error))
        check(found)
        benchmark.group = f"{table}: {row}"
        benchmark.extra_info.update(table=table, row=row, contestant=name, setup=setup, **info)
        gc.collect()
        start = time.perf_counter()
        run()
        once = time.perf_counter() - start
        calls = 1 if size == "toy" else max(1, round(1e-3 / once))
        seconds = SECONDS[size][not name.startswith("pygrad")]
        rounds = int(min(max(seconds / (calls * once), 5 if size == "full" else FEWEST), MOST))
        benchmark.pedantic(run, rounds=rounds, iterations=calls)
        return run

    return replay
