"""One neuron, tanh(x * w + b): new leaves, forward, backward, and the three gradients read.

So short a program is written out, for floats and for the libraries with `.backward()`, lest calls outweigh it.
"""

import pytest
from conftest import check
from workloads import neuron, size_of


def floats(tanh, numbers, count):
    x, w, b = numbers
    for _ in range(count):
        y = tanh(x * w + b)
    return y


def nodes(leaf, tanh, numbers, count):
    x0, w0, b0 = numbers
    for _ in range(count):
        x, w, b = leaf(x0), leaf(w0), leaf(b0)
        y = tanh(x * w + b)
        y.backward()
        gradient = x.grad, w.grad, b.grad
    return gradient


def test_neuron(race, contestant, size):
    workload = neuron()
    check(contestant, workload)
    count = size_of("neuron", size)
    if contestant.name == "floats":
        run = lambda: floats(contestant.ops.tanh, workload.numbers, count)  # noqa: E731
    elif contestant.leaf:
        run = lambda: nodes(contestant.leaf, contestant.ops.tanh, workload.numbers, count)  # noqa: E731
    else:
        run, count = contestant.ready(workload), 1
    race("neuron", contestant, run, items=count)


def test_neuron_kept_leaves(race, contestant, size):
    """The same over leaves that are kept, and whose gradients therefore add up; only where a leaf has a .grad."""
    if contestant.name != "floats" and not contestant.leaf:
        pytest.skip(f"{contestant.name}: no leaves with a .grad")
