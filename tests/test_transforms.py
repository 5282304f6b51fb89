"""grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp: what they give, their arguments, what stays untouched.

Derivatives are compared with analytic ones, exactly where the arithmetic is exact. Next: test_transforms_structures.py,
test_transforms_nesting.py and test_transforms_code.py.
"""

import functools
import math as stdlib_math

import numpy as np
import pytest

import pygrad
from pygrad import Value, custom_op, grad, hessian, hvp, jacobian, jvp, no_grad, stop_gradient, value_and_grad, vjp


def arity_two(f):
    """(f, at the point (2, 3)) -> gradient by each transform that gives first derivatives."""
    return {
        "grad": grad(f, argnums=(0, 1))(2.0, 3.0),
        "value_and_grad": value_and_grad(f, argnums=(0, 1))(2.0, 3.0)[1],
        "vjp": vjp(f, 2.0, 3.0)[1](1.0),
        "jvp": (jvp(f, (2.0, 3.0), (1.0, 0.0))[1], jvp(f, (2.0, 3.0), (0.0, 1.0))[1]),
        "jacobian": jacobian(f, argnums=(0, 1))(2.0, 3.0),
    }


# ---- first derivatives


def test_all_transforms_agree():
    for found in arity_two(lambda x, y: x * x * y + y / x).values():
        assert found == (2 * 2 * 3 - 3 / 4, 4 + 1 / 2)
    assert hessian(lambda x, y: x * x * y, argnums=(0, 1))(2.0, 3.0) == ((6.0, 4.0), (4.0, 0.0))
    assert hvp(lambda x: x[0] * x[0] * x[1])([2.0, 3.0], [1.0, 10.0]) == [6.0 + 40.0, 4.0]


def test_results_are_floats():
    value, slope = value_and_grad(lambda x: x * x)(3)
    assert (type(value), value, type(slope), slope) == (float, 9.0, float, 6.0)
    value, slope = jvp(lambda x: [x, 2], (3,), (1,))
    assert (value, slope) == ([3.0, 2], [1.0, 0.0])
    assert [type(v) for v in slope] == [float, float]
    assert type(hvp(lambda x: x * x * x)(2.0, 1.0)) is float
    assert [type(v) for row in hessian(lambda x: x[0] * x[1])([1, 2]) for v in row] == [float] * 4
    assert [type(v) for row in jacobian(lambda x: [x[0], x[1], 3])([1, 2]) for v in row] == [float] * 6


@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian, hvp])
def test_the_function_keeps_its_name_and_doc(transform):
    def energy(x):
        """Energy of x."""
        return x * x

    assert transform(energy).__name__ == "energy"
    assert transform(energy).__doc__ == "Energy of x."
    assert transform(functools.partial(lambda k, x: k * x, 2.0)) is not None


# ---- argnums


def test_argnums():
    f = lambda x, y, z: x * y + 10 * z  # noqa: E731
    assert grad(f)(2.0, 3.0, 4.0) == 3.0
    assert grad(f, argnums=1)(2.0, 3.0, 4.0) == 2.0
    assert grad(f, argnums=-1)(2.0, 3.0, 4.0) == 10.0
    assert grad(f, argnums=np.int64(1))(2.0, 3.0, 4.0) == 2.0
    assert grad(f, argnums=(2, 0))(2.0, 3.0, 4.0) == (10.0, 3.0)
    assert grad(f, argnums=[0, -1])(2.0, 3.0, 4.0) == (3.0, 10.0)
    assert grad(f, argnums=range(3))(2.0, 3.0, 4.0) == (3.0, 2.0, 10.0)
    assert grad(f, argnums=(1,))(2.0, 3.0, 4.0) == (2.0,)
    assert grad(f, argnums=())(2.0, 3.0, 4.0) == ()
    assert jacobian(lambda x, y: [x * y, y], argnums=(0, 1))(2.0, 3.0) == [(3.0, 2.0), (0.0, 1.0)]
    assert hessian(f, argnums=1)(2.0, 3.0, 4.0) == 0.0
    assert hvp(lambda x, y: x * y * y, argnums=1)(2.0, 3.0, 1.0) == 4.0
    assert hvp(lambda x, y: x * y * y, argnums=(0, 1))(2.0, 3.0, [1.0, 1.0]) == (6.0, 6.0 + 4.0)


@pytest.mark.parametrize("argnums", [2, -3, (0, 2), [5], (0, 1.0), "x", ("x",)])
@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian])
def test_argnums_out_of_place(transform, argnums):
    with pytest.raises((ValueError, TypeError), match=rf"^{transform.__name__}: argnums "):
        transform(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), [1, 0, 1]])
