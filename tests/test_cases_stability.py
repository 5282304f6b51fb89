"""Cases of the families STAB, MASK and PROD: overflow, cancellation, nan through masks, products with zeros.

Owns their numbers, worked out independently of this library. Next: cases.py, which says what a case is.
"""

import functools
import math as stdlib_math
import operator
import warnings

import numpy as np
import pytest
from cases import gradients, values
from domains import INF, NAN

import pygrad
from pygrad import Value, grad, hvp, jvp, math, value_and_grad

# ---- STAB: overflow, cancellation, zero variance


@pytest.mark.parametrize("tanh", [pygrad.tanh, np.tanh, math.tanh, lambda v: v.tanh()])
def test_stab_01_tanh_does_not_overflow(tanh):
    assert gradients(tanh, 1000.0) == (1.0, [0.0])
    assert gradients(tanh, -1000.0) == (-1.0, [0.0])
    assert gradients(tanh, 400.0) == (1.0, [0.0])
    assert gradients(tanh, INF) == (1.0, [0.0])
    y, [slope] = gradients(tanh, 20.0)
    assert y == 1.0
    assert slope == pytest.approx(1.699e-17, rel=1e-3)
    assert gradients(pygrad.sigmoid, 1000.0) == (1.0, [0.0])
    assert gradients(pygrad.sigmoid, -1000.0) == (0.0, [0.0])


@pytest.mark.parametrize(
    "softplus",
    [pygrad.softplus, lambda v: np.logaddexp(0.0, v), lambda v: np.logaddexp(v, 0.0), lambda v: v.softplus()],
)
def test_stab_03_softplus_does_not_overflow(softplus):
    assert gradients(softplus, -1000.0) == (0.0, [0.0])
    assert gradients(softplus, 0.0) == (stdlib_math.log(2.0), [0.5])
    assert gradients(softplus, 1000.0) == (1000.0, [1.0])
    y, [slope] = gradients(softplus, -50.0)
    assert y == pytest.approx(stdlib_math.exp(-50.0), rel=1e-15)
    assert slope == pytest.approx(stdlib_math.exp(-50.0), rel=1e-15)


def test_stab_04_cross_entropy_on_extreme_logits():
    def cross_entropy(*z):
        return functools.reduce(pygrad.logaddexp, z) - z[0]

    assert gradients(cross_entropy, -600.0, 100.0, 500.0) == (1100.0, [-1.0, pytest.approx(0.0, abs=1e-173), 1.0])
    y, [slope] = gradients(pygrad.logsigmoid, -1100.0)
    assert (y, slope) == (-1100.0, 1.0)


def plain_std(v):
    mean = pygrad.sum(v) / len(v)
    return math.sqrt(pygrad.sum((x - mean) ** 2 for x in v) / len(v))


def safe_std(v):
    mean = pygrad.sum(v) / len(v)
    return math.dist(v, [mean] * len(v)) / math.sqrt(len(v))


@pytest.mark.parametrize("std", [plain_std, np.std, safe_std])
def test_stab_06_std(std):
    leaves, array = values(1.0, 2.0, 4.0)
    std(array).backward()
    assert [leaf.grad for leaf in leaves] == pytest.approx([-0.35635, -0.08909, 0.44544], abs=1e-5)


@pytest.mark.parametrize("std", [plain_std, np.std, safe_std])
def test_stab_06_std_of_a_constant_vector(std):
    leaves, array = values(1.0, 1.0, 1.0)
    y = std(array)
    assert y.data == 0.0
    y.backward()
    if std is safe_std:
        assert [leaf.grad for leaf in leaves] == [0.0, 0.0, 0.0]
    else:
        assert all(stdlib_math.isnan(leaf.grad) for leaf in leaves)  # a plain chain rule, as for EDGE-01
    for leaf in leaves:
        leaf.zero_grad()
    (std(array) ** 2).backward()
    assert [leaf.grad for leaf in leaves] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("x", [1.0, -3.0])
def test_stab_06_var_of_a_constant_vector(x):
    leaves, array = values(x, x, x)
    y = np.var(array)
    y.backward()
    assert y.data == 0.0
    assert [leaf.grad for leaf in leaves] == [0.0, 0.0, 0.0]


