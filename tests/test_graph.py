"""Order, accumulation, second backward, release, closures: what both engines promise about the graph."""

from __future__ import annotations

import math

import pytest

# ---------------------------------------------------------------- nodes


def test_a_leaf(engine):
    x = engine.Value(2)
    assert (x.data, x.grad, x.parents, x.op, x.requires_grad) == (2.0, 0.0, (), "leaf", True)
    assert isinstance(x.data, float) and x.backward_fn is None


def test_a_node_records_its_op_and_parents(engine):
    x, w = engine.Value(2.0), engine.Value(3.0)
    y = x * w
    assert y.op == "mul" and y.parents[0] is x and y.parents[1] is w and y.data == 6.0


def test_constants_are_no_parents(engine):
    x = engine.Value(2.0)
    assert (x * 3.0).parents == (x,) and (3.0 - x).parents == (x,) and len((x * x).parents) == 2


def test_frozen_values_are_constants(engine):
    x, w = engine.Value(2.0), engine.Value(3.0, requires_grad=False)
    y = x * w
    assert y.requires_grad and len(y.parents) == 1
    y.backward()
    assert (x.grad, w.grad) == (3.0, 0.0)
    z = w * w
    assert not z.requires_grad and z.op == "leaf" and z.parents == () and z.data == 9.0


def test_neuron(engine):
    x, w, b = engine.Value(2.0), engine.Value(-0.5), engine.Value(0.3)
    y = (x * w + b).tanh()
    y.backward()
    slope = 1 - y.data * y.data
    assert y.data == math.tanh(-0.7)
    assert (x.grad, w.grad, b.grad) == (slope * -0.5, slope * 2.0, slope)


