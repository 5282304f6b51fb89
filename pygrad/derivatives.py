"""Derivatives of compiled functions: which programs, in which structure. The transforms of transforms.py, on programs.

A derivative of a variant is a variant with the same guards. It is kept with the variant, under its options, so that it
is made once. Knows no op and runs no function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from pygrad import transforms
from pygrad._core import Value
from pygrad.results import Result, SparseResult
from pygrad.seeds import SeededJacobian
from pygrad.structures import flatten, map_structure
from pygrad.variants import Variant

if TYPE_CHECKING:
    from pygrad.arguments import Arguments
    from pygrad.compile import Compiled

__all__ = ["Derivative", "jvp", "vjp"]

MOST_WRITTEN_OUT = 2_000_000  # instructions of a Jacobian's sweeps; beyond, seeds go through one sweep as lanes


class Derivative:
    """A transform, by its name in transforms.py and its options, of a compiled function."""

    def __init__(
        self, name: str, base: Compiled, argnums: int | Sequence[int] = 0, has_aux: bool = False,
        as_values: bool = False, sparse: bool = False, label: str | None = None,
    ) -> None:  # fmt: skip
        self.label = label or name  # what errors call it
        if base.is_sparse:
            raise TypeError(
                f"{self.label}: a sparse Jacobian or Hessian cannot be differentiated; leave sparse=True out below"
            )
        if sparse and has_aux:
            raise TypeError(f"{self.label}: sparse=True gives a matrix alone; leave has_aux=True out")
        self.name = name
        self.base = base
        self.vectors: int = base.vectors + (name == "hvp")
        self.argnums = argnums
        self.has_aux = has_aux
        self.as_values = as_values or base.as_values
        self.sparse = sparse
        several = tuple(argnums) if isinstance(argnums, (list, tuple, range)) else argnums
        self.key = name, several, has_aux, sparse

    def over_elements(self) -> Compiled:
        return self.base.over_elements().transform(
            self.name, argnums=self.argnums, has_aux=self.has_aux, sparse=self.sparse, label=self.label
        )

    def eager(self) -> Callable[..., Any]:
        """The same transform of the function that was compiled."""
        if self.sparse:
            return functools.wraps(self.base.eager)(lambda *args, **kwargs: self._refuse_sparse())
        if self.label == "hessian":
            make = transforms.grad_as if self.name == "grad" else transforms.jacobian_as
            return make("hessian", self.base.eager, self.argnums, self.has_aux, self.as_values)
        options: dict[str, Any] = {"argnums": self.argnums, "as_values": self.as_values}
        if self.name != "hvp":
            options["has_aux"] = self.has_aux
        transform: Callable[..., Callable[..., Any]] = getattr(transforms, self.name)
        return transform(self.base.eager, **options)

    def _refuse_sparse(self) -> Any:
        raise TypeError(
            f"{self.label}: with sparse=True it is called with floats, and cannot be part of a graph or another capture"
        )

    def variant(self, arguments: Arguments) -> Variant:
        """For these arguments: from the function's variant, which is found, or captured."""
        if self.name == "hvp":
            if len(arguments.args) < 2:
                raise TypeError(
                    f"hvp: needs the arguments of the function and a vector, found {len(arguments.args)} in all"
                )
            vector = len(flatten(arguments.args[-1]))
            arguments = arguments.without_vector()
            positions = transforms.positions_of(self.name, self.argnums, len(arguments.args))
            if vector != (count := sum(len(arguments.range(n)) for n in positions)):
                raise ValueError(f"hvp: the argument holds {count} numbers, the vector {vector}")
        variant, _ = self.base.find(arguments)
        if self.key not in variant.derived:
            make = {"grad": _grad, "value_and_grad": _value_and_grad, "jacobian": _jacobian, "hvp": _hvp}[self.name]
            variant.derived[self.key] = make(_Asked(self, arguments, variant))
        return variant.derived[self.key]


