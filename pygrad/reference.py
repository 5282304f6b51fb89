"""Reverse-mode automatic differentiation in plain Python: what the C core does, to be read first.

A Value is one number that remembers how it was computed: the op, and the operands. So the result of a computation
is the root of a graph whose leaves are the inputs. `backward` walks that graph from the root to the leaves and gives
each node its `grad`, the derivative of the root by that node: the chain rule, one node at a time.

    x = Value(2.0)
    y = x * x + x        # op "add" with parents (x * x, x)
    y.backward()
    x.grad               # 5.0

Next: `reference_ops.py`, the list of ops with the rule of each one's gradient. The tests hold the C core equal to
these two files, bit for bit; so the order of additions is part of what they say.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pygrad.reference_ops import (
    ALIASES,
    OPS,
    Op,
    abs,
    add,
    div,
    floordiv,
    is_real,
    mod,
    mul,
    neg,
    pos,
    pow,
    real,
    sub,
    zmul,
)


def both_ways(op: Op) -> tuple[Callable, Callable]:
    """The methods of an operator: for `self + other`, and for `other + self`."""

    def known(other: Any, modulo: tuple) -> bool:
        return (isinstance(other, Value) or is_real(other)) and not modulo  # pow(x, y, modulo) is for ints

    def forward(self: Value, other: Any, *modulo: Any) -> Any:
        return op(self, other) if known(other, modulo) else NotImplemented

    def reflected(self: Value, other: Any, *modulo: Any) -> Any:
        return op(other, self) if known(other, modulo) else NotImplemented

    return forward, reflected


def comparison(compare: Callable[[float, Any], bool]) -> Callable:
    """The method of a comparison: it compares numbers, never graphs."""

    def method(self: Value, other: Any) -> Any:
        known = isinstance(other, Value) or is_real(other)
        return compare(self.data, float(other)) if known else NotImplemented

    return method


_numbers = itertools.count()  # of the Values, in the order in which they are made


class Value:
    """A number of a graph: a leaf, or the result of an op on Values and plain numbers.

    `parents` are the operands that require grad. Other operands are constants, kept as floats. With `parents` given,
    the Value is the result of an op of the user's, who then sets `backward_fn` to a function that takes nothing and
    adds to the grad of each parent what the parent gets from this Value's own grad.
    """

    __slots__ = ("_closure", "_data", "_grad", "_number", "_op", "_operands", "_requires_grad", "parents")

    # Deep graphs: nothing here recurses, and neither does freeing a chain of a million Values. CPython puts off the
    # freeing of containers that are nested deeply (its "trashcan"), tuples and objects of Python classes alike.

    def __init__(self, data: Any, parents: Iterable[Value] = (), *, requires_grad: bool = True):
        parents = tuple(parents)
        for i, parent in enumerate(parents):
            if not isinstance(parent, Value):
                found = f"{parent!r} of type {type(parent).__name__} at {i}"
                raise TypeError(f"Value: parents must be Values, found {found}")
        self._number = next(_numbers)
        self._data = plain(data, "Value: data")
        self._grad: float | Value = 0.0
        self.parents = tuple(parent for parent in parents if requires_grad and parent.requires_grad)
        self._requires_grad = bool(self.parents if parents else requires_grad)
        self._op: Op | None = None  # None: a leaf, or an op of the user's
        self._operands: tuple | None = self.parents  # Values and floats; None: released
        self._closure: Callable[[], Any] | None = None  # of an op of the user's

    @staticmethod
    def record(op: Op, operands: Sequence) -> Value:
        """The result of `op` as a node of the graph. This is all that happens on the way forward."""
        numbers = op.numbers(operands)
        result = Value(op.value(*numbers), [x for x in operands if isinstance(x, Value)])
        if result.requires_grad:
            result._op = op
            result._operands = tuple(
                operand if isinstance(operand, Value) and operand.requires_grad else number
                for operand, number in zip(operands, numbers, strict=True)
            )
        return result

    # ---- attributes

    @property
    def data(self) -> float:
        return self._data

    @data.setter
    def data(self, x: Any) -> None:
        self._data = plain(x, "Value.data")

    @property
    def grad(self) -> float | Value:
        """The derivative of the root of the last backward by this Value; at a leaf, of all backwards so far."""
        return self._grad

    @grad.setter
    def grad(self, x: Any) -> None:
        self._grad = 0.0 if x is None else plain(x, "Value.grad")

    @property
    def op(self) -> str:
        return self._op.name if self._op else "leaf"

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if not wanted and (self.parents or self._op):
            raise RuntimeError(
                f"Value.requires_grad: only a leaf can be frozen, this is a node of op '{self.op}'; use detach()"
            )
        self._requires_grad = bool(wanted)

    @property
    def backward_fn(self) -> Callable[[], Any] | None:
        """This node's own step of the walk back: the rule of its op, or what the user set; None for a leaf."""
        return self._step if self._op else self._closure

    @backward_fn.setter
    def backward_fn(self, function: Callable[[], Any] | None) -> None:
        if function is not None and not callable(function):
            found = f"{function!r} of type {type(function).__name__}"
            raise TypeError(f"Value.backward_fn: must be callable or None, found {found}")
        if self.requires_grad and (self._op or not self.parents):
            raise RuntimeError(
                "Value.backward_fn: can be set on a node made by Value(data, parents), this is a node of op "
                f"'{self.op}' with a gradient of its own; make one with out = Value(data, parents)"
            )
        self._closure = function

    # ---- the way back

    def backward(self, grad: float = 1.0, *, retain_graph: bool = True, create_graph: bool = False) -> None:
        """Set the grad of every Value that this one was computed from; leaves add it to what they have.

        `retain_graph=False` lets the graph go. `create_graph=True` makes the grad of leaves a Value, which can be
        differentiated in turn. Raises RuntimeError where the walk is not possible.
        """
        grad = plain(grad, "backward: grad")
        if not self.requires_grad:
            raise RuntimeError(
                "backward: this Value does not require a gradient: it was made by detach(), or from operands that do "
                "not require one"
            )
        order = topological_order(self)
        walk_inside(order, grad, create_graph)
        for node in order:
            if create_graph:
                node._grad = float(node._grad) if node.parents else as_value(node._grad)
            if node.parents and not retain_graph:
                node.parents, node._operands, node._closure = (), None, None

    def _step(self, create_graph: bool = False) -> None:
        """The chain rule for one node: add to each operand's grad what this node's own grad contributes."""
        self._check(create_graph)
        if self._closure:
            self._closure()
            return
        if create_graph:  # a rule applied to Values records the graph of the gradient
            g, y, operands = self._grad, self, self._operands
        else:
            g, y, operands = float(self._grad), self.data, [float(x) for x in self._operands]
        for i, operand in enumerate(self._operands):
            if isinstance(operand, Value):
                before = operand._grad if create_graph else float(operand._grad)
                operand._grad = before + self._op.contribution(i, g, y, operands)

    def _check(self, create_graph: bool) -> None:
        """RuntimeError where this node has no step to take."""
        if self._operands is None:
            raise RuntimeError(
                f"backward: a node of op '{self.op}' has been released by an earlier backward(retain_graph=False); run "
                "the forward pass again, or leave retain_graph=True in the first call"
            )
        if self.parents and self.backward_fn is None:
            raise RuntimeError(
                f"backward: a node made by Value({self.data:g}, parents) has no backward_fn; assign a function that "
                "adds to the parents' .grad, or use detach() to cut the graph here"
            )
        if self._closure and create_graph:
            raise RuntimeError(
                "backward: a backward_fn adds numbers, so its gradient cannot be differentiated again; make the op "
                "with pygrad.custom_op, whose gradient may be written in terms of Values"
            )

    def zero_grad(self) -> None:
        self.grad = 0.0

    def detach(self) -> Value:
        """The same number, as a leaf that does not require grad."""
        return Value(self.data, requires_grad=False)

    # ---- operators

    __add__, __radd__ = both_ways(add)
    __sub__, __rsub__ = both_ways(sub)
    __mul__, __rmul__ = both_ways(mul)
    __truediv__, __rtruediv__ = both_ways(div)
    __floordiv__, __rfloordiv__ = both_ways(floordiv)
    __mod__, __rmod__ = both_ways(mod)
    __pow__, __rpow__ = both_ways(pow)

    def __divmod__(self, other: Any) -> tuple[Value, Value]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Value, Value]:
        return other // self, other % self

    def __neg__(self) -> Value:
        return neg(self)

    def __pos__(self) -> Value:
        return pos(self)

    def __abs__(self) -> Value:
        return abs(self)

    __eq__ = comparison(operator.eq)
    __ne__ = comparison(operator.ne)
    __lt__ = comparison(operator.lt)
    __le__ = comparison(operator.le)
    __gt__ = comparison(operator.gt)
    __ge__ = comparison(operator.ge)
    __hash__ = object.__hash__

    # ---- what a float can do, too; the result is a plain number, without a graph

    def __float__(self) -> float:
        return self.data

    def __int__(self) -> int:
        return int(self.data)

    def __bool__(self) -> bool:
        return self.data != 0

    def __round__(self, digits: int | None = None) -> float:
        return self.data.__round__(digits)

    def __floor__(self) -> int:
        return math.floor(self.data)

    def __ceil__(self) -> int:
        return math.ceil(self.data)

    def __trunc__(self) -> int:
        return math.trunc(self.data)

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else repr(self)

    def __repr__(self) -> str:
        return f"Value(data={self.data!r}, grad={float(self.grad)!r})"


