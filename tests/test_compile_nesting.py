"""Compiled functions within transforms, captures and one another, in threads, and what they leave behind."""

import gc
import threading
import weakref

import numpy as np
import pytest
from compiled import counted, on_values, same

import pygrad
from pygrad import Value, _core, grad, hessian, no_grad, value_and_grad


def f(x, y):
    return x.tanh() * y if x > 0 else y / x


# ---- with Values


def on_floats(x, y):
    """f as a compiled function has it: on Values whatever the arguments are."""
    x, y = (v if isinstance(v, Value) else Value(v, requires_grad=False) for v in (x, y))
    return f(x, y)


def test_with_values_it_is_recorded():
    counting, runs = counted(f)
    fast = pygrad.compile(counting)
    x, y = Value(0.5), Value(3.0)
    z = fast(x, y)
    z.backward()
    assert (z.data, (x.grad, y.grad)) == value_and_grad(on_floats, (0, 1))(0.5, 3.0)
    assert fast(x, 3.0).requires_grad
    assert fast(2.0, y).requires_grad  # the float is a Value to f, which has methods
    assert len(runs) == 3
    with no_grad():
        assert not fast(x, y).requires_grad
    assert same(grad(fast)(Value(0.5, requires_grad=False), 3.0), grad(f)(0.5, 3.0))
    slope = grad(fast)(x, 3.0)
    slope.backward()
    x.grad = 0.0
    slope.backward()
    assert x.grad == grad(grad(f))(0.5, 3.0)


def test_within_eager_transforms():
    fast = pygrad.compile(f)

    def outer(inner):
        return lambda x: inner(x, 2.0) * inner(2.0, x) + inner(3.0, 4.0) * x

    for transform in (grad, value_and_grad, hessian):
        assert same(transform(outer(fast))(0.7), transform(outer(on_floats))(0.7))
        assert same(transform(lambda x: grad(fast)(x, x))(0.7), transform(lambda x: grad(f)(x, x))(0.7))


def test_what_it_reads_from_outside_is_differentiated_by_a_transform_around_it():
    """fast(3.0) is a float elsewhere; within the transform it must not lose the gradient."""

    def loss(w):
        fast = pygrad.compile(lambda x: x * w)
        return fast(3.0) + fast(4.0) * w + grad(fast)(1.0) * w

    assert grad(loss)(2.0) == 3 + 16 + 4
    assert hessian(loss)(2.0) == 10.0
    for inner in (lambda f, x: pygrad.vjp(f, x)[1](1.0), lambda f, x: pygrad.jvp(f, (x,), (1.0,))[1]):
        assert grad(lambda w, inner=inner: inner(pygrad.compile(lambda x: x * x * w), 3.0) * w)(2.0) == 24.0
    w = Value(2.0)
    outside = pygrad.compile(lambda x: x * w)
    assert outside(3.0) == 6.0
    assert grad(lambda x: outside(3.0) * x)(1.0).data == 6.0  # a Value: it depends on w


@pytest.mark.parametrize("first", ["no_grad", "transform", "capture"])
def test_where_the_first_call_is_does_not_matter(first):
    fast = pygrad.compile(lambda x: x * x)
    if first == "no_grad":
        with no_grad():
            assert fast(3.0) == 9.0
            assert grad(fast)(3.0) == 6.0
    elif first == "transform":
        assert grad(lambda v: fast(3.0) * v)(1.0) == 9.0
    else:
        assert pygrad.compile(lambda v: fast(v) * fast(3.0))(1.0) == 9.0
    assert (fast(3.0), grad(fast)(3.0), hessian(fast)(3.0)) == (9.0, 6.0, 2.0)
    assert fast.program.gradient([0], 0).run([5.0])[1] == 10.0


def test_static_arguments_stay_what_they_are():
    """As part of a graph too, where range(n) needs the int."""
    met = []

    def f(n, x, *, how=1):
        met.append((type(n), type(how)))
        return x**n * len(range(n)) * how

    fast, x, two = pygrad.compile(f, static=(0, "how")), Value(2.0), Value(2.0)
    for at, one in ((x, 1.0), (2.0, two / 2), (x, two / 2)):
        value, pull = pygrad.vjp(fast, 3, at)
        slopes = pull(one)
        assert (float(value), slopes[0], float(slopes[1])) == (24.0, None, 36.0)
        assert [float(v) for v in pygrad.jvp(fast, (3, at), (None, one))] == [24.0, 36.0]
        assert float(pygrad.hvp(fast, 1)(3, at, one)) == 36.0
    for transform, expected in ((grad, 36.0), (pygrad.jacobian, 36.0), (hessian, 36.0), (value_and_grad, (24.0, 36.0))):
        found = transform(fast, 1)(3, x)
        assert tuple(map(float, found)) == expected if type(found) is tuple else float(found) == expected
        assert transform(lambda x: fast(3, x, how=2))(2.0) == transform(lambda x: f(3, x, how=2))(2.0)
        with pytest.raises(TypeError, match=r"^\w+: found no number to differentiate in argument 3 of type Static$"):
            transform(fast)(3, x)
    assert pygrad.compile(lambda x: pygrad.vjp(fast, 3, x)[1](1.0)[1] + grad(fast, 1)(3, x))(2.0) == 72.0
    assert set(met) == {(int, int)}


# ---- within captures


