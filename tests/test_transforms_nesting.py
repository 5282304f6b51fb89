"""Transforms of transforms: every pair, three deep, by reverse and forward mode, through Values from outside.

Derivatives are compared with analytic ones, exactly where the arithmetic is exact.
"""

import functools
import math as stdlib_math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp


def second_by(outer, inner):
    """d2/dx2 at 2 of x**5 by two transforms of scalars."""
    return outer(inner(lambda x: x**5))(2.0)


def by_jvp(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


def by_vjp(f):
    return lambda x: vjp(f, x)[1](1.0)


def by_value_and_grad(f):
    return lambda x: value_and_grad(f)(x)[1]


def by_list(f):
    """Through a jacobian with more results than inputs: forward mode."""
    return lambda x: jacobian(lambda y: [f(y), y, y])(x)[0]


FIRST = [grad, by_value_and_grad, by_vjp, by_jvp, jacobian, by_list]
SECOND = [hessian, lambda f: lambda x: hvp(f)(x, 1.0)]


@pytest.mark.parametrize("outer", FIRST)
@pytest.mark.parametrize("inner", FIRST)
def test_any_pair_of_first_derivatives(outer, inner):
    assert second_by(outer, inner) == 20.0 * 8.0
    # perturbations: d/dx [x * d/dy (x * y**2) at y = 2] = d/dx 4 x**2
    assert outer(lambda x: x * inner(lambda y: x * y * y)(2.0))(3.0) == 24.0
    # d/dx [d/dy (x + y) at y = x], whose inner derivative is 1
    assert outer(lambda x: x * inner(lambda y: x + y)(x))(3.0) == 1.0
    # d/dx [d/dy (y**2 * x) at y = x] = d/dx 2 x**2
    assert outer(lambda x: inner(lambda y: y * y * x)(x))(3.0) == 12.0
    # the inner function does not see its own variable at all
    assert outer(lambda x: inner(lambda y: x * x)(x))(3.0) == 0.0
    # exp: every derivative is the function
    assert outer(inner(pygrad.exp))(0.5) == pytest.approx(stdlib_math.exp(0.5), rel=1e-15)


@pytest.mark.parametrize("outer", FIRST + SECOND)
@pytest.mark.parametrize("inner", FIRST + SECOND)
def test_any_pair_of_any_order(outer, inner):
    order = 2 + (outer in SECOND) + (inner in SECOND)
    found = outer(inner(lambda x: x**6))(1.0)
    assert found == stdlib_math.perm(6, order)
    found = outer(inner(pygrad.sin))(0.3)
    assert found == pytest.approx(stdlib_math.sin(0.3 + order * stdlib_math.pi / 2), rel=1e-14)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("second", FIRST)
@pytest.mark.parametrize("third", [grad, by_jvp, by_list])
def test_three_deep(first, second, third):
    assert first(second(third(lambda x: x**4)))(2.0) == 48.0
    found = first(lambda x: second(lambda y: third(lambda z: x * x * y * y * z * z)(x * y))(x))(2.0)
    # third: 2 x**2 y**2 * (x y) = 2 x**3 y**3; second at y = x: 6 x**3 x**2 = 6 x**5; first: 30 x**4
    assert found == 480.0


def test_fourth_derivative():
    d = lambda f: grad(f)  # noqa: E731
    assert d(d(d(d(lambda x: x**6))))(1.0) == 360.0
    assert d(d(d(d(pygrad.sin))))(0.7) == pytest.approx(stdlib_math.sin(0.7), rel=1e-14)
    assert d(d(d(d(pygrad.tanh))))(0.0) == pytest.approx(0.0, abs=1e-15)
    assert d(d(d(d(lambda x: pygrad.exp(2 * x)))))(0.5) == pytest.approx(16 * stdlib_math.e, rel=1e-14)
    assert d(d(d(d(lambda x: 1 / x))))(2.0) == 24.0 / 32.0


def test_differentiating_with_respect_to_two_levels():
    f = lambda x, y: x**2 * y**3  # noqa: E731
    assert grad(lambda x: grad(f, argnums=1)(x, 2.0))(3.0) == 2 * 3 * 3 * 4.0
    assert grad(lambda y: grad(f, argnums=0)(3.0, y))(2.0) == 2 * 3 * 3 * 4.0
    assert jacobian(lambda p: grad(lambda q: q[0] * q[1] * p[0])(p))([2.0, 3.0]) == [[3.0, 2.0], [4.0, 0.0]]


def test_nested_values_come_back_connected():
    x = Value(3.0)
    slope = grad(lambda v: v**3)(x)
    assert type(slope) is Value
    slope.backward()
    assert (slope.data, x.grad) == (27.0, 18.0)
    value, pull = vjp(lambda v: v * v, x)
    assert value.data == 9.0
    x.zero_grad()
    pull(Value(1.0)).backward()
    assert x.grad == 2.0
    c = Value(5.0)
    pulled = vjp(lambda v: v * v, 3.0)[1](c)
    pulled.backward()
    assert (pulled.data, c.grad) == (30.0, 6.0)
    t = Value(5.0)
    _, slope = jvp(lambda v: v * v, (3.0,), (t,))
    slope.backward()
    assert (slope.data, t.grad) == (30.0, 6.0)
    v = Value(2.0)
    found = hvp(lambda x: x**3)(3.0, v)
    found.backward()
    assert (found.data, v.grad) == (36.0, 18.0)


def test_hessian_and_hvp_against_the_analytic_ones():
    f = lambda x: x[0] ** 2 * x[1] + x[1] * pygrad.exp(x[2]) + x[0] * x[2]  # noqa: E731
    x, e = [2.0, 3.0, 0.0], 1.0
    expected = [[6.0, 4.0, 1.0], [4.0, 0.0, e], [1.0, e, 3.0 * e]]
    assert hessian(f)(x) == expected
    vector = [1.0, -2.0, 3.0]
    assert hvp(f)(x, vector) == [sum(h * v for h, v in zip(row, vector, strict=True)) for row in expected]
    by_forward = [jvp(grad(f), (x,), ([float(i == k) for k in range(3)],))[1] for i in range(3)]
    assert by_forward == expected
    assert jacobian(lambda p: [grad(f)(p), grad(f)(p)])(x) == [expected, expected]
    third = jacobian(hessian(f))(x)
    assert third[0][0] == [0.0, 2.0, 0.0]
    assert third[2][2] == [0.0, e, 3.0 * e]


polynomials = st.lists(st.integers(-3, 3), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(polynomials, st.integers(-2, 2), st.sampled_from(FIRST), st.sampled_from(FIRST))
def test_polynomials(coefficients, x, outer, inner):
    f = lambda v: functools.reduce(lambda total, c: total * v + c, coefficients, 0.0)  # noqa: E731
    n = len(coefficients) - 1
    second = sum(c * (n - k) * (n - k - 1) * x ** max(n - k - 2, 0) for k, c in enumerate(coefficients))
    assert outer(inner(f))(float(x)) == second


def test_forward_mode_through_masks():
    f = lambda x: pygrad.where(x > 0, pygrad.log(x) + pygrad.sqrt(x) + 1 / x, 3 * x)  # noqa: E731
    assert jvp(f, (0.0,), (1.0,)) == (0.0, 3.0)
    assert jacobian(lambda x: [f(x), f(x)])(0.0) == [3.0, 3.0]
    assert by_jvp(by_jvp(f))(0.0) == 0.0
    assert jvp(lambda x: 0.0 * pygrad.sqrt(x), (0.0,), (1.0,)) == (0.0, 0.0)
