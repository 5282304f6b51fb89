"""no_grad, enable_grad, detect_anomaly: blocks, decorators, nested, recursive, in generators, coroutines, threads."""

import asyncio
import inspect
import threading

import pytest

import pygrad
from pygrad import AnomalyError, Value, custom_op, detect_anomaly, enable_grad, grad, is_grad_enabled, jvp, no_grad
from pygrad._core import is_anomaly_enabled


@pytest.fixture(autouse=True)
def the_mode_is_as_it_was():
    assert is_grad_enabled()
    assert not is_anomaly_enabled()
    yield
    assert is_grad_enabled()
    assert not is_anomaly_enabled()


class OopsError(Exception):
    pass


# ---- blocks


def test_what_no_grad_records():
    x = Value(2.0)
    with no_grad():
        for y in (x * x, -x, x.exp(), pygrad.sum([x, x]), pygrad.dot([x], [x]), Value(4.0, (x,)), x.clip(0.0, 1.0)):
            assert not y.requires_grad
            assert y.parents == ()
        assert Value(1.0).requires_grad  # a leaf is the user's to make
    y = x * x
    assert y.requires_grad
    with no_grad():
        y.backward()  # a graph that exists may be walked
    assert x.grad == 4.0


def test_nesting():
    modes = []
    with no_grad():
        modes.append(is_grad_enabled())
        with enable_grad():
            modes.append(is_grad_enabled())
            with no_grad(), no_grad():
                modes.append(is_grad_enabled())
            modes.append(is_grad_enabled())
        modes.append(is_grad_enabled())
    assert modes == [False, True, False, True, False]
    with enable_grad():
        assert is_grad_enabled()


def test_one_object_nests_in_itself():
    off, on = no_grad(), enable_grad()
    with off:
        with on:
            with off:
                assert not is_grad_enabled()
                with on:
                    assert is_grad_enabled()
                assert not is_grad_enabled()
            assert is_grad_enabled()
        assert not is_grad_enabled()


@pytest.mark.parametrize("mode", [no_grad, enable_grad, detect_anomaly])
def test_exceptions(mode):
    for enabled in (True, False):
        with (enable_grad if enabled else no_grad)():
            with pytest.raises(OopsError), mode():
                raise OopsError
            assert is_grad_enabled() is enabled

            @mode()
            def fail():
                raise OopsError

            with pytest.raises(OopsError):
                fail()
            assert is_grad_enabled() is enabled
            assert not is_anomaly_enabled()


def test_assignments_and_updates():
    p = Value(3.0)
    (p * p).backward()
    with no_grad():
        p.data -= 0.5 * p.grad
    assert p.data == 0.0
    with no_grad():
        p = p - 1.0
    assert not p.requires_grad


# ---- decorators


@pytest.mark.parametrize("mode", [no_grad, enable_grad, detect_anomaly])
def test_a_decorated_function_stays_itself(mode):
    @mode()
    def f(a, b=2, *rest, c, **more):
        """Doc."""
        return a, b, rest, c, more

    assert f(1, 3, 4, c=5, d=6) == (1, 3, (4,), 5, {"d": 6})
    assert (f.__name__, f.__doc__) == ("f", "Doc.")
    assert str(inspect.signature(f)) == "(a, b=2, *rest, c, **more)"


def test_bare_decorator():
    @no_grad
    def f():
        return is_grad_enabled()

    @no_grad()
    @enable_grad
    def g():
        return is_grad_enabled()

    @detect_anomaly
    def h():
        return is_anomaly_enabled()

    assert (f(), g(), h()) == (False, True, True)


def test_recursion():
    @enable_grad()
    def down(depth, modes):
        modes.append(is_grad_enabled())
        if depth:
            with no_grad():
                down(depth - 1, modes)
            modes.append(is_grad_enabled())

    modes = []
    with no_grad():
        down(3, modes)
        assert not is_grad_enabled()
    assert modes == [True] * 7


def test_methods_and_lambdas():
    class Model:
        @no_grad()
        def predict(self, x):
            return x * x

        @staticmethod
        @no_grad()
        def static(x):
            return x * x

    x = Value(3.0)
    assert not Model().predict(x).requires_grad
    assert not Model.static(x).requires_grad
    assert not no_grad()(lambda v: v * v)(x).requires_grad


@pytest.mark.parametrize("mode", [no_grad, enable_grad, detect_anomaly])
def test_what_cannot_be_decorated(mode):
    async def numbers():
        yield 1

    for wrong in (numbers, int, 3, "f"):
        with pytest.raises(TypeError, match=f"^{mode.__name__}: can decorate a function, found .*; use a with block"):
            mode()(wrong)


# ---- generators


def test_a_generator_is_switched_step_by_step():
    @no_grad()
    def steps():
        for _ in range(3):
            yield is_grad_enabled()

    assert inspect.isgeneratorfunction(steps)
    seen = []
    for inside in steps():
        seen.append((inside, is_grad_enabled()))
    assert seen == [(False, True)] * 3


