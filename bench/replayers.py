"""Who takes part where a program is made once and replayed, one input at a time: value and gradient.

Setting up is what `ready` and a first call do (capture, tracing, compiling), and is timed by itself. As peers.py does,
this owns what is particular to a library; what is written by hand goes by a workload's name. `load_replayer(name)` is
the way in.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import c_library
import numpy as np
import rolled
from peers import Casadi, CasadiReplay, Contestant, NotInstalledError, Pygrad, PygradCompiled, buffered, made
from workloads import Workload

Run = Callable[[], tuple[float, Any]]
LONGEST_C = 50_000  # instructions in one C function; a compiler takes many minutes beyond


class HandC(Contestant):
    """Value and adjoint by hand in C: bench/c/<workload>.c, gcc -O3 -march=native, called through ctypes."""

    name = "c"
    steps = False

    def __init__(self) -> None:
        c_library.compiler()

    def ready(self, workload: Workload) -> Run:
        function = c_library.function(workload.name)
        function.restype = ctypes.c_double
        x, constants = np.array(workload.numbers), np.array(workload.constants)
        gradient, work = np.zeros(len(x)), np.zeros(4 * workload.steps + 16)
        arguments = ctypes.c_size_t(workload.steps), *map(c_library.pointer, (constants, x, gradient, work))

        def call() -> tuple[float, Any]:
            return function(*arguments), gradient

        call.owns = constants, x, work  # type: ignore[attr-defined]  # the addresses are C's
        return call


class PygradCompiledArray(PygradCompiled):
    """pygrad-compiled with an array in and an array of gradients out, as scipy.optimize wants it."""

    name = "pygrad-compiled-array"

    def function(self, workload: Workload, **options: Any) -> Any:
        import pygrad

        ops = self.ops
        return self.transform(pygrad.compile(lambda leaves: workload.program(leaves, ops), as_values=True, **options))

    def ready(self, workload: Workload) -> Run:
        function, numbers = self.function(workload), np.array(workload.numbers)
        return lambda: function(numbers)


class PygradScan(PygradCompiledArray):
    """pygrad-compiled-array of the program with its loop in pygrad.scan."""

    name = "pygrad-scan"
    tolerance = 1e-9  # the rolled form is written otherwise than the loop

    def function(self, workload: Workload, **options: Any) -> Any:
        import pygrad

        loop, ops = rolled_form(self.name, workload), self.ops
        rows = np.reshape(workload.constants, (loop.steps, loop.width)).tolist() if loop.width else None

        def program(leaves: Any) -> Any:
            step = lambda carry, x: (loop.step(leaves, carry, x, ops), None)  # noqa: E731
            carry, _ = pygrad.scan(step, loop.start(leaves), rows, loop.steps)
            return loop.end(leaves, carry, ops)

        return self.transform(pygrad.compile(program, as_values=True, **options))


def rolled_form(contestant: str, workload: Workload) -> rolled.Rolled:
    form = {"path": rolled.path, "lorenz": rolled.lorenz}.get(workload.name)
    if form is None:
        raise NotInstalledError(f"{contestant}: {workload.name} has no loop that could stay rolled")
    return form(workload.steps)


class PygradCc(PygradCompiledArray):
    """The same with backend="cc": compiled C, without -march=native; no library of an earlier run is used."""

    name = "pygrad-cc"

    def __init__(self) -> None:
        c_library.compiler()
        super().__init__()
        self.cache = tempfile.TemporaryDirectory(prefix="pygrad-bench-")
        os.environ["PYGRAD_CACHE"] = self.cache.name

    def ready(self, workload: Workload) -> Run:
        numbers = np.array(workload.numbers)
        count = self.function(workload).capture(numbers).stats()["instructions"]
        if count > LONGEST_C:
            raise NotInstalledError(f"pygrad-cc: {count:,} instructions are too many for one function in C")
        function = self.function(workload, backend="cc")
        return lambda: function(numbers)


class CasadiC(Casadi):
    """CasADi's own C of the function, gcc -O3 -march=native, called through its buffers."""

    name = "casadi-c"
    steps = False

    def ready(self, workload: Workload) -> Run:
        function = self.function(self.record(workload))
        if function.n_instructions() > LONGEST_C:
            raise NotInstalledError(
                f"casadi-c: {function.n_instructions():,} instructions are too many for one function in C"
            )
        return buffered(casadi_compiled(self.casadi, function), workload)


def casadi_compiled(casadi: Any, function: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        generator = casadi.CodeGenerator("f")
        generator.add(function)
        source, library = generator.generate(folder + "/"), str(Path(folder) / "f.so")
        flags = ["-O3", "-march=native", "-shared", "-fPIC", "-w"]
        subprocess.run([c_library.compiler(), *flags, source, "-o", library, "-lm"], check=True)
        return casadi.external(function.name(), library)  # stays loaded when the file goes


def import_jax() -> Any:
    """JAX on one thread, with float64."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def jax_ops(jax: Any) -> SimpleNamespace:
    jnp = jax.numpy
    return SimpleNamespace(
        exp=jnp.exp, tanh=jnp.tanh, relu=jax.nn.relu, sqrt=jnp.sqrt, sin=jnp.sin, cos=jnp.cos, log=jnp.log
    )


class JaxJit(Contestant):
    """jax.jit of value_and_grad of the program as it is, unrolled: Rosenbrock alone, others take minutes to compile."""

    name = "jax-jit"
    package = "jax"
    steps = False

    def __init__(self) -> None:
        self.jax = import_jax()
        self.ops = jax_ops(self.jax)

    def program(self, workload: Workload) -> Callable[[Any], Any]:
        if workload.name != "rosen":
            raise NotInstalledError(f"jax-jit: compiling {workload.name} unrolled takes minutes")
        return lambda x: workload.program([x[i] for i in range(len(workload.numbers))], self.ops)

    def ready(self, workload: Workload) -> Run:
        function = self.jax.jit(self.jax.value_and_grad(self.program(workload)))
        numbers = self.jax.numpy.array(workload.numbers)

        def call() -> tuple[float, Any]:
            value, gradient = function(numbers)
            return float(value), gradient.block_until_ready()

        call()
        return call


class JaxScan(JaxJit):
    """jax.jit of value_and_grad of the program with its loop in lax.scan."""

    name = "jax-scan"

    def program(self, workload: Workload) -> Callable[[Any], Any]:
        loop = rolled_form(self.name, workload)
        data = self.jax.numpy.array(workload.constants)
        return lambda x: jax_scanned(self.jax, loop, self.ops, list(x), data)


def jax_scanned(jax: Any, loop: rolled.Rolled, ops: Any, leaves: list[Any], data: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        return loop.step(leaves, carry, x, ops), None

    rows = data.reshape(loop.steps, loop.width, *data.shape[1:]) if loop.width else None
    carry, _ = jax.lax.scan(step, tuple(loop.start(leaves)), rows, length=loop.steps)
    return loop.end(leaves, carry, ops)


# pygrad's graph, run anew each time, is there to be compared with.
REPLAYERS: dict[str, type[Contestant]] = {
    kind.name: kind
    for kind in (
        Pygrad, PygradCompiled, PygradCompiledArray, PygradScan, PygradCc,
        HandC, CasadiReplay, CasadiC, JaxJit, JaxScan,
    )
}  # fmt: skip


@functools.cache
def load_replayer(name: str) -> Contestant:
    return made(REPLAYERS[name])
