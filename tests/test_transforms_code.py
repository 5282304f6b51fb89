"""What a differentiated function may do: set modes, raise, loop, branch, recurse; and its callers: SciPy, threads.

Derivatives are compared with analytic ones, exactly where the arithmetic is exact.
"""

import itertools
import math as stdlib_math
import threading

import numpy as np
import pytest
import scipy.optimize

from pygrad import (
    Value,
    _core,
    grad,
    hessian,
    hvp,
    is_grad_enabled,
    jacobian,
    jvp,
    math,
    no_grad,
    stop_gradient,
    value_and_grad,
    vjp,
)

# ---- modes and exceptions


def test_under_no_grad():
    f = lambda x: x**3  # noqa: E731
    w = Value(2.0)
    with no_grad():
        assert grad(f)(2.0) == 12.0
        assert value_and_grad(f)(2.0) == (8.0, 12.0)
        assert grad(grad(f))(2.0) == 12.0
        assert jvp(f, (2.0,), (1.0,)) == (8.0, 12.0)
        assert jacobian(lambda x: [f(x), x])(2.0) == [12.0, 1.0]
        assert hessian(f)(2.0) == 12.0
        assert hvp(f)(2.0, 1.0) == 12.0
        y, pull = vjp(f, 2.0)
        assert (y, pull(1.0)) == (8.0, 12.0)
        assert type(grad(lambda x: w * x)(3.0)) is float
        assert grad(f)(w) == 12.0
        assert not is_grad_enabled()
    assert pull(1.0) == 12.0
    y, pull = vjp(f, 2.0)
    with no_grad():
        assert pull(2.0) == 24.0


def test_no_grad_inside():
    def f(x):
        with no_grad():
            scale = x * x
        return scale * x

    assert grad(f)(3.0) == 9.0
    assert grad(no_grad()(lambda x: x * x))(3.0) == 0.0


class OopsError(Exception):
    pass


@pytest.mark.parametrize(
    "run",
    [
        lambda f: grad(f)(1.0),
        lambda f: value_and_grad(f)(1.0),
        lambda f: vjp(f, 1.0),
        lambda f: jvp(f, (1.0,), (1.0,)),
        lambda f: jacobian(f)(1.0),
        lambda f: hessian(f)(1.0),
        lambda f: hvp(f)(1.0, 1.0),
        lambda f: grad(lambda y: y * grad(f)(y))(1.0),
    ],
)
@pytest.mark.parametrize("error", [OopsError, KeyboardInterrupt])
def test_exceptions_restore_the_state(run, error):
    def fail(x):
        raise error("in f")

    for enabled in (True, False):
        before = _core.set_no_grad(not enabled)
        try:
            with pytest.raises(error, match="in f"):
                run(fail)
            assert is_grad_enabled() is enabled
            assert float(Value(2.0)) == 2.0  # no transform is under way any more
            assert grad(lambda x: x * x)(3.0) == 6.0
        finally:
            _core.set_no_grad(before)


def test_float_inside_a_transform_is_an_error():
    with pytest.raises(TypeError, match=r"^float\(\): a Value that is being differentiated would leave the graph"):
        grad(lambda x: x * float(x))(2.0)
    assert grad(lambda x: x * float(stop_gradient(x)))(2.0) == 2.0
    assert grad(lambda x: x * x.data)(2.0) == 2.0
    assert grad(lambda x: x * int(x) if f"{x:.1f}" == "2.0" else x)(2.0) == 2.0


# ---- plain code


def test_loops_and_conditions():
    def newton_root(a):
        x = a
        while abs(x * x - a) > 1e-14 * a:
            x = 0.5 * (x + a / x)
        return x

    assert value_and_grad(newton_root)(2.0) == pytest.approx((2**0.5, 0.5 / 2**0.5), rel=1e-12)

    def piecewise(x):
        if x < 0:
            return -x
        elif x < 1:
            return x * x
        return 2 * x - 1

    assert [grad(piecewise)(x) for x in (-3.0, 0.5, 4.0)] == [-1.0, 1.0, 2.0]

    def collatz(x, n):
        for _ in range(n):
            x = x / 2 if int(x.data) % 2 == 0 else 3 * x + 1
        return x

    assert grad(collatz)(6.0, 3) == 0.5 * 3 * 0.5

    def recursive(x, n):
        return x if n == 0 else math.sin(recursive(x, n - 1))

    expected = 1.0
    value = 0.5
    for _ in range(20):
        expected *= stdlib_math.cos(value)
        value = stdlib_math.sin(value)
    assert value_and_grad(recursive)(0.5, 20) == pytest.approx((value, expected), rel=1e-14)


def test_sorting_and_builtins():
    f = lambda x: sum(w * v for w, v in zip([1, 10, 100], sorted(x), strict=True)) + max(x) - min(x)  # noqa: E731
    assert grad(f)([3.0, 1.0, 2.0]) == [101.0, 0.0, 10.0]


def rosenbrock(x):
    total = 0.0
    for a, b in itertools.pairwise(x):
        total += 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


def test_scipy_minimize_takes_value_and_grad():
    start = np.full(10, -1.2)
    value, slope = value_and_grad(rosenbrock, as_values=True)(start)
    assert type(value) is float
    assert value == pytest.approx(scipy.optimize.rosen(start), rel=1e-14)
    assert slope == pytest.approx(scipy.optimize.rosen_der(start), rel=1e-13)
    found = scipy.optimize.minimize(value_and_grad(rosenbrock, as_values=True), start, jac=True, method="BFGS")
    assert found.success
    assert found.fun < 1e-9


def test_scipy_takes_hessian_and_hvp():
    start = np.array([-1.2, 1.0, 0.5, 2.0])
    assert hessian(rosenbrock, as_values=True)(start) == pytest.approx(scipy.optimize.rosen_hess(start), rel=1e-13)
    vector = np.array([1.0, -2.0, 0.5, 3.0])
    found = hvp(rosenbrock, as_values=True)(start, vector)
    assert found == pytest.approx(scipy.optimize.rosen_hess_prod(start, vector), rel=1e-13)
    result = scipy.optimize.minimize(
        value_and_grad(rosenbrock, as_values=True), [1.3, 0.7, 0.8, 1.9], jac=True,
        hessp=hvp(rosenbrock, as_values=True),
        method="Newton-CG",
    )  # fmt: skip
    assert result.x == pytest.approx(np.ones(4), abs=1e-4)


def test_scipy_root_takes_jacobian():
    f = lambda x: [x[0] + 2 * x[1] - 2, x[0] ** 2 + 4 * x[1] ** 2 - 4]  # noqa: E731
    found = scipy.optimize.root(f, [1.0, 2.0], jac=jacobian(f, as_values=True))
    assert found.success
    assert f(found.x) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_threads_do_not_disturb_each_other():
    found = {}

    def run(k):
        for _ in range(50):
            with no_grad():
                found[k] = grad(grad(lambda x: x**k))(1.0)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: float(k * (k - 1)) for k in range(2, 8)}
