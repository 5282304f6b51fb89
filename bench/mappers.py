"""Who takes part over batches: how a library runs a program for many lanes, with values and derivatives of each.

Setting up is what `ready` does, with the first call, and is timed by itself. Results are compared in one form, `shown`,
outside of what is timed. Each gets the layout of its inputs that suits it. `load_mapper(name)` is the way in.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import c_library
import numpy as np
from batches import Batch
from by_hand import BY_HAND
from peers import NotInstalledError, made
from replayers import casadi_compiled, import_jax, jax_ops, jax_scanned

Run = Callable[[], Any]


class Mapper:
    """ready(batch) gives what is timed; shown(batch, its result) is (values, derivatives) as by_hand.py has them."""

    name: str
    package: str | None = None

    def ready(self, batch: Batch) -> Run:
        raise NotImplementedError

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        return result

    def instructions(self, batch: Batch) -> int | None:
        """Of the program that gives value and derivatives of a lane; pygrad's are what all are divided by."""
        return None


class PygradMap(Mapper):
    """map of value_and_grad, or of a sparse Jacobian, of a compiled function, in one thread."""

    name = "pygrad-map"
    threads = 1

    def __init__(self) -> None:
        import pygrad

        def logsumexp(terms: list[Any]) -> Any:
            top = pygrad.stop_gradient(functools.reduce(pygrad.maximum, terms))
            return top + pygrad.log(pygrad.sum([pygrad.exp(term - top) for term in terms]))

        self.pygrad = pygrad
        self.ops = SimpleNamespace(
            exp=pygrad.exp, relu=pygrad.relu, sqrt=pygrad.sqrt, sin=pygrad.sin, cos=pygrad.cos, logsumexp=logsumexp
        )

    def function(self, batch: Batch) -> Any:
        compiled = self.pygrad.compile(lambda leaves, data: batch.program(leaves, data, self.ops))
        if batch.outputs:
            return self.pygrad.jacobian(compiled, sparse=True)
        return self.pygrad.value_and_grad(compiled)

    def ready(self, batch: Batch) -> Run:
        function, ops, threads = self.function(batch), self.ops, self.threads
        leaves, data = batch.leaves.tolist() if batch.shared else batch.leaves.T, batch.data.T
        if not batch.mixture:
            return lambda: function.map(leaves, data, threads=threads)
        rest_of = batch.mixture.rest
        rest = self.pygrad.value_and_grad(self.pygrad.compile(lambda leaves: rest_of(leaves, ops)))

        def call() -> Any:
            total, gradients = function.map(leaves, data, threads=threads, reduction="sum")
            value, gradient = rest(leaves)
            return total + value, gradients + gradient

        return call

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        if batch.mixture:
            return result
        if not batch.outputs:
            return result[0], result[1].T
        entries, columns, starts = result
        jacobian = np.zeros((batch.outputs, len(batch.leaves), batch.lanes))
        for row in range(batch.outputs):
            for k in range(starts[row], starts[row + 1]):
                jacobian[row, columns[k]] = entries[:, k]
        return None, jacobian

    def instructions(self, batch: Batch) -> int:
        leaves = batch.leaves if batch.shared else batch.leaves[:, 0]
        function = self.function(batch).capture(leaves.tolist(), batch.data[:, 0].tolist())
        return function.stats()["instructions"]


class PygradMapTwo(PygradMap):
    """The same in two threads."""

    name = "pygrad-map-2"
    threads = 2


class NumpyHand(Mapper):
    """by_hand.py: a way forward and a way back over arrays of lanes."""

    name = "numpy-hand"

    def ready(self, batch: Batch) -> Run:
        return BY_HAND[batch.name](batch)


class SimdC(Mapper):
    """bench/c/<batch>_lanes.c, gcc -O3 -march=native -ffast-math, sixteen lanes side by side: see lanes.h."""

    name = "c-simd"
    width = 16

    def __init__(self) -> None:
        c_library.compiler()

    def ready(self, batch: Batch) -> Run:
        flags = "-ffast-math", "-fopenmp-simd", f"-DWIDTH={self.width}"
        function = c_library.function(f"{batch.name}_lanes", *flags)
        assert batch.loop
        lanes, steps = batch.lanes, batch.loop.steps
        padded = np.pad(batch.data, ((0, 0), (0, -lanes % self.width)), mode="edge")
        noise = np.ascontiguousarray(padded.reshape(len(padded), -1, self.width).transpose(1, 0, 2))
        values, gradients = np.zeros(lanes), np.zeros((lanes, len(batch.leaves)))
        arrays = noise, batch.leaves, values, gradients, np.zeros(4 * steps * self.width)
        arguments = ctypes.c_size_t(steps), ctypes.c_size_t(lanes), *map(c_library.pointer, arrays)

        def call() -> Any:
            function(*arguments)
            return values, gradients

        call.owns = arrays  # type: ignore[attr-defined]  # the addresses are C's
        return call

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        return result[0], result[1].T


