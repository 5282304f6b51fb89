"""Captures inside one another and beside one another, and that nothing is left behind."""

import contextlib
import gc
import sys
import threading

import pytest
from captures import capture, kinds, replayed
from conftest import needs_timer

import pygrad
from pygrad import CaptureError, Value, _core, math, no_grad

# ---- nesting, threads, and what is left behind


def test_captures_nest():
    def outer(x):
        before = Value(2.0)  # a constant here, outside of the inner one

        def inner():
            assert _core.capture_depth() == 2
            made = Value(5.0)
            assert float(made) == 5.0
            with pytest.raises(CaptureError):
                float(before)
            if before > 1 and made > 1 and x * before > 1 and leaf > 1:
                return leaf * before * x
            return None

        leaf = Value(7.0)
        y, guards = _core.run_capture(inner, [leaf])
        assert [n.op for n, _, _, _ in guards] == ["greater"] * 3
        assert _core.operands(guards[2][0])[0] is leaf
        assert float(before) == 2.0
        assert float(leaf) == 7.0
        return y

    (x,), y, guards = capture(outer, 3.0)
    assert y.data == 42.0
    assert len(guards) == 1  # of x * before > 1 alone
    assert replayed([guards[0][0]], [x], [0.1]) == [0.0]


def test_leaves_of_an_inner_capture_are_constants_of_the_outer_one():
    def outer(x):
        def inner():
            return Value(4.0) * 2

        made, _ = _core.run_capture(inner, [])
        assert float(made) == 8.0
        return made

    capture(outer, 1.0)


def test_begin_and_end():
    x = Value(3.0)
    _core.begin_capture([x])
    try:
        assert _core.is_capturing()
        assert bool(x > 1)
        assert _core.depends_on_outside(x * 2)
        assert not _core.depends_on_outside(Value(1.0))
        assert not _core.depends_on_outside(Value(1.0, requires_grad=False))
        assert not _core.depends_on_outside(3.0)
    finally:
        guards = _core.end_capture()
    assert kinds(guards) == [("greater", 1.0, "bool")]
    assert not _core.is_capturing()
    assert not _core.depends_on_outside(x)
    with pytest.raises(RuntimeError, match=r"^capture: none is under way in this thread$"):
        _core.end_capture()


@pytest.mark.parametrize("bad", [3.0, Value(1.0, requires_grad=False), Value(1.0) * 2])
def test_inputs_are_leaves(bad):
    with pytest.raises(TypeError, match=r"^capture: input 1 must be a leaf that requires a gradient, found "):
        _core.run_capture(lambda: None, [Value(1.0), bad])
    with pytest.raises(TypeError):
        _core.begin_capture((Value(1.0),))
    assert _core.capture_depth() == 0


def test_an_exception_leaves_nothing_behind():
    class Stop(BaseException):
        pass

    def f(x):
        assert x > 1
        _core.begin_capture([])  # and never ended
        with no_grad():
            raise Stop

    for error in (Stop, KeyboardInterrupt):
        with pytest.raises(Stop if error is Stop else KeyboardInterrupt):
            capture(f if error is Stop else lambda x: (_ for _ in ()).throw(KeyboardInterrupt), 3.0)
        assert _core.capture_depth() == 0
        assert not _core.is_capturing()
    x = Value(2.0)
    assert (x < 3) is True
    assert float(x) == 2.0


@needs_timer
def test_a_signal_leaves_nothing_behind():
    import signal

    class Alarm(Exception):  # noqa: N818
        pass

    def ring(*_):
        raise Alarm

    def f(x):
        for _ in range(3_000_000):  # not for ever: a signal that got lost would take all memory
            x = x * 1.0
            bool(x > 1)

    before = signal.signal(signal.SIGALRM, ring)
    gc.disable()  # what a handler raises in a callback of the collector (hypothesis has one) is lost
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            with pytest.raises(Alarm):
                capture(f, 3.0)
            assert _core.capture_depth() == 0
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)


def test_captures_are_of_one_thread():
    inside, done = threading.Event(), threading.Event()
    seen = {}

    def other():
        inside.wait(10)
        v = Value(3.0)
        seen["truth"] = v < 4
        seen["float"] = float(v)
        seen["capturing"] = _core.is_capturing()
        leaves, y, guards = capture(lambda x: x * 2 if x > 1 else x, 5.0)
        seen["replayed"] = replayed([y], leaves, [6.0]), len(guards)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def f(x):
        inside.set()
        assert done.wait(10)
        assert x > 1
        return x

    _, _, guards = capture(f, 3.0)
    thread.join()
    assert seen == {"truth": True, "float": 3.0, "capturing": False, "replayed": ([12.0], 1)}
    assert len(guards) == 1


def test_a_capture_leaks_nothing():
    def f(x, y):
        v = Value(3.0)
        assert bool(v * 2 > 1)
        if x > y and int(x * 3) and math.isfinite(y):
            x = x + pygrad.grad(pygrad.relu)(y)
        with contextlib.suppress(CaptureError):
            float(x)
        with no_grad():
            return _core.run_capture(lambda: x.detach() * v > 0, [Value(1.0)])

    def run():
        for _ in range(50):
            capture(f, 3.0, 2.0)
            with contextlib.suppress(ZeroDivisionError):
                capture(lambda x: [bool(x > 1), 1 // 0], 3.0)

    run()
    gc.collect()
    before = _core.heap_stats()[1]
    run()
    gc.collect()
    assert _core.heap_stats()[1] == before


def test_inputs_and_leaves_are_held_during_a_capture_alone():
    x = Value(3.0)
    count = sys.getrefcount(x)
    _core.begin_capture([x])
    assert sys.getrefcount(x) == count + 1
    v = Value(1.0)
    assert bool(v * 2 > x) is False
    _core.end_capture()
    assert sys.getrefcount(x) == count
    assert sys.getrefcount(v) == sys.getrefcount(x)


def test_nothing_is_unusual_afterwards():
    x = Value(3.0)
    capture(lambda v: v > 1, 2.0)
    assert (x * 2).detach().requires_grad is False
    assert type(x < 4) is bool
    y = x * 2
    y.backward()
    x.data = 4.0
    assert (x.grad, x.data) == (2.0, 4.0)
