"""A chain of a million nodes and more: building it, going back over it, freeing it, and its resident bytes a node.

Figures are per node, so that slower contestants may run a shorter chain (their `longest_chain`). pygrad runs every
length: a figure that holds from one to ten million says that the cost is linear. Bytes are measured in a process of its
own: this file, run as a script.
"""

import gc
import os
import subprocess
import sys

import pytest
from conftest import check
from peers import load
from workloads import chain, size_of


@pytest.fixture
def length(contestant, nodes, size):
    """How long a chain this contestant builds where `nodes` are asked for."""
    if not contestant.steps:
        pytest.skip(f"{contestant.name}: no steps of its own")
    if nodes > size_of("chain", size)[0] and contestant.name not in ("floats", "pygrad"):
        pytest.skip(f"{contestant.name}: runs the shortest chain alone")
    return min(nodes, contestant.longest_chain)


def test_build(race, contestant, nodes, length):
    check(contestant, chain(100))
    workload, kept = chain(length), []
    race(f"chain build {nodes}", contestant, lambda: kept.append(contestant.record(workload)), length, kept.clear)


def test_backward(race, contestant, nodes, length):
    if contestant.name == "floats":
        pytest.skip("floats: no backward")
    workload, kept = chain(length), []

    def setup():
        kept.clear()
        kept.append(contestant.record(workload))

    race(f"chain backward {nodes}", contestant, lambda: contestant.backward(kept[0]), length, setup)


def test_free(race, contestant, nodes, length):
    if contestant.name == "floats":
        pytest.skip("floats: nothing to free")
    workload, kept = chain(length), []

    def setup():
        kept.append(contestant.record(workload))
        contestant.backward(kept[0])

    def run():
        kept.clear()
        contestant.release()

    race(f"chain free {nodes}", contestant, run, length, setup)


def test_bytes(benchmark, contestant, nodes, length):
    if contestant.name == "floats":
        pytest.skip("floats: no nodes")
    command = [sys.executable, __file__, contestant.name, str(length)]
    out = benchmark.pedantic(lambda: subprocess.run(command, check=True, capture_output=True, text=True), rounds=1)
    benchmark.group = f"chain bytes {nodes}"
    benchmark.extra_info.update(row=benchmark.group, contestant=contestant.name, bytes=float(out.stdout))


def resident():
    """Bytes of this process that are in memory; where there is no /proc, the most that ever were."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def bytes_a_node(name, nodes):
    """Resident bytes that a chain adds, after its backward; a short one has run before, so that nothing else is new."""
    contestant = load(name)
    contestant.ready(chain(100))()
    gc.collect()
    before = resident()
    workload = chain(nodes)
    graph = contestant.record(workload)
    contestant.backward(graph)
    return (resident() - before) / nodes


if __name__ == "__main__":
    print(bytes_a_node(sys.argv[1], int(sys.argv[2])))