class CasadiMap(Mapper):
    """Function.map of SX's value and gradient, or Jacobian, called through its buffers; sums over lanes are its own."""

    name = "casadi-map"
    package = "casadi"

    def __init__(self) -> None:
        import casadi

        self.casadi = casadi
        self.ops = SimpleNamespace(
            exp=casadi.exp, relu=lambda x: casadi.fmax(x, 0.0), sqrt=casadi.sqrt, sin=casadi.sin, cos=casadi.cos,
            logsumexp=lambda terms: casadi.logsumexp(casadi.vertcat(*terms)),
        )  # fmt: skip

    def gradient(self, y: Any, x: Any) -> Any:
        return self.casadi.densify(self.casadi.gradient(y, x))

    def lane(self, batch: Batch) -> Any:
        sx = self.casadi.SX
        x, data = sx.sym("x", len(batch.leaves)), sx.sym("data", len(batch.data))
        leaves, numbers = ([v[i] for i in range(v.shape[0])] for v in (x, data))
        y = batch.program(leaves, numbers, self.ops)
        if batch.outputs:
            dense = self.casadi.densify(self.casadi.jacobian(self.casadi.vertcat(*y), x))
            return self.casadi.Function("lane", [x, data], [dense])
        return self.casadi.Function("lane", [x, data], [y, self.gradient(y, x)])

    def ready(self, batch: Batch) -> Run:
        sums = [0, 1] if batch.mixture else []
        function = self.lane(batch).map("lanes", "serial", batch.lanes, [0] if batch.shared else [], sums)
        inputs = [np.ascontiguousarray(batch.leaves.T), np.ascontiguousarray(batch.data.T)]
        outputs = [np.zeros(function.size_out(i)[::-1]) for i in range(function.n_out())]
        call = self.call(function, inputs, outputs)
        if not batch.mixture:
            return call
        x = self.casadi.SX.sym("x", len(batch.leaves))
        y = batch.mixture.rest([x[i] for i in range(len(batch.leaves))], self.ops)
        rest_outputs = [np.zeros((1, 1)), np.zeros((1, len(batch.leaves)))]
        function = self.casadi.Function("rest", [x], [y, self.gradient(y, x)])
        rest = self.call(function, inputs[:1], rest_outputs)

        def both() -> Any:
            return [a + b for a, b in zip(call(), rest(), strict=True)]

        return both

    def call(self, function: Any, inputs: list[Any], outputs: list[Any]) -> Run:
        buffer, run = function.buffer()
        for i, array in enumerate(inputs):
            buffer.set_arg(i, memoryview(array))
        for i, array in enumerate(outputs):
            buffer.set_res(i, memoryview(array))

        def call() -> Any:
            run()
            return outputs

        call.owns = function, buffer, inputs  # type: ignore[attr-defined]  # run borrows them
        return call

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        if batch.mixture:
            return result[0].item(), result[1].ravel()
        if batch.outputs:  # casadi's matrices are column-major: lanes, leaves, outputs in memory
            shape = batch.lanes, len(batch.leaves), batch.outputs
            return None, result[0].reshape(shape).transpose(2, 1, 0)
        return result[0].ravel(), result[1].reshape(batch.lanes, -1).T


class CasadiMapC(CasadiMap):
    """The same with the function of a lane as CasADi's own C, gcc -O3 -march=native."""

    name = "casadi-map-c"

    def __init__(self) -> None:
        c_library.compiler()
        super().__init__()

    def lane(self, batch: Batch) -> Any:
        function = super().lane(batch)
        if function.n_instructions() > 10_000:
            raise NotInstalledError(f"casadi-map-c: {function.n_instructions():,} instructions take a compiler minutes")
        return casadi_compiled(self.casadi, function)


class Torch(Mapper):
    """The program over tensors of lanes; a mixture over arrays, as one writes it for PyTorch."""

    name = package = "torch"

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.ops = SimpleNamespace(exp=torch.exp, relu=torch.relu, sqrt=torch.sqrt, sin=torch.sin, cos=torch.cos)
        self.xp = SimpleNamespace(
            exp=torch.exp, concatenate=torch.cat, einsum=torch.einsum, asarray=torch.as_tensor,
            zeros=functools.partial(torch.zeros, dtype=torch.float64), logsumexp=lambda x: torch.logsumexp(x, -1),
        )  # fmt: skip

    def ready(self, batch: Batch) -> Run:
        torch = self.torch
        if batch.mixture:
            x, total = torch.tensor(batch.leaves), batch.mixture.total

            def of_mixture() -> Any:
                leaves = x.detach().requires_grad_()
                y = total(leaves, self.xp)
                y.backward()
                return y.detach(), leaves.grad

            return of_mixture
        columns, data = [torch.tensor(column) for column in batch.columns()], list(torch.tensor(batch.data))

        def call() -> Any:
            leaves = [column.detach().requires_grad_() for column in columns]
            y = batch.program(leaves, data, self.ops)
            if not batch.outputs:
                return y.detach(), torch.autograd.grad(y.sum(), leaves)
            last = len(y) - 1
            return [
                torch.autograd.grad(row.sum(), leaves, retain_graph=i < last, materialize_grads=True)
                for i, row in enumerate(y)
            ]

        return call

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        if batch.mixture:
            return result[0].item(), result[1].numpy()
        if batch.outputs:
            return None, np.array([[entry.numpy() for entry in row] for row in result])
        return result[0].numpy(), np.array([entry.numpy() for entry in result[1]])


