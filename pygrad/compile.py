"""compile: a function captured as programs, and replayed without Python. See Note [Variants] in variants.py.

Owns the call of a compiled function: from arguments to numbers, from numbers to a result. A transform of a compiled
function is compiled too: derivatives.py makes its programs out of those of the function, which does not run again.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pygrad import _core, cc, derivatives, saving, transforms
from pygrad._core import Program, Value
from pygrad.arguments import Arguments, Static, static_of
from pygrad.batch import Recycled, map_lanes
from pygrad.derivatives import Derivative
from pygrad.errors import CaptureError
from pygrad.modes import enable_grad
from pygrad.results import Result
from pygrad.structures import flatten, map_structure
from pygrad.variants import Tree, Variant

__all__ = ["Compiled", "compile"]


class Compiled(_core.Replayer, transforms.Transformable):
    """A function that is replayed: made by pygrad.compile, and by transforms of what that made.

    Call it as the function. Results are floats in the structure that the function returned; an array of Values becomes
    an array of float64.
    """

    def __init__(
        self, f: Callable[..., Any], *, as_values: bool = False, static: Sequence[int | str] = (), variants: int = 256,
        backend: str | None = None, derivative: Derivative | None = None,
    ) -> None:  # fmt: skip
        if backend not in (None, "cc"):
            raise ValueError(f"compile: backend must be None, for the interpreter, or 'cc', found {backend!r}")
        if backend == "cc":
            cc.compiler()  # CompilerError now rather than at the first call
        self.backend = backend
        functools.update_wrapper(self, f, updated=())  # what hangs on f stays there
        self.function = f
        self.as_values = as_values
        self.static = static_of(f, static)
        self.limit = variants
        self.name = getattr(f, "__name__", repr(f))
        self.vectors = derivative.vectors if derivative else 0
        self.derivative = derivative
        self._trees: dict[Any, Tree] = {}
        self._examples: dict[Any, Any] = {}
        self.recycled = Recycled()
        self._latest: Tree | None = None
        self._elements: Compiled | None = None

    @property
    def eager(self) -> Callable[..., Any]:
        """The function as part of a graph around it; made anew, lest a cycle leave the programs to the collector."""
        if self.derivative:
            return self.function
        return functools.wraps(self.function)(lambda *args, **kwargs: self._on_values(args, kwargs))

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that the Replayer did not know how to replay."""
        arguments = Arguments(args, kwargs, self.static, self.vectors)
        if self._is_inside(arguments.numbers):
            return self.eager(*arguments.wrapped(), **kwargs)
        variant, outputs = self.find(arguments)
        if variant.is_traced():
            return self.eager(*arguments.wrapped(), **kwargs)
        is_plain = isinstance(variant.program, Program) and not variant.outside
        if is_plain and not kwargs and not self.static and (recipe := variant.result.recipe()) is not ...:
            self.remember(args, variant.program, recipe)
        return variant.result.fill(outputs)

    @staticmethod
    def _is_inside(numbers: list[Any]) -> bool:
        """Whether the call is part of a graph around it: then the function is recorded there."""
        return _core.is_capturing() or any(isinstance(v, Value) and v.requires_grad for v in numbers)

    def _on_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function run as part of a graph around it. It gets Values here too, constant ones for floats; of a call
        that holds constants alone, what does not depend on anything else comes out as floats, as from a replay."""
        args = tuple([arg.held if type(arg) is Static else arg for arg in args])
        arguments = Arguments(args, kwargs, self.static, self.vectors)
        lifted = [v if isinstance(v, Value) else Value(v, requires_grad=False) for v in arguments.numbers]
        filled, named = arguments.filled(iter(lifted), self.as_values)
        result = self.function(*filled, **named)
        if any(v.requires_grad for v in lifted):
            return result
        return map_structure(lambda v: v.data if isinstance(v, Value) and not v.requires_grad else v, result)

    def find(self, arguments: Arguments) -> tuple[Variant, list[float]]:
        """The variant for these arguments, which is captured if it is a new one, and its outputs."""
        tree = self.tree(arguments)
        numbers = [float(v.data if isinstance(v, Value) else v) for v in arguments.numbers]
        found = tree.find(numbers, lambda: self._capture(arguments))
        self._latest = tree
        return found

    def _capture(self, arguments: Arguments) -> Variant:
        variant = self._captured(arguments) if self.derivative is None else self.derivative.variant(arguments)
        if self.backend == "cc" and isinstance(variant.program, Program):
            cc.attach(variant.program)
        return variant

    def _captured(self, arguments: Arguments) -> Variant:
        inputs = [Value(float(v.data if isinstance(v, Value) else v)) for v in arguments.numbers]
        args, kwargs = arguments.filled(iter(inputs), self.as_values)

        def run() -> tuple[list[Any], Any]:
            outputs: list[Any] = []

            def take(number: Any) -> Any:
                if not isinstance(number, (Value, float, np.floating)):
                    return number  # an int that guards hold to
                outputs.append(number if isinstance(number, Value) else float(number))
                return 0.0

            structure = map_structure(take, self.function(*args, **kwargs), self._check_leaf)
            return outputs, structure

        with enable_grad():  # a derivative may be asked for later
            program, outside, structure = _core.capture(run, inputs)
        result = Result(structure, list(range(program.counts[1])))
        return Variant(program, outside, len(inputs), result)

    def _check_leaf(self, leaf: Any) -> Any:
        """A part of the result that is neither number nor structure: it is given again as it is."""
        inside = [*gc.get_referents(leaf), *getattr(leaf, "__dict__", {}).values()]
        if isinstance(leaf, Iterator) or any(isinstance(held, Value) for held in inside):
            raise CaptureError(
                f"compile: {self.name} returned {type(leaf).__name__}, in which a replay could not renew the numbers; "
                "return lists, tuples, dicts, dataclasses or arrays of them"
            )
        return leaf

    def capture(self, *args: Any, **kwargs: Any) -> Compiled:
        """Captures ahead of time for arguments like these, and gives the function itself."""
        self.find(Arguments(args, kwargs, self.static, self.vectors))
        return self

    def tree(self, arguments: Arguments) -> Tree:
        """The variants for the structure of these arguments."""
        tree = self._trees.get(arguments.key)
        if tree is None:
            tree = self._trees.setdefault(arguments.key, Tree(self.name, self.limit))
            self._examples.setdefault(arguments.key, arguments.skeleton())
        return tree

    def captured(self) -> list[tuple[Any, Tree]]:
        """What was captured: for each structure arguments that have it, with zeros for numbers, and its variants."""
        return [(self._examples[key], tree) for key, tree in list(self._trees.items()) if tree.variants]

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        return Arguments(args, kwargs, self.static, self.vectors)

    def variant(self, arguments: Arguments) -> Variant:
        tree = self.tree(arguments)
        if tree.only is None:
            return self.find(arguments)[0]
        self._latest = tree
        return tree.only

    def map(
        self, *args: Any, threads: int | None = None, executor: Any = None, out: Any = None,
        reduction: str | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """The function over a batch: arrays among the arguments have a leading axis of lanes, numbers are shared.

        An array of shape (n,) stands for a number in each of n lanes, one of shape (n, ...) for nested lists (with
        as_values for an array). Results are arrays with the axis of lanes in front, in the structure of the function's
        result: one of shape (n,) for a number, (n, ...) for a list or array of numbers. Of a sparse Jacobian (data of
        shape (n, entries), indices, indptr). Ints come out as floats too, since another lane may have others.

        Lanes run in blocks without the GIL, in as many threads as there are cores with enough to do for each, unless
        `threads` says how many, or in pieces through `executor`, any that has submit() as concurrent.futures have it.
        Neither changes a bit of what a lane gives (docs/limits.md tells of lanes at the very edge of a branch).
        Elementary functions are NumPy's,
        within the ulps of tests/contract.py of a single call. A batch whose lanes branch differently is split by
        variant. With `out`, arrays of float64 in the structure of the result, with any strides, are filled.

        With reduction="sum" results are summed over the lanes, and have no axis for them: a number comes out as a
        float, a list or array of numbers as an array, a sparse Jacobian as one matrix. Results of single lanes are not
        kept, so that a gradient by thousands of shared parameters costs no more than its arithmetic. The order of the
        additions follows from the number of lanes alone, so that threads and executors change no bit of a sum.

        Raises TypeError where no argument is an array, ValueError where lanes differ in number, or there are none.

        >>> import numpy as np
        >>> import pygrad
        >>> f = pygrad.compile(lambda x, a: a * x if x > 0 else -x)
        >>> f.map(np.array([1.0, -2.0, 3.0]), 10.0)
        array([10.,  2., 30.])
        >>> pygrad.grad(f).map(np.array([1.0, -2.0, 3.0]), 10.0)
        array([10., -1., 10.])
        >>> loss = pygrad.compile(lambda w, x, y: (w[0] * x + w[1] - y) ** 2)
        >>> pygrad.value_and_grad(loss).map([2.0, 1.0], np.array([0.0, 1.0]), np.array([3.0, 2.0]), reduction="sum")
        (5.0, array([ 2., -2.]))
        """
        return map_lanes(self, args, kwargs, threads, executor, out, reduction)

    # ---- elsewhere ----

    def to_c(self, path: Any, *args: Any, name: str | None = None) -> None:
        """Writes the program for arguments like these, or without any the one that `program` gives, as a C99 file.

        It declares `int name(const double *inputs, double *outputs)`, which gives -1, or the number of the first guard
        that did not hold: then the function takes another way for these inputs. No allocation, no dependency but libm;
        with -ffp-contract=off the numbers are those of a replay. `name` is by default that of the function. Where there
        is much to keep, as in long loops, the function is `name_with` and takes the memory from its caller: the head of
        the file says so.

        Raises ValueError where C cannot use the name, TypeError for a Jacobian by seeds and where ops of the user's are
        called.
        """
        arguments = Arguments(args, {}, self.static, self.vectors) if args else None
        program = self.variant(arguments).program if arguments else self.program
        if not isinstance(program, Program):
            raise TypeError(
                f"to_c: {self.name} is a Jacobian too large to be written out; write its function or gradient"
            )
        chosen = name or ("".join(c if c.isalnum() and c.isascii() else "_" for c in self.name).strip("_") or "f")
        Path(path).write_text(program.to_c(chosen), encoding="utf-8")

    def save(self, path: Any) -> None:
        """Writes what was captured so far to a file, which pygrad.load reads: programs and structures, no function.

        Raises TypeError for structures that a file cannot hold, where Values from outside are read at each call, and
        where ops of the user's are called.
        """
        saving.save(self, path)

    def __reduce__(self) -> Any:
        return saving.reduce(self)

    # ---- looking at it ----

    @property
    def program(self) -> Program:
        """The program of the last call that met something new; print it to see its instructions.

        Raises RuntimeError before the first.
        """
        if self._latest is None or self._latest.last is None:
            raise RuntimeError(f"compile: {self.name} has not been captured yet; call it, or use capture(*args)")
        return self._latest.last.program

    def stats(self) -> dict[str, Any]:
        """Of `program` what the passes did and what a run needs, and how many variants there are."""
        program = self.program
        assert self._latest is not None
        return {**program.stats(), "variants": len(self._latest.variants), "structures": len(self._trees)}

    @property
    def is_sparse(self) -> bool:
        return self.derivative is not None and self.derivative.sparse

    def __repr__(self) -> str:
        return f"<compiled {self.name}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    # ---- transforms of it ----

    def transform(self, name: str, **options: Any) -> Compiled:
        """A transform of this function as a compiled one: transforms.py asks for it."""
        if name == "hessian":
            inner = self.transform("grad", **{**options, "sparse": False}, label="hessian")
            return inner.transform("jacobian", **{**options, "as_values": False}, label="hessian")
        base = self.over_elements() if options.get("as_values") else self
        derivative = Derivative(name, base, **options)
        return Compiled(
            derivative.eager(), as_values=base.as_values, static=tuple(base.static), variants=base.limit,
            backend=base.backend, derivative=derivative,
        )  # fmt: skip

    def over_elements(self) -> Compiled:
        """This function with as_values; made once, so that its captures are kept."""
        if self.as_values:
            return self
        if self._elements is None and self.derivative is not None:
            self._elements = self.derivative.over_elements()
        elif self._elements is None:
            self._elements = Compiled(
                self.function, as_values=True, static=tuple(self.static), variants=self.limit, backend=self.backend
            )  # fmt: skip
        return self._elements

    def vjp(self, args: tuple[Any, ...], has_aux: bool, as_values: bool) -> Any:
        if as_values and not self.as_values:
            return self.over_elements().vjp(args, has_aux, True)
        arguments = Arguments(args, {}, self.static, self.vectors)
        if self._is_inside(arguments.numbers):
            return transforms.vjp(self.eager, *arguments.wrapped(), has_aux=has_aux, as_values=self.as_values)
        return derivatives.vjp(self, arguments, has_aux)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool, as_values: bool) -> Any:
        if as_values and not self.as_values:
            return self.over_elements().jvp(primals, tangents, has_aux, True)
        arguments = Arguments(tuple(primals), {}, self.static, self.vectors)
        if self._is_inside([*arguments.numbers, *flatten(tuple(tangents))]):
            return transforms.jvp(self.eager, arguments.wrapped(), tangents, has_aux, self.as_values)
        return derivatives.jvp(self, arguments, tangents, has_aux)


def compile(
    f: Callable[..., Any] | None = None, *, as_values: bool = False, static: Sequence[int | str] = (),
    variants: int = 256, backend: str | None = None,
) -> Any:  # fmt: skip
    """`f` as a function that is captured as a program at its first call, and replayed from then on.

    Arguments are numbers, or nested lists, tuples, dicts and dataclasses of them, and so are results. Numbers are
    inputs; everything else, and the arguments named in `static` (positions or names), belongs to the structure: another
    structure is another capture. With as_values an ndarray is handed to f as nested lists of Values.

    What f reads from elsewhere is frozen at the capture, but for Values that require a gradient: their data are read at
    each call. Each truth or integer that Python takes from a number (`if x > 0`, `int(x)`, `max`) guards the program;
    where a guard fails, f is captured anew and both are kept, up to `variants` of them.

    Replayed results equal those of f on Values to the last bit. Transforms of what comes back (grad, value_and_grad,
    jacobian, hessian, hvp, vjp, jvp) are compiled too. Called with Values, or within another transform or capture, f
    runs as it is. Works as a decorator, with or without options.

    With backend="cc" each program, and that of each derivative, is compiled by the C compiler that is found. That takes
    seconds, and runs several times as fast, with the same results. Programs of more than 50,000 instructions are left
    to the interpreter, which is faster there; map goes on in blocks of lanes.

    Raises CompilerError where backend is "cc" and no C compiler is found. Raises CaptureError where f takes a number
    out of the graph (float(x), x.data), or never settles.

    >>> import pygrad
    >>> @pygrad.compile
    ... def f(x, y):
    ...     return x * y if x > y else pygrad.sin(x)
    >>> f(3.0, 2.0), f(0.0, 2.0), f(5.0, 2.0)
    (6.0, 0.0, 10.0)
    >>> pygrad.grad(f)(3.0, 2.0)
    2.0
    """
    if f is None:
        return functools.partial(compile, as_values=as_values, static=static, variants=variants, backend=backend)
    if isinstance(f, Compiled) and (as_values, static, variants, backend) == (False, (), 256, None):
        return f
    if isinstance(f, Compiled):
        raise TypeError(f"compile: {f!r} is compiled already; give the options where it is")
    if not callable(f):
        raise TypeError(f"compile: needs a function, found {f!r}")
    return Compiled(f, as_values=as_values, static=static, variants=variants, backend=backend)
