"""Transforms of compiled functions: what those of the function give, from its program, without running it again."""

import dataclasses
import itertools

import numpy as np
import pytest
from compiled import counted, on_values, same

import pygrad
from pygrad import Value, grad, hessian, hvp, jacobian, jvp, math, value_and_grad, vjp

INF, NAN = float("inf"), float("nan")


@dataclasses.dataclass
class Market:
    spot: float
    rates: object
    name: str = "market"


def rosenbrock(x):
    return sum((100 * (q - p**2) ** 2 + (1 - p) ** 2 for p, q in itertools.pairwise(x)), 0.0)


def mixed(p, q):
    return math.sin(p["a"] * q[0]) + p["b"][1] * q[1] ** 3 / p["b"][0]


def price(m, t):
    return m.spot * pygrad.exp(-m.rates[0] * t) + m.rates[1] * t if m.spot > 1 else m.spot * t


SCALAR = [
    (math.sin, (0.7,)),
    (rosenbrock, ([1.0, 2.0, -0.5, 3.0],)),
    (mixed, ({"a": 0.5, "b": (2.0, 3.0)}, [1.5, -0.5])),
    (price, (Market(2.0, [0.1, 0.3]), 1.5)),
    (price, (Market(0.5, [0.1, 0.3]), 1.5)),
    (lambda x, y: x, (1.0, 2.0)),
    (lambda x, y: x * 0 + 2.5, (INF, 2.0)),
    (lambda x, y: np.array(x * y), (3.0, 2)),
    (lambda x, y: pygrad.sqrt(x) * y - x / y, (0.0, -0.0)),
]
IDS = [f"{getattr(f, '__name__', '')}{k}" for k, (f, _) in enumerate(SCALAR)]


@pytest.mark.parametrize(("f", "args"), SCALAR, ids=IDS)
def test_of_functions_of_one_number(f, args):
    counting, runs = counted(f)
    fast = pygrad.compile(counting)
    every = tuple(range(len(args)))
    for argnums in (0, -1, every, every[::-1], list(every), np.int64(0)):
        for transform in (grad, value_and_grad, jacobian, hessian):
            expected = transform(f, argnums)(*args)
            for _ in range(2):  # the first makes it, the second finds it made
                assert same(transform(fast, argnums)(*args), expected), transform
    for argnums in (0, len(args) - 1):
        assert same(jacobian(grad(fast), argnums)(*args), jacobian(grad(f), argnums)(*args), exactly=False)
        assert same(hvp(fast, argnums)(*args, args[argnums]), hvp(f, argnums)(*args, args[argnums]))
    assert same(vjp(fast, *args)[1](-2.0), vjp(f, *args)[1](-2.0))
    assert same(jvp(fast, args, args), jvp(f, args, args), exactly=False)
    assert len(runs) == 1


def test_of_an_int():
    """A result that is an int stays one, but as the value beside a gradient; its derivatives are zero."""
    fast, f = pygrad.compile(lambda x: 3), lambda x: 3
    for transform in (grad, value_and_grad, jacobian, hessian):
        assert same(transform(fast)(1.0), transform(f)(1.0))
    assert same(value_and_grad(fast)(1.0), (3.0, 0.0))
    assert same(value_and_grad(fast).map(np.ones(2)), (np.array([3.0, 3.0]), np.zeros(2)))
    assert same(value_and_grad(pygrad.compile(lambda x: np.array(3)))(1.0), (3.0, 0.0))
    extra, h = pygrad.compile(lambda x: (int(x), (x * x, 7, x))), lambda x: (int(x), (x * x, 7, x))
    for x in (2.5, 3.5, 2.75):
        assert same(value_and_grad(extra, has_aux=True)(x), value_and_grad(h, has_aux=True)(x))
        assert same(grad(lambda x: value_and_grad(extra, has_aux=True)(x)[0][1][0])(x), 2 * x)
        assert same(jacobian(value_and_grad(pygrad.compile(lambda x: int(x))))(x), (0.0, 0.0))
    stepped, g = pygrad.compile(lambda x: [x, int(x)]), lambda x: [x, int(x)]
    for x in (1.5, 2.5):
        assert same(jacobian(stepped)(x), jacobian(g)(x))
        assert same(jvp(stepped, (x,), (2.0,)), jvp(g, (x,), (2.0,)))
        assert vjp(stepped, x)[1]([1.0, 5.0]) == 1.0


