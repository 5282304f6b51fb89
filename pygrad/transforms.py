"""Transforms of functions: grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp. They know structures, and no op.

Every transform runs `f` once on fresh Values and differentiates the graph that this leaves.

Note [Nesting]. An argument that is a Value already belongs to an outer transform. The inner one differentiates with
respect to an identity node over it, which only this run of `f` can reach, so that perturbations are never confused,
and the outer graph stays connected. Where what `f` gives depends on something outside (such an argument, or a Value
that `f` closes over), gradients are computed as nodes, else as floats; of the nodes, those that depend on nothing
outside come out as floats too. A Value that `f` makes itself is not outside: see Note [Runs] in csrc/py_order.h.

Note [Captured]. While a function is captured, so that it can be replayed, what depends on something outside must stay a
node, under no_grad too: there the results are frozen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pygrad import _core
from pygrad._core import Value
from pygrad.errors import GraphError
from pygrad.modes import enable_grad
from pygrad.structures import flatten, is_number, map_array, map_structure, nested_lists, refill

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]


class Transformable:
    """A function that makes its own transforms: a compiled one (compile.py)."""

    def transform(self, name: str, **options: Any) -> Callable[..., Any]:
        """grad, value_and_grad, jacobian, hessian or hvp of it, with the options of those."""
        raise NotImplementedError

    def vjp(self, args: tuple[Any, ...], has_aux: bool, as_values: bool) -> Any:
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool, as_values: bool) -> Any:
        raise NotImplementedError


class Run:
    """One run of `f` on Values: the inputs that are differentiated, and what came out.

    Without argnums all arguments are differentiated, and those without a number are passed on.
    """

    def __init__(
        self, name: str, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argnums: Any,
        has_aux: bool, as_values: bool,
    ) -> None:  # fmt: skip
        self.name = name
        self.as_values = as_values
        self.all = argnums is None
        self.single = isinstance(argnums, (int, np.integer)) or (self.all and len(args) == 1)
        self.positions = positions_of(name, argnums, len(args))
        self.given = [args[n] for n in self.positions]
        self.inputs: list[Any] = []
        self.met_other = False
        self.flat: Any = None  # the type of the last argument that is a plain sequence of floats
        self.nested = False
        self.graph = False
        recording = _core.is_grad_enabled()
        call = list(args)
        self.number = _core.begin_run()
        self.outside = _core.enter_trace() or recording  # whether what is outside can matter; in a capture it does
        self.frozen = self.outside and not recording
        _core.set_no_grad(False)
        try:
            for position in self.positions:
                call[position] = self._lift(args[position])
            if self.all and self.met_other and not self.inputs:
                raise TypeError(f"{name}: found no number to differentiate in the arguments {shown(tuple(args))}")
            out = f(*call, **kwargs)
        finally:
            _core.set_no_grad(not recording)
            _core.leave_trace()
        self.aux = None
        if has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise TypeError(f"{name}: with has_aux=True the function must return (result, aux), found {shown(out)}")
            out, self.aux = out
        self.out = out

    def _lift(self, arg: Any) -> Any:
        """An argument with its numbers as fresh Values; an array, with as_values, as nested lists of them."""
        if type(arg) is float:
            return self._lift_number(arg)
        values = _core.lift_flat(arg) if self.as_values or type(arg) is not np.ndarray else None
        if values:
            self.flat = type(arg)
            self.inputs += values
            return values
        before, met, self.met_other = len(self.inputs), self.met_other, False
        lifted = map_structure(self._lift_number, arg, self._lift_other, self._lift_array)
        if self.met_other and len(self.inputs) == before and not self.all:
            raise TypeError(f"{self.name}: found no number to differentiate in argument {shown(arg)}")
        self.met_other |= met
        return lifted

    def _lift_number(self, number: Any) -> Any:
        value = +number if isinstance(number, Value) else Value(number)
        self.nested |= isinstance(number, Value) and number.requires_grad
        if not value.requires_grad:
            value = Value(value.data)
        self.inputs.append(value)
        return value

    def _lift_other(self, leaf: Any) -> Any:
        self.met_other = True
        return leaf

    def _lift_array(self, array: Any, mapped: Callable[[Any], Any]) -> Any:
        """Without as_values an array is an error: it will be a Tensor, and there are none yet."""
        if not self.as_values:
            raise TypeError(
                f"{self.name}: found an array of shape {array.shape}; pass as_values=True to differentiate with "
                "respect to its elements (the function gets nested lists of Values), or convert it with .tolist()"
            )
        return nested_lists(array, mapped)

    def needs_graph(self, roots: list[Any]) -> bool:
        """Whether a result depends on something outside: see Note [Nesting]. Under no_grad nothing does."""
        self.graph = self.outside and (self.nested or any(isinstance(v, Value) for v in self.settled(roots)))
        return self.graph

    def settled(self, numbers: list[Any], run: int | None = None) -> list[Any]:
        """Numbers as floats, but for Values that depend on something outside; those are frozen under no_grad."""
        found = _core.settled(numbers, run or self.number, self.inputs)
        return [v.detach() if isinstance(v, Value) else v for v in found] if self.frozen else found

    def shape(self, gradients: Sequence[Any]) -> Any:
        """Gradients, one an input, in the structure of the arguments: of one argument itself, of several a tuple."""
        if self.single and type(self.given[0]) is float:
            return gradients[0]
        if self.single and self.flat and not self.graph:
            return np.asarray(gradients) if self.flat is np.ndarray else self.flat(gradients)
        numbers = iter(gradients)
        shaped = [refill(arg, numbers, lambda leaf: None) for arg in self.given]
        return shaped[0] if self.single else tuple(shaped)

    def result(self, out: Any, graph: bool) -> Any:
        """What came out, as floats; with `graph`, but for what depends on something outside."""
        if type(out) is float:
            return out
        if type(out) is Value and not graph:
            return out.data
        changed = [v for v in flatten(out) if isinstance(v, (Value, np.floating))]
        if not changed:
            return out
        floats = [v if isinstance(v, Value) else float(v) for v in changed]
        settled = iter(self.settled(floats) if graph else [v.data if isinstance(v, Value) else v for v in floats])
        return map_structure(lambda v: next(settled) if isinstance(v, (Value, np.floating)) else v, out)

    def scalar(self) -> Any:
        """What came out, which must be one number; an array of no dimension holds one."""
        if type(self.out) is Value:
            return self.out
        if isinstance(self.out, np.ndarray) and self.out.ndim == 0:
            self.out = self.out[()]
        if not is_number(self.out):
            raise TypeError(f"{self.name}: the function must return one number, found {shown(self.out)}; "
                            "use jacobian for several results, has_aux=True for extra ones")  # fmt: skip
        return self.out if isinstance(self.out, Value) else float(self.out)


def positions_of(name: str, argnums: Any, count: int) -> list[int]:
    """The positions that argnums names among `count` positional arguments; all of them for None."""
    if type(argnums) is int and 0 <= argnums < count:
        return [argnums]
    if argnums is None:
        return list(range(count))
    numbers = [argnums] if isinstance(argnums, (int, np.integer)) else argnums
    if not isinstance(numbers, (list, tuple, range)):
        raise TypeError(f"{name}: argnums must be an int or a sequence of ints, found {shown(argnums)}")
    for n in numbers:
        if not isinstance(n, (int, np.integer)) or not -count <= n < count:
            raise ValueError(f"{name}: argnums {n!r} does not name one of {count} positional arguments")
    positions = [int(n) % count for n in numbers]
    if len(set(positions)) < len(positions):
        raise ValueError(f"{name}: argnums {argnums!r} name an argument twice")
    return positions


def shown(x: Any) -> str:
    text = repr(x)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(x).__name__}"


def _gradients(root: Any, run: Run, graph: bool, number: int | None = None) -> list[Any]:
    if not graph:
        return _core.gradients(root, run.inputs)
    with enable_grad():
        gradients = _core.gradients_graph(root, run.inputs)
    return run.settled(gradients, number)


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, as_values: bool = False
) -> Callable[..., Any]:
    """A function that gives (f(...), gradient), the gradient in the structure of the argument `argnums`.

    Arguments are numbers, or nested lists, tuples, dicts and dataclasses of them; what is no number is passed on, and
    its gradient is None. Several argnums give a tuple of gradients. With has_aux, f returns (result, aux), and the
    first part of what comes back is (result, aux). With as_values an ndarray is handed to f as nested lists of Values,
    and its gradient is an ndarray of float64 and the same shape. Keyword arguments are constants.

    Results are floats; Values where they depend on Values outside, so that transforms nest.

    Raises TypeError where f does not return one number, and for an array without as_values.

    >>> from pygrad import value_and_grad
    >>> value_and_grad(lambda p: p["a"] * p["b"] ** 2)({"a": 3.0, "b": 2.0})
    (12.0, {'a': 4.0, 'b': 12.0})
    """
    if isinstance(f, Transformable):
        return f.transform("value_and_grad", argnums=argnums, has_aux=has_aux, as_values=as_values)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = Run("value_and_grad", f, args, kwargs, argnums, has_aux, as_values)
        value, gradient = _value_and_grad(run)
        return ((value, run.result(run.aux, run.outside)) if has_aux else value), gradient

    return differentiated


def _value_and_grad(run: Run) -> tuple[Any, Any]:
    """(value, gradient)."""
    box = [run.scalar()]
    run.out = None  # so that the box alone holds it, and the graph may be freed on the way
    (value,) = _core.numbers_of((box[0],))  # kept where nothing outside matters
    if not (run.outside and run.nested):
        out = np.empty(len(run.inputs)) if run.single and run.flat is np.ndarray else None
        gradients = _core.gradients(box, run.inputs, 1.0, run.number if run.outside else 0, out)
        if gradients is not None:
            return value, run.shape(gradients)
    run.graph = True  # since y depends on something outside
    return run.settled(box)[0], run.shape(_gradients(box[0], run, True))


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, as_values: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of f: see value_and_grad. With has_aux it gives (gradient, aux).

    >>> from pygrad import grad
    >>> grad(lambda x: x ** 3)(2.0)
    12.0
    >>> grad(grad(lambda x: x ** 3))(2.0)
    12.0
    """
    if isinstance(f, Transformable):
        return f.transform("grad", argnums=argnums, has_aux=has_aux, as_values=as_values)

    return grad_as("grad", f, argnums, has_aux, as_values)


