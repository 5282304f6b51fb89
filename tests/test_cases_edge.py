"""Cases of the family EDGE: points at the edge of elementwise functions and of selections.

Owns their numbers, worked out independently of this library. Next: cases.py, which says what a case is.
"""

import functools
import math as stdlib_math

import numpy as np
import pytest
from cases import gradients, values
from domains import INF

import pygrad
from pygrad import Value, grad, jvp, math

PLAIN_NORMS = [
    lambda *v: pygrad.sum(x * x for x in v).sqrt(),
    lambda *v: pygrad.dot(v, v) ** 0.5,
    lambda *v: np.linalg.norm(np.array(v, dtype=object)),
]
NORMS = [lambda *v: math.hypot(*v), lambda *v: math.dist(v, [0.0] * len(v)), lambda *v: functools.reduce(np.hypot, v)]


@pytest.mark.parametrize("norm", [*PLAIN_NORMS, *NORMS])
def test_edge_01_norm_at_the_zero_vector(norm):
    assert gradients(lambda *v: norm(*v) ** 2, 0.0, 0.0, 0.0) == (0.0, [0.0, 0.0, 0.0])
    assert gradients(lambda *v: norm(*v) * norm(*v), 0.0, 0.0, 0.0) == (0.0, [0.0, 0.0, 0.0])
    assert gradients(lambda *v: 0.0 * norm(*v), 0.0, 0.0, 0.0) == (0.0, [0.0, 0.0, 0.0])
    assert gradients(norm, 3.0, 0.0, -4.0) == (
        5.0,
        [pytest.approx(0.6, rel=1e-15), 0.0, pytest.approx(-0.8, rel=1e-15)],
    )


@pytest.mark.parametrize("norm", NORMS)
def test_edge_01_norm_alone(norm):
    assert gradients(norm, 0.0, 0.0, 0.0) == (0.0, [0.0, 0.0, 0.0])


@pytest.mark.parametrize("norm", PLAIN_NORMS)
def test_edge_01_square_root_of_a_sum_of_squares_alone(norm):
    y, slopes = gradients(norm, 0.0, 0.0, 0.0)
    assert y == 0.0
    assert all(stdlib_math.isnan(slope) for slope in slopes)  # inf * 0 by the chain rule; hypot is the remedy


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -2.0, INF])
@pytest.mark.parametrize("exponent", [0, 0.0, -0.0, np.int64(0)])
def test_edge_03_power_zero(x, exponent):
    assert gradients(lambda v: v**exponent, x) == (1.0, [0.0])
    assert gradients(lambda v: pygrad.pow(v, exponent), x) == (1.0, [0.0])
    assert gradients(lambda v: np.power(v, exponent), x) == (1.0, [0.0])
    assert grad(grad(lambda v: v**exponent))(x) == 0.0
    y, (x_grad, _) = gradients(lambda v, n: v**n, x, float(exponent))
    assert (y, x_grad) == (1.0, 0.0)


def test_edge_04_exponent_at_base_zero():
    assert gradients(lambda b: 0.0**b, 1.5) == (0.0, [0.0])
    y, [slope] = gradients(lambda b: 2.0**b, 1.5)
    assert y == 2.0**1.5
    assert slope == pytest.approx(2.0**1.5 * stdlib_math.log(2.0), rel=1e-15)
    assert gradients(lambda a, b: a**b, 0.0, 1.5) == (0.0, [0.0, 0.0])
    assert gradients(lambda a, b: a**b, 0.0, 2.0) == (0.0, [0.0, 0.0])


@pytest.mark.parametrize("root", [lambda v: v**0.5, lambda v: v.sqrt(), math.sqrt, np.sqrt])
def test_edge_06_square_root_at_zero(root):
    assert gradients(root, 0.0) == (0.0, [INF])
    assert gradients(lambda v: v * root(v), 0.0) == (0.0, [0.0])
    assert gradients(lambda v: root(v) * v, 0.0) == (0.0, [0.0])
    assert gradients(lambda v: 0.0 * root(v), 0.0) == (0.0, [0.0])


@pytest.mark.parametrize("f", [abs, pygrad.abs, np.abs, np.fabs, math.fabs, lambda v: v.abs()])
def test_edge_07_abs_at_zero(f):
    for x, slope in ((-2.0, -1.0), (0.0, 0.0), (-0.0, 0.0), (2.0, 1.0)):
        assert gradients(f, x) == (abs(x), [slope])
        assert grad(f)(x) == slope
        assert jvp(f, (x,), (1.0,)) == (abs(x), slope)


@pytest.mark.parametrize(
    "f", [pygrad.maximum, pygrad.minimum, pygrad.fmax, pygrad.fmin, np.maximum, np.minimum, np.fmax, np.fmin, max, min]
)
def test_edge_09_maximum_of_equal_operands(f):
    assert gradients(lambda x: f(x, x), 1.7) == (1.7, [1.0])
    y, slopes = gradients(f, 1.7, 1.7)
    assert y == 1.7
    assert sum(slopes) == 1.0
    assert min(slopes) >= 0.0
    assert gradients(lambda x: f(x, 1.7), 1.7)[1][0] in (0.0, 0.5, 1.0)