def test_compiled_functions_in_compiled_functions():
    inner, runs = counted(f)
    fast = pygrad.compile(inner)
    outer = pygrad.compile(lambda x: fast(x, 2.0) + fast(2.0, x) * fast(2.0, 3.0))
    for x in (0.5, -0.5, 0.7):
        assert same(outer(x), on_values(lambda x: on_floats(x, 2.0) + on_floats(2.0, x) * on_floats(2.0, 3.0), x))
        assert same(grad(outer)(x), grad(lambda x: on_floats(x, 2.0) + on_floats(2.0, x) * on_floats(2.0, 3.0))(x))
    assert outer.stats()["variants"] == 2
    assert len(runs) == 6
    assert isinstance(pygrad.compile(lambda x: [x, type(fast(2.0, 3.0)) is float][1:])(1.0)[0], bool)
    assert pygrad.compile(lambda x: x * int(fast(2.0, 3.0)))(1.0) == 2.0  # a float there, as anywhere


def test_arrays_within_captures():
    lengths = pygrad.compile(lambda xs: sum((x * x for x in xs + xs[:1]), 0.0), as_values=True)
    outer = pygrad.compile(lambda x: lengths(np.array([1.0, 2.0])) * x + lengths([x, x]))
    assert outer(3.0) == 6.0 * 3.0 + 27.0
    assert grad(outer)(3.0) == 6.0 + 18.0


def test_derivatives_within_captures():
    fast = pygrad.compile(lambda x: x.tanh() * x)
    outer = pygrad.compile(lambda x: grad(fast)(x) + pygrad.jvp(fast, (x,), (1.0,))[1] + hessian(fast)(x * 1.0))
    plain = lambda x: grad(fast.function)(x) + pygrad.jvp(fast.function, (x,), (1.0,))[1] + hessian(fast.function)(x)  # noqa: E731
    for x in (0.3, 2.0):
        assert same(outer(x), on_values(plain, x))
        assert same(grad(outer)(x), grad(plain)(x), exactly=False)


def test_recursion_of_a_compiled_function_through_itself():
    @pygrad.compile
    def power(x, n):
        return x * power(x, n - 1) if n > 0 else 1.0 + 0.0 * x

    def plain(x, n):
        return x * plain(x, n - 1) if n > 0 else 1.0 + 0.0 * x

    for n in (3.0, 5.0, 0.0, 3.0):
        assert same(power(2.0, n), on_values(plain, 2.0, n))
        assert same(grad(power)(2.0, n), grad(plain)(2.0, n))
    assert power.stats()["variants"] == 3


# ---- threads


def test_one_function_in_several_threads():
    """Including its first calls, new variants, and new structures."""
    for variants in (256, 3):
        fast = pygrad.compile(lambda xs: sum((x * int(xs[0]) for x in xs), 0.0), variants=variants)
        slope, wrong = pygrad.value_and_grad(fast), []
        start = threading.Barrier(8)

        def work(seed, fast=fast, slope=slope, wrong=wrong, start=start):
            start.wait()
            for k in range(200):
                xs = [float((seed + k) % 3) + 0.5] + [float(seed)] * (k % 2 + 1)
                n = float(int(xs[0]))
                expected = sum((x * n for x in xs), 0.0)
                try:
                    if fast(xs) != expected or slope(xs) != (expected, [n] * len(xs)):
                        wrong.append((xs, fast(xs)))
                except BaseException as error:
                    wrong.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert fast.stats()["variants"] == 3


def test_a_capture_that_another_thread_makes_meanwhile_is_kept_once():
    """Both threads are in f at once, for the first call."""
    both = threading.Barrier(2)
    fast = pygrad.compile(lambda x: (both.wait(), x * 2)[1] if x > 0 else x, variants=1)
    found = []
    threads = [threading.Thread(target=lambda x=x: found.append(fast(x))) for x in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [2.0, 4.0]
    assert fast.stats()["variants"] == 1


# ---- what is left behind


def test_a_dropped_function_frees_everything():
    class Big:
        pass

    def make():
        big, w = Big(), Value(2.0)

        def f(xs):
            assert big
            return sum((x * x * w if x > 0 else x for x in xs), 0.0)

        fast = pygrad.compile(f)
        for at in ([1.0, 2.0], [1.0, -2.0], [3.0]):
            fast(at)
            grad(fast)(at)
            hessian(fast)(at)
            pygrad.hvp(fast)(at, at)
            pygrad.vjp(fast, at)[1](1.0)
            pygrad.jvp(fast, (at,), (at,))
            jacobian = pygrad.jacobian(fast, as_values=True)
            jacobian(np.array(at))
        with pytest.raises(TypeError):
            fast(["text"])
        return weakref.ref(big), weakref.ref(fast)

    gc.collect()
    before = _core.heap_stats()[1]
    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert _core.heap_stats()[1] == before


def test_a_capture_keeps_no_node():
    gc.collect()
    before = _core.heap_stats()[1]
    fast = pygrad.compile(lambda xs: [x * x for x in xs] if xs[0] > 0 else xs)
    fast([1.0] * 1000)
    grad(lambda xs: fast(xs)[0])([1.0] * 1000)
    fast([-1.0] * 1000)
    assert _core.heap_stats()[1] == before


def test_calls_leave_nothing():
    fast = pygrad.compile(lambda x: [x * x, x])
    for _ in range(3):
        fast(2.0), grad(lambda x: fast(x)[0])(2.0), pygrad.jacobian(fast)(2.0)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        fast(2.0), pygrad.jacobian(fast)(2.0), pygrad.vjp(fast, 2.0)[1]([1.0, 2.0])
    gc.collect()
    assert len(gc.get_objects()) - before < 20
