"""The Lorenz system by RK4 over 1,000 steps: the last x and its six derivatives."""

from conftest import check
from workloads import lorenz


def test_lorenz(race, contestant, size):
    workload = lorenz(size)
    check(contestant, workload)
    race("lorenz", contestant, contestant.ready(workload))