class Jax(Mapper):
    """jit of vmap of jacrev of a lane; of a loop, lax.scan over arrays of lanes, twice as fast as vmap of a scan.

    A mixture is over arrays.
    """

    name = package = "jax"

    def __init__(self) -> None:
        self.jax = import_jax()
        self.ops = jax_ops(self.jax)
        jnp = self.jax.numpy
        self.xp = SimpleNamespace(
            exp=jnp.exp, concatenate=jnp.concatenate, einsum=jnp.einsum, asarray=jnp.asarray, zeros=jnp.zeros,
            logsumexp=lambda x: self.jax.scipy.special.logsumexp(x, -1),
        )  # fmt: skip

    def ready(self, batch: Batch) -> Run:
        jax = self.jax
        leaves, data = jax.numpy.array(batch.leaves), jax.numpy.array(batch.data)
        if batch.mixture:
            total = batch.mixture.total
            function = jax.jit(jax.value_and_grad(lambda x: total(x, self.xp)))
            return lambda: jax.block_until_ready(function(leaves))

        if batch.loop:
            columns, loop = [jax.numpy.array(column) for column in batch.columns()], batch.loop

            def lanes(leaves: list[Any], numbers: Any) -> tuple[Any, Any]:
                y = jax_scanned(jax, loop, self.ops, leaves, numbers)
                return y.sum(), y

            scanned = jax.jit(jax.value_and_grad(lanes, has_aux=True))
            return lambda: jax.block_until_ready(scanned(columns, data))

        def lane(x: Any, numbers: Any) -> Any:
            y = batch.program(list(x), list(numbers), self.ops)
            return jax.numpy.stack(y) if batch.outputs else y

        derivative = jax.jacrev(lane) if batch.outputs else jax.value_and_grad(lane)
        mapped = jax.jit(jax.vmap(derivative, in_axes=(None if batch.shared else 1, 1)))
        return lambda: jax.block_until_ready(mapped(leaves, data))

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        if batch.mixture:
            return float(result[0]), np.asarray(result[1])
        if batch.outputs:
            return None, np.asarray(result).transpose(1, 2, 0)
        if batch.loop:
            return np.asarray(result[0][1]), np.array(result[1])
        return np.asarray(result[0]), np.asarray(result[1]).T


class Autograd(Mapper):
    """HIPS autograd over arrays of lanes."""

    name = package = "autograd"

    def __init__(self) -> None:
        from autograd import numpy as anp
        from autograd.core import make_vjp
        from autograd.scipy.special import logsumexp

        self.make_vjp = make_vjp
        self.ops = SimpleNamespace(
            exp=anp.exp, relu=lambda x: anp.maximum(x, 0.0), sqrt=anp.sqrt, sin=anp.sin, cos=anp.cos
        )
        self.xp = SimpleNamespace(
            exp=anp.exp, concatenate=anp.concatenate, einsum=anp.einsum, asarray=anp.array, zeros=anp.zeros,
            logsumexp=lambda x: logsumexp(x, -1),
        )  # fmt: skip

    def ready(self, batch: Batch) -> Run:
        if batch.mixture:
            total = batch.mixture.total

            def of_mixture() -> Any:
                pull, y = self.make_vjp(lambda x: total(x, self.xp), batch.leaves)
                return y, pull(1.0)

            return of_mixture
        columns, data, ones = tuple(batch.columns()), list(batch.data), np.ones(batch.lanes)
        if batch.loop and batch.loop.steps > 100:
            raise NotInstalledError(f"autograd: {batch.loop.steps} steps take it seconds")

        def call() -> Any:
            if not batch.outputs:
                pull, y = self.make_vjp(lambda leaves: batch.program(leaves, data, self.ops), columns)
                return y, pull(ones)
            rows = []
            for i in range(batch.outputs):
                pull, _ = self.make_vjp(lambda leaves, i=i: batch.program(leaves, data, self.ops)[i], columns)
                rows.append(pull(ones))
            return rows

        return call

    def shown(self, batch: Batch, result: Any) -> tuple[Any, Any]:
        if batch.mixture:
            return result
        return (None, np.array(result)) if batch.outputs else (result[0], np.array(result[1]))


MAPPERS: dict[str, type[Mapper]] = {
    kind.name: kind for kind in (PygradMap, PygradMapTwo, NumpyHand, SimdC, CasadiMap, CasadiMapC, Torch, Jax, Autograd)
}


@functools.cache
def load_mapper(name: str) -> Mapper:
    return made(MAPPERS[name])
