"""One op in a loop, forward only: y = x * a over two leaves, and what recording it adds to Python's own product."""

import pytest
from conftest import check
from workloads import op, size_of


def test_op(race, contestant, size):
    if not contestant.steps:
        pytest.skip(f"{contestant.name}: has no forward of its own")
    check(contestant, op("toy"))
    workload = op(size)
    race("op", contestant, lambda: contestant.record(workload), items=size_of("op", size))