def test_operators_and_their_reflected_forms(engine):
    x = engine.Value(4.0)
    cases = [(3 + x, 7, 1), (10 - x, 6, -1), (10 / x, 2.5, -0.625), (2**x, 16, 16 * math.log(2)), (x % 3, 1, 1),
             (9 // x, 2, 0), (True + x, 5, 1), (-x, -4, -1), (+x, 4, 1), (abs(-x), 4, 1), (x**2, 16, 8)]  # fmt: skip
    for y, value, slope in cases:
        x.zero_grad()
        y.backward()
        assert y.data == value and x.grad == pytest.approx(slope, rel=1e-15)
    assert [v.data for v in divmod(x, 3)] == [1.0, 1.0]


def test_augmented_assignment_makes_a_new_node(engine):
    x = engine.Value(2.0)
    y = x
    y *= 3
    y += 1
    assert (x.data, y.data) == (2.0, 7.0)
    y.backward()
    assert x.grad == 3.0


# ---------------------------------------------------------------- order and accumulation


def test_gradients_accumulate_over_uses(engine):
    a = engine.Value(2.0)
    b = 3 * a
    (b + b * b).backward()
    assert a.grad == 39.0


def test_a_node_used_twice_by_one_op(engine):
    x = engine.Value(3.0)
    (x * x).backward()
    assert x.grad == 6.0


def test_order_is_that_of_creation_reversed(engine):
    """Three consumers of x whose contributions do not commute in float arithmetic: the youngest adds first."""
    x = engine.Value(1.0)
    big, small, back = x * 1e16, x * 1.0, x * -1e16
    for total in (big + small + back, back + small + big):
        x.zero_grad()
        total.backward()
        assert x.grad == (0.0 + -1e16 + 1.0) + 1e16
    back, small, big = x * -1e16, x * 1.0, x * 1e16
    x.zero_grad()
    engine.sum([big, small, back]).backward(retain_graph=False)
    assert x.grad == (0.0 + 1e16 + 1.0) + -1e16


def test_order_through_closures_is_that_of_creation_reversed(engine):
    x = engine.Value(1.0)
    first = x * 1e16
    out = engine.Value(0.0, (x,))

    def step():
        x.grad += 1.0 * out.grad

    out.backward_fn = step
    last = x * -1e16
    (last + out + first).backward()
    assert x.grad == (0.0 + -1e16 + 1.0) + 1e16


def test_leaves_accumulate_over_calls_and_interior_nodes_do_not(engine):
    a = engine.Value(2.0)
    u = a * a
    y = 3 * u
    y.backward()
    assert (a.grad, u.grad, y.grad) == (12.0, 3.0, 1.0)
    y.backward()
    assert (a.grad, u.grad, y.grad) == (24.0, 3.0, 1.0)
    a.grad = 0
    y.backward()
    assert a.grad == 12.0


def test_backward_with_a_gradient(engine):
    x = engine.Value(2.0)
    y = x * x
    y.backward(0.5)
    assert (x.grad, y.grad) == (2.0, 0.5)
    x.backward(7)
    assert x.grad == 9.0


def test_backward_from_an_interior_node(engine):
    x = engine.Value(2.0)
    u = x * x
    y = u * 10
    u.backward()
    assert (x.grad, y.grad) == (4.0, 0.0)


def test_two_roots_share_a_graph(engine):
    x = engine.Value(2.0)
    u = x.exp()
    p, q = u * 2, u * 3
    p.backward()
    q.backward()
    assert x.grad == 2 * u.data + 3 * u.data


def test_sum_and_dot_are_one_node(engine):
    xs = [engine.Value(float(k)) for k in range(1, 4)]
    total = engine.sum(xs)
    assert total.op == "sum" and total.data == 6.0 and len(total.parents) == 3
    product = engine.dot(xs, [10.0, xs[0], xs[1]])
    assert product.op == "dot" and product.data == 10.0 + 2.0 + 6.0
    product.backward()
    assert [x.grad for x in xs] == [10.0 + 2.0, 1.0 + 3.0, 2.0]
    assert engine.sum([1.0, 2.0]) == 3.0 and isinstance(engine.sum([1.0, 2.0]), float)
    assert engine.sum([]) == 0.0 and engine.dot([], []) == 0.0


def test_sum_adds_from_left_to_right(engine):
    xs = [engine.Value(v) for v in (1e16, 1.0, -1e16)]
    assert engine.sum(xs).data == (0.0 + 1e16 + 1.0) - 1e16


def test_builtin_sum_and_prod(engine):
    xs = [engine.Value(2.0), engine.Value(5.0)]
    y = sum(xs) * math.prod(xs)
    y.backward()
    assert y.data == 70.0 and [x.grad for x in xs] == [10 + 7 * 5, 10 + 7 * 2]


def test_wide_and_long(engine):
    x = engine.Value(1.0)
    y = engine.sum([x * k for k in range(1000)])
    for _ in range(1000):
        y = y * 1.0
    y.backward()
    assert x.grad == sum(range(1000))


# ---------------------------------------------------------------- release


def test_retain_graph_false_releases(engine):
    x = engine.Value(3.0)
    u = x * x
    y = u + 1
    y.backward(retain_graph=False)
    assert x.grad == 6.0 and y.data == 10.0
    with pytest.raises(RuntimeError, match="released"):
        y.backward()
    with pytest.raises(RuntimeError, match="released"):
        (u * 2).backward()
    assert x.grad == 6.0
    (x * 2).backward()
    assert x.grad == 8.0


def test_a_root_that_requires_no_gradient(engine):
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        engine.Value(1.0, requires_grad=False).backward()


# ---------------------------------------------------------------- closures of the user's


def closure(engine, x):
    out = engine.Value(math.sinh(x.data), (x,))

    def step():
        x.grad += math.cosh(x.data) * out.grad

    out.backward_fn = step
    return out


def test_backward_fn(engine):
    x = engine.Value(0.5)
    out = closure(engine, x)
    assert out.parents == (x,) and out.op == "leaf"
    (out * 2).backward()
    assert x.grad == 2 * math.cosh(0.5)


def test_backward_fn_missing(engine):
    x = engine.Value(0.5)
    with pytest.raises(RuntimeError, match="no backward_fn"):
        (engine.Value(1.0, (x,)) * 2).backward()


def test_backward_fn_that_raises(engine):
    x, w = engine.Value(0.5), engine.Value(2.0)
    out = engine.Value(1.0, (x,))

    def step():
        raise KeyError("mine")

    out.backward_fn = step
    y = out * w
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    z = x * 3
    z.backward()
    assert x.grad == 3.0
    out.backward_fn = lambda: None
    w.zero_grad()
    y.backward()
    assert w.grad == 1.0


def test_backward_inside_backward(engine):
    x = engine.Value(3.0)
    inner = []
    out = engine.Value(9.0, (x,))

    def step():
        t = engine.Value(2.0)
        (t**2).backward()
        inner.append(t.grad)
        x.grad += 2 * x.data * out.grad

    out.backward_fn = step
    (out * 1.0).backward()
    assert x.grad == 6.0 and inner == [4.0]


def test_backward_fn_of_an_op_does_its_own_step(engine):
    x, w = engine.Value(2.0), engine.Value(5.0)
    y = x * w
    y.grad = 10.0
    y.backward_fn()
    assert (x.grad, w.grad) == (50.0, 20.0)


def test_backward_fn_cannot_replace_an_ops_gradient(engine):
    y = engine.Value(2.0) * 3
    with pytest.raises(RuntimeError, match="gradient of its own"):
        y.backward_fn = lambda: None


def test_constructor_drops_frozen_parents(engine):
    frozen = engine.Value(1.0, requires_grad=False)
    out = engine.Value(2.0, (frozen,))
    assert not out.requires_grad and out.parents == ()
    out.backward_fn = lambda: None  # nothing will call it


# ---------------------------------------------------------------- gradients without touching leaves


def test_gradients_touch_no_leaf(engine):
    x, w = engine.Value(2.0), engine.Value(5.0)
    x.grad, w.grad = 11.0, 12.0
    y = x * w + w
    assert engine.gradients(y, [x]) == [5.0]
    assert (x.grad, w.grad) in [(11.0, 12.0), (5.0, 12.0)]  # the core leaves its number on a target
    assert engine.gradients(y, [w, x]) == [3.0, 5.0]


def test_gradients_of_an_unused_value(engine):
    x, w = engine.Value(2.0), engine.Value(5.0)
    assert engine.gradients(x * 2, [w]) == [0.0]


def test_gradients_stop_at_interior_targets(engine):
    x = engine.Value(2.0)
    u = x * x
    assert engine.gradients(u * u + x, [u]) == [8.0]


# ---------------------------------------------------------------- gradients that are nodes


def test_create_graph(engine):
    x = engine.Value(0.7)
    y = x.sin() * x**3
    y.backward(create_graph=True)
    first = x.grad
    assert first.data == pytest.approx(math.cos(0.7) * 0.343 + 3 * 0.49 * math.sin(0.7), rel=1e-15)
    x.zero_grad()
    first.backward()
    second = -math.sin(0.7) * 0.343 + 6 * 0.49 * math.cos(0.7) + 6 * 0.7 * math.sin(0.7)
    assert x.grad == pytest.approx(second, rel=1e-14)


def test_create_graph_accumulates_and_is_forgotten(engine):
    x = engine.Value(3.0)
    y = x * x
    y.backward(create_graph=True)
    y.backward(create_graph=True)
    assert x.grad.data == 12.0
    y.backward()
    assert x.grad == 18.0 and isinstance(x.grad, float)
    x.zero_grad()
    assert x.grad == 0.0


def test_create_graph_of_a_linear_function(engine):
    x = engine.Value(3.0)
    (2 * x + 1).backward(create_graph=True)
    assert x.grad.data == 2.0
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        x.grad.backward()


def test_create_graph_refuses_a_closure(engine):
    x = engine.Value(0.5)
    with pytest.raises(RuntimeError, match="custom_op"):
        (closure(engine, x) * 2).backward(create_graph=True)


def test_a_masked_branch_has_a_clean_gradient(engine):
    where, log = engine.function("where"), engine.function("log")
    for number in (0.0, -1.0):
        x = engine.Value(number)
        y = where(x > 0, log(x), 0.0)
        y.backward()
        assert (y.data, x.grad) == (0.0, 0.0)


# ---------------------------------------------------------------- micrograd's program


def test_a_micrograd_program_runs_unchanged(engine):
    Value = engine.Value  # noqa: N806 - the class of that program

    class Neuron:
        def __init__(self, weights, bias):
            self.w, self.b = [Value(w) for w in weights], Value(bias)

        def __call__(self, x):
            act = sum((wi * xi for wi, xi in zip(self.w, x, strict=True)), self.b)
            return act.relu()

        def parameters(self):
            return [*self.w, self.b]

    data = [([1.0, 2.0], 1.0), ([-1.0, 0.5], -1.0), ([0.3, -0.7], 1.0)]
    neuron = Neuron([0.4, -0.2], 0.1)
    losses = []
    for _ in range(20):
        total = sum((neuron(x) - t) ** 2 for x, t in data)
        for p in neuron.parameters():
            p.grad = 0
        total.backward()
        for p in neuron.parameters():
            p.data -= 0.05 * p.grad
        losses.append(total.data)
    assert losses[-1] < losses[0] and losses == sorted(losses, reverse=True)
