"""The tour: a neuron, its chain rule, and a classifier of Values trained on Fisher's irises. Plain public API."""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pygrad
from pygrad import Value, reference
from pygrad.explain import explain

HIDDEN = 6
EPOCHS = 60
BATCH = 24
RATE = 0.1
HELD_BACK = 45
SECONDS = 6.0  # training stops early on a slow machine


def main(width: int) -> None:
    """Prints the tour."""
    _neuron(width)
    _classifier(width)


def _title(text: str, width: int) -> None:
    print(f"\n{text}\n{'-' * min(len(text), width)}")


# ---------------------------------------------------------------- the neuron


def _neuron(width: int) -> None:
    _title("A neuron: y = tanh(x * w + b), with x = 2, w = -0.5, b = 0.3", width)
    x, w, b = Value(2.0), Value(-0.5), Value(0.3)
    y = (x * w + b).tanh()
    y.backward()
    print(f"y     = {y.data:+.17g}")
    for name, leaf in (("x", x), ("w", w), ("b", b)):
        print(f"dy/d{name} = {leaf.grad:+.17g}")
    print("\nThe chain rule for w, factor by factor:")
    print(explain(y, wrt=w, names={"x": x, "w": w, "b": b, "y": y}))
    twins = [reference.Value(2.0), reference.Value(-0.5), reference.Value(0.3)]
    twin = (twins[0] * twins[1] + twins[2]).tanh()
    twin.backward()
    same = [y.data, x.grad, w.grad, b.grad] == [twin.data, *(leaf.grad for leaf in twins)]
    print(f"\nThe pure-Python reference {'agrees to the last bit' if same else 'DIFFERS'}.")


# ---------------------------------------------------------------- the classifier


def load_iris() -> tuple[list[list[float]], list[int], list[str]]:
    """Fisher's irises: four measurements a plant, scaled to mean 0 and variance 1; the species as a number; names."""
    text = resources.files("pygrad").joinpath("data/iris.csv").read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    names = sorted({row[-1] for row in rows})
    columns = list(zip(*([float(x) for x in row[:-1]] for row in rows), strict=True))
    means = [math.fsum(column) / len(column) for column in columns]
    spreads = [math.sqrt(math.fsum((x - m) ** 2 for x in c) / len(c)) for c, m in zip(columns, means, strict=True)]
    scaled = [[(x - m) / s for x, m, s in zip(row, means, spreads, strict=True)] for row in zip(*columns, strict=True)]
    return scaled, [names.index(row[-1]) for row in rows], names


class Classifier:
    """Two dense layers, tanh between them, softmax at the end. `engine` has Value, dot and the ops as functions."""

    def __init__(self, engine: Any, inputs: int, outputs: int, seed: int) -> None:
        rng = random.Random(seed)
        self.engine = engine
        self.hidden = [[engine.Value(rng.gauss(0, 0.5)) for _ in range(inputs + 1)] for _ in range(HIDDEN)]
        self.output = [[engine.Value(rng.gauss(0, 0.5)) for _ in range(HIDDEN + 1)] for _ in range(outputs)]

    def parameters(self) -> Iterator[Any]:
        for layer in (self.hidden, self.output):
            for weights in layer:
                yield from weights

    def logits(self, row: list[float]) -> list[Any]:
        h = [self.engine.dot(weights, [*row, 1.0]).tanh() for weights in self.hidden]
        return [self.engine.dot(weights, [*h, 1.0]) for weights in self.output]

    def loss(self, rows: list[list[float]], labels: list[int]) -> Any:
        """Mean cross entropy: log(sum(exp(logits))) - logit of the right class."""
        terms = []
        for row, label in zip(rows, labels, strict=True):
            logits = self.logits(row)
            total = logits[0]
            for logit in logits[1:]:
                total = self.engine.logaddexp(total, logit)
            terms.append(total - logits[label])
        return self.engine.sum(terms) / len(terms)

    def accuracy(self, rows: list[list[float]], labels: list[int]) -> float:
        with pygrad.no_grad():
            guesses = [max(range(len(self.output)), key=self.logits(row).__getitem__) for row in rows]
        return sum(guess == label for guess, label in zip(guesses, labels, strict=True)) / len(labels)

    def step(self, rows: list[list[float]], labels: list[int]) -> tuple[float, int]:
        """One step of gradient descent: the loss, and how many nodes it took."""
        loss = self.loss(rows, labels)
        for p in self.parameters():
            p.grad = 0.0
        loss.backward()
        for p in self.parameters():
            p.data -= RATE * p.grad
        a_row = 2 * HIDDEN + len(self.output) + len(self.output) - 1 + 1
        return loss.data, a_row * len(rows) + 2