class _Asked:
    """What is differentiated by what: numbers of outputs and inputs, and the structures around them."""

    def __init__(self, derivative: Derivative, arguments: Arguments, variant: Variant) -> None:
        self.derivative = derivative
        self.variant = variant
        self.program = variant.program
        self.name = derivative.label
        positions = transforms.positions_of(self.name, derivative.argnums, len(arguments.args))
        for n in positions:
            if not arguments.range(n) and (arguments.is_static(n) or _holds_other(arguments.args[n])):
                raise TypeError(
                    f"{self.name}: found no number to differentiate in argument {transforms.shown(arguments.args[n])}"
                )
        self.single = isinstance(derivative.argnums, (int, np.integer))
        self.given = [arguments.args[n] for n in positions]
        self.wrt = [variant.place(i) for n in positions for i in arguments.range(n)]
        structure = variant.result.structure
        self.aux: Any = None
        if derivative.has_aux:
            if not (isinstance(structure, tuple) and len(structure) == 2):
                raise TypeError(f"{self.name}: with has_aux=True the function must return (result, aux)")
            structure, self.aux = structure
        self.value = structure
        self.structure, self.slots = differentiable(structure, variant.result.slots)
        count = len(_floats(structure))
        self.value_slots = variant.result.slots[:count]
        self.aux_slots = variant.result.slots[count:]

    def argument(self) -> Any:
        """The structure of what is differentiated by, with 0.0 for each number: of several arguments a tuple."""
        shaped = [map_structure(lambda _: 0.0, arg, lambda leaf: None, _zeros) for arg in self.given]
        return shaped[0] if self.single else tuple(shaped)

    def scalar(self) -> int | None:
        """The only output; None where the result is 0.0 whatever the inputs."""
        if type(self.structure) is np.ndarray and self.structure.ndim == 0:
            self.structure, self.value = 0.0, self.value.item()
        if type(self.structure) is not float:
            raise TypeError(
                f"{self.name}: the function must return one number, found {transforms.shown(self.structure)}; use "
                "jacobian for several results, has_aux=True for extra ones"
            )
        return self.slots[0]

    def made(self, program: Any, structure: Any, slots: list[int | None]) -> Variant:
        """The variant of a program, with what is aux at its end."""
        if self.derivative.has_aux:
            structure, slots = (structure, self.aux), [*slots, *self.aux_slots]
        used = [slot for slot in dict.fromkeys(slots) if slot is not None]
        places = {slot: place for place, slot in enumerate(used)}
        renumbered = [None if slot is None else places[slot] for slot in slots]
        return self.variant.derivative(program.select(used), Result(structure, renumbered))


def _zeros(array: Any, mapped: Callable[[Any], Any]) -> Any:
    return np.zeros(array.shape)


def _holds_other(structure: Any) -> bool:
    """Whether there is something besides numbers."""
    found: list[Any] = []
    map_structure(lambda number: number, structure, found.append)
    return bool(found)


def differentiable(structure: Any, slots: Sequence[int | None]) -> tuple[Any, list[int | None]]:
    """A result as the structure of its derivatives, and a slot for each number of it: ints have derivatives of zero."""
    left, found = iter(slots), []

    def take(number: Any) -> float:
        found.append(next(left) if type(number) is float else None)
        return 0.0

    return map_structure(take, structure), found


def _floats(structure: Any) -> list[float]:
    return [number for number in flatten(structure) if type(number) is float]


def _grad(asked: _Asked) -> Variant:
    program, slots = _gradient(asked)
    return asked.made(program, asked.argument(), slots)


def _value_and_grad(asked: _Asked) -> Variant:
    program, slots = _gradient(asked)
    if type(asked.value) is not float:  # an int
        outputs = program.counts[1]
        program = program.select([*range(outputs), float(asked.value)])
        asked.value, asked.value_slots = 0.0, [outputs]
    aux = asked.derivative.has_aux
    value = (asked.value, asked.aux) if aux else asked.value
    slots = [*asked.value_slots, *(asked.aux_slots if aux else []), *slots]
    asked.derivative = _without_aux(asked.derivative)
    return asked.made(program, (value, asked.argument()), slots)


