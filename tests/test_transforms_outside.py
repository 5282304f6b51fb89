"""What of a transform's results is a float and what a Value: a Value where it depends on a Value from outside, alone.

Every pair of transforms, by every pair of arguments, plain, within a transform, and within a capture, against the
derivatives of a monomial, which are exact.
"""

import itertools
import math as stdlib_math

import pytest
from compiled import same

import pygrad
from pygrad import Value, enable_grad, grad, hessian, hvp, jacobian, jvp, no_grad, value_and_grad, vjp

# Each takes a function of x and y, and gives its derivative by argument n, a function of x and y.
FIRST = {
    "grad": grad,
    "value_and_grad": lambda f, n: lambda x, y: value_and_grad(f, n)(x, y)[1],
    "grad of both": lambda f, n: lambda x, y: grad(f, (0, 1))(x, y)[n],
    "vjp": lambda f, n: lambda x, y: vjp(f, x, y)[1](1.0)[n],
    "jvp": lambda f, n: lambda x, y: jvp(f, (x, y), (float(n == 0), float(n == 1)))[1],
    "jvp of one": lambda f, n: (
        lambda x, y: jvp((lambda v: f(v, y)) if n == 0 else lambda v: f(x, v), ([x, y][n],), (1.0,))[1]
    ),
    "jacobian": jacobian,
    "jacobian forwards": lambda f, n: lambda x, y: jacobian(lambda *at: [f(*at), at, 1.0], n)(x, y)[0],
}
SECOND = {
    "hessian": hessian,
    "hvp": lambda f, n: lambda x, y: hvp(f, n)(x, y, 1.0),
    "hessian of both": lambda f, n: lambda x, y: hessian(f, (0, 1))(x, y)[n][n],
}
ALL = {**FIRST, **SECOND}
PAIRS = list(itertools.product(ALL, ALL, (0, 1), (0, 1)))


def monomial(x, y):
    return x * x * x * x * x * (y * y * y * y)


def derivative(i, j, x, y):
    """d/dx, i times, of d/dy, j times, of the monomial."""
    return stdlib_math.perm(5, i) * x ** (5 - i) * stdlib_math.perm(4, j) * y ** (4 - j)


def orders(outer, inner, m, n):
    by = [0, 0]
    by[m] += 2 if outer in SECOND else 1
    by[n] += 2 if inner in SECOND else 1
    return by


@pytest.mark.parametrize(("outer", "inner", "m", "n"), PAIRS)
def test_any_pair_by_any_arguments(outer, inner, m, n):
    twice = ALL[outer](ALL[inner](monomial, n), m)
    i, j = orders(outer, inner, m, n)
    expected = derivative(i, j, 2.0, 3.0)
    assert same(twice(2.0, 3.0), expected)
    with no_grad():
        assert same(twice(2.0, 3.0), expected)
    # in a capture: floats of floats, and numbers that follow its inputs
    kinds = []
    fast = pygrad.compile(lambda x, y: (kinds.append(type(twice(2.0, 3.0))), twice(x, y))[1])
    assert same(fast(2.0, 3.0), expected)
    assert same(fast(1.0, 2.0), derivative(i, j, 1.0, 2.0))
    assert set(kinds) == {float}
    # of a Value outside: one that leads back to it
    for at, found in (((2.0, 3.0), (i + 1, j)), ((2.0, 3.0), (i, j + 1))):
        by_x = found[0] > i
        leaf = Value(at[not by_x])
        result = twice(leaf, at[1]) if by_x else twice(at[0], leaf)
        if max(found[0] - 5, found[1] - 4) > 0:  # a derivative that does not depend on it
            assert same(result, derivative(i, j, *at))
            continue
        result.backward()
        assert (result.data, leaf.grad) == (derivative(i, j, *at), derivative(*found, *at))


@pytest.mark.parametrize(("outer", "inner", "m", "n"), PAIRS)
def test_a_value_that_f_closes_over(outer, inner, m, n):
    """What depends on it is a Value. Where only the function does, and no derivative, there are floats."""
    w = Value(7.0)
    i, j = orders(outer, inner, m, n)
    scaled = ALL[outer](ALL[inner](lambda x, y: monomial(x, y) * w, n), m)(2.0, 3.0)
    assert type(scaled) is Value
    scaled.backward()
    assert (scaled.data, w.grad) == (7.0 * derivative(i, j, 2.0, 3.0), derivative(i, j, 2.0, 3.0))
    for shifted in (lambda x, y: monomial(x, y) + w, lambda x, y: w - (-monomial(x, y))):
        assert same(ALL[outer](ALL[inner](shifted, n), m)(2.0, 3.0), derivative(i, j, 2.0, 3.0))


