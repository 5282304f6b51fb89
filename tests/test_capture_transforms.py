"""Captures: what cuts a graph is no constant, and transforms inside one replay bit for bit, on every branch."""

import itertools
import random

import pytest
from captures import capture, replayed, same, same_bits, text_of
from domains import FEW_SPECIALS, ORDERS, in_domain, samples

import pygrad
from pygrad import Value, custom_op, detect_anomaly, enable_grad, math, no_grad, stop_gradient, structures
from pygrad.ops import FUNCTIONS, TABLE

INF = float("inf")


# ---- what cuts a graph


CUTS = [
    lambda x: x.detach(),
    stop_gradient,
    no_grad(lambda x: x * 1.0),
    no_grad(lambda x: pygrad.sum([x])),
    no_grad(lambda x: math.sin(x) + x - math.sin(x)),
    pygrad.frozen,
]


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_graph_is_no_constant(cut):
    (x,), (y, at), guards = capture(lambda x: (x * cut(x * x), cut(x)), 2.0)
    assert not guards
    assert at.op == "frozen"
    assert at.requires_grad
    assert replayed([y], [x], [3.0]) == pytest.approx([27.0])
    y.backward()
    assert x.grad == pytest.approx(4.0)  # of the first factor alone


def test_enable_grad_records_again():
    def f(x):
        with no_grad():
            y = x * 2
            with enable_grad():
                z = x * 3
        return y, z

    (x,), (y, z), _ = capture(f, 2.0)
    assert (y.op, z.op) == ("frozen", "mul")
    (y + z).backward()
    assert x.grad == 3.0


def test_truths_and_steps_are_not_frozen_again():
    def f(x):
        with no_grad():
            return (
                (x < 3) & (x > 1),
                pygrad.floor(x),
                (x < 3).detach(),
                stop_gradient(2.0),
                Value(1.0, requires_grad=False) * 2,
            )

    _, (both, floor, truth, two, constant), _ = capture(f, 2.0)
    assert [both.op, floor.op, truth.op] == ["logical_and", "floor", "less"]
    assert two == 2.0
    assert not constant.requires_grad


def test_custom_ops_are_recorded():
    cube = custom_op(lambda a: a**3, lambda g, y, a: g * 3 * a * a, name="cube")

    def f(x):
        with no_grad():
            cut = cube(x)
        return cube(x), cut, pygrad.grad(cube)(x), pygrad.jvp(cube, (x,), (1.0,))[1]

    (x,), (y, cut, slope, tangent), guards = capture(f, 2.0)
    assert not guards
    assert (y.op, cut.op) == ("cube", "frozen")
    assert replayed([y, cut, slope, tangent], [x], [3.0]) == [27.0, 27.0, 27.0, 27.0]


def test_an_op_of_the_user_s_may_take_numbers_of_what_does_not_require_a_gradient():
    _, y, _ = capture(lambda x: x * Value(2.0, requires_grad=False).data, 3.0)
    assert y.data == 6.0


# ---- anomalies


def test_anomalies_are_found_during_a_capture():
    def f(x):
        with detect_anomaly():
            y = (x - 1).detach() < 3
            return pygrad.log(x), y

    _, (y, truth), _ = capture(f, 2.0)
    assert (y.op, truth.op) == ("log", "less")
    with pytest.raises(pygrad.AnomalyError, match=r"log: forward gave -inf from operands \(0.0,\), at .* in f$"):
        capture(f, 0.0)
    with detect_anomaly():
        capture(lambda x: x.detach(), INF)


# ---- transforms inside a capture


def points_of(row, count):
    highest = ORDERS.get(row.name, 0)
    rng = random.Random(row.name)
    few = FEW_SPECIALS if row.arity < 3 else FEW_SPECIALS[::2]
    found = [p for p in itertools.product(few, repeat=row.arity) if not highest or in_domain(row, p)]
    return rng.sample(found, min(count, len(found))) + samples(row, count, seed=3)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_gradients_of_every_row_replay_bit_for_bit(row):
    """On whichever branch of the formulas the capture was, and with whichever zeros."""
    op = FUNCTIONS[row.name]
    every = tuple(range(row.arity))

    def first(*operands):
        value, gradients = pygrad.value_and_grad(op, every)(*operands)
        return [value, *gradients]

    def forward(*operands):
        ones = tuple(float(i + 1) for i in every)
        return list(pygrad.jvp(op, operands, ones))

    points = points_of(row, 40)
    for f in (first, forward):
        expected = [f(*point) for point in points]
        for start in points[::13]:
            leaves, found, guards = capture(f, *start)
            assert not guards
            for point, numbers in zip(points, expected, strict=True):
                if row.name == "copysign" and point[1] != point[1]:
                    continue
                again = replayed(found, leaves, point)
                assert all(map(same_bits, again, numbers)), (f.__name__, start, point, again, numbers)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_second_derivatives_of_every_row_replay(row):
    op = FUNCTIONS[row.name]
    points = [p for p in points_of(row, 16) if row.name != "copysign" or p[1] == p[1]]

    def f(*operands):
        if row.domain[0] == "N":
            return [pygrad.grad(pygrad.grad(lambda x: op(operands[0], x)))(operands[1])]
        return [h for rows in pygrad.hessian(lambda x: op(*x))(list(operands)) for h in rows]

    expected = [f(*point) for point in points]
    for start in points[::11]:
        leaves, found, guards = capture(f, *start)
        assert not guards
        for point, numbers in zip(points, expected, strict=True):
            again = replayed(found, leaves, point)
            assert all(same(x, y) for x, y in zip(again, numbers, strict=True)), (start, point, again, numbers)