def grad_as(name: str, f: Callable[..., Any], argnums: Any, has_aux: bool, as_values: bool) -> Callable[..., Any]:
    """grad, which errors call by another name; so is jacobian_as."""

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = Run(name, f, args, kwargs, argnums, has_aux, as_values)
        gradient = _value_and_grad(run)[1]
        return (gradient, run.result(run.aux, run.outside)) if has_aux else gradient

    return differentiated


def vjp(f: Callable[..., Any], *args: Any, has_aux: bool = False, as_values: bool = False) -> Any:
    """(f(*args), pull): pull(c) is the vector-Jacobian product of c, in the structure of the result, with f at args.

    pull gives one argument's product itself, of several arguments a tuple; it may be called any number of times. With
    has_aux, (result, pull, aux).

    >>> from pygrad import vjp
    >>> y, pull = vjp(lambda x, y: [x * y, x + y], 2.0, 3.0)
    >>> y, pull([1.0, 10.0])
    ([6.0, 5.0], (13.0, 12.0))
    """
    if isinstance(f, Transformable):
        return f.vjp(args, has_aux, as_values)
    run = Run("vjp", f, args, {}, None, has_aux, as_values)
    outputs = flatten(run.out)
    graph = run.needs_graph(outputs)

    def pull(cotangent: Any) -> Any:
        given = flatten(cotangent)
        if len(given) != len(outputs):
            raise ValueError(f"vjp: the result holds {len(outputs)} numbers, the cotangent {len(given)}")
        nested = graph or any(isinstance(c, Value) and c.requires_grad for c in given)
        with enable_grad():
            root = _core.dot(outputs, given)
        return run.shape(_gradients(root, run, nested, _core.begin_run()))

    value = run.result(run.out, graph)
    _core.end_run(run.inputs)  # which what `pull` gives may hold
    return (value, pull, run.result(run.aux, run.outside)) if has_aux else (value, pull)