@pytest.mark.parametrize("inner", FIRST)
@pytest.mark.parametrize("outer", FIRST)
def test_values_that_f_makes_are_constants(outer, inner):
    """As they are to what is captured."""

    def f(x, y):
        total = Value(0.0)
        for k in range(1, 4):
            total += x * y * Value(float(k))
        return total

    twice = ALL[outer](ALL[inner](f, 0), 1)
    assert same(twice(2.0, 3.0), 6.0)
    assert same(pygrad.compile(twice)(2.0, 3.0), 6.0)


def test_each_result_by_itself():
    w = Value(2.0)
    first, second = jacobian(lambda x: [x * w, x * x])(3.0)
    assert (type(first), second) == (Value, 6.0)
    assert type(second) is float
    value, slope = value_and_grad(lambda x: x + w)(3.0)
    assert (type(value), slope) == (Value, 1.0)
    aux = grad(lambda x: (x * x, [x * w, x, w]), has_aux=True)(3.0)[1]
    assert [type(v) for v in aux] == [Value, float, Value]
    assert aux[2] is w
    frozen = jacobian(lambda x: [x * w, Value(1.0, requires_grad=False)])(3.0)
    assert [type(v) for v in frozen] == [Value, float]
    value, slope = jvp(lambda x: [x * x * w, x], (3.0,), (1.0,))
    assert [type(v) for v in value + slope] == [Value, float, Value, float]
    value, pull = vjp(lambda x, y: [x * x * w, y], 3.0, 4.0)
    assert [type(v) for v in [*value, *pull([1.0, 1.0])]] == [Value, float, Value, float]


AUX = {
    "grad": lambda f, x: grad(f, has_aux=True)(x)[1],
    "value_and_grad": lambda f, x: value_and_grad(f, has_aux=True)(x)[0][1],
    "jacobian": lambda f, x: jacobian(f, has_aux=True)(x)[1],
    "hessian": lambda f, x: hessian(f, has_aux=True)(x)[1],
    "vjp": lambda f, x: vjp(f, x, has_aux=True)[2],
    "jvp": lambda f, x: jvp(f, (x,), (1.0,), has_aux=True)[2],
}


@pytest.mark.parametrize("inner", AUX.values(), ids=AUX)
@pytest.mark.parametrize("outer", FIRST)
def test_an_extra_result_that_alone_depends_on_the_outside(outer, inner):
    scaled = FIRST[outer](lambda w, y: inner(lambda x: (x * x, {"a": w * w * x, "b": x, "n": 3}), 5.0)["a"] * y, 0)
    assert same(scaled(2.0, 3.0), 2 * 2.0 * 5.0 * 3.0)
    assert same(inner(lambda x: (x * x, {"a": x, "n": 3, "none": None}), 5.0), {"a": 5.0, "n": 3, "none": None})


def test_pull_within_another_transform():
    """What the run of vjp left behind is no variable there."""
    _, pull = vjp(lambda y: grad(lambda x: x * x * y)(3.0) * y, 2.0)
    assert same(pull(1.0), 2 * 6.0 * 2.0)
    for outer in FIRST.values():
        assert same(outer(lambda c, d: pull(c * c) * d, 0)(5.0, 7.0), 2 * 5.0 * 7.0 * 24.0)
    assert same(pygrad.compile(lambda c: pull(c))(2.0), 48.0)
    c = Value(5.0)
    result = pull(c)
    result.backward()
    assert (result.data, c.grad) == (5 * 24.0, 24.0)
    with no_grad():
        _, pull = vjp(lambda y: y * y, 2.0)
    with enable_grad():
        pull(c).backward()
    assert c.grad == 24.0 + 4.0


def test_a_value_made_later_than_the_run_is_outside_of_what_comes_after():
    _, pull = vjp(lambda x: x * x, 3.0)
    c = Value(2.0)
    assert type(pull(c)) is Value
    assert type(grad(lambda x: x * c)(1.0)) is Value
    assert same(grad(lambda x: grad(lambda y: y * c)(x))(1.0), 0.0)


def test_deep_and_broad_results_settle():
    w = Value(2.0)

    def deep(x):
        y = x * w
        for _ in range(200_000):
            y = y + x
        return y

    value, slope = value_and_grad(deep)(1.0)
    assert (type(value), value.data) == (Value, 200_002.0)
    assert slope.data == 200_002.0
    assert [type(v) for v in jacobian(lambda x: [v * w for v in x])([1.0] * 3)[1]] == [float, Value, float]
