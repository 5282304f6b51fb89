"""One Monte-Carlo path of 252 steps with Greeks: value and seven derivatives."""

from conftest import check
from workloads import path


def test_path(race, contestant, size):
    workload = path(size)
    check(contestant, workload)
    race("path", contestant, contestant.ready(workload))
