"""fast.map: a batch equals its lanes one by one, whatever the threads, workers and executors."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygrad
from pygrad import CaptureError, grad, hessian, hvp, jacobian, value_and_grad

ROOT = Path(__file__).parent.parent
rng = np.random.default_rng(3)


def payoff(s, k):
    """Four ways, two by numbers and two by an int, one of them rare."""
    if s > k:
        return s * k
    if s > 0.5:
        return int(3 * s) * pygrad.sqrt(s) * k
    return pygrad.exp(-s) if s < 0.01 else s - k


def bisected(a):
    """The square root of a, with as many steps as it takes; the number of ways is that of the results."""
    low, high = 0.0, 2.0
    while high - low > 0.25:
        middle = 0.5 * (low + high)
        if middle * middle < a:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high) * a


def looked_up(x):
    table = [1.0, -2.0, 4.0, 8.0]
    return table[int(x) % 4] * x * x


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return np.array_equal(np.asarray(found), np.asarray(expected), equal_nan=True)


S = rng.uniform(0.0, 2.0, 3001)
FUNCTIONS = [(payoff, (S, 0.9)), (bisected, (S,)), (looked_up, (10 * S,))]


@pytest.mark.parametrize(("function", "args"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_mixed_batch(function, args):
    """Values and gradients on every lane, of a batch that branches."""
    lanes, *shared = args
    transform = value_and_grad(pygrad.compile(function))
    found = transform.map(*args)
    assert transform.stats()["variants"] > 3
    eager = value_and_grad(function)
    expected = np.array([eager(float(x), *shared) for x in lanes]).T
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    for threads in (1, 2, 5):
        assert same(value_and_grad(pygrad.compile(function)).map(*args, threads=threads), found)
    with ProcessPoolExecutor(2) as executor:
        assert same(transform.map(*args, executor=executor), found)
    with ThreadPoolExecutor(3) as executor:
        assert same(transform.map(*args, executor=executor), found)


def test_structures():
    @dataclass
    class Market:
        spot: Any
        rate: Any

    def f(market, weights, pair):
        total = market.spot * weights[0] + market.rate * weights[1] + pair["a"] * pair["b"]
        return {"total": total, "parts": [total * w for w in weights], "both": (total, 2.0), "n": 3}

    fast = pygrad.compile(f)
    spot, weights, b = rng.normal(size=7), rng.normal(size=(7, 2)), rng.normal(size=7)
    found = fast.map(Market(spot, 0.03), weights, {"a": 2.0, "b": b})
    for lane in range(7):
        one = fast(Market(spot[lane], 0.03), weights[lane].tolist(), {"a": 2.0, "b": b[lane]})
        assert found["total"][lane] == one["total"] and found["parts"][lane].tolist() == one["parts"]
        assert (found["both"][0][lane], found["both"][1][lane]) == one["both"]
        assert found["n"].tolist() == [one["n"]] * 7 == [3] * 7
    gradient = grad(pygrad.compile(lambda market: market.spot * market.rate)).map(Market(spot, 0.5))
    assert isinstance(gradient, Market) and same(gradient.spot, np.full(7, 0.5)) and same(gradient.rate, spot)


def test_arrays_and_higher_derivatives():
    def f(x):
        return x[0] ** 2 * x[1] + pygrad.sin(x[2])

    points = rng.normal(size=(40, 3))
    for fast in (pygrad.compile(f), pygrad.compile(f, as_values=True)):
        for transform in (grad, hessian, jacobian):
            expected = [transform(f)(point) for point in points.tolist()]
            np.testing.assert_allclose(transform(fast).map(points), expected, rtol=1e-14, atol=1e-16)
        expected = [hvp(f)(point, [1.0, 2.0, 3.0]) for point in points.tolist()]
        along = np.array([[1.0, 2.0, 3.0]] * 40)
        np.testing.assert_allclose(hvp(fast).map(points, along), expected, rtol=1e-14, atol=1e-16)


def test_layouts_and_dtypes():
    fast = pygrad.compile(lambda x, y: x[0] * y - x[1])
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    expected = fast.map(x, y)
    assert same(fast.map(np.asfortranarray(x), y), expected)
    assert same(fast.map(x[::-1], y[::-1]), expected[::-1])
    assert same(fast.map(np.repeat(x, 2, axis=0)[::2], y), expected)
    assert same(fast.map([x[:, 0], x[:, 1]], y), expected)
    whole = np.arange(50)
    assert same(fast.map([whole, 1], whole), whole * whole - 1.0)
    assert same(
        fast.map(x.astype(np.float32), 1.0), x.astype(np.float32)[:, 0].astype(float) - x.astype(np.float32)[:, 1]
    )


def test_static_and_keyword_arguments():
    def f(x, n, *, scale):
        for _ in range(n):
            x = x * scale
        return x

    fast = pygrad.compile(f, static="n")
    x = rng.normal(size=9)
    assert same(fast.map(x, 3, scale=2.0), 8.0 * x)
    assert same(fast.map(x, n=2, scale=x), x**3) or np.allclose(fast.map(x, n=2, scale=x), x**3, rtol=1e-15)
    assert same(fast.map(2.0, 1, scale=x), 2.0 * x)


def test_out():
    fast = value_and_grad(pygrad.compile(lambda x: x[0] * x[1]))
    points = rng.normal(size=(20, 2))
    expected = fast.map(points)
    out = np.empty(20), np.empty((20, 2))
    assert fast.map(points, out=out) is out and same(out, expected)
    with pytest.raises(ValueError, match=r"out has shape \(19,\) and dtype float64, needs \(20,\) of float64"):
        fast.map(points, out=(np.empty(19), np.empty((20, 2))))
    with pytest.raises(ValueError, match="out must have the structure of the result, tuple, found list"):
        fast.map(points, out=[np.empty(20)])


def test_values_from_outside():
    w = pygrad.Value(3.0)
    fast = grad(pygrad.compile(lambda x: w * x * x))
    x = rng.normal(size=5)
    assert same(fast.map(x), 6.0 * x) or np.allclose(fast.map(x), 6.0 * x, rtol=1e-15)
    w.data = 1.0
    np.testing.assert_allclose(fast.map(x), 2.0 * x, rtol=1e-15)


def test_lanes_with_nan_and_inf():
    fast = pygrad.compile(lambda x: x * 2.0 if x > 1.0 else pygrad.log(x))
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, 2.0])
    assert same(fast.map(x), [fast(float(v)) for v in x])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x > 0 else 0,
        lambda x: (x * 2, int(x)),
        lambda x: (x, x * 10) if x > 0 else (x, 0),
        lambda x: (x, x * 10) if x > 0 else (0, x),
    ],
)
def test_ints_of_branches(function):
    """Each lane has the ints of its own way."""
    for lanes in ([1.0, -1.0, 2.5], [-1.0, 1.0, 2.5], [1.5, 2.5, 3.5]):
        expected = np.array([function(x) for x in lanes], dtype=float).T
        assert same(np.array(pygrad.compile(function).map(np.array(lanes))), expected)
        with ThreadPoolExecutor(2) as executor:
            assert same(np.array(pygrad.compile(function).map(np.array(lanes), executor=executor)), expected)
    if function(1.0) == 1.0:
        assert grad(pygrad.compile(function)).map(np.array([-1.0, 2.0])).tolist() == [0.0, 1.0]


def test_sparse_patterns_of_branches():
    """Lanes whose Jacobians have different entries share the entries of all."""

    def f(x):
        return [x[0] * x[0] if x[0] > 0 else x[1] * 3, x[1] * x[0]]

    points = np.array([[1.0, 2.0], [-1.0, 2.0], [3.0, 4.0]])
    expected = [jacobian(f)(point) for point in points.tolist()]
    fast = jacobian(pygrad.compile(f), sparse=True)
    with ThreadPoolExecutor(2) as executor:
        for data, indices, indptr in (fast.map(points), fast.map(points, executor=executor)):
            for lane in range(3):
                full = np.zeros((2, 2))
                for row in range(2):
                    full[row, indices[indptr[row] : indptr[row + 1]]] = data[lane, indptr[row] : indptr[row + 1]]
                assert full.tolist() == expected[lane]


def test_one_structure_whoever_computes():
    f = pygrad.compile(lambda x: {"a": x} if x > 0 else {"b": x})
    with ThreadPoolExecutor(2) as executor:
        for how in ({}, {"executor": executor}):
            with pytest.raises(TypeError, match="another structure where it branches otherwise"):
                f.map(np.array([1.0, 1.0, -1.0, -1.0]), **how)
    with ThreadPoolExecutor(2) as executor, pytest.raises(ValueError, match="the batch has no lanes"):
        f.map(np.ones(0), executor=executor)


def test_a_guard_on_nan():
    """int(nan) raises, which f may catch: a way of its own."""

    def f(x):
        try:
            return x * int(x)
        except ValueError:
            return 7.0

    fast = pygrad.compile(f)
    x = np.array([np.nan, 1.5, np.nan, 2.5])
    assert same(fast.map(x), [7.0, 1.5, 7.0, 5.0]) and fast(np.nan) == 7.0


def test_errors():
    fast = pygrad.compile(payoff)
    with pytest.raises(TypeError, match="needs an array with the axis of the batch in front among the arguments"):
        fast.map(1.0, 2.0)
    with pytest.raises(ValueError, match="the arguments have 3 and 4 lanes"):
        fast.map(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="the batch has no lanes"):
        fast.map(np.ones(0), 1.0)
    with pytest.raises(TypeError, match="another structure where it branches otherwise"):
        pygrad.compile(lambda x: [x] if x > 0 else x).map(np.array([1.0, -1.0]))
    with pytest.raises(CaptureError, match="has gone 2 ways"):
        pygrad.compile(lambda x: x * int(x), variants=2).map(np.arange(5.0))


# ---- Dask and MPI, where they are installed


def test_dask():
    distributed = pytest.importorskip("distributed")
    fast = value_and_grad(pygrad.compile(lambda s, k: s * k if s > k else pygrad.exp(-s)))
    expected = fast.map(S, 0.9, threads=1)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert same(fast.map(S, 0.9, executor=client.get_executor()), expected)


def test_mpi():
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if not mpiexec:
        pytest.skip("mpi4py is installed, mpiexec is not")
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(ROOT / "examples/paths.py"), "mpi"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "equal to one thread to the last bit" in ran.stdout, ran.stdout + ran.stderr


def test_values_from_outside_within_a_transform():
    """Arrays of floats would lose the gradient."""

    def loss(w, mode=contextlib.nullcontext):
        fast = pygrad.compile(lambda x: x * w)
        with mode():
            total = float(fast.map(np.ones(2)).sum())
        return w * total

    text = r"^map: <lambda> reads Values from outside, and what map gives cannot be part of a transform around it; "
    with pytest.raises(TypeError, match=text):
        grad(loss)(2.0)
    with ThreadPoolExecutor(2) as pool, pytest.raises(TypeError, match=text):
        grad(lambda w: w * pygrad.compile(lambda x: x * w).map(np.ones(2), executor=pool).sum())(2.0)
    assert grad(lambda w: loss(w, pygrad.no_grad))(2.0) == 4.0
    with pytest.raises(CaptureError):
        pygrad.compile(loss)(2.0)
