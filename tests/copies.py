"""The ways to copy a Value, and what a copy is compared by.

Owns the list of ways, copy.deepcopy and every protocol of pickle; the description of a graph as plain data; and what
graphs are made of that must be found again by name: an op and a closure. Next: test_copy.py, test_copy_closures.py and
test_pickle.py.
"""

import copy
import io
import math as stdlib_math
import pickle

import pytest

import pygrad
from pygrad import Value, _core, custom_op

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

logistic = custom_op(lambda a: 1 / (1 + stdlib_math.exp(-a)), lambda g, y, a: g * y * (1 - y), name="logistic")


def dumped(protocol, pickler=pickle):
    return lambda x: pickler.loads(pickler.dumps(x, protocol))


class PythonPickle:
    """The pure-Python pickler and unpickler."""

    @staticmethod
    def dumps(x, protocol):
        file = io.BytesIO()
        pickle._Pickler(file, protocol).dump(x)
        return file.getvalue()

    @staticmethod
    def loads(data):
        return pickle._Unpickler(io.BytesIO(data)).load()


WAYS = [copy.deepcopy, *(dumped(p) for p in PROTOCOLS), *(dumped(p, PythonPickle) for p in (0, 2, 5))]
ways = pytest.mark.parametrize("anew", WAYS)


def description(roots):
    """The graph under some Values as plain data: what a copy must have in common with it."""
    order, places = [], {}
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if id(node) in places:
            continue
        operands = [o for o in _core.operands(node) if isinstance(o, Value)]
        missing = [o for o in operands if id(o) not in places]
        if missing:
            stack += [node, *reversed(missing)]
            continue
        places[id(node)] = len(order)
        order.append(node)
    table = [
        (node.op, repr(node.data), repr(node.grad), node.requires_grad, node.backward_fn is None,
         [places[id(o)] if isinstance(o, Value) else repr(o) for o in _core.operands(node)])
        for node in order
    ]  # fmt: skip
    return table, [places[id(root)] for root in roots]


def leaves_of(root):
    found, met, stack = [], set(), [root]
    while stack:
        node = stack.pop()
        if id(node) not in met:
            met.add(id(node))
            stack += node.parents
            if not node.parents:
                found.append(node)
    return found


def mixed():
    """A graph with every kind of node: unary to ternary, constants, n-ary, shared, custom, frozen."""
    x, w, frozen = Value(0.5), Value(-1.25), Value(3.0, requires_grad=False)
    s = x * w + 2.0
    t = 1.0 / s
    u = pygrad.where(s > 0, s.exp(), t)
    v = pygrad.sum([s, 1.5, t, s, u, frozen])
    z = pygrad.dot([s, v, 2.0], [t, 3.0, w])
    return logistic(z * 1e-3) + pygrad.fma(x, s, 0.25) + s**3 + frozen * x


class Step:
    """A picklable closure, as an object."""

    def __init__(self, x, out, more=None):
        self.x, self.out, self.more = x, out, more

    def __call__(self):
        self.x.grad += 6.0 * self.out.grad

    def method(self):
        self()