def many(x, y):
    return {"all": [x[0] * y, x[1] / y, x[0] * x[1]], "one": (math.exp(y),), "int": 7, "none": None, "zero": 2.5}


@pytest.mark.parametrize("args", [([2.0, 3.0], 0.5), ([NAN, -0.0], INF), ([0.0, 1.0], 0.0)])
def test_of_functions_of_several_numbers(args):
    counting, runs = counted(many)
    fast = pygrad.compile(counting)
    for argnums in (0, 1, (0, 1), (1, 0)):  # more results than arguments: forward; the other way: reverse
        assert same(jacobian(fast, argnums)(*args), jacobian(many, argnums)(*args), exactly=False)
    wide = pygrad.compile(lambda x, y: [x[0] * x[1] / y])
    assert same(jacobian(wide)(*args), jacobian(lambda x, y: [x[0] * x[1] / y])(*args))
    cotangent = {"all": [1.0, -2.0, 0.0], "one": (3.0,), "int": 4.0, "zero": 5.0}
    assert same(vjp(fast, *args)[0], on_values(many, *args))
    assert same(vjp(fast, *args)[1](cotangent), vjp(many, *args)[1](cotangent), exactly=False)
    assert same(jvp(fast, args, ([1.0, 2.0], -1.0)), jvp(many, args, ([1.0, 2.0], -1.0)), exactly=False)
    second = jacobian(jacobian(fast, (0, 1)), (0, 1))(*args)
    assert same(second, jacobian(jacobian(many, (0, 1)), (0, 1))(*args), exactly=False)
    assert len(runs) == 1


def test_nested_as_deep_as_one_likes():
    def f(x):
        return math.sin(x) * math.exp(x * x) / (1 + x)

    counting, runs = counted(f)
    fast, plain = pygrad.compile(counting), f
    for _ in range(5):
        fast, plain = grad(fast), grad(plain)
        assert same(fast(0.3), plain(0.3), exactly=False)
        assert fast(0.3) == pytest.approx(plain(0.3), rel=1e-14)
    assert len(runs) == 1
    fast = pygrad.compile(counting)
    for combo, args in [
        (lambda f: jacobian(value_and_grad(f)), (0.3,)),
        (lambda f: grad(hvp(f)), (0.3, 2.0)),
        (lambda f: grad(hvp(f), 1), (0.3, 2.0)),
        (lambda f: hvp(grad(f)), (0.3, 2.0)),
        (lambda f: grad(lambda x: jvp(f, (x,), (2.0,))[1]), (0.3,)),
        (lambda f: jacobian(lambda x: list(value_and_grad(f)(x))), (0.3,)),
        (lambda f: jacobian(lambda x: vjp(f, x)[1](x)), (0.3,)),
    ]:
        assert same(combo(fast)(*args), combo(f)(*args), exactly=False)


def test_where_a_derivative_is_zero_whatever_the_inputs():
    for f in (lambda x, y: y * 1.0, lambda x, y: 4.0, lambda x, y: 4):
        fast = pygrad.compile(f)
        assert same(hvp(jacobian(fast))(2.0, 3.0, 1.0), 0.0)
        assert same(hvp(fast)(2.0, 3.0, 1.0), 0.0)
        assert same(grad(grad(jacobian(fast)))(2.0, 3.0), 0.0)
        assert same(hessian(fast, (0, 1))(2.0, 3.0), hessian(f, (0, 1))(2.0, 3.0))


def test_has_aux():
    def f(x, y):
        return x * y, {"half": x / 2, "n": 3, "name": "f", "y": [y]}

    fast = pygrad.compile(f)
    for transform in (grad, value_and_grad, jacobian, hessian):
        for argnums in (0, (0, 1)):
            expected = transform(f, argnums, has_aux=True)(3.0, 2.0)
            assert same(transform(fast, argnums, has_aux=True)(3.0, 2.0), expected)
    assert same(jvp(fast, (3.0, 2.0), (1.0, 0.5), has_aux=True), jvp(f, (3.0, 2.0), (1.0, 0.5), has_aux=True))
    value, pull, aux = vjp(fast, 3.0, 2.0, has_aux=True)
    assert (value, pull(10.0), aux) == (6.0, (20.0, 30.0), f(3.0, 2.0)[1])
    several = pygrad.compile(lambda x: ([x, 2 * x, 3], x / 2))
    assert jvp(several, (3.0,), (1.0,), has_aux=True) == ([3.0, 6.0, 3], [1.0, 2.0, 0.0], 1.5)
    with pytest.raises(TypeError, match=r"^grad: with has_aux=True the function must return \(result, aux\)"):
        grad(pygrad.compile(lambda x: x), has_aux=True)(1.0)
    for transform in (vjp, lambda f, x, has_aux: jvp(f, (x,), (x,), has_aux)):
        with pytest.raises(
            TypeError, match=r"jvp|vjp: with has_aux=True the function must return \(result, aux\), found"
        ):
            transform(pygrad.compile(lambda x: [x]), 1.0, has_aux=True)