def test_send_throw_and_return():
    log = []

    @no_grad()
    def steps(first):
        assert not is_grad_enabled()
        got = yield first
        log.append((got, is_grad_enabled()))
        try:
            yield "second"
        except OopsError as error:
            log.append((str(error), is_grad_enabled()))
        yield "third"
        return "result"

    it = steps("first")
    assert next(it) == "first"
    assert is_grad_enabled()
    assert it.send("sent") == "second"
    assert is_grad_enabled()
    assert it.throw(OopsError("thrown")) == "third"
    assert is_grad_enabled()
    with pytest.raises(StopIteration) as caught:
        next(it)
    assert caught.value.value == "result"
    assert log == [("sent", False), ("thrown", False)]

    def delegate():
        return (yield from steps("again"))

    it = delegate()
    next(it)
    next(it)
    next(it)
    with pytest.raises(StopIteration) as caught:
        next(it)
    assert caught.value.value == "result"


def test_close():
    log = []

    @no_grad()
    def steps():
        try:
            yield 1
        finally:
            log.append(is_grad_enabled())

    it = steps()
    next(it)
    it.close()
    assert log == [False]
    it = steps()
    next(it)
    del it  # the collector closes it
    assert log == [False, False]
    steps().close()  # never started
    assert log == [False, False]

    @no_grad()
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    it = stubborn()
    next(it)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        it.close()


def test_a_generator_that_raises():
    @no_grad()
    def steps():
        yield 1
        raise OopsError("inside")

    it = steps()
    next(it)
    with pytest.raises(OopsError, match="inside"):
        next(it)
    assert is_grad_enabled()
    it = steps()
    next(it)
    with pytest.raises(ZeroDivisionError):
        it.throw(ZeroDivisionError)
    assert is_grad_enabled()


def test_generators_interleaved():
    @no_grad()
    def off():
        while True:
            yield is_grad_enabled()

    @enable_grad()
    def on():
        while True:
            yield is_grad_enabled()

    a, b, c = off(), on(), off()
    for _ in range(3):
        assert (next(a), next(b), is_grad_enabled(), next(c)) == (False, True, True, False)
    with no_grad():
        assert (next(b), is_grad_enabled(), next(a)) == (True, False, False)


def test_a_block_around_a_yield_stays_on():
    def steps():
        with no_grad():
            yield 1

    it = steps()
    next(it)
    assert not is_grad_enabled()  # as any context manager would: see the docs of no_grad
    it.close()
    assert is_grad_enabled()


# ---- coroutines


def test_a_coroutine_is_switched_step_by_step():
    log = []

    @no_grad()
    async def inside(name):
        for _ in range(3):
            log.append((name, is_grad_enabled()))
            await asyncio.sleep(0)
        return name

    async def outside():
        for _ in range(4):
            log.append(("outside", is_grad_enabled()))
            await asyncio.sleep(0)

    async def main():
        return await asyncio.gather(inside("a"), outside(), inside("b"))

    assert inspect.iscoroutinefunction(inside)
    assert asyncio.run(main()) == ["a", None, "b"]
    assert set(log) == {("a", False), ("outside", True), ("b", False)}

    @no_grad()
    async def fail():
        await asyncio.sleep(0)
        raise OopsError

    with pytest.raises(OopsError):
        asyncio.run(fail())


# ---- threads


def test_threads_have_their_own_mode():
    found = []
    with no_grad():
        thread = threading.Thread(target=lambda: found.append((is_grad_enabled(), (Value(1.0) * 2).requires_grad)))
        thread.start()
        thread.join()
        assert not is_grad_enabled()
    assert found == [(True, True)]


def test_one_object_in_several_threads():
    shared = no_grad()
    barrier = threading.Barrier(2)
    found = []

    def run(outer):
        with outer:
            barrier.wait()
            with shared:
                barrier.wait()
                found.append(is_grad_enabled())
                barrier.wait()
            found.append((type(outer).__name__, is_grad_enabled()))

    threads = [threading.Thread(target=run, args=(mode,)) for mode in (no_grad(), enable_grad())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[:2] == [False, False]
    assert sorted(found[2:]) == [("enable_grad", True), ("no_grad", False)]


def test_anomaly_is_of_its_thread():
    found = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: found.append(Value(0.0).log().data))
        thread.start()
        thread.join()
    assert found == [float("-inf")]


# ---- anomalies


def line_of(marker):
    """The line of this file on which a comment stands."""
    with open(__file__, encoding="utf-8") as file:
        return next(k for k, line in enumerate(file, 1) if line.rstrip().endswith("# " + marker))


def test_forward():
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        Value(0.0).log()  # here: log
    where = f"{__file__}:{line_of('here: log')} in test_forward"
    assert str(caught.value) == f"log: forward gave -inf from operands (0.0,), at {where}"
    assert isinstance(caught.value, ArithmeticError)


