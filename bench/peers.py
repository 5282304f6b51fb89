"""The contestants: each a kind of number, and how its gradients are asked for, as users of that library write it.

Owns what is particular to a library; knows no workload. Packages are imported when a contestant is made, so that one
which is not installed costs nothing but its column. float64 and one thread everywhere. `load(name)` is the way in.
"""

from __future__ import annotations

import functools
import gc
import importlib.metadata
import math
import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from workloads import FLOAT_OPS, Workload


class NotInstalledError(Exception):
    """The package of a contestant is not installed."""


class Contestant:
    """How one library records a program as a graph, and gives value and gradient; the defaults suit `.backward()`."""

    name: str
    package: str | None = None  # its distribution, where it is not pygrad's own
    tolerance = 1e-9  # of gradients, relative to pygrad's
    longest_chain = 20_000  # nodes; slower contestants are timed on shorter chains, their figures are per node
    steps = True  # can record and go back in steps of their own; False: gives a function for both, see `ready`
    collector = True  # as users have it; False: Python's cyclic collector is off while timing
    ops: SimpleNamespace
    leaf: Callable[[float], Any] | None = None  # where a gradient is read from the leaf's .grad

    def record(self, workload: Workload) -> Any:
        leaves = [self.leaf(number) for number in workload.numbers]  # type: ignore[misc]
        return workload.program(leaves, self.ops), leaves

    def backward(self, graph: Any) -> list[float]:
        root, leaves = graph
        root.backward()
        return [leaf.grad for leaf in leaves]

    def value(self, graph: Any) -> float:
        return graph[0].data

    def release(self) -> None:
        """Frees what dropping the last name of a graph leaves behind."""

    def ready(self, workload: Workload) -> Callable[[], tuple[float, Any]]:
        """What is timed: a function that gives value and gradient."""

        def value_and_gradient() -> tuple[float, Any]:
            graph = self.record(workload)
            gradient = self.backward(graph)
            return self.value(graph), gradient

        return value_and_gradient


class Floats(Contestant):
    """The measure of all: the same program on Python's floats, forward only."""

    name = "floats"
    ops = FLOAT_OPS
    longest_chain = 10**9

    def record(self, workload: Workload) -> Any:
        return workload.program(workload.numbers, self.ops)

    def backward(self, graph: Any) -> list[float]:
        return []

    def value(self, graph: Any) -> float:
        return graph


class Pygrad(Contestant):
    name = "pygrad"
    tolerance = 0.0
    longest_chain = 10**9

    def __init__(self) -> None:
        import pygrad

        self.leaf = pygrad.Value
        self.ops = SimpleNamespace(exp=pygrad.exp, tanh=pygrad.tanh, relu=pygrad.relu)


class PygradTransform(Contestant):
    """pygrad.value_and_grad in place of Values made by hand."""

    name = "pygrad-vg"
    tolerance = 0.0
    steps = False

    def __init__(self) -> None:
        import pygrad

        self.transform = pygrad.value_and_grad
        self.ops = SimpleNamespace(exp=pygrad.exp, tanh=pygrad.tanh, relu=pygrad.relu)

    def ready(self, workload: Workload) -> Callable[[], tuple[float, Any]]:
        ops = self.ops
        function = self.transform(lambda leaves: workload.program(leaves, ops))
        return lambda: function(workload.numbers)


class PygradArray(PygradTransform):
    """The same with an array in and an array of gradients out, as scipy.optimize wants it."""

    name = "pygrad-array"

    def ready(self, workload: Workload) -> Callable[[], tuple[float, Any]]:
        ops, numbers = self.ops, np.array(workload.numbers)
        function = self.transform(lambda leaves: workload.program(leaves, ops), as_values=True)
        return lambda: function(numbers)


class PygradCompiled(PygradTransform):
    """pygrad.value_and_grad of a compiled function, captured before it is timed: a replay with lists in and out."""

    name = "pygrad-compiled"

    def ready(self, workload: Workload) -> Callable[[], tuple[float, Any]]:
        import pygrad

        ops, numbers = self.ops, workload.numbers
        function = self.transform(pygrad.compile(lambda leaves: workload.program(leaves, ops)))

        def call() -> tuple[float, Any]:
            return function(numbers)

        call()
        call.instructions = function.stats()["instructions"]  # type: ignore[attr-defined]
        return call


class Reference(Contestant):
    """pygrad's pure-Python twin: equal to the last bit, so it is held to that."""

    name = "reference"
    tolerance = 0.0

    def __init__(self) -> None:
        from pygrad import reference

        self.leaf = reference.Value
        self.ops = SimpleNamespace(exp=reference.exp, tanh=reference.tanh, relu=reference.relu)


class Micrograd(Contestant):
    """micrograd's Value; exp and tanh, which it lacks, are written in its own style."""

    name = package = "micrograd"

    def __init__(self) -> None:
        from micrograd.engine import Value

        def exp(x: Any) -> Any:
            out = Value(math.exp(x.data), (x,), "exp")

            def _backward() -> None:
                x.grad += out.data * out.grad

            out._backward = _backward
            return out

        def tanh(x: Any) -> Any:
            out = Value(math.tanh(x.data), (x,), "tanh")

            def _backward() -> None:
                x.grad += (1 - out.data * out.data) * out.grad

            out._backward = _backward
            return out

        self.leaf = Value
        self.ops = SimpleNamespace(exp=exp, tanh=tanh, relu=Value.relu)

    def backward(self, graph: Any) -> list[float]:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(10**8)  # its sort recurses
        try:
            return super().backward(graph)
        finally:
            sys.setrecursionlimit(limit)

    def release(self) -> None:
        gc.collect()  # its nodes sit in reference cycles