def test_argnums_that_name_an_argument_twice(argnums):
    with pytest.raises(ValueError, match=r"grad: argnums .* name an argument twice"):
        grad(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


def test_an_argument_given_by_keyword_is_a_constant():
    assert grad(lambda x, y: x * y)(2.0, y=3.0) == 3.0
    with pytest.raises(ValueError, match="argnums 0 does not name one of 0 positional arguments"):
        grad(lambda x: x)(x=2.0)


def test_keyword_arguments():
    f = lambda x, *, scale=1.0, power=1, data=None: scale * x**power * (1.0 if data is None else data[1])  # noqa: E731
    assert grad(f)(3.0, scale=2.0, power=2) == 12.0
    assert value_and_grad(f)(3.0, scale=2.0) == (6.0, 2.0)
    assert jacobian(f)(3.0, power=2) == 6.0
    assert hessian(f)(3.0, power=3) == 18.0
    assert hvp(f)(3.0, 1.0, power=3) == 18.0
    assert grad(f)(3.0, data=np.array([5.0, 7.0])) == 7.0


# ---- has_aux


def test_has_aux():
    def f(x):
        y = x * x
        return y, {"y": y, "n": 3, "note": "text", "array": np.array([1, 2]), "x": [x, None]}

    aux = {"y": 9.0, "n": 3, "note": "text", "x": [3.0, None]}

    def check(found):
        array = found.pop("array")
        assert array.dtype == np.array([1]).dtype
        assert array.tolist() == [1, 2]
        assert found == aux
        assert type(found["y"]) is float

    slope, found = grad(f, has_aux=True)(3.0)
    assert slope == 6.0
    check(found)
    (value, found), slope = value_and_grad(f, has_aux=True)(3.0)
    assert (value, slope) == (9.0, 6.0)
    check(found)
    value, pull, found = vjp(f, 3.0, has_aux=True)
    assert (value, pull(2.0)) == (9.0, 12.0)
    check(found)
    value, slope, found = jvp(f, (3.0,), (2.0,), has_aux=True)
    assert (value, slope) == (9.0, 12.0)
    check(found)
    slope, found = jacobian(f, has_aux=True)(3.0)
    assert slope == 6.0
    check(found)
    second, found = hessian(f, has_aux=True)(3.0)
    assert second == 2.0
    check(found)


@pytest.mark.parametrize("out", [lambda x: x, lambda x: (x, 1, 2), lambda x: [x, 1]])
def test_has_aux_without_a_pair(out):
    with pytest.raises(TypeError, match=r"grad: with has_aux=True the function must return \(result, aux\), found "):
        grad(out, has_aux=True)(1.0)


# ---- constants, unused inputs, values from outside


@pytest.mark.parametrize(
    "constant", [5.0, 5, np.float64(5.0), np.int32(5), Value(5.0), Value(5.0, requires_grad=False)]
)
def test_a_function_that_returns_a_constant(constant):
    assert float(grad(lambda x: constant)(2.0)) == 0.0
    assert grad(lambda x: constant)([1.0, {"a": 2.0}]) == [0.0, {"a": 0.0}]
    value, slope = value_and_grad(lambda x: constant)(2.0)
    assert (float(value), float(slope)) == (5.0, 0.0)
    assert jacobian(lambda x: [constant, x])(2.0) == [0.0, 1.0]
    assert jvp(lambda x: constant, (1.0,), (1.0,))[1] == 0.0
    assert vjp(lambda x: constant, 1.0)[1](1.0) == 0.0
    assert hessian(lambda x: constant)([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert hvp(lambda x: constant)(1.0, 1.0) == 0.0


def test_a_frozen_value_as_argument_is_its_number():
    frozen = Value(3.0, requires_grad=False)
    slope = grad(lambda x: x * x)(frozen)
    assert (type(slope), slope, frozen.grad) == (float, 6.0, 0.0)
    with no_grad():
        made = Value(3.0) * 1
    assert jacobian(lambda x: [x[0] * x[1]])([made, 2.0]) == [[2.0, 3.0]]


def test_a_result_in_an_array_of_no_dimension():
    assert value_and_grad(lambda x: np.select([x > 0], [x * 3], 0.0))(2.0) == (6.0, 3.0)
    assert hessian(lambda x: np.array(x * x))(2.0) == 2.0


def test_unused_inputs():
    assert grad(lambda x, y, z: x * 2, argnums=(0, 1, 2))(1.0, 2.0, [3.0]) == (2.0, 0.0, [0.0])
    assert hessian(lambda x: x[0] ** 2)([1.0, 2.0]) == [[2.0, 0.0], [0.0, 0.0]]
    assert grad(lambda x: x)(3.0) == 1.0
    assert jacobian(lambda x: x)([3.0, 4.0]) == [[1.0, 0.0], [0.0, 1.0]]
    assert jacobian(lambda x: [x[0], x[0]])([3.0, 4.0]) == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("result", [[1.0], (1.0, 2.0), None, "text", {"a": 1.0}, 1j, True, np.ones(1)])
@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian, hvp])
def test_a_function_that_does_not_return_one_number(transform, result):
    with pytest.raises(TypeError, match=f"^{transform.__name__}: the function must return one number, found "):
        transform(lambda x: result)(1.0, *([1.0] if transform is hvp else []))


def test_closed_over_leaves_are_left_alone():
    w = Value(5.0)
    w.grad = 7.0
    h = w * 2
    for transform in (
        grad,
        jacobian,
        lambda f: lambda x: value_and_grad(f)(x)[1],
        lambda f: lambda x: vjp(f, x)[1](1.0),
    ):
        slope = transform(lambda x: x * h + w)(3.0)
        assert type(slope) is Value
        assert slope.data == 10.0
        assert w.grad == 7.0
    value, slope = jvp(lambda x: x * h, (3.0,), (1.0,))
    assert (value.data, slope.data, w.grad) == (30.0, 10.0, 7.0)
    slope = hvp(lambda x: x * x * h)(3.0, 1.0)
    assert (slope.data, w.grad) == (20.0, 7.0)


def test_a_result_depends_on_values_outside():
    w = Value(5.0)
    value, slope = value_and_grad(lambda x: w * w * x)(3.0)
    slope.backward()
    assert (value.data, w.grad) == (75.0, 10.0)
    w.zero_grad()
    value.backward()
    assert w.grad == 30.0
    w.zero_grad()
    second = hessian(lambda x: w * x[0] * x[1])([1.0, 2.0])
    second[0][1].backward()
    assert w.grad == 1.0
    frozen = Value(5.0, requires_grad=False)
    assert type(grad(lambda x: frozen * x)(3.0)) is float
    assert type(grad(lambda x: stop_gradient(w) * x)(3.0)) is float


def test_a_training_loop_over_closed_over_parameters():
    w, x0 = Value(1.0), 2.0
    y = grad(lambda x: w * x**3)(x0) - 6.0  # 3 w x**2 - 6
    (y * y).backward()
    assert w.grad == 2 * (12.0 - 6.0) * 12.0


# ---- vjp and jvp


def test_vjp_structures():
    y, pull = vjp(lambda p, q: {"s": p[0] * q, "t": (p[1],)}, [2.0, 3.0], 5.0)
    assert y == {"s": 10.0, "t": (3.0,)}
    assert pull({"s": 1.0, "t": (100.0,)}) == ([5.0, 100.0], 2.0)
    assert pull({"s": 0.0, "t": (0.0,)}) == ([0.0, 0.0], 0.0)
    assert pull([1, np.float32(2.0)]) == ([5.0, 2.0], 2.0)
    with pytest.raises(ValueError, match="vjp: the result holds 2 numbers, the cotangent 1"):
        pull(1.0)


def test_jvp_structures():
    value, slope = jvp(lambda p: {"s": p["a"] * p["b"][0], "n": None}, ({"a": 2.0, "b": [3.0]},), ([1.0, 10.0],))
    assert (value, slope) == ({"s": 6.0, "n": None}, {"s": 3.0 + 20.0, "n": None})
    with pytest.raises(ValueError, match="jvp: primals hold 2 numbers, tangents 1"):
        jvp(lambda x, y: x * y, (1.0, 2.0), (1.0,))
    for wrong in ((1.0, (1.0,)), ((1.0,), 1.0), ("ab", (1.0,))):
        with pytest.raises(TypeError, match="jvp: primals and tangents must be tuples or lists"):
            jvp(lambda x: x, *wrong)


def test_hvp_errors():
    with pytest.raises(TypeError, match="hvp: needs the arguments of the function and a vector, found 1 in all"):
        hvp(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="hvp: the argument holds 2 numbers, the vector 1"):
        hvp(lambda x: x[0])([1.0, 2.0], [1.0])


def test_custom_op_in_every_transform():
    square = custom_op(lambda a: a * a, lambda g, y, a: 2 * a * g, name="square")
    for found in arity_two(lambda x, y: square(x) * y).values():
        assert found == (12.0, 4.0)
    assert hessian(lambda x: square(x))(3.0) == 2.0
    only_first = custom_op(stdlib_math.sinh, lambda g, y, a: g * stdlib_math.cosh(a))
    cosh = stdlib_math.cosh(2.0)
    for found in arity_two(lambda x, y: only_first(x) * y).values():
        assert found == (3.0 * cosh, only_first(2.0))
    assert jacobian(lambda x: [only_first(x), x, x])(2.0) == [cosh, 1.0, 1.0]


def test_backward_fn_in_reverse_transforms():
    def triple(x):
        out = Value(3 * x.data, (x,))

        def step():
            x.grad += 3 * out.grad

        out.backward_fn = step
        return out

    assert grad(lambda x: triple(x) * x)(2.0) == 12.0
    assert jacobian(lambda x: [triple(x), x, x * x])(2.0) == [3.0, 1.0, 4.0]  # falls back to reverse mode
    with pytest.raises(pygrad.GraphError, match=r"jvp: a backward_fn .* cannot be run forwards"):
        jvp(triple, (2.0,), (1.0,))
    with pytest.raises(pygrad.GraphError, match="cannot be differentiated again"):
        grad(grad(triple))(2.0)