def test_stab_07_variance_with_ddof_equal_to_the_count():
    leaves, array = values(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy says: degrees of freedom <= 0
        y = np.var(array, ddof=1)
    assert stdlib_math.isnan(y.data)
    y.backward()
    assert stdlib_math.isnan(leaves[0].grad)
    leaves, array = values(3.0)
    y = np.var(array, ddof=0)
    y.backward()
    assert (y.data, leaves[0].grad) == (0.0, 0.0)


# ---- MASK: nan through masks; where= keywords


@pytest.mark.parametrize("where", [pygrad.where, np.where])
def test_mask_01_overflow_in_the_branch_not_taken(where):
    assert gradients(lambda a: where(a > 5, 2 * a, np.exp(a)), 800.0) == (1600.0, [2.0])
    assert gradients(lambda a: where(a <= 5, a.exp(), 2 * a), 800.0) == (1600.0, [2.0])
    assert grad(lambda a: where(a > 5, 2 * a, math.exp(a)))(800.0) == 2.0
    assert grad(grad(lambda a: where(a > 5, a * a, math.exp(a))))(800.0) == 2.0
    for bad in (pygrad.log, pygrad.sqrt, pygrad.reciprocal, lambda v: v**-0.5, lambda v: 1 / v, lambda v: v / 0.0):
        assert gradients(lambda x, bad=bad: where(x > 0, bad(x), 0.0), 0.0) == (0.0, [0.0])
        assert gradients(lambda x, bad=bad: where(x > 0, bad(x), 3 * x), 0.0) == (0.0, [3.0])
        assert jvp(lambda x, bad=bad: where(x > 0, bad(x), 3 * x), (0.0,), (1.0,)) == (0.0, 3.0)


def test_mask_03_attention_row_with_every_key_masked():
    mask = [[True, True, False], [False, False, False]]

    def softmax(row):
        e = [math.exp(x) for x in row]
        total = pygrad.sum(e)
        return [x / total for x in e]

    def rows(s):
        return [softmax([pygrad.where(m, x, -INF) for m, x in zip(ms, xs)]) for ms, xs in zip(mask, s)]  # noqa: B905

    scores = [[0.3, -0.2, 9.0], [1.0, 2.0, 3.0]]
    found = grad(lambda s: rows(s)[0][0])(scores)
    assert found[0] == pytest.approx([0.2350, -0.2350, 0.0], abs=1e-4)
    assert found[1] == [0.0, 0.0, 0.0]

    def with_weight(w):  # the weight is in the masked row too, and the mask leaves that row out
        out = rows([[w * x for x in row] for row in scores])
        return pygrad.sum(pygrad.where(any(ms), row[0], 0.0) for ms, row in zip(mask, out))  # noqa: B905

    y, slope = value_and_grad(with_weight)(1.0)
    assert stdlib_math.isfinite(y)
    assert slope == pytest.approx(0.5 * y * (1 - y))


@pytest.mark.parametrize("where", [pygrad.where, np.where])
def test_mask_04_loss_that_ignores_nan_targets(where):
    targets = [1.0, NAN, 5.0]

    def late(*p):
        return pygrad.sum(where(t == t, (q - t) ** 2, 0.0) for q, t in zip(p, targets))  # noqa: B905

    def early(*p):
        return pygrad.sum(where(t == t, q - t, 0.0) ** 2 for q, t in zip(p, targets))  # noqa: B905

    assert gradients(early, 3.0, 3.0, 3.0) == (8.0, [4.0, 0.0, -4.0])
    assert gradients(late, 3.0, 3.0, 3.0) == (8.0, [4.0, 0.0, -4.0])


def test_mask_06_ufunc_where_is_refused():
    with pytest.raises(TypeError, match=r"np\.add: where= leaves elements undefined; use pygrad\.where"):
        np.add(Value(1.0), 1.0, where=False)
    with pytest.raises(TypeError, match=r"np\.add: where="):
        np.add(np.array([0.0, 1.0]), Value(1.0), where=[True, False])
    assert np.add(Value(1.0), 1.0, where=True).data == 2.0


def test_mask_07_masked_branch_in_the_second_derivative():
    def twice(x):
        return pygrad.where(x > 0, pygrad.sqrt(pygrad.where(x > 0, x, 1.0)), 0.0)

    def once(x):
        return pygrad.where(x > 0, pygrad.sqrt(x), 0.0)

    for f in (twice, once):
        for x in (-3.0, 0.0):
            assert (f(x), grad(f)(x), grad(grad(f))(x)) == (0.0, 0.0, 0.0)
            assert hvp(f)(x, 1.0) == 0.0
        assert grad(grad(f))(4.0) == -0.25 / 8.0


# ---- PROD: products, powers by division, cumulative functions


@pytest.mark.parametrize("prod", [np.prod, math.prod, stdlib_math.prod, lambda v: functools.reduce(operator.mul, v)])
def test_prod_01_product_with_zeros(prod):
    for numbers, slopes in (([0.0, 4.0, 5.0], [20.0, 0.0, 0.0]), ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0])):
        leaves, array = values(*numbers)
        y = prod(array)
        y.backward()
        assert y.data == 0.0
        assert [leaf.grad for leaf in leaves] == slopes
        assert grad(lambda v: prod(v))(numbers) == slopes


def test_prod_01_rows_with_different_numbers_of_zeros():
    leaves = [[Value(x) for x in row] for row in ([0.0, 4.0, 5.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0])]
    np.sum(np.prod(np.array(leaves, dtype=object), axis=1)).backward()
    assert [[leaf.grad for leaf in row] for row in leaves] == [[20.0, 0.0, 0.0], [0.0, 0.0, 0.0], [12.0, 8.0, 6.0]]


def test_prod_03_power_at_zero():
    for power in (
        lambda v: v**5,
        lambda v: pygrad.pow(v, 5.0),
        lambda v: np.power(v, 5),
        lambda v: np.float_power(v, 5),
    ):
        assert gradients(power, 0.0) == (0.0, [0.0])
        assert gradients(power, 1.0) == (1.0, [5.0])
        assert gradients(power, -1.0) == (-1.0, [5.0])
        assert grad(grad(power))(0.0) == 0.0
    assert gradients(lambda v: v**1, 0.0) == (0.0, [1.0])
    assert gradients(lambda v: v**2, 0.0) == (0.0, [0.0])
    assert grad(grad(lambda v: v**2))(0.0) == 2.0
    assert grad(grad(grad(lambda v: v**3)))(0.0) == 6.0


def test_prod_04_nothing_at_all():
    assert pygrad.sum([]) == 0.0
    assert pygrad.dot([], []) == 0.0
    assert math.prod([]) == 1
    assert math.fsum([]) == 0.0
    empty = np.empty((2, 0), dtype=object)
    assert np.cumsum(empty, axis=1).shape == (2, 0)
    assert np.cumprod(empty, axis=1).shape == (2, 0)
    assert np.sum(empty) == 0
    assert np.prod(empty) == 1
    for f in (np.cumsum, np.cumprod, np.sum, lambda x: np.concatenate([x, x])):
        found = grad(lambda x, f=f: pygrad.sum(np.ravel(f(np.array(x, dtype=object)))), as_values=True)(
            np.zeros((2, 0))
        )
        assert found.shape == (2, 0)
