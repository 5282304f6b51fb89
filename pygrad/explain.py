"""explain: the chain rule spelled out, path by path and factor by factor. Knows the table's formulas as text."""

from __future__ import annotations

import ast
import functools
import sys
from typing import Any, NamedTuple

from pygrad import _core
from pygrad._core import Value
from pygrad.ops import LETTERS, TABLE

__all__ = ["Explanation", "explain"]

MOST_COUNTED = (
    10**15
)  # paths double with every `y + y`: exact counts would be numbers of as many bits as the graph is deep


class Factor(NamedTuple):
    """One step of a path: the derivative of a node by one of its operands."""

    child: str
    parent: str
    formula: str
    number: float


class Explanation(NamedTuple):
    """What explain found. str() of it is the text, and raises nothing.

    root and target are the names of the two Values, value and gradient the floats y.data and dy/dwrt. Each path is the
    list of its factors from y down to wrt, empty where y is wrt itself. path_count is the number of all paths, exact up
    to 10**15; it is 10**15 + 1 wherever there are more.

    >>> from pygrad import Value, explain
    >>> x = Value(3.0)
    >>> y = x * x
    >>> found = explain(y, wrt=x)
    >>> found.gradient, found.path_count
    (6.0, 2)
    >>> found.paths[0]
    [Factor(child='y = mul(x, x)', parent='d/da', formula='b', number=3.0)]
    """

    root: str
    target: str
    value: float
    gradient: float
    paths: list[list[Factor]]
    path_count: int

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(y: Value, wrt: Value, *, names: dict[str, Value] | None = None, limit: int = 8) -> Explanation:
    """Every path from wrt to y, each factor as formula and number, their products, and the sum of the products.

    Names of Values are those of the caller's variables, or given as {name: Value}. At most `limit` paths are spelled
    out; how many there are in all is counted, exactly up to 10**15, and the gradient is that of all of them. Where
    paths are left out, the products shown do not add up to the gradient, and the text says so.

    Raises TypeError where y or wrt is no Value, GraphError where the graph has been released.

    >>> from pygrad import Value, explain
    >>> x, w, b = Value(2.0), Value(-0.5), Value(0.3)
    >>> y = x * w + b
    >>> print(explain(y, wrt=w))
    dy/dw = 2.0, by 1 path
      y = add(mul, b): d/da = 1
      mul(x, w): d/db = a = 2.0
      product: 1 * 2.0 = 2.0
    """
    for what, node in (("y", y), ("wrt", wrt)):
        if not isinstance(node, Value):
            raise TypeError(f"explain: {what} must be a Value, found {node!r}")
    known = names if names is not None else sys._getframe(1).f_locals
    labels = {id(node): name for name, node in known.items() if isinstance(node, Value) and not name.startswith("_")}
    order = _order(y)
    counts = _count_paths(order, wrt)
    gradient = _gradient(order, y, wrt)
    paths = _paths(y, wrt, counts, limit, labels)
    return Explanation(
        labels.get(id(y), "y"), labels.get(id(wrt), "wrt"), y.data, gradient, paths, counts.get(id(y), 0)
    )


def _gradient(order: list[Value], y: Value, wrt: Value) -> float:
    """dy/dwrt; the .grad of all nodes stays as it was."""
    kept = [(node, node.grad) for node in order if node is wrt or node.parents]
    find = _core.gradients_graph if isinstance(wrt.grad, Value) else _core.gradients  # the former keeps a Value there
    try:
        return float(find(y, [wrt])[0])
    finally:
        for node, grad in kept:
            if not isinstance(grad, Value):
                node.grad = grad


def _order(y: Value) -> list[Value]:
    """Depth-first post-order, parents first."""
    order, met, stack = [], {id(y)}, [(y, iter(y.parents))]
    while stack:
        node, parents = stack[-1]
        parent = next(parents, None)
        if parent is None:
            order.append(node)
            stack.pop()
        elif id(parent) not in met:
            met.add(id(parent))
            stack.append((parent, iter(parent.parents)))
    return order


def _count_paths(order: list[Value], wrt: Value) -> dict[int, int]:
    """Paths from each node down to wrt, by id; MOST_COUNTED + 1 stands for any larger number."""
    counts = {id(wrt): 1}
    for node in order:
        if node is not wrt:
            total = sum(counts.get(id(operand), 0) for operand in _core.operands(node) if isinstance(operand, Value))
            if total:
                counts[id(node)] = min(total, MOST_COUNTED + 1)
    return counts


def _paths(y: Value, wrt: Value, counts: dict[int, int], limit: int, labels: dict[int, str]) -> list[list[Factor]]:
    """The first `limit` paths, operands from left to right, without recursion."""
    found: list[list[Factor]] = []
    # A step is (its factor, the step before): paths share what they have in common.
    stack: list[tuple[Value, Any]] = [(y, None)] if id(y) in counts else []
    while stack and len(found) < limit:
        node, step = stack.pop()
        if node is wrt:
            path = []
            while step is not None:
                factor, step = step
                path.append(factor())
            found.append(path[::-1])
            continue
        operands = _core.operands(node)
        for i in reversed(range(len(operands))):
            if isinstance(operands[i], Value) and id(operands[i]) in counts:
                stack.append((operands[i], (functools.partial(_factor, node, operands, i, labels), step)))
    return found