@pytest.mark.parametrize("clip", [pygrad.clip, pygrad.clamp, np.clip, lambda v, a, b: v.clip(a, b)])
def test_edge_10_clip_whose_bound_is_the_input(clip):
    assert gradients(lambda x: clip(x, 0.0, x), 5.0) == (5.0, [1.0])
    assert gradients(lambda x: clip(x, x, 9.0), 5.0) == (5.0, [1.0])
    assert gradients(lambda x: clip(x, x, x), 5.0) == (5.0, [1.0])
    assert gradients(clip, 5.0, 6.0, 7.0) == (6.0, [0.0, 1.0, 0.0])  # the bound has it
    assert gradients(clip, 9.0, 6.0, 7.0) == (7.0, [0.0, 0.0, 1.0])
    assert gradients(clip, 6.5, 6.0, 7.0) == (6.5, [1.0, 0.0, 0.0])
    assert gradients(clip, 5.0, 9.0, 7.0) == (7.0, [0.0, 0.0, 1.0])  # the upper bound wins, as in NumPy


@pytest.mark.parametrize("largest", [max, np.max, np.amax, lambda v: functools.reduce(pygrad.maximum, v)])
def test_edge_12_max_with_ties(largest):
    leaves, array = values(3.0, 1.0, 3.0)
    y = largest(array)
    y.backward()
    slopes = [leaf.grad for leaf in leaves]
    assert y.data == 3.0
    assert sum(slopes) == 1.0
    assert min(slopes) >= 0.0
    assert slopes[1] == 0.0


@pytest.mark.parametrize("atan2", [pygrad.atan2, np.arctan2, math.atan2, lambda y, x: y.atan2(x), pygrad.arctan2])
def test_edge_13_arctan2_on_an_axis(atan2):
    assert gradients(atan2, 0.0, 1.0) == (0.0, [1.0, 0.0])
    assert gradients(atan2, 0.0, -1.0) == (stdlib_math.pi, [-1.0, 0.0])
    assert gradients(atan2, 1.0, 0.0) == (stdlib_math.pi / 2, [0.0, -1.0])
    y, slopes = gradients(atan2, -3.0, 2.0)
    assert y == stdlib_math.atan2(-3.0, 2.0)
    assert slopes == pytest.approx([2 / 13, 3 / 13], rel=4e-16)
    assert gradients(atan2, 1e-200, 1.0) == (1e-200, [1.0, -1e-200])
    assert gradients(atan2, 0.0, 0.0) == (0.0, [0.0, 0.0])


@pytest.mark.parametrize("sinc", [np.sinc, pygrad.sinc, lambda v: v.sinc()])
def test_edge_15_sinc_beside_zero(sinc):
    assert grad(sinc)(1e-6) == pytest.approx(-3.28986813369321e-06, rel=1e-14)
    assert grad(sinc)(1e-9) == pytest.approx(-3.28986813369645e-09, rel=1e-14)
    assert grad(sinc)(-1e-6) == pytest.approx(3.28986813369321e-06, rel=1e-14)
    assert grad(sinc)(0.0) == 0.0
    assert grad(grad(sinc))(0.0) == pytest.approx(-(stdlib_math.pi**2) / 3, rel=1e-15)
    assert grad(grad(sinc))(1e-6) == pytest.approx(-(stdlib_math.pi**2) / 3, rel=1e-11)


def test_edge_16_xlogy_at_zero():
    log2 = stdlib_math.log(2.0)
    assert gradients(lambda x: pygrad.xlogy(x, 2.0), 0.0) == (0.0, [log2])
    assert gradients(pygrad.xlogy, 0.0, 2.0) == (0.0, [log2, 0.0])
    assert gradients(pygrad.xlogy, 2.0, 4.0) == (2.0 * stdlib_math.log(4.0), [stdlib_math.log(4.0), 0.5])
    y, [slope] = gradients(lambda x: pygrad.where(x > 0, x * pygrad.log(x), 0.0), 0.0)
    assert (y, slope) == (0.0, 0.0)
    y, slopes = gradients(lambda *p: -pygrad.sum(pygrad.xlogy(q, q) for q in p), 0.5, 0.5, 0.0)
    assert y == pytest.approx(log2)
    assert slopes[:2] == pytest.approx([log2 - 1.0] * 2)


@pytest.mark.parametrize("logaddexp", [pygrad.logaddexp, np.logaddexp, lambda a, b: a.logaddexp(b)])
def test_edge_18_logaddexp_of_equal_operands(logaddexp):
    assert gradients(logaddexp, 1.0, 1.0) == (1.0 + stdlib_math.log(2.0), [0.5, 0.5])
    assert grad(grad(lambda x: logaddexp(x, Value(1.0)).detach() if x is None else logaddexp(x, 1.0)))(1.0) == 0.25


def test_edge_19_logsumexp_of_minus_infinity():
    y, slopes = gradients(pygrad.logaddexp, -INF, -INF)
    assert y == -INF
    assert slopes == [0.5, 0.5]
    y, [slope] = gradients(lambda p: np.logaddexp(-INF, -INF + p), 3.0)
    assert y == -INF
    assert stdlib_math.isfinite(slope)
    assert gradients(pygrad.logaddexp, -INF, 2.0) == (2.0, [0.0, 1.0])
    assert gradients(pygrad.logaddexp, 2.0, -INF) == (2.0, [1.0, 0.0])
    y, slopes = gradients(lambda *v: functools.reduce(pygrad.logaddexp, v), -INF, -INF, -INF)
    assert y == -INF
    assert all(0.0 <= slope <= 1.0 for slope in slopes)
    y, slopes = gradients(lambda *v: functools.reduce(np.logaddexp, v), -INF, 1.0, 1.0)
    assert y == pytest.approx(1.0 + stdlib_math.log(2.0))
    assert slopes == pytest.approx([0.0, 0.5, 0.5])
    y, slopes = gradients(pygrad.logaddexp2, -INF, -INF)
    assert (y, slopes) == (-INF, [0.5, 0.5])