def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False,
    as_values: bool = False,
) -> Any:  # fmt: skip
    """(f(*primals), derivative of f along tangents), in forward mode. Tangents have the structure of primals.

    With has_aux, (result, derivative, aux).

    >>> from pygrad import jvp
    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.5))
    (6.0, 4.0)
    """
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise TypeError("jvp: primals and tangents must be tuples or lists, one entry an argument of f")
    if isinstance(f, Transformable):
        return f.jvp(primals, tangents, has_aux, as_values)
    run = Run("jvp", f, tuple(primals), {}, None, has_aux, as_values)
    directions = [t if isinstance(t, Value) else float(t) for t in flatten(tuple(tangents))]
    if len(directions) != len(run.inputs):
        raise ValueError(f"jvp: primals hold {len(run.inputs)} numbers, tangents {len(directions)}")
    outputs = flatten(run.out)
    graph = run.needs_graph(outputs) or any(isinstance(t, Value) and t.requires_grad for t in directions)
    with enable_grad():
        derivatives = _core.tangents(outputs, run.inputs, directions, graph)
    result = refill(run.out, iter(run.settled(derivatives)))
    value = run.result(run.out, graph)
    return (value, result, run.result(run.aux, run.outside)) if has_aux else (value, result)


def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    as_values: bool = False,
    sparse: bool = False,
) -> Callable[..., Any]:
    """A function that gives the derivatives of every result of f by every number of the argument `argnums`.

    The result has the structure of f's result, with the structure of the argument in place of each number: a list of
    m functions of a list of n numbers gives m lists of n. With as_values and an ndarray argument, a list (nested or
    not) or array of results gives one ndarray of shape result + argument. Forward mode where the argument holds fewer
    numbers than the result, reverse mode otherwise.

    With sparse, of a compiled function, a CSR matrix of shape (numbers of the result, numbers of the argument) with the
    entries that may differ from zero: SciPy's where that is installed, else a tuple (data, indices, indptr).

    >>> from pygrad import jacobian
    >>> jacobian(lambda x: [x[0] * x[1], x[0] + x[1]])([2.0, 3.0])
    [[3.0, 2.0], [1.0, 1.0]]
    """
    if isinstance(f, Transformable):
        return f.transform("jacobian", argnums=argnums, has_aux=has_aux, as_values=as_values, sparse=sparse)
    if sparse:
        raise TypeError("jacobian: sparse=True needs a compiled function, in whose program the pattern is found; use "
                        "pygrad.compile(f)")  # fmt: skip

    return jacobian_as("jacobian", f, argnums, has_aux, as_values)