def _split(rows: list[Any], labels: list[int]) -> tuple[list[int], list[int]]:
    """Indices to train on and to hold back, shuffled with a fixed seed."""
    order = list(range(len(rows)))
    random.Random(7).shuffle(order)
    return order[HELD_BACK:], order[:HELD_BACK]


def _classifier(width: int) -> None:
    rows, labels, names = load_iris()
    train, held = _split(rows, labels)
    _title(f"A classifier of Values: {len(rows)} irises, 4 measurements, {len(names)} species", width)
    print(f"4-{HIDDEN}-{len(names)} network, {len(train)} plants to learn from, {len(held)} held back")
    model = Classifier(pygrad, 4, len(names), seed=1)
    bar = Progress(EPOCHS, width)
    nodes, seconds, rng = 0, 0.0, random.Random(3)
    for epoch in range(EPOCHS):
        rng.shuffle(train)
        losses = []
        for start in range(0, len(train), BATCH):
            batch = train[start : start + BATCH]
            began = time.perf_counter()
            loss, made = model.step([rows[i] for i in batch], [labels[i] for i in batch])
            seconds += time.perf_counter() - began
            nodes += made
            losses.append(loss)
        mean = math.fsum(losses) / len(losses)
        bar.show(epoch + 1, f"loss {mean:.3f}", epoch == 0 or (epoch + 1) % 20 == 0)
        if seconds > SECONDS:
            break
    bar.close()
    score = model.accuracy([rows[i] for i in held], [labels[i] for i in held])
    print(f"held-back plants named rightly: {round(score * len(held))} of {len(held)} ({score:.0%})")
    batch = train[:BATCH]
    slow = _speed(reference, [rows[i] for i in batch], [labels[i] for i in batch], len(names))
    print(f"nodes a second, forward, backward and freed: core {nodes / seconds:,.0f}, reference {slow:,.0f}"
          f" ({nodes / seconds / slow:.0f} times)")  # fmt: skip


def _speed(engine: Any, rows: list[list[float]], labels: list[int], outputs: int) -> float:
    """Nodes a second of one training step on an engine."""
    model = Classifier(engine, 4, outputs, seed=1)
    began = time.perf_counter()
    _, nodes = model.step(rows, labels)
    return nodes / (time.perf_counter() - began)


class Progress:
    """A bar that redraws itself on a terminal; into a file, a line now and then."""

    def __init__(self, total: int, width: int, write: Callable[[str], Any] | None = None) -> None:
        self.total, self.width = total, width
        self.live = sys.stdout.isatty()
        self.write = write or sys.stdout.write

    def show(self, done: int, text: str, milestone: bool) -> None:
        room = max(10, self.width - len(text) - 18)
        filled = room * done // self.total
        line = f"epoch {done:3}/{self.total} [{'#' * filled}{'.' * (room - filled)}] {text}"
        if self.live:
            self.write(f"\r{line}")
            sys.stdout.flush()
        elif milestone:
            self.write(f"{line}\n")

    def close(self) -> None:
        if self.live:
            self.write("\n")
