"""Captures: what would take a number out of the graph is an error, every text whole; what is a constant may go."""

import contextlib
import copy
import math as stdlib_math
import pickle

import numpy as np
import pytest
from captures import capture, replayed, text_of

import pygrad
from pygrad import CaptureError, Value, math, no_grad

# ---- what leaves the graph

REUSE = "it depends on what is being captured, and a replay would reuse the number of this run; "
REPEAT = "a replay would not do it again; "
TRANSFORM = "use pygrad.grad or value_and_grad here, or differentiate the whole"
FLOAT = f"float(x): {REUSE}use pygrad.math in place of math, and the Value itself in place of a float"
OUTSIDE = Value(2.0)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (float, FLOAT),
        (complex, FLOAT),
        (stdlib_math.sin, FLOAT),
        (lambda x: np.asarray(x, dtype=float), FLOAT),
        (np.float64, FLOAT),
        (lambda x: np.zeros(2).__setitem__(0, x), FLOAT),
        (lambda x: (x * 2).data, f"x.data: {REUSE}compute with the Value itself, or return it as a further result"),
        (lambda x: round(x, 2), f"round(x, n): {REUSE}use pygrad.round(x * 10**n) / 10**n"),
        (lambda x: x.grad, f"x.grad: {REUSE}{TRANSFORM}"),
        (lambda x: (x * x).backward(), f"x.backward(): {REPEAT}{TRANSFORM}"),
        (lambda x: x.zero_grad(), f"x.zero_grad(): {REPEAT}{TRANSFORM}"),
        (lambda x: setattr(x, "grad", 0.0), f"x.grad = ...: {REPEAT}{TRANSFORM}"),
        (
            lambda x: setattr(x, "data", 1.0),
            f"x.data = ...: {REPEAT}make a new Value, or return the number and write it outside",
        ),
        (
            lambda x: setattr(Value(1.0), "data", 2.0),
            f"x.data = ...: {REPEAT}make a new Value, or return the number and write it outside",
        ),
        (
            lambda x: setattr(x, "requires_grad", False),
            f"x.requires_grad = False: {REPEAT}use stop_gradient(x) for a constant, and set it outside",
        ),
        (
            lambda x: setattr(Value(1.0, requires_grad=False), "requires_grad", True),
            f"x.requires_grad = True: {REPEAT}use stop_gradient(x) for a constant, and set it outside",
        ),
        (lambda x: (x * 2).backward_fn(), f"x.backward_fn(): {REPEAT}{TRANSFORM}"),
        (copy.copy, f"copy.copy(x) of a leaf: {REUSE}use +x, which depends on x"),
        (copy.deepcopy, f"copy.deepcopy(x): {REUSE}use the Value itself: computing with it does not change it"),
        (
            lambda x: copy.deepcopy([x + 1]),
            f"copy.deepcopy(x): {REUSE}use the Value itself: computing with it does not change it",
        ),
        (lambda x: pickle.dumps(x + 1), f"pickling x: {REUSE}return it as a further result, and pickle that"),
        (
            lambda x: Value(3.0, (x,)),
            "Value(data, parents): a replay can neither compute data nor call backward_fn; make the op with "
            "pygrad.custom_op",
        ),
        (
            lambda x: Value(3.0, (Value(1.0), x + 1), requires_grad=False),
            "Value(data, parents): a replay can neither compute data nor call backward_fn; make the op with "
            "pygrad.custom_op",
        ),
        (math.ulp, f"math.ulp(x): {REUSE}a multiple of abs(x) may do"),
        (lambda x: math.nextafter(1.0, x), f"math.nextafter(x, y): {REUSE}x * (1 + 2**-52) may do"),
        (
            math.frexp,
            f"math.frexp(x): {REUSE}pygrad.floor(pygrad.log2(abs(x))) + 1 is the exponent, but for rounding",
        ),
        (lambda x: np.isclose(x, 1.0), f"np.isclose: {REUSE}use pygrad.math.isclose"),
        (lambda x: float(OUTSIDE), FLOAT),  # what was there before is outside as well
        (lambda x: float(OUTSIDE * 2.0 + Value(1.0)), FLOAT),
        (lambda x: float(x.detach()), FLOAT),
        (lambda x: float(no_grad(lambda: x + 1)()), FLOAT),
        (lambda x: float((x > 1) & True), FLOAT),
    ],
)
def test_what_leaves_the_graph_is_an_error(run, text):
    assert text_of(run) == text
    with contextlib.suppress(pygrad.GraphError, TypeError):
        run(Value(3.0))  # and is none outside
    OUTSIDE.grad = 0.0


