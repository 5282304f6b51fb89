"""A multi-layer perceptron in the style of micrograd, trained on two moons. Run: python examples/micrograd.py"""

import math
import random
from itertools import pairwise

from pygrad import Value


class Neuron:
    def __init__(self, inputs, rng, nonlinear=True):
        self.w = [Value(rng.uniform(-1, 1)) for _ in range(inputs)]
        self.b = Value(0)
        self.nonlinear = nonlinear

    def __call__(self, x):
        activation = sum((wi * xi for wi, xi in zip(self.w, x, strict=True)), self.b)
        return activation.relu() if self.nonlinear else activation

    def parameters(self):
        return [*self.w, self.b]


class MLP:
    def __init__(self, sizes, rng):
        last = len(sizes) - 2
        self.layers = [
            [Neuron(n, rng, nonlinear=k < last) for _ in range(m)] for k, (n, m) in enumerate(pairwise(sizes))
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0]

    def parameters(self):
        return [p for layer in self.layers for neuron in layer for p in neuron.parameters()]


def moons(count, rng):
    """Two interleaved half circles with noise: points and labels of -1 and 1."""
    points, labels = [], []
    for k in range(count):
        angle, upper = math.pi * rng.random(), k % 2 == 0
        x, y = math.cos(angle), math.sin(angle)
        points.append([x + rng.gauss(0, 0.1), y + rng.gauss(0, 0.1)] if upper else [1 - x, 0.5 - y])
        labels.append(1 if upper else -1)
    return points, labels


def main(steps=40, count=60):
    rng = random.Random(1337)
    model = MLP([2, 8, 8, 1], rng)
    points, labels = moons(count, rng)
    accuracy = 0.0
    for k in range(steps):
        scores = [model(point) for point in points]
        losses = [(1 + -label * score).relu() for label, score in zip(labels, scores, strict=True)]
        loss = sum(losses) * (1.0 / count) + 1e-4 * sum(p * p for p in model.parameters())
        for p in model.parameters():
            p.grad = 0
        loss.backward()
        rate = 0.5 - 0.45 * k / steps
        for p in model.parameters():
            p.data -= rate * p.grad
        accuracy = sum((score > 0) == (label > 0) for label, score in zip(labels, scores, strict=True)) / count
        if k % 10 == 0 or k == steps - 1:
            print(f"step {k:3}  loss {loss.data:.4f}  accuracy {accuracy:.0%}")
    return accuracy


if __name__ == "__main__":
    main()