class MicrogradWithoutCollector(Micrograd):
    """micrograd with the cyclic collector off, which otherwise takes most of its time."""

    name = "micrograd-nogc"
    collector = False


class Xad(Contestant):
    """XAD's tape, which is kept and cleared: a new one for every gradient costs more."""

    name = package = "xad"
    longest_chain = 1_000_000

    def __init__(self) -> None:
        import xad.adj_1st
        import xad.math

        self.real = xad.adj_1st.Real
        self.tape = xad.adj_1st.Tape()
        self.ops = SimpleNamespace(exp=xad.math.exp, tanh=xad.math.tanh, relu=lambda x: xad.math.max(x, 0.0))

    def record(self, workload: Workload) -> Any:
        self.tape.activate()
        try:
            self.tape.clearAll()
            leaves = [self.real(number) for number in workload.numbers]
            self.tape.registerInputs(leaves)
            self.tape.newRecording()
            return workload.program(leaves, self.ops), leaves
        finally:
            self.tape.deactivate()

    def backward(self, graph: Any) -> list[float]:
        root, leaves = graph
        self.tape.activate()
        try:
            self.tape.registerOutput(root)
            root.derivative = 1.0
            self.tape.computeAdjoints()
            return [leaf.derivative for leaf in leaves]
        finally:
            self.tape.deactivate()

    def value(self, graph: Any) -> float:
        return graph[0].value

    def release(self) -> None:
        self.tape.clearAll()


class Torch(Contestant):
    """PyTorch's tensors of no dimension."""

    name = package = "torch"

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.leaf = functools.partial(torch.tensor, dtype=torch.float64, requires_grad=True)
        self.ops = SimpleNamespace(exp=torch.exp, tanh=torch.tanh, relu=torch.relu)

    def backward(self, graph: Any) -> list[float]:
        root, leaves = graph
        root.backward()
        return [leaf.grad.item() for leaf in leaves]

    def value(self, graph: Any) -> float:
        return graph[0].item()


class Autograd(Contestant):
    """HIPS autograd, on one array of leaves."""

    name = package = "autograd"

    def __init__(self) -> None:
        from autograd import numpy as np
        from autograd.core import make_vjp

        self.make_vjp = make_vjp
        self.array = np.array
        self.ops = SimpleNamespace(exp=np.exp, tanh=np.tanh, relu=lambda x: np.maximum(x, 0.0))

    def record(self, workload: Workload) -> Any:
        def program(x: Any) -> Any:
            return workload.program([x[i] for i in range(len(x))], self.ops)

        pull, value = self.make_vjp(program, self.array(workload.numbers))
        return value, pull

    def backward(self, graph: Any) -> list[float]:
        return graph[1](1.0).tolist()

    def value(self, graph: Any) -> float:
        return float(graph[0])


class Casadi(Contestant):
    """CasADi's SX: the graph is built and differentiated anew every time, and run once."""

    name = package = "casadi"

    def __init__(self) -> None:
        import casadi

        self.casadi = casadi
        self.ops = SimpleNamespace(exp=casadi.exp, tanh=casadi.tanh, relu=lambda x: casadi.fmax(x, 0.0))

    def record(self, workload: Workload) -> Any:
        x = self.casadi.SX.sym("x", len(workload.numbers))
        return workload.program([x[i] for i in range(len(workload.numbers))], self.ops), x, workload.numbers

    def function(self, graph: Any) -> Any:
        y, x, _ = graph
        return self.casadi.Function("f", [x], [y, self.casadi.densify(self.casadi.gradient(y, x))])

    def backward(self, graph: Any) -> list[float]:
        return self.function(graph)(graph[2])[1].full().ravel().tolist()

    def ready(self, workload: Workload) -> Callable[[], tuple[float, Any]]:
        def value_and_gradient() -> tuple[float, Any]:
            value, gradient = self.function(self.record(workload))(workload.numbers)
            return float(value), gradient.full().ravel().tolist()

        return value_and_gradient


class CasadiReplay(Casadi):
    """A CasADi function made once, called through its buffers; making it is not timed."""

    name = "casadi-replay"
    steps = False

    def ready(self, workload: Workload) -> Callable[[], tuple[float, Any]]:
        return buffered(self.function(self.record(workload)), workload)


def buffered(function: Any, workload: Workload) -> Callable[[], tuple[float, Any]]:
    """A call of a CasADi function of value and gradient without its conversions."""
    numbers = np.array(workload.numbers)
    results = np.zeros(1), np.zeros(len(numbers))
    buffer, run = function.buffer()
    buffer.set_arg(0, memoryview(numbers))
    for i, result in enumerate(results):
        buffer.set_res(i, memoryview(result))

    def call() -> tuple[float, Any]:
        run()
        return results[0][0], results[1]

    call.owns = function, buffer, numbers  # type: ignore[attr-defined]  # run borrows them
    return call


CONTESTANTS: dict[str, type[Contestant]] = {
    kind.name: kind
    for kind in (
        Floats, Pygrad, PygradTransform, PygradArray, PygradCompiled, Reference, Xad, Micrograd,
        MicrogradWithoutCollector, Torch, Autograd, Casadi, CasadiReplay,
    )
}  # fmt: skip


@functools.cache
def load(name: str) -> Contestant:
    """The contestant of that name; NotInstalledError where its package is missing."""
    return made(CONTESTANTS[name])


def made(kind: Any) -> Any:
    """One of a kind that may need a package; a peer's warnings at import are its own affair."""
    if kind.package:
        try:
            importlib.metadata.version(kind.package)
        except importlib.metadata.PackageNotFoundError:
            raise NotInstalledError(
                f"{kind.name}: {kind.package} is not installed, pip install {kind.package}"
            ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contestant = kind()
    gc.collect()
    return contestant