def _label(operand: Any, labels: dict[int, str]) -> str:
    if not isinstance(operand, Value):
        return f"{operand:.6g}"
    return labels.get(id(operand), operand.op if operand.op != "leaf" else f"{operand.data:.6g}")


def _factor(node: Value, operands: tuple[Any, ...], i: int, labels: dict[int, str]) -> Factor:
    shown = [_label(operand, labels) for operand in operands]
    if len(shown) > 4:
        shown = [*shown[:2], "...", shown[-1]]
    name = labels.get(id(node))
    child = f"{name + ' = ' if name else ''}{node.op}({', '.join(shown)})"
    formula, number = _partial(node, operands, i)
    return Factor(child, f"d/d{LETTERS[i] if len(operands) <= len(LETTERS) else i}", formula, number)


def _partial(node: Value, operands: tuple[Any, ...], i: int) -> tuple[str, float]:
    """The local derivative: its formula, with the branch that was taken and without the adjoint, and its number."""
    numbers = [o.data if isinstance(o, Value) else o for o in operands]
    row = TABLE.get(node.op) if _core.custom_of(node) is None else None
    if node.op == "sum":
        return "1", 1.0
    if node.op == "dot":
        return f"operand {i ^ 1}", numbers[i ^ 1]
    if row is None or len(operands) != row.arity:
        return "backward_fn", _probe(node, i)
    number = _core.evaluate_vjp(row.name, 1.0, node.data, *numbers)[i]
    letters = dict(zip(LETTERS, numbers, strict=False)) | {"y": node.data, "g": 1.0}
    return ast.unparse(_Simplify(letters).visit(ast.parse(row.gradients[i], mode="eval"))), number


def _probe(node: Value, i: int) -> float:
    """The partial of a node with a gradient of the user's, from one step of it with an adjoint of 1."""
    parents = [operand for operand in _core.operands(node) if isinstance(operand, Value)]
    kept = [(value, value.grad) for value in (node, *parents)]
    try:
        for value, _ in kept:
            value.grad = 0.0
        node.grad = 1.0
        step = node.backward_fn
        assert step is not None  # a node with operands has a step
        step()
        return float(_core.operands(node)[i].grad)
    finally:
        for value, gradient in kept:
            value.grad = float(gradient)


class _Simplify(ast.NodeTransformer):
    """The formula with g = 1: zmul(g, p) is p, and select(...) is the branch that these numbers take."""

    def __init__(self, letters: dict[str, float]) -> None:
        self.letters = letters

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "select":
            taken = eval(compile(ast.Expression(node.args[0]), "<select>", "eval"), self._functions(), self.letters)
            branch: ast.AST = self.visit(node.args[1] if taken else node.args[2])
            return branch
        node.args = [self.visit(arg) for arg in node.args]
        if name == "zmul" and isinstance(node.args[0], ast.Constant) and node.args[0].value == 1:
            return node.args[1]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(1) if node.id == "g" else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, ast.Constant) and one.value == 1:
                    return other
        return node

    def _functions(self) -> dict[str, Any]:
        from pygrad.ops import FUNCTIONS

        return {"__builtins__": {}, **FUNCTIONS}


def _shorten(path: list[Factor], most: int = 12) -> list[Factor | None]:
    if len(path) <= most:
        return list(path)
    return [*path[: most // 2], None, *path[-most // 2 :]]


def _product(path: list[Factor]) -> float:
    product = 1.0
    for factor in path:
        product *= factor.number
    return product


def _number(x: float) -> str:
    return "1" if x == 1.0 else repr(x)


def _lines(found: Explanation) -> list[str]:
    countless = found.path_count > MOST_COUNTED
    ways = "more than 10**15 paths" if countless else f"{found.path_count} path{'' if found.path_count == 1 else 's'}"
    lines = [f"d{found.root}/d{found.target} = {found.gradient!r}, by {ways}"]
    products = []
    for k, path in enumerate(found.paths, 1):
        if found.path_count > 1:
            lines.append(f"  path {k}")
        for factor in _shorten(path):
            if factor is None:
                lines.append(f"    ... {len(path) - 12} more factors")
                continue
            equals = "" if factor.formula == _number(factor.number) else f" = {_number(factor.number)}"
            lines.append(f"  {factor.child}: {factor.parent} = {factor.formula}{equals}")
        products.append(_product(path))
        shown = " * ".join("..." if f is None else _number(f.number) for f in _shorten(path)) or "1"
        lines.append(f"  product: {shown} = {_number(products[-1])}")
    if found.path_count > len(found.paths):
        rest = "all the other" if countless else f"{found.path_count - len(found.paths)} more"
        lines.append(f"  ... and {rest} paths; the gradient is the sum over all of them")
    elif len(products) > 1:
        lines.append(f"  sum: {' + '.join(_number(p) for p in products)} = {found.gradient!r}")
    return lines
