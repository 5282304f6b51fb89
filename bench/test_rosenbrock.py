"""Rosenbrock's function of 1,000 variables in a scalar loop: value and 1,000 derivatives."""

from conftest import check
from workloads import rosenbrock


def test_rosenbrock(race, contestant, size):
    workload = rosenbrock(size)
    check(contestant, workload)
    race("rosenbrock", contestant, contestant.ready(workload))