def _without_aux(derivative: Derivative) -> Derivative:
    return Derivative(derivative.name, derivative.base, derivative.argnums, False, derivative.as_values)


def _gradient(asked: _Asked) -> tuple[Any, list[int | None]]:
    """The program with the gradient behind its outputs, and the numbers of those outputs."""
    of = asked.scalar()
    if of is None:
        return asked.program, [None] * len(asked.wrt)
    outputs = asked.program.counts[1]
    return asked.program.gradient(asked.wrt, of), list(range(outputs, outputs + len(asked.wrt)))


def _jacobian(asked: _Asked) -> Variant:
    outputs, columns = asked.program.counts[1], len(asked.wrt)
    forward = 0 < columns < len(asked.slots)
    at_rows, at_columns, work = asked.program.jacobian_pattern(asked.wrt, forward)
    if work > MOST_WRITTEN_OUT:
        program: Any = SeededJacobian(asked.program, asked.wrt, forward, at_rows, at_columns)
        at_rows, at_columns = at_rows.tolist(), at_columns.tolist()
    else:
        program, at_rows, at_columns = asked.program.jacobian(asked.wrt, forward)
    if asked.derivative.sparse:
        return _sparse_jacobian(asked, program, at_rows, at_columns)
    entries = {(row, column): outputs + k for k, (row, column) in enumerate(zip(at_rows, at_columns, strict=True))}
    slots = [
        None if slot is None else entries.get((slot, column)) for slot in asked.slots for column in range(columns)
    ]  # fmt: skip
    return asked.made(program, _jacobian_structure(asked), slots)


def _sparse_jacobian(asked: _Asked, program: Any, at_rows: list[int], at_columns: list[int]) -> Variant:
    outputs = asked.program.counts[1]
    of_output: dict[int, list[tuple[int, int]]] = {}  # (column, output of the program) of the entries in its row
    for k, (row, column) in enumerate(zip(at_rows, at_columns, strict=True)):
        of_output.setdefault(row, []).append((column, outputs + k))
    rows = [of_output.get(slot, []) if slot is not None else [] for slot in asked.slots]
    columns = [column for row in rows for column, _ in row]
    result = SparseResult(columns, [0, *accumulate(map(len, rows))], len(asked.wrt))
    return asked.variant.derivative(program.select([output for row in rows for _, output in row]), result)


def _jacobian_structure(asked: _Asked) -> Any:
    """The function's result with the structure of the argument in place of each number; of arrays one array."""
    if asked.derivative.as_values and asked.single and isinstance(asked.given[0], np.ndarray):
        shape = transforms.array_shape(asked.structure, len(asked.slots))
        if shape is not None:
            return np.zeros(shape + asked.given[0].shape)
    return map_structure(lambda _: asked.argument(), asked.structure, array=transforms.array_or_lists)


def _hvp(asked: _Asked) -> Variant:
    program, slots = _gradient(asked)
    used = [slot for slot in slots if slot is not None]
    outputs = len(used)
    program = program.select(used)
    program = program.gradient(asked.wrt) if used else program.tangent(asked.wrt)  # which take the vector's numbers
    return asked.made(program, asked.argument(), [outputs + k if used else None for k in range(len(asked.wrt))])


def _split(name: str, variant: Variant, outputs: list[float], has_aux: bool) -> tuple[Any, Any, Any, list[int | None]]:
    """(result, aux, structure of the result's derivatives, its slots): what a variant gave."""
    result, structure = variant.result.fill(outputs), variant.result.structure
    if not has_aux:
        return result, None, *differentiable(structure, variant.result.slots)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(
            f"{name}: with has_aux=True the function must return (result, aux), found {transforms.shown(result)}"
        )
    return *result, *differentiable(structure[0], variant.result.slots)