@pytest.mark.parametrize(
    ("op", "operands", "make"),
    [
        ("div", (1.0, 0.0), lambda: 1 / Value(0.0)),
        ("div", (1.0, 0.0), lambda: Value(1.0) / 0),
        ("pow", (0.0, -1.0), lambda: Value(0.0) ** -1),
        ("exp", (1000.0,), lambda: pygrad.exp(Value(1000.0))),
        ("sqrt", (-1.0,), lambda: pygrad.sqrt(Value(-1.0))),
        ("mul", (1e200, 1e200), lambda: Value(1e200) * 1e200),
        ("sum", (1e308, 1e308), lambda: pygrad.sum([Value(1e308), 1e308])),
        ("dot", (1e200, 1e200), lambda: pygrad.dot([Value(1e200)], [1e200])),
        ("log", (0.0,), lambda: Value(0.0, requires_grad=False).log()),
    ],
)
@pytest.mark.parametrize("recording", [True, False])
def test_forward_of_ops(op, operands, make, recording):
    with detect_anomaly(), (enable_grad if recording else no_grad)(), pytest.raises(AnomalyError) as caught:
        make()
    assert str(caught.value).startswith(f"{op}: forward gave ")
    assert f" from operands {operands}, at {__file__}:" in str(caught.value)
    assert make().requires_grad in (True, False)  # and off again


def inner(x):
    return x.sqrt()  # here: sqrt


def test_backward():
    x = Value(0.0)
    with detect_anomaly():
        y = inner(x) * 3
        with pytest.raises(AnomalyError) as caught:
            y.backward()
    where = f"{__file__}:{line_of('here: sqrt')} in inner"
    assert str(caught.value) == f"sqrt: backward gave a gradient of inf from operands (0.0,), at {where}"
    y = inner(x)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        y.backward()
    assert str(caught.value) == (
        "sqrt: backward gave a gradient of inf from operands (0.0,), made outside detect_anomaly()"
    )
    assert "backward stopped after 0 node(s)" in caught.value.__notes__[0]
    x.zero_grad()
    y.backward()
    assert x.grad == float("inf")


def test_backward_of_a_custom_op_and_a_closure():
    op = custom_op(lambda a: a, lambda g, y, a: float("nan"), name="bad")
    x = Value(1.0)
    with detect_anomaly(), pytest.raises(AnomalyError, match="backward gave a gradient of nan from operands"):
        op(x).backward()
    x = Value(1.0)
    out = Value(2.0, (x,))
    out.backward_fn = lambda: setattr(x, "grad", float("nan"))
    with detect_anomaly(), pytest.raises(AnomalyError, match="backward gave a gradient of nan"):
        (out * 2).backward()


def test_backward_that_releases():
    x = Value(0.0)
    with detect_anomaly():
        y = x.sqrt() * 2
        with pytest.raises(AnomalyError):
            y.backward(retain_graph=False)


def test_what_is_finite_passes():
    x = Value(2.0)
    with detect_anomaly():
        y = (x * x).log() / 3
        y.backward()
        assert x.grad == pytest.approx(1 / 3)
        assert grad(grad(lambda v: v**3))(2.0) == 12.0
        assert jvp(lambda v: v**3, (2.0,), (1.0,)) == (8.0, 12.0)
        assert pygrad.where(x > 0, x, pygrad.exp(x)).data == 2.0


def test_in_a_transform():
    with detect_anomaly(), pytest.raises(AnomalyError, match="log: forward gave -inf"):
        grad(lambda x: x.log())(0.0)
    with detect_anomaly(), pytest.raises(AnomalyError, match="sqrt: backward gave a gradient of inf"):
        grad(lambda x: x.sqrt())(0.0)
    assert grad(lambda x: x.sqrt())(0.0) == float("inf")


def test_nesting_of_anomalies():
    with detect_anomaly():
        with detect_anomaly():
            pass
        assert is_anomaly_enabled()
        with pytest.raises(AnomalyError):
            Value(0.0).log()


def test_nodes_made_outside_are_as_ever():
    """Off costs nothing: a node is the same 64 bytes, with nothing noted for it."""
    x = Value(2.0)
    before = x * x
    with detect_anomaly():
        inside = x * x
    after = x * x
    sizes = {node.__sizeof__() for node in (before, inside, after)}
    assert len(sizes) == 1
    for y in (before, inside, after):
        x.zero_grad()
        y.backward()
        assert x.grad == 4.0


def test_place_is_the_user_s():
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        pygrad.math.log(Value(0.0))  # here: math.log
    assert f"{__file__}:{line_of('here: math.log')} in test_place_is_the_user_s" in str(caught.value)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        grad(lambda v: 1 / v)(0.0)  # here: reciprocal
    assert f"{__file__}:{line_of('here: reciprocal')} in <lambda>" in str(caught.value)