def jacobian_as(name: str, f: Callable[..., Any], argnums: Any, has_aux: bool, as_values: bool) -> Callable[..., Any]:
    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        run = Run(name, f, args, kwargs, argnums, has_aux, as_values)
        outputs = flatten(run.out)
        graph = run.needs_graph(outputs)
        rows = _rows(run, outputs, graph)
        shaped = _array(run, rows) if as_values else None
        if shaped is None:
            left = iter([run.shape(row) for row in rows])
            shaped = map_structure(lambda _: next(left), run.out, array=array_or_lists)
        return (shaped, run.result(run.aux, run.outside)) if has_aux else shaped

    return differentiated


def _rows(run: Run, outputs: list[Any], graph: bool) -> list[list[Any]]:
    """The derivatives of each output by each input, in the mode that takes fewer walks."""
    count = len(run.inputs)
    rows = None
    if 0 < count < len(outputs):
        try:
            with enable_grad():
                columns = [
                    run.settled(_core.tangents(outputs, run.inputs, [float(k == i) for k in range(count)], graph))
                    for i in range(count)
                ]
            rows = [list(row) for row in zip(*columns, strict=True)]
        except GraphError:
            pass  # a backward_fn runs backwards only
    if rows is None:
        rows = [_gradients(output, run, graph) for output in outputs]
    return rows