def _need_a_number(name: str, arguments: Arguments) -> None:
    """As transforms.Run has it where all arguments are differentiated."""
    others = [arguments.is_static(n) or _holds_other(arg) for n, arg in enumerate(arguments.args)]
    if any(others) and not arguments.numbers:
        raise TypeError(f"{name}: found no number to differentiate in the arguments {transforms.shown(arguments.args)}")


def _kept(variant: Variant, key: Any, program: Callable[[], Any]) -> Any:
    """A program that belongs to a variant, made once."""
    if key not in variant.derived:
        variant.derived[key] = variant.derivative(program(), variant.result)
    return variant.derived[key].program


def vjp(compiled: Compiled, arguments: Arguments, has_aux: bool) -> Any:
    """transforms.vjp of a compiled function."""
    _need_a_number("vjp", arguments)
    variant, outputs = compiled.find(arguments)
    if variant.is_traced():
        return transforms.vjp(compiled.eager, *arguments.wrapped(), has_aux=has_aux, as_values=compiled.as_values)
    value, aux, _, slots = _split("vjp", variant, outputs, has_aux)
    used = sorted({slot for slot in slots if slot is not None})
    wrt = [variant.place(i) for i in range(len(arguments.numbers))]
    numbers = variant.inputs([float(number) for number in arguments.numbers])

    def program() -> Any:
        made = variant.program.select(used).gradient(wrt)
        return made.select(list(range(len(used), len(used) + len(wrt))))

    def pull(cotangent: Any) -> Any:
        given = flatten(cotangent)
        if len(given) != len(slots):
            raise ValueError(f"vjp: the result holds {len(slots)} numbers, the cotangent {len(given)}")
        if any(isinstance(c, Value) and c.requires_grad for c in given):
            eager = transforms.vjp(compiled.eager, *arguments.wrapped(), has_aux=has_aux, as_values=compiled.as_values)
            return eager[1](cotangent)
        along = dict.fromkeys(used, 0.0)
        for slot, c in zip(slots, given, strict=True):
            if slot is not None:
                along[slot] += float(c.data if isinstance(c, Value) else c)
        gradients = iter(_kept(variant, ("vjp", has_aux), program).run([*numbers, *along.values()]))
        shaped = tuple([
            None if arguments.is_static(n) else map_structure(lambda _: next(gradients), arg, lambda leaf: None)
            for n, arg in enumerate(arguments.args)
        ])  # fmt: skip
        return shaped[0] if len(shaped) == 1 else shaped

    return (value, pull, aux) if has_aux else (value, pull)


def jvp(compiled: Compiled, arguments: Arguments, tangents: Sequence[Any], has_aux: bool) -> Any:
    """transforms.jvp of a compiled function."""
    _need_a_number("jvp", arguments)
    variant, outputs = compiled.find(arguments)
    if variant.is_traced():
        return transforms.jvp(compiled.eager, arguments.wrapped(), tangents, has_aux, compiled.as_values)
    value, aux, structure, slots = _split("jvp", variant, outputs, has_aux)
    count, outs = len(arguments.numbers), variant.program.counts[1]
    directions = [float(t) for t in flatten(tuple(tangents))]
    if len(directions) != count:
        raise ValueError(f"jvp: primals hold {count} numbers, tangents {len(directions)}")
    wrt = [variant.place(i) for i in range(count)]

    def program() -> Any:
        return variant.program.tangent(wrt).select(list(range(outs, 2 * outs)))

    numbers = variant.inputs([float(number) for number in arguments.numbers])
    along = _kept(variant, ("jvp",), program).run([*numbers, *directions])
    derivative = Result(structure, slots).fill(along)
    return (value, derivative, aux) if has_aux else (value, derivative)
