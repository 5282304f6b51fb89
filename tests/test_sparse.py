"""Sparse Jacobians and Hessians, and Jacobians by seeds: equal to the dense ones of the eager transforms."""

from __future__ import annotations

import builtins
import itertools
import random

import numpy as np
import pytest

import pygrad
from pygrad import _core, derivatives, grad, hessian, jacobian

rng = np.random.default_rng(0)
WEIGHTS = rng.normal(size=(12, 9)).tolist()
X = rng.uniform(-1, 1, 9).tolist()


def dense(x):
    h = [pygrad.tanh(pygrad.dot(w, x)) for w in WEIGHTS]
    return [h[i] * h[(i + 1) % 12] + x[i % 9] for i in range(12)]


def banded(x):
    return [x[i] * x[i + 1] + pygrad.exp(x[i]) for i in range(len(x) - 1)] + [3.0]


def wide(x):
    return [x[0] * x[8], pygrad.sin(x[3])]


def squares(function):
    return lambda x: sum(v * v for v in function(x))


FUNCTIONS = pytest.mark.parametrize("function", [dense, banded, wide])


@pytest.fixture(params=[True, False], ids=["seeds", "written-out"])
def seeds(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(derivatives, "MOST_WRITTEN_OUT", -1)
    return request.param


@FUNCTIONS
def test_jacobians(function, seeds):
    expected = jacobian(function)(X)
    fast = pygrad.compile(function)
    assert jacobian(fast)(X) == expected
    sparse = jacobian(fast, sparse=True)(X)
    assert sparse.shape == (len(expected), 9) and sparse.has_sorted_indices
    assert sparse.toarray().tolist() == expected


@FUNCTIONS
def test_hessians(function, seeds):
    expected = hessian(squares(function))(X)
    fast = pygrad.compile(squares(function))
    assert hessian(fast)(X) == expected
    assert hessian(fast, sparse=True)(X).toarray().tolist() == expected


@FUNCTIONS
def test_maps(function, seeds):
    points = rng.uniform(-1, 1, (30, 9))
    expected = np.array([jacobian(function)(point.tolist()) for point in points])
    fast = pygrad.compile(function)
    np.testing.assert_allclose(jacobian(fast).map(points), expected, rtol=1e-13, atol=1e-15)
    data, indices, indptr = jacobian(fast, sparse=True).map(points)
    for lane, numbers in enumerate(data):
        full = np.zeros(expected.shape[1:])
        for row, (start, stop) in enumerate(itertools.pairwise(indptr)):
            full[row, indices[start:stop]] = numbers[start:stop]
        np.testing.assert_allclose(full, expected[lane], rtol=1e-13, atol=1e-15)


def test_derivatives_of_a_jacobian_by_seeds(seeds):
    def trace(jacobian_of):
        return lambda x: sum(row[i] for i, row in enumerate(jacobian_of(x)[:9]))

    fast = pygrad.compile(dense)
    assert jacobian(jacobian(fast))(X) == jacobian(jacobian(dense))(X)
    assert grad(pygrad.compile(trace(jacobian(dense))))(X) == grad(trace(jacobian(dense)))(X)


def test_seeds_with_branches(monkeypatch):
    monkeypatch.setattr(derivatives, "MOST_WRITTEN_OUT", -1)

    def f(x):
        return [x[0] * x[1], x[1] ** 2] if x[0] > 0 else [x[1], x[0] ** 3]

    fast = jacobian(pygrad.compile(f))
    for point in ([1.0, 2.0], [-1.0, 2.0], [3.0, 1.0], [-2.0, 5.0]):
        assert fast(point) == jacobian(f)(point)
    points = np.array([[1.0, 2.0], [-1.0, 2.0], [3.0, 1.0]])
    assert fast.map(points).tolist() == [jacobian(f)(point) for point in points.tolist()]


@pytest.mark.parametrize("result", [tuple, lambda rows: np.array(rows, dtype=object)])
def test_seeds_again_and_again(result, seeds):
    """Results of kinds that a replay makes by itself."""
    fast = jacobian(pygrad.compile(lambda x: result(dense(x)), as_values=True))
    first = fast(np.array(X))
    for _ in range(3):
        assert np.array_equal(fast(np.array(X)), first)


def test_the_pattern_stays_small_where_seeds_are_few(monkeypatch):
    monkeypatch.setattr(derivatives, "MOST_WRITTEN_OUT", -1)
    fast = jacobian(pygrad.compile(banded), sparse=True)
    assert fast([0.5] * 300).nnz == 2 * 299
    assert fast.stats()["seeds"] == 2


def test_without_scipy(monkeypatch):
    real = builtins.__import__

    def no_scipy(name, *args, **kwargs):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_scipy)
    data, indices, indptr = jacobian(pygrad.compile(wide), sparse=True)(X)
    assert data.tolist() == [X[8], X[0], np.cos(X[3])]
    assert indices.tolist() == [0, 8, 3] and indptr.tolist() == [0, 2, 3]


def test_results_are_fresh():
    fast = jacobian(pygrad.compile(wide), sparse=True)
    first, again = fast(X), fast(X)
    first.data[:] = 0.0
    first.indices[:] = 0
    assert again.toarray()[0, 8] == X[0] and fast(X).toarray()[0, 8] == X[0]


def test_errors():
    with pytest.raises(TypeError, match="sparse=True needs a compiled function"):
        jacobian(wide, sparse=True)
    with pytest.raises(TypeError, match="sparse=True needs a compiled function"):
        hessian(squares(wide), sparse=True)
    with pytest.raises(TypeError, match="a sparse Jacobian or Hessian cannot be differentiated"):
        jacobian(jacobian(pygrad.compile(wide), sparse=True))


def test_colours():
    """Columns of one colour share no row, for random patterns; the first of a row of n all differ."""
    draw = random.Random(0)
    for _ in range(200):
        rows, columns = draw.randint(1, 12), draw.randint(1, 12)
        entries = sorted({(draw.randrange(rows), draw.randrange(columns)) for _ in range(draw.randint(0, 40))})
        colours = _core.colour_columns([r for r, _ in entries], [c for _, c in entries], columns)
        assert len(colours) == columns
        for (r, c), (s, d) in itertools.combinations(entries, 2):
            assert r != s or colours[c] != colours[d]
        assert max(colours) + 1 <= columns
