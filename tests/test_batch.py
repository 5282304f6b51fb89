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
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import CaptureError, batch, grad, hessian, hvp, jacobian, value_and_grad

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


def test_out_of_any_strides():
    """Filled where they are: also inside of larger arrays, and those that a run reads."""
    fast = value_and_grad(pygrad.compile(lambda x, k: x[0] * x[1] * k if x[0] > 0 else x[0] - k))
    matrix = jacobian(pygrad.compile(lambda x: [[x[0] * x[1], x[0]], [x[1] * 2.0, x[1] - x[0]]]))
    positive = np.abs(rng.normal(size=(40, 2)))
    for points in (positive, rng.normal(size=(40, 2))):
        expected = fast.map(points, 2.0)
        packed = np.zeros(40, dtype=[("tag", "u1"), ("y", "f8")])
        for values in (np.empty(40), np.empty(80)[::-2], packed["y"]):
            for gradients in (np.empty((40, 2)), np.empty((2, 40)).T, np.empty((80, 5))[::-2, 1:4:2]):
                out = values, gradients
                assert fast.map(points, 2.0, out=out) is out and same(out, expected)
        for shape in ((40, 2, 2, 2), (2, 40, 2, 2), (2, 2, 2, 40)):
            array = np.moveaxis(np.empty(shape), shape.index(40), 0)
            assert same(matrix.map(points, out=array), matrix.map(points))
        inplace = points.copy()
        assert same(grad(pygrad.compile(lambda x: x[1] / x[0])).map(inplace, out=inplace), matrix_of_quotient(points))
        inplace = points.copy()
        assert same(fast.map(inplace, 2.0, out=(inplace[:, 0], np.empty((40, 2)))), (expected[0], expected[1]))
    read_only = np.empty(40)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fast.map(positive, 2.0, out=(read_only, np.empty((40, 2))))


def matrix_of_quotient(points: Any) -> Any:
    return grad(pygrad.compile(lambda x: x[1] / x[0])).map(points)


# ---- sums over lanes