@pytest.mark.parametrize("where", ["compile", "transform", "both"])
def test_arrays_as_values(where):
    def f(x, y=2.0):
        return sum((v * v * y + math.sin(v) for row in x for v in row), 0.0)

    x = np.arange(6.0).reshape(2, 3)
    fast = pygrad.compile(f, as_values=where != "transform")
    options = {"as_values": True} if where != "compile" else {}
    for transform in (grad, value_and_grad, jacobian, hessian):
        for given in (x, x.astype(np.float32), np.asfortranarray(x), x[:, ::-1], x[:0]):
            expected = transform(f, as_values=True)(given)
            if transform is hessian and not given.size:
                continue  # nested lists of nothing do not tell a shape
            assert same(transform(fast, **options)(given), expected), (transform, given)
            assert same(transform(fast, **options)(given), expected), (transform, given)
    assert same(hvp(fast, **options)(x, x), hvp(f, as_values=True)(x, x))
    assert same(jacobian(grad(fast, **options), **options)(x), hessian(f, as_values=True)(x))
    assert same(vjp(fast, x, **options)[1](2.0), vjp(f, x, as_values=True)[1](2.0))
    assert same(jvp(fast, (x,), (x,), **options), jvp(f, (x,), (x,), as_values=True))
    several = pygrad.compile(lambda x: [[v * 2 for v in row] for row in x], as_values=where != "transform")
    assert jacobian(several, **options)(x).shape == (2, 3, 2, 3)


def test_arrays_on_top_of_a_derivative_alone():
    fast = pygrad.compile(rosenbrock)
    x = np.array([1.0, 2.0, 0.5])
    assert same(jacobian(grad(fast), as_values=True)(x), hessian(rosenbrock, as_values=True)(x))
    for call in (grad(fast), lambda x: vjp(fast, x), lambda x: jvp(fast, (x,), (x,))):
        with pytest.raises(TypeError, match=r"^compile: found an array of shape \(3,\); pass as_values=True"):
            call(x)


def test_keyword_and_static_arguments():
    def f(x, y, n, *, scale=1.0, how="plain"):
        y = y if how == "plain" else -y
        return x * x * y * scale * len(range(n))

    fast = pygrad.compile(f, static="n")
    for kwargs in ({"n": 3}, {"n": 2, "scale": 5.0}, {"n": 2, "scale": 7.0, "how": "other"}):
        for transform in (grad, value_and_grad, jacobian, hessian):
            assert transform(fast, (0, 1))(2.0, 3.0, **kwargs) == transform(f, (0, 1))(2.0, 3.0, **kwargs)
        for vector in (1.0, 11.0):
            assert hvp(fast)(2.0, 3.0, vector, **kwargs) == hvp(f)(2.0, 3.0, vector, **kwargs)
        assert hvp(hvp(fast))(2.0, 3.0, 5.0, 7.0, **kwargs) == hvp(hvp(f))(2.0, 3.0, 5.0, 7.0, **kwargs)
        assert grad(hvp(fast), 2)(2.0, 3.0, 5.0, **kwargs) == grad(hvp(f), 2)(2.0, 3.0, 5.0, **kwargs)
    first = pygrad.compile(lambda n, x: x**n, static=0)
    assert vjp(first, 3, 2.0)[1](1.0) == (None, 12.0)
    assert grad(first, 1)(3, 2.0) == 12.0
    with pytest.raises(TypeError, match=r"^grad: found no number to differentiate in argument 3 of type int$"):
        grad(first)(3, 2.0)


