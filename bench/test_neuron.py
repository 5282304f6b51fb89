"""One neuron, tanh(x * w + b): three new leaves, forward, backward, and the three gradients read.

So short a program is written out, for floats and for libraries with `.backward()`, lest calls of the benchmark's own
outweigh it. Its text is the same for them all.
"""

from conftest import check
from workloads import neuron, size_of


def forward(tanh, numbers, count):
    x, w, b = numbers
    for _ in range(count):
        y = tanh(x * w + b)
    return y


def forward_and_backward(leaf, tanh, numbers, count):
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
        race("neuron", contestant, lambda: forward(contestant.ops.tanh, workload.numbers, count), items=count)
    elif contestant.leaf:
        leaf, tanh = contestant.leaf, contestant.ops.tanh
        race("neuron", contestant, lambda: forward_and_backward(leaf, tanh, workload.numbers, count), items=count)
    else:
        race("neuron", contestant, contestant.ready(workload))