def in_order(found: Any, lanes: int) -> Any:
    """The sum of what map gave, lane by lane: Note [Sums] in csrc/blocks.h, and then the segments in order."""
    if isinstance(found, (tuple, list)):
        return type(found)(in_order(part, lanes) for part in found)
    if isinstance(found, dict):
        return {key: in_order(part, lanes) for key, part in found.items()}
    found = np.asarray(found)
    segment = 256 * -(-lanes // 256**2)
    rows = np.ascontiguousarray(found.reshape(lanes, -1).T)
    total = np.zeros(len(rows))
    for sums in pygrad._core.sum_rows(rows, segment):
        total = total + sums
    return total.reshape(found.shape[1:])


def close(found: Any, expected: Any) -> None:
    if isinstance(found, (tuple, list)):
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    else:
        np.testing.assert_allclose(found, np.asarray(expected).sum(0), rtol=1e-11, atol=1e-11)


def check_sum(fast: Any, *args: Any, executors: Any = (), **kwargs: Any) -> Any:
    rows = fast.map(*args, **kwargs)
    lanes = len(rows[0] if isinstance(rows, tuple) else rows)
    found = fast.map(*args, reduction="sum", **kwargs)
    assert same(found, in_order(rows, lanes))
    close(found, rows)
    for how in [{"threads": threads} for threads in (1, 2, 3, 4)] + [{"executor": executor} for executor in executors]:
        assert same(fast.map(*args, reduction="sum", **how, **kwargs), found), how
    return found


@pytest.mark.parametrize("lanes", [1, 3, 7, 8, 9, 255, 256, 257, 1000, 5000])
def test_sums(lanes):
    weights, points = rng.normal(size=6).tolist(), rng.normal(size=(lanes, 2))

    def loss(w, x):
        hidden = [pygrad.tanh(w[2 * i] * x[0] + w[2 * i + 1] * x[1]) for i in range(3)]
        return sum(h * h for h in hidden) + 0.5 * w[0]

    fast = value_and_grad(pygrad.compile(loss))
    with ThreadPoolExecutor(3) as executor:
        value, gradient = check_sum(fast, weights, points, executors=[executor])
    assert type(value) is float and gradient.shape == (6,)
    check_sum(fast, tuple(weights), points) if lanes < 10 else None
    check_sum(hessian(pygrad.compile(loss)), weights, points)
    out = np.empty(()), np.empty(12)[::2]
    assert fast.map(weights, points, reduction="sum", out=out) is out and same(out, (value, gradient))


@pytest.mark.parametrize(("function", "args"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", ""))
def test_sums_of_a_mixed_batch(function, args, monkeypatch):
    """Also where the first lanes are of one variant, and where rows are summed piece by piece."""
    transform = value_and_grad(pygrad.compile(function))
    lanes, *shared = args
    ordered = np.sort(lanes)
    with ProcessPoolExecutor(2) as processes, ThreadPoolExecutor(3) as threads:
        for column in (lanes, ordered, ordered[::-1], lanes[:5]):
            found = check_sum(transform, column, *shared, executors=[processes, threads])
            monkeypatch.setattr(pygrad.batch, "MOST_BYTES", 1000)
            assert same(transform.map(column, *shared, reduction="sum"), found)
            monkeypatch.undo()
            again = value_and_grad(pygrad.compile(function))
            assert same(again.map(column, *shared, reduction="sum", threads=3), found)


def test_sums_of_structures():
    fast = pygrad.compile(lambda x, k: {"a": x * k, "b": [x, x * x], "n": 3, "c": (k, 1.0), "d": k})
    x = rng.normal(size=700)
    found = fast.map(x, 0.1, reduction="sum")
    assert same(found["a"], in_order(x * 0.1, 700)) and same(found["b"], in_order(np.array([x, x * x]).T, 700))
    assert found["n"] == 2100.0 and found["c"][1] == 700.0
    assert same(found["d"], in_order(np.full(700, 0.1), 700)) and found["d"] == pytest.approx(70.0)
    array = jacobian(pygrad.compile(lambda x: np.array([x[0] * x[1], x[1]])), as_values=True)
    assert same(array.map(x.reshape(350, 2), reduction="sum"), in_order(array.map(x.reshape(350, 2)), 350))
    aux = value_and_grad(pygrad.compile(lambda w, x: (w[0] * x + w[1], {"twice": 2.0 * x})), has_aux=True)
    (value, extra), gradient = aux.map([2.0, 3.0], x, reduction="sum")
    assert same(extra["twice"], in_order(2.0 * x, 700)) and same(gradient, [in_order(x, 700), 700.0])
    assert same(value, in_order(2.0 * x + 3.0, 700))


def test_sums_with_ints_of_branches():
    for function in (lambda x: (x * 2, int(x)), lambda x: (x, x * 10) if x > 0 else (x, 0)):
        for column in (np.array([1.0, -1.0, 2.5] * 200), np.full(600, 1.5)):
            with ThreadPoolExecutor(2) as executor:
                check_sum(pygrad.compile(function), column, executors=[executor])


def test_sums_of_sparse_jacobians():
    sparse = pytest.importorskip("scipy.sparse")

    def f(x):
        return [x[0] * x[0] if x[0] > 0 else x[1] * 3, x[1] * x[0]]

    fast = jacobian(pygrad.compile(f), sparse=True)
    for points in (rng.normal(size=(400, 2)), np.abs(rng.normal(size=(400, 2)))):
        data, indices, indptr = fast.map(points)
        with ThreadPoolExecutor(2) as executor:
            for how in ({}, {"executor": executor}):
                found = fast.map(points, reduction="sum", **how)
                assert isinstance(found, sparse.csr_matrix) and found.shape == (2, 2)
                assert same(found.data, in_order(data, 400)) and same(found.indices, indices)
                assert same(found.indptr, indptr)


def test_sums_of_jacobians_by_seeds(monkeypatch):
    fast = jacobian(pygrad.compile(lambda x: [x[i] * x[i - 1] for i in range(4)]))
    points = rng.normal(size=(50, 4))
    expected = fast.map(points, reduction="sum")
    monkeypatch.setattr("pygrad.derivatives.MOST_WRITTEN_OUT", 0)
    seeded = jacobian(pygrad.compile(lambda x: [x[i] * x[i - 1] for i in range(4)]))
    np.testing.assert_allclose(check_sum(seeded, points), expected, rtol=1e-14)


def test_sums_with_nan_and_inf():
    """What is masked stays masked in a sum; what is not, is not lost."""
    fast = value_and_grad(pygrad.compile(lambda w, x: pygrad.where(x > 0, w[0] * pygrad.log(x), w[1] * x)))
    x = np.array([1.0, 0.0, -1.0, 2.0] * 100)
    value, gradient = check_sum(fast, [2.0, 3.0], x)
    assert np.isfinite(value) and np.isfinite(gradient).all()
    x[17] = np.nan
    assert np.isnan(fast.map([2.0, 3.0], x, reduction="sum")[0])
    x[17] = np.inf
    assert fast.map([2.0, 3.0], x, reduction="sum")[0] == np.inf


def test_sums_with_values_from_outside():
    w = pygrad.Value(3.0)
    fast = grad(pygrad.compile(lambda k, x: w * k[0] * x))
    x = rng.normal(size=500)
    for number in (3.0, -1.0):
        w.data = number
        check_sum(fast, [2.0], x)


@given(
    lanes=st.integers(1, 600), edge=st.floats(-2, 2), seed=st.integers(0, 100), threads=st.integers(1, 4),
    nested=st.booleans(),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_any_sum(lanes, edge, seed, threads, nested):
    numbers = np.random.default_rng(seed)
    x, w = numbers.normal(size=(lanes, 2)), numbers.normal(size=3).tolist()

    def f(w, x):
        w = w["w"] if nested else w
        return w[0] * x[0] + pygrad.exp(w[1] * x[1]) if x[0] > edge else w[2] * x[0] * x[1]

    fast = value_and_grad(pygrad.compile(f))
    given = {"w": w} if nested else w
    value, gradient = fast.map(given, x)
    found = fast.map(given, x, reduction="sum", threads=threads)
    assert same(found[0], in_order(value, lanes))
    assert same(found[1]["w"] if nested else found[1], in_order(gradient["w"] if nested else gradient, lanes))


def test_reduction_is_checked():
    with pytest.raises(ValueError, match="reduction must be None or 'sum', found 'mean'"):
        pygrad.compile(lambda x: x).map(np.ones(3), reduction="mean")
    with pytest.raises(ValueError, match=r"out has shape \(3,\) and dtype float64, needs \(\) of float64"):
        pygrad.compile(lambda x: x).map(np.ones(3), reduction="sum", out=np.ones(3))


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


def test_threads_are_started_where_there_is_work_for_them(monkeypatch):
    asked = []
    monkeypatch.setattr(batch, "usable_cores", lambda: 8)
    inner = batch._threads
    monkeypatch.setattr(batch, "_threads", lambda program, lanes: asked.append(inner(program, lanes)) or asked[-1])
    short = pygrad.compile(lambda x: 2.0 * x)
    long = pygrad.compile(lambda x: pygrad.scan(lambda c, _: (pygrad.sin(c) + x, None), x, length=5000)[0])
    short.map(np.zeros(1000))
    long.map(np.zeros(1000))
    long.map(np.zeros(1000), threads=2)
    assert asked == [1, 4]