def test_values_without_a_gradient_are_numbers():
    fast, two = pygrad.compile(lambda x, y: x * y * y), Value(2.0, requires_grad=False)
    assert fast(3.0, two) == 12.0
    assert grad(fast, 1)(3.0, two) == 12.0
    assert hvp(fast, 1)(3.0, two, two) == 12.0
    assert vjp(fast, 3.0, two)[1](two) == (8.0, 24.0)
    assert jvp(fast, (3.0, two), (two, 0.0)) == (12.0, 8.0)


def test_vjp_keeps_the_numbers_of_its_call():
    w = Value(2.0)
    array = np.array([3.0])
    fast = pygrad.compile(lambda x: x[0] ** 2 * w, as_values=True)
    _, pull = vjp(fast, array)
    array[0], w.data = 5.0, 7.0
    fast(array)
    assert [float(pull(1.0)[0]), float(pull(2.0)[0])] == [12.0, 24.0]
    with pytest.raises(ValueError, match=r"^vjp: the result holds 1 numbers, the cotangent 2$"):
        pull([1.0, 2.0])


def test_a_result_that_is_several_outputs_at_once():
    def f(x):
        y = x * x
        return [y, x, y, 1.0, x]

    fast = pygrad.compile(f)
    assert same(jacobian(fast)(3.0), jacobian(f)(3.0), exactly=False)
    assert same(jacobian(pygrad.compile(lambda x: f(x[0])))([3.0] * 9), jacobian(lambda x: f(x[0]))([3.0] * 9))
    assert vjp(fast, 3.0)[1]([1.0, 10.0, 100.0, 1000.0, 1e4]) == vjp(f, 3.0)[1]([1.0, 10.0, 100.0, 1000.0, 1e4])
    assert same(jvp(fast, (3.0,), (2.0,)), jvp(f, (3.0,), (2.0,)), exactly=False)


ERRORS = [
    (lambda t: grad(t)([1.0]), lambda x: [x[0]]),
    (lambda t: value_and_grad(t)([1.0]), lambda x: (x[0], 1)),
    (lambda t: hessian(t)([1.0]), lambda x: "text"),
    (lambda t: hvp(t)([1.0], [1.0]), lambda x: None),
    (lambda t: grad(t, 1)(1.0), lambda x: x),
    (lambda t: grad(t, (0, 0))(1.0), lambda x: x),
    (lambda t: jacobian(t, "ab")(1.0), lambda x: x),
    (lambda t: grad(t, 1.5)(1.0), lambda x: x),
    (lambda t: grad(t)("text", 1.0), lambda x, y: y),
    (lambda t: hvp(t)(1.0), lambda x: x),
    (lambda t: hvp(t)([1.0], [1.0, 2.0]), lambda x: x[0]),
    (lambda t: jvp(t, (1.0,), (1.0, 2.0)), lambda x: x),
    (lambda t: jvp(t, 1.0, 1.0), lambda x: x),
    (lambda t: vjp(t, 1.0)[1]([1.0, 2.0]), lambda x: x),
]


@pytest.mark.parametrize(("call", "f"), ERRORS)
def test_errors_are_those_of_the_transforms(call, f):
    """But for how the text shows what was found."""
    with pytest.raises((TypeError, ValueError)) as plain:
        call(f)
    with pytest.raises(plain.type) as compiled:
        call(pygrad.compile(f))
    head = str(plain.value).split("found")[0]
    assert str(compiled.value).startswith(head)


def test_a_sparse_derivative_stands_alone():
    fast = pygrad.compile(lambda x: [x[0] * x[1], x[2]])
    assert jacobian(fast, sparse=True)([2.0, 3.0, 4.0]).toarray().tolist() == [[3.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    with pytest.raises(TypeError, match=r"^jacobian: sparse=True gives a matrix alone; leave has_aux=True out$"):
        jacobian(fast, sparse=True, has_aux=True)
    with pytest.raises(TypeError, match=r"^hessian: a sparse Jacobian or Hessian cannot be differentiated"):
        hessian(jacobian(fast, sparse=True))
    matrix = hessian(pygrad.compile(lambda x: x[0] * x[1]), sparse=True)
    with pytest.raises(
        TypeError, match=r"^hessian: with sparse=True it is called with floats, and cannot be part of a"
    ):
        grad(lambda v: matrix([v, v]))(1.0)