def test_an_error_says_where():
    def f(x):
        return float(x)

    with pytest.raises(TypeError) as caught:
        capture(f, 3.0)
    line = f.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(f"float(x), at {__file__}:{line} in f: it depends on")


def test_text_hash_and_shape_stay():
    def f(x):
        y = x * 2
        assert x in {x}
        return repr(y), str(y), f"{y:.2f}", f"{y}", y.op, y.requires_grad, y.parents == (x,), hash(x) == hash(x)

    _, found, guards = capture(f, 1.5)
    assert found == ("Value(data=3.0, grad=0.0)",) * 2 + ("3.00", "Value(data=3.0, grad=0.0)", "mul", True, True, True)
    assert not guards


# ---- constants: leaves made during the capture


def test_what_is_computed_from_new_leaves_alone_is_a_constant():
    def f(x):
        v = Value(3.0)
        w = v * v + pygrad.sum([v, 1.0])
        assert float(w) == w.data == 13.0
        assert w > 12
        assert int(w) == round(w) == 13
        assert round(w, 1) == 13.0
        assert copy.copy(v).data == 3.0
        assert copy.deepcopy(w).data == pickle.loads(pickle.dumps(w)).data == 13.0
        w.backward()
        assert v.grad == 7.0
        v.zero_grad()
        v.requires_grad = False
        y = Value(5.0, (v, w))
        y.backward_fn = lambda: None
        assert math.ulp(w) == math.frexp(13.0)[0] * 0 + stdlib_math.ulp(13.0)
        assert math.modf(Value(2.5, requires_grad=False)) == (0.5, 2.0)
        loaded = pickle.loads(pickle.dumps(Value(2.0)))
        assert float(loaded) == 2.0
        return x * float(w)

    leaves, y, guards = capture(f, 2.0)
    assert not guards
    assert replayed([y], leaves, [3.0]) == [39.0]


def test_dependence_is_found_through_any_operand():
    def f(x):
        v = Value(1.0)
        chain = v
        for _ in range(1000):
            chain = chain + 1.0
        assert chain.data == 1001.0
        for bad in (
            chain + x,
            pygrad.fma(chain, chain, x),
            pygrad.sum([chain, x]),
            pygrad.dot([chain], [x]),
            x + chain,
        ):
            with pytest.raises(CaptureError):
                float(bad)
            with pytest.raises(CaptureError):  # as found before
                float(bad * 1.0)
        assert float(chain) == 1001.0
        return None

    capture(f, 1.0)


def test_a_leaf_frozen_after_use_is_outside_still():
    w = Value(3.0)
    y = w * 2
    w.requires_grad = False

    def f(x):
        float(y)

    assert text_of(f) == FLOAT


def test_a_released_graph_is_outside():
    w = Value(3.0)
    y = w * 2
    (y * y).backward(retain_graph=False)
    assert text_of(lambda x: float(y)) == FLOAT


def test_deep_graphs_and_many_questions():
    def f(x):
        y = x
        for _ in range(100_000):
            y = y * 0.99999
            if y < 0:
                break
        v = Value(1.0)
        for _ in range(100_000):
            v = v + 1.0
        assert bool(v)
        return y

    _, _, guards = capture(f, 1.0)
    assert len(guards) == 100_000
