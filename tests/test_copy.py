"""copy, deepcopy and pickle: the graph under a Value anew, shared nodes shared, at any depth.

Next: copies.py, which has the ways to copy and to compare.
"""

import copy
import random

import pytest
from copies import WAYS, description, dumped, leaves_of, logistic, mixed, ways
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import GraphError, Value, no_grad


@ways
def test_the_graph_is_the_same(anew):
    y = mixed()
    y.backward()
    made = anew(y)
    assert made is not y
    assert description([made]) == description([y])
    for node in leaves_of(y) + leaves_of(made):
        node.zero_grad()
    y.backward()
    made.backward()
    assert description([made]) == description([y])
    assert not {id(n) for n in leaves_of(y)} & {id(n) for n in leaves_of(made)}


@ways
def test_leaves(anew):
    for number in (1.5, -0.0, float("inf"), 5e-324):
        v = Value(number)
        v.grad = 2.5
        made = anew(v)
        assert (repr(made), made.requires_grad, made.parents, made.op) == (repr(v), True, (), "leaf")
    frozen = anew(Value(1.0, requires_grad=False))
    assert not frozen.requires_grad
    assert repr(anew(Value(float("nan")))) == "Value(data=nan, grad=0.0)"


@ways
def test_what_is_shared_stays_shared(anew):
    x = Value(3.0)
    a, b = x * 2, x * 3
    c = a + b
    for roots in ([c, a, b, x], [x, b, a, c], [a, c, x, b], [a, b]):
        assert description(anew(roots)) == description(roots)
        assert description(anew(tuple(roots))) == description(roots)
    made = anew({"b": b, "c": c, "list": [x, x, a]})
    assert description([made["b"], made["c"], *made["list"]]) == description([b, c, x, x, a])
    made_x, made_c = anew([x, c])
    made_c.backward()
    assert (made_x.grad, x.grad) == (5.0, 0.0)


@ways
def test_roots_in_any_order(anew):
    x, w = Value(2.0), Value(3.0)
    nodes = [x, w, x * w]
    for _ in range(8):
        nodes.append(nodes[-1] * nodes[-3] + nodes[-2])
    for seed in range(20):
        roots = random.Random(seed).sample(nodes, 6)
        assert description(anew(roots)) == description(roots)


@ways
def test_within_other_objects(anew):
    class_of = {"model": {"w": [Value(1.0), Value(2.0)], "steps": 3}}
    made = anew(class_of)
    assert [v.data for v in made["model"]["w"]] == [1.0, 2.0]
    assert made["model"]["steps"] == 3


def test_a_shallow_copy_shares_its_parents():
    x = Value(3.0)
    y = x * x
    y.backward()
    made = copy.copy(y)
    assert made is not y
    assert (made.data, made.grad, made.op, made.parents) == (9.0, 1.0, "mul", (x, x))
    assert made.parents[0] is x
    made.backward()
    assert x.grad == 12.0
    leaf = copy.copy(x)
    assert (leaf.data, leaf.grad, leaf.requires_grad) == (3.0, 12.0, True)
    leaf.data = 5.0
    assert x.data == 3.0
    many = copy.copy(pygrad.sum([x, 1.0, x]))
    assert (many.op, many.parents, many.data) == ("sum", (x, x), 7.0)
    custom = copy.copy(logistic(x))
    assert (custom.op, custom.parents) == ("logistic", (x,))


@ways
def test_a_copy_is_independent(anew):
    x = Value(3.0)
    y = x * x
    made = anew(y)
    made.parents[0].data = 100.0
    y.backward()
    assert (x.data, x.grad, made.parents[0].grad) == (3.0, 6.0, 0.0)


@ways
def test_second_derivatives_of_a_copy(anew):
    made = anew(Value(2.0) ** 3)
    made.backward(create_graph=True)
    slope = made.parents[0].grad
    made.parents[0].zero_grad()
    slope.backward()
    assert made.parents[0].grad == 12.0


@ways
def test_after_create_graph(anew):
    x = Value(2.0)
    y = x**3
    y.backward(create_graph=True)
    made = anew(y)
    assert (made.data, float(made.parents[0].grad)) == (8.0, 12.0)
    slope = anew(x.grad)
    assert slope.data == 12.0
    leaf = anew(x)
    assert float(leaf.grad) == 12.0


@ways
def test_under_no_grad(anew):
    y = mixed()
    with no_grad():
        made = anew(y)
        assert not pygrad.is_grad_enabled()
    assert description([made]) == description([y])


@ways
def test_a_write_since_forward_stays_noticed(anew):
    x = Value(2.0)
    y = x * x + 1
    x.data = 5.0
    made = anew(y)
    for node in (y, made):
        with pytest.raises(GraphError, match="written after the node was made"):
            node.backward()
    z = copy.copy(y.parents[0])
    with pytest.raises(GraphError, match="written after the node was made"):
        z.backward()


@ways
def test_a_released_graph(anew):
    x = Value(2.0)
    y = x * x
    z = y * 3
    z.backward(retain_graph=False)
    for node in (z, y):
        with pytest.raises(GraphError, match="released"):
            anew(node)
        with pytest.raises(GraphError, match="released"):
            copy.copy(node)
    assert anew(x).data == 2.0


@ways
def test_a_million_deep(anew):
    x = Value(1.0)
    y = x
    for _ in range(1_000_000 if anew in WAYS[:1] + WAYS[5:7] else 100_000):
        y = y * 1.000001
    made = anew(y)
    assert made.data == y.data
    y.backward()
    made.backward()
    node = made
    while node.parents:
        (node,) = node.parents
    assert (node.data, node.grad) == (1.0, x.grad)


@ways
def test_many_operands(anew):
    leaves = [Value(float(k)) for k in range(1000)]
    made = anew(pygrad.sum(leaves) + pygrad.dot(leaves, leaves))
    made.backward()
    assert [v.grad for v in made.parents[0].parents] == [1.0 + 2.0 * k for k in range(1000)]
    assert anew(pygrad.sum([Value(1.0)])).op == "sum"


numbers = st.floats(allow_nan=False, width=32)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "mul", "exp", "sum", "fma", "relu", "custom"]), st.integers(0, 99), st.integers(0, 99)
    ),
    max_size=25,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=4), steps, st.randoms())
def test_drawn_graphs(data, drawn, rng):
    nodes = [Value(x) for x in data]
    for op, i, k in drawn:
        a, b = nodes[i % len(nodes)], nodes[k % len(nodes)]
        nodes.append({
            "add": lambda a=a: a + 1.5, "mul": lambda a=a, b=b: a * b, "exp": lambda a=a: a.exp(),
            "sum": lambda a=a, b=b: pygrad.sum([a, 2.0, b, a]), "fma": lambda a=a, b=b: pygrad.fma(a, 0.5, b),
            "relu": lambda a=a: a.relu(), "custom": lambda a=a: logistic(pygrad.clip(a, -9.0, 9.0)),
        }[op]())  # fmt: skip
    roots = [rng.choice(nodes) for _ in range(4)]
    expected = description(roots)
    assert description(copy.deepcopy(roots)) == expected
    for protocol in (0, 2, 5):
        assert description(dumped(protocol)(roots)) == expected