def plain(x: Any, what: str) -> float:
    """A number that is to be no part of a graph, as a float."""
    if isinstance(x, Value):
        raise TypeError(f"{what}: must be a real number, found {x!r} of type Value; take its .data")
    return real(x, f"{what}: must be a real number")


def as_value(x: float | Value) -> Value:
    return x if isinstance(x, Value) else Value(x, requires_grad=False)


# ------------------------------------------------------------------------------------------------------ the walk back


def topological_order(root: Value) -> list[Value]:
    """`root` and all it was computed from, in the order in which they were made: each after its parents."""
    order, seen = [root], {root}
    for node in order:  # which grows on the way
        for parent in node.parents:
            if parent not in seen:
                seen.add(parent)
                order.append(parent)
    return sorted(order, key=lambda node: node._number)


def walk_back(order: list[Value], grad: float, create_graph: bool) -> None:
    """Give the last of `order`, the root, its grad, and take every node's step, from the root to the leaves."""
    for node in order:
        node._check(create_graph)
    for node in order:
        if node.parents:
            node._grad = 0.0
    root = order[-1]
    root._grad = grad if root.parents else float(root._grad) + grad
    for node in reversed(order):  # a node comes before its parents, so that its own grad is complete
        if node.parents:
            node._step(create_graph)


