"""Cases of the family TRACE: capture, optimise, replay. What other tests pin in detail is here as far as a case asks.

Next: cases.py, which says what a case is; test_compile.py and its like for the whole.
"""

import random

import numpy as np
import pytest
from compiled import on_values, same

import pygrad
from pygrad import CaptureError, Value, grad, hessian, math

INF, NAN = float("inf"), float("nan")


def test_trace_01_results_do_not_share_a_buffer():
    fast = pygrad.compile(lambda x: [v * 2 for v in x], as_values=True)
    first = fast(np.array([1.0]))
    second = fast(np.array([5.0]))
    assert (first, second) == ([2.0], [10.0])
    array = pygrad.compile(lambda x: np.array([v * 2 for v in x]), as_values=True)
    slope = grad(pygrad.compile(lambda x: x[0] ** 2, as_values=True))
    for call, expected in ((array, 2.0), (slope, 2.0)):
        first = call(np.array([1.0]))
        second = call(np.array([5.0]))
        assert not np.shares_memory(first, second)
        first[0] = 99.0
        assert (second[0], call(np.array([1.0]))[0]) == (10.0, expected)


def test_trace_03_random_numbers_are_frozen():
    """As docs/programs.md says; the way out is an argument, and a draw that decides a branch is an error."""
    rng = random.Random(1)
    fast = pygrad.compile(lambda x: x * rng.random())
    assert fast(1.0) == fast(1.0) != rng.random()
    given = pygrad.compile(lambda x, draw: x * draw)
    assert given(1.0, rng.random()) != given(1.0, rng.random())
    deciding = pygrad.compile(lambda x: x if x > rng.random() else -x)
    with pytest.raises(CaptureError, match="it depends on something that changes from call to call"):
        for _ in range(200):
            deciding(rng.random())


class Model:
    def __init__(self, scale):
        self.scale = scale


def test_trace_04_what_is_closed_over_and_changed():
    k, array, model, weight = 2.0, np.array([2.0]), Model(2.0), Value(2.0)
    plain, mutated, attribute, parameter = (
        pygrad.compile(f)
        for f in (lambda x: x * k, lambda x: x * array[0], lambda x: x * model.scale, lambda x: x * weight)
    )
    assert [f(3.0) for f in (plain, mutated, attribute, parameter)] == [6.0] * 4
    k, array[0], model.scale, weight.data = 5.0, 5.0, 5.0, 5.0
    assert [f(3.0) for f in (plain, mutated, attribute)] == [6.0] * 3  # documented as frozen
    assert (parameter(3.0), grad(parameter)(3.0)) == (15.0, 5.0)  # updated in place, as an optimizer does
    assert [f(3.0) for f in [pygrad.compile(lambda x, i=i: x * i) for i in (1.0, 2.0)]] == [3.0, 6.0]
    late = [pygrad.compile(lambda x: x * i) for i in (1.0, 2.0)]  # noqa: B023
    assert [f(3.0) for f in late] == [6.0, 6.0]  # as Python binds it


def test_trace_06_other_shapes_on_later_calls():
    def mean(x):
        return sum((v + 1 for v in x), 0.0) / max(len(x), 1)

    fast = pygrad.compile(mean, as_values=True)
    x = np.arange(8.0)
    given = [x[:n] for n in (1, 2, 3, 4)] + [x.astype(np.float32), x[:0], x[::2], x[::-1], x[:4].astype(int), x[:2]]
    for _ in range(2):
        for array in given:
            assert same(fast(array), on_values(mean, array))
            assert same(grad(fast)(array), grad(mean, as_values=True)(array))

    table = pygrad.compile(lambda m: [v * 10 for row in m for v in row], as_values=True)
    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert (table(square), table(square.T)) == ([10.0, 20.0, 30.0, 40.0], [10.0, 30.0, 20.0, 40.0])
    number = pygrad.compile(lambda x: x * 2, as_values=True)
    assert [number(np.array(3.0)), number(3.0), number(np.float32(3.0)), number(3)] == [6.0] * 4


CASE_07 = {
    "x * 0": (lambda x: x * 0, [NAN, INF, 1.0, -1.0]),
    "x - x": (lambda x: x - x, [INF, -INF, NAN, 1.0]),
    "x / x": (lambda x: x / x, [0.0, INF, 2.0]),
    "x + 0": (lambda x: x + 0, [-0.0, 0.0]),
    "x ** 1": (lambda x: x**1, [-0.0, NAN, 3.0]),
    "x ** 0": (lambda x: x**0, [0.0, NAN, INF]),
    "log(exp(x))": (lambda x: math.log(math.exp(x)), [1000.0, -1000.0, 1.0]),
}


@pytest.mark.parametrize("name", CASE_07)
def test_trace_07_no_rewrite_drops_nan_inf_or_a_sign(name):
    f, numbers = CASE_07[name]
    fast = pygrad.compile(f)
    for x in numbers:
        assert same(fast(x), on_values(f, x))
        assert same(grad(fast)(x), grad(f)(x))
        assert same(hessian(fast)(x), hessian(f)(x), exactly=False)
    zero, less, quotient = (pygrad.compile(CASE_07[k][0]) for k in ("x * 0", "x - x", "x / x"))
    assert same([zero(x) for x in (NAN, INF, 1.0)], [NAN, NAN, 0.0])
    assert same([less(INF), quotient(0.0)], [NAN, NAN])
    assert same(pygrad.compile(lambda x: x + 0)(-0.0), 0.0)


def test_trace_09_side_effects_and_leaked_values():
    log = []
    fast = pygrad.compile(lambda x: (log.append(x * 2), x + 1)[1])
    assert [fast(1.0), fast(2.0)] == [2.0, 3.0]
    assert len(log) == 1  # at the capture alone: documented
    leaked = log[0]
    assert (leaked.data, leaked.op) == (2.0, "mul")  # a node of that run, no symbol: it says what it was then
    assert grad(lambda y: y * leaked)(3.0).data == 2.0
    with pytest.raises(CaptureError, match=r"returned set, in which a replay could not renew the numbers"):
        pygrad.compile(lambda x: {x * 2})(1.0)


def test_trace_10_a_written_operand_is_refused_as_in_eager_code():
    def square(x):
        y = x[0] * x[0]
        x[0].data = 5.0
        return y

    with pytest.raises(pygrad.GraphError):
        grad(square)([3.0])
    fast = pygrad.compile(square)
    for call in (fast, grad(fast)):
        with pytest.raises(CaptureError, match=r"^x\.data = \.\.\., at .* a replay would not do it again"):
            call([3.0])
    recorded = pygrad.compile(lambda x: x * x)
    x = Value(3.0)
    y = recorded(x)
    x.data = 5.0
    with pytest.raises(pygrad.GraphError):
        y.backward()


def test_trace_10_an_exception_while_capturing_and_another_call():
    fail = [True]

    def f(x):
        y = x * x
        if fail:
            raise ValueError(fail.pop())
        return y

    fast = pygrad.compile(f)
    with pytest.raises(ValueError, match="True"):
        fast(3.0)
    assert (fast(3.0), grad(fast)(3.0)) == (9.0, 6.0)
