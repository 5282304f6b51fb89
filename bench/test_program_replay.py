"""Programs made once and replayed, one input at a time: value and gradient, and what setting up takes."""

import pytest
from conftest import check
from workloads import WORKLOADS

ROWS = {"rosen": "rosenbrock", "path": "path", "lorenz": "lorenz", "moons": "training"}


@pytest.mark.parametrize("name", ROWS)
def test_replay(replay, replayer, benchmark, name, size):
    workload = WORKLOADS[name](size)
    ready = lambda: replayer.ready(workload)  # noqa: E731
    run = replay("replay", ROWS[name], replayer.name, ready, lambda found: check(replayer, workload, found))
    if hasattr(run, "instructions"):
        benchmark.extra_info["instructions"] = run.instructions