def _array(run: Run, rows: list[list[Any]]) -> Any:
    """One array of shape result + argument, where the argument is an array and the result a list or array."""
    if not (run.single and isinstance(run.given[0], np.ndarray)):
        return None
    shape = array_shape(run.out, len(rows))
    if run.name == "hessian" and len(rows) == run.given[0].size:
        shape = run.given[0].shape  # nested lists of nothing do not tell
    if shape is None:
        return None
    flat = [v for row in rows for v in row]
    array = np.empty(len(flat), dtype=object if any(isinstance(v, Value) for v in flat) else float)
    array[:] = flat
    return array.reshape(shape + run.given[0].shape)


def array_or_lists(array: Any, mapped: Callable[[Any], Any]) -> Any:
    """An array with something in place of each number: nested lists where that is no number."""
    made = map_array(array, mapped)
    return made if all(map(is_number, made.ravel().tolist())) else made.tolist()


def array_shape(out: Any, count: int) -> tuple[int, ...] | None:
    """The shape of the array that a list or array of `count` results makes; None for another structure."""
    if not isinstance(out, (list, tuple, np.ndarray)) or hasattr(out, "_fields"):
        return None
    try:
        shape = np.shape(map_structure(lambda _: 0.0, out))
    except ValueError:
        return None  # a ragged result stays nested
    return shape if np.prod(shape) == count else None


def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    as_values: bool = False,
    sparse: bool = False,
) -> Callable[..., Any]:
    """A function that gives the second derivatives of f, which returns one number: the Jacobian of its gradient.

    A list of n numbers gives n lists of n; with as_values an array of shape s gives one of shape s + s; with sparse, of
    a compiled function, a CSR matrix as from jacobian.

    >>> from pygrad import hessian
    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 5.0])
    [[10.0, 6.0], [6.0, 0.0]]
    """
    if isinstance(f, Transformable):
        return f.transform("hessian", argnums=argnums, has_aux=has_aux, as_values=as_values, sparse=sparse)
    if sparse:
        raise TypeError("hessian: sparse=True needs a compiled function, in whose program the pattern is found; use "
                        "pygrad.compile(f)")  # fmt: skip
    return jacobian_as("hessian", grad_as("hessian", f, argnums, has_aux, False), argnums, has_aux, as_values)


def hvp(f: Callable[..., Any], argnums: int = 0, as_values: bool = False) -> Callable[..., Any]:
    """A function of (*args, v) that gives the Hessian of f at args times v, without forming the Hessian.

    v has the structure of the argument `argnums`. The cost is a small multiple of that of f.

    >>> from pygrad import hvp
    >>> hvp(lambda x: x[0] ** 2 * x[1])([3.0, 5.0], [1.0, 0.0])
    [10.0, 6.0]
    """
    if isinstance(f, Transformable):
        return f.transform("hvp", argnums=argnums, as_values=as_values)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            raise TypeError(f"hvp: needs the arguments of the function and a vector, found {len(args)} in all")
        *args_of_f, vector = args
        run = Run("hvp", f, args_of_f, kwargs, argnums, False, as_values)
        directions = [v if isinstance(v, Value) else float(v) for v in flatten(vector)]
        if len(directions) != len(run.inputs):
            raise ValueError(f"hvp: the argument holds {len(run.inputs)} numbers, the vector {len(directions)}")
        y = run.scalar()
        graph = run.needs_graph([y]) or any(isinstance(v, Value) and v.requires_grad for v in directions)
        with enable_grad():
            first = _core.gradients_graph(y, run.inputs)
            slope = _core.dot(first, directions)
        return run.shape(_gradients(slope, run, graph))

    return differentiated