_walks_under_way: list[list[Value]] = []  # a closure of the user's may run a walk inside another


def walk_inside(order: list[Value], grad: float, create_graph: bool) -> None:
    """walk_back; inside another walk, which may be over the same nodes, interior grads are put back afterwards."""
    kept = {node: node._grad for node in order if node.parents} if _walks_under_way else {}
    _walks_under_way.append(order)
    try:
        walk_back(order, grad, create_graph)
    finally:
        _walks_under_way.pop()
        for node, before in kept.items():
            node._grad = before


def gradients(y: Value, wrt: Sequence[Value], create_graph: bool = False) -> list:
    """The derivatives of `y` by the Values `wrt`, 0 where `y` does not depend on one. No grad is changed.

    Floats, or Values with `create_graph=True`: gradients of gradients are then a matter of calling this again.
    """
    order = topological_order(y) if y.requires_grad else []
    kept = {node: node._grad for node in order}
    try:
        for node in order:
            node._grad = 0.0
        if order:
            walk_back(order, 1.0, create_graph)
        found = [node._grad if node in kept else 0.0 for node in wrt]
    finally:
        for node, grad in kept.items():
            node._grad = grad
    return [as_value(g) for g in found] if create_graph else found


# --------------------------------------------------------------------------------------- ops of any number of operands


class Sum(Op):
    """The sum of its operands, added from left to right, starting from 0.0."""

    def complete(self, operands: tuple, named: dict[str, Any]) -> tuple:
        return operands

    def contribution(self, i: int, g: Any, y: Any, operands: Any) -> Any:
        return g

    def place(self, i: int) -> str:
        return f"element {i}"


class Dot(Sum):
    """The sum of products of pairs. The operands alternate: a0, b0, a1, b1, ..."""

    def contribution(self, i: int, g: Any, y: Any, operands: Any) -> Any:
        return zmul(g, operands[i ^ 1])  # the other one of the pair

    def place(self, i: int) -> str:
        return f"element {i // 2}"


def _sum_value(*numbers: float) -> float:
    total = 0.0
    for a in numbers:
        total = total + a
    return total


def _dot_value(*numbers: float) -> float:
    total = 0.0
    for a, b in zip(numbers[::2], numbers[1::2], strict=True):
        total = total + a * b
    return total


_sum_op = Sum("sum", _sum_value)
_dot_op = Dot("dot", _dot_value)


def _elements(values: Any, name: str) -> list:
    if not hasattr(values, "__iter__"):
        found = f"{values!r} of type {type(values).__name__}"
        raise TypeError(f"{name}: needs an iterable of Values and real numbers, found {found}")
    return list(values)


def sum(values: Iterable) -> float | Value:
    """The sum of Values and numbers, as one node."""
    return _sum_op(*_elements(values, "sum"))


def dot(left: Iterable, right: Iterable) -> float | Value:
    """The sum of the products of pairs, one of `left` and one of `right`, as one node."""
    left, right = _elements(left, "dot"), _elements(right, "dot")
    if len(left) != len(right):
        raise ValueError(f"dot: operands must be equally long, found lengths {len(left)} and {len(right)}")
    return _dot_op(*[x for pair in zip(left, right, strict=True) for x in pair])


# ---------------------------------------------------------- every op, by each of its names, as function and as method


def method(op: Op) -> Callable:
    return lambda self, *operands, **named: op(self, *operands, **named)


for _name in [*OPS, *ALIASES]:
    globals()[_name] = OPS[ALIASES.get(_name, _name)]
    setattr(Value, _name, method(globals()[_name]))
