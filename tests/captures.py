"""Captures for the tests: to make one, and to compute what it recorded anew for other inputs, row by row."""

import math
import os
import re

import pytest

import pygrad
from pygrad import CaptureError, Value, _core

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def capture(f, *numbers):
    """f run on new leaves as a capture: (leaves, result, guards)."""
    leaves = [Value(number) for number in numbers]
    result, guards = _core.run_capture(lambda: f(*leaves), leaves)
    assert _core.capture_depth() == 0
    return leaves, result, guards


def replayed(results, leaves, numbers):
    """The numbers of the results, had the leaves these numbers."""
    found = dict(zip(map(id, leaves), numbers, strict=True))
    stack = [r for r in results if isinstance(r, Value)]
    while stack:
        node = stack[-1]
        operands = _core.operands(node)
        missing = [o for o in operands if isinstance(o, Value) and id(o) not in found]
        if missing:
            stack += missing
            continue
        stack.pop()
        if id(node) in found:
            continue
        given = [found[id(o)] if isinstance(o, Value) else o for o in operands]
        found[id(node)] = computed(node, given)
    return [found[id(r)] if isinstance(r, Value) else r for r in results]


def computed(node, given):
    if node.op == "leaf":
        return node.data
    if node.op == "sum":
        return pygrad.sum(given)
    if node.op == "dot":
        return pygrad.dot(given[::2], given[1::2])
    op = _core.custom_of(node)
    return op.value(*given) if op else _core.evaluate(node.op, *given)


def holds(guards, leaves, numbers):
    return all(same(x, expected) for (_, expected, *_), x in
               zip(guards, replayed([g[0] for g in guards], leaves, numbers), strict=True))  # fmt: skip


def same(x, y):
    return x == y or (x != x and y != y)


def same_bits(x, y):
    return (x != x and y != y) or (x == y and math.copysign(1, x) == math.copysign(1, y))


def kinds(guards):
    return [(node.op, expected, kind) for node, expected, kind, _ in guards]


def text_of(run, *numbers, error=CaptureError):
    """The text of the error that run(*leaves) raises in a capture, without its place, which is checked."""
    with pytest.raises(error) as caught:
        capture(run, *(numbers or (3.0,)))
    assert type(caught.value) is error
    assert _core.capture_depth() == 0
    assert not _core.is_capturing()
    text = str(caught.value)
    placed = re.fullmatch(rf"(.*?), at {re.escape(HERE)}\w+\.py:\d+ in (\S+): (.*)", text)
    if not placed:
        return text
    what, function, rest = placed.groups()
    assert function in ("<lambda>", run.__name__)
    return f"{what}: {rest}"