def rosenbrock(x):
    return pygrad.sum([100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x)])


def kinks(x):
    return math.prod([pygrad.relu(v) + pygrad.maximum(v, 0.5) * abs(v) for v in x]) + math.hypot(*x)


@pytest.mark.parametrize("f", [rosenbrock, kinks], ids=["rosenbrock", "kinks"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: pygrad.grad(f)(x),
        lambda f, x: [pygrad.value_and_grad(f)(x)[0], *pygrad.value_and_grad(f)(x)[1]],
        lambda f, x: structures.flatten(pygrad.hessian(f)(x)),
        lambda f, x: structures.flatten(pygrad.jacobian(lambda v: [f(v), v[0] * f(v)])(x)),
        lambda f, x: pygrad.jacobian(lambda v: [f([v, *x[1:]]), v * v])(x[0]),
        lambda f, x: list(pygrad.jvp(f, (x,), ([1.0, 2.0, 3.0],))),
        lambda f, x: list(pygrad.jvp(f, ([1.0, 2.0, 3.0],), (x,))),
        lambda f, x: [pygrad.vjp(f, x)[0], *pygrad.vjp(f, x)[1](2.0)],
        lambda f, x: pygrad.vjp(f, [1.0, 2.0, 3.0])[1](x[0]),
        lambda f, x: pygrad.hvp(f)(x, [1.0, 0.0, -1.0]),
        lambda f, x: [pygrad.grad(lambda v: v * f([v, *x[1:]]))(2.0)],
        lambda f, x: [pygrad.grad(lambda v: v * stop_gradient(f(x)))(2.0)],
        lambda f, x: no_grad(pygrad.grad(f))(x),
        lambda f, x: list(no_grad(lambda: pygrad.jvp(f, (x,), ([1.0, 2.0, 3.0],)))()),
        lambda f, x: structures.flatten(no_grad(pygrad.hessian(f))(x)),
        lambda f, x: [no_grad(pygrad.value_and_grad(f))(x)[0]],
    ],
)  # fmt: skip
def test_transforms_inside_a_capture_replay(f, transform):
    def run(*x):
        return transform(f, list(x))

    start = (0.7, -1.2, 2.1)
    leaves, found, guards = capture(run, *start)
    assert not guards
    assert all(v.requires_grad for v in found if isinstance(v, Value))  # some second derivatives are 0.0 everywhere
    for numbers in (start, (-0.3, 0.2, 0.6), (1.5, 2.5, -0.1)):
        assert replayed(found, leaves, numbers) == [float(v) for v in run(*numbers)]


def test_transforms_under_no_grad_give_what_no_gradient_goes_through():
    def f(x):
        with no_grad():
            value, slope = pygrad.value_and_grad(lambda v: v * v * v)(x)
            row = pygrad.jacobian(lambda v: [v * v, v])(x)
            other = pygrad.grad(lambda v: v * x)(5.0)
        return [value, slope, *row[:1], other]

    (x,), found, _ = capture(f, 2.0)
    assert [v.op for v in found] == ["frozen"] * 4
    assert replayed(found, [x], [3.0]) == [27.0, 27.0, 6.0, 3.0]
    pygrad.sum(found).backward()
    assert x.grad == 0.0


def test_transforms_of_constants_give_floats():
    def f(x):
        value, slope = pygrad.value_and_grad(lambda v: v * v)(3.0)
        assert (type(value), type(slope)) == (float, float)
        assert pygrad.jacobian(lambda v: [v, v * v])(2.0) == [1.0, 4.0]
        assert pygrad.hessian(lambda v: v[0] * v[1])([2.0, 3.0]) == [[0.0, 1.0], [1.0, 0.0]]
        assert pygrad.jvp(pygrad.relu, (3.0,), (1.0,)) == (3.0, 1.0)
        return x * slope

    assert capture(f, 1.0)[1].data == 6.0


def test_an_extra_result_that_depends_on_the_outside_stays_a_node():
    def f(x):
        slope, extra = pygrad.grad(lambda v: (v * v, {"outer": x * 2, "inner": v + 1}), has_aux=True)(3.0)
        assert slope == 6.0
        assert extra["inner"] == 4.0
        return extra["outer"]

    leaves, y, _ = capture(f, 1.0)
    assert replayed([y], leaves, [5.0]) == [10.0]


def test_float_inside_a_transform_inside_a_capture_keeps_its_own_error():
    text = text_of(lambda x: pygrad.grad(lambda v: v * float(v))(3.0), error=TypeError)
    assert text.startswith("float(): a Value that is being differentiated")
