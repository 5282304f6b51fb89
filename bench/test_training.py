"""The step of micrograd's demo on two moons, batch 100: value and 337 derivatives."""

from conftest import check
from workloads import moons


def test_training(race, contestant, size):
    workload = moons(size)
    check(contestant, workload)
    race("training", contestant, contestant.ready(workload))
