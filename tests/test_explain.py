"""explain: paths, factors, products and sums as data and as text; what it leaves alone; large graphs."""

import math as stdlib_math

import pytest

import pygrad
from pygrad import Value, custom_op, explain, grad, no_grad


def products(found):
    return [stdlib_math.prod(factor.number for factor in path) for path in found.paths]


def test_the_neuron():
    x, w, b = Value(2.0), Value(-0.5), Value(0.3)
    y = (x * w + b).tanh()
    found = explain(y, wrt=w)
    y.backward()
    assert (found.root, found.target, found.value, found.gradient) == ("y", "w", y.data, w.grad)
    assert found.path_count == 1
    assert [factor.number for factor in found.paths[0]] == [1.0 / stdlib_math.cosh(-0.7) ** 2, 1.0, 2.0] or [
        factor.number for factor in found.paths[0]
    ] == [1 - y.data * y.data, 1.0, 2.0]
    assert [factor.child for factor in found.paths[0]] == ["y = tanh(add)", "add(mul, b)", "mul(x, w)"]
    assert [factor.parent for factor in found.paths[0]] == ["d/da", "d/da", "d/db"]
    assert [factor.formula for factor in found.paths[0]] == ["1 - y * y", "1", "a"]
    assert str(found) == "\n".join([
        f"dy/dw = {w.grad!r}, by 1 path",
        f"  y = tanh(add): d/da = 1 - y * y = {1 - y.data * y.data!r}",
        "  add(mul, b): d/da = 1",
        "  mul(x, w): d/db = a = 2.0",
        f"  product: {1 - y.data * y.data!r} * 1 * 2.0 = {w.grad!r}",
    ])  # fmt: skip
    assert explain(y, wrt=b).gradient == b.grad
    assert explain(y, wrt=x).gradient == x.grad


def test_two_paths():
    x = Value(3.0)
    y = x * x + x
    assert str(explain(y, wrt=x)) == "\n".join([
        "dy/dx = 7.0, by 3 paths",
        "  path 1",
        "  y = add(mul, x): d/da = 1",
        "  mul(x, x): d/da = b = 3.0",
        "  product: 1 * 3.0 = 3.0",
        "  path 2",
        "  y = add(mul, x): d/da = 1",
        "  mul(x, x): d/db = a = 3.0",
        "  product: 1 * 3.0 = 3.0",
        "  path 3",
        "  y = add(mul, x): d/db = 1",
        "  product: 1 = 1",
        "  sum: 3.0 + 3.0 + 1 = 7.0",
    ])  # fmt: skip


def test_the_sum_of_products_is_the_gradient():
    x, w = Value(0.7), Value(-1.5)
    h = x * w + 0.5
    y = h.exp() * x + pygrad.sum([h, 2.0, x, h]) / pygrad.dot([h, 2.0], [x, w]) + pygrad.where(h > 0, h, w) * h**3
    for v in (x, w, h):
        found = explain(y, wrt=v, limit=1000)
        assert len(found.paths) == found.path_count
        assert stdlib_math.fsum(products(found)) == pytest.approx(found.gradient, rel=1e-12)
    assert explain(y, wrt=x).gradient == pytest.approx(
        grad(
            lambda x: (
                (h := x * -1.5 + 0.5).exp() * x
                + (2 * h + 2.0 + x) / (h * x - 3.0)
                + pygrad.where(h > 0, h, -1.5) * h**3
            )
        )(0.7),
        rel=1e-12,
    )


def test_the_root_itself_and_what_is_not_there():
    x, z = Value(3.0), Value(4.0)
    y = x * 2
    found = explain(x, wrt=x)
    assert (found.gradient, found.path_count, found.paths) == (1.0, 1, [[]])
    assert str(found) == "dx/dx = 1.0, by 1 path\n  product: 1 = 1"
    found = explain(y, wrt=z)
    assert (found.gradient, found.path_count, found.paths) == (0.0, 0, [])
    assert str(found) == "dy/dz = 0.0, by 0 paths"
    frozen = Value(2.0, requires_grad=False)
    assert explain(x * frozen, wrt=frozen).gradient == 0.0


def test_names():
    x = Value(3.0)
    y = x * 2
    assert str(explain(y, wrt=x, names={})).startswith("dy/dwrt = 2.0")
    assert explain(y, wrt=x, names={"loss": y, "weight": x, "text": "no Value"}).root == "loss"
    assert "loss = mul(weight, 2): d/da = b = 2.0" in str(explain(y, wrt=x, names={"loss": y, "weight": x}))
    assert "mul(3, 2)" in str(explain(y * 1, wrt=y.parents[0], names={}))


def test_constants_and_long_operands():
    x = Value(3.0)
    y = pygrad.sum([x, 1.0, 2.0, 4.0, x, 5.0])
    found = explain(y, wrt=x)
    assert (found.path_count, found.gradient) == (2, 2.0)
    assert found.paths[0][0].child == "y = sum(x, 1, ..., 5)"
    y = pygrad.dot([x, 2.0], [5.0, x])
    assert [path[0].number for path in explain(y, wrt=x).paths] == [5.0, 2.0]
    y = x / 7
    assert explain(y, wrt=x).paths[0][0].formula == "1 / b"


def test_a_branch_is_shown_as_taken():
    x = Value(-2.0)
    for y, number in (
        (x.relu(), 0.0),
        ((-x).relu(), -1.0),
        (pygrad.where(x > 0, x, 3 * x), 3.0),
        (pygrad.maximum(x, 5.0), 0.0),
    ):
        found = explain(y, wrt=x)
        assert sum(products(found)) == number
        assert "select" not in str(found)
        assert "zmul" not in str(found)


def test_every_unary_row():
    from pygrad.ops import FUNCTIONS, TABLE

    for name, row in TABLE.items():
        if row.arity == 1:
            x = Value(1.5 if name != "atanh" and name not in ("asin", "acos") else 0.5)
            y = FUNCTIONS[name](x)
            found = explain(y, wrt=x)
            y.backward()
            assert repr(found.gradient) == repr(x.grad)
            assert repr(found.paths[0][0].number) == repr(x.grad)
            assert str(found).startswith("dy/dx = ")


def test_many_paths_are_counted_and_not_all_shown():
    x = Value(1.0)
    y = x
    for _ in range(49):
        y = y + y
    found = explain(y, wrt=x)
    assert (found.path_count, len(found.paths)) == (2**49, 8)
    assert found.gradient == 2.0**49
    text = str(found)
    assert f"by {2**49} paths" in text
    assert f"... and {2**49 - 8} more paths; the gradient is the sum over all of them" in text
    assert "... 37 more factors" in text
    assert "sum:" not in text
    assert len(explain(y, wrt=x, limit=3).paths) == 3
    assert explain(y, wrt=x, limit=0).paths == []


@pytest.mark.parametrize("depth", [50, 100, 20_000])
def test_more_paths_than_are_counted(depth):
    x = Value(1.0)
    y = x
    for _ in range(depth):
        y = (y + y) * 0.5
    found = explain(y, wrt=x, limit=1)
    assert (found.path_count, found.gradient, len(found.paths)) == (10**15 + 1, 1.0, 1)
    lines = str(found).splitlines()
    assert lines[0] == "dy/dx = 1.0, by more than 10**15 paths"
    assert lines[-1] == "  ... and all the other paths; the gradient is the sum over all of them"


def test_a_deep_graph():
    x = Value(1.0)
    y = x
    for _ in range(20_000):
        y = y * 1.0001
    found = explain(y, wrt=x)
    y.backward()
    assert (found.path_count, len(found.paths[0]), found.gradient) == (1, 20_000, x.grad)
    assert len(str(found)) < 2000


def test_gradients_stay_as_they_were():
    x, w = Value(3.0), Value(2.0)
    h = x * w
    y = h * h
    y.backward()
    y.backward()
    before = (x.grad, w.grad, h.grad, y.grad)
    for v in (x, w, h, y):
        explain(y, wrt=v)
        assert (x.grad, w.grad, h.grad, y.grad) == before
    x.zero_grad()
    y.backward(create_graph=True)
    kept = x.grad
    explain(y, wrt=x)
    assert x.grad is kept


def test_user_made_gradients():
    double = custom_op(lambda a, b: 2 * a + b, lambda g, y, a, b: (2 * g, g), name="double")
    x = Value(3.0)
    y = double(x, 1.0) * double(2.0, x)
    found = explain(y, wrt=x)
    assert (found.gradient, found.path_count) == (2 * 7.0 + 7.0, 2)
    assert "double(x, 1): d/da = backward_fn = 2.0" in str(found)
    out = Value(9.0, (x,))

    def step():
        x.grad += 6.0 * out.grad

    out.backward_fn = step
    x.grad = 5.0
    found = explain(out * 2, wrt=x)
    assert found.gradient == 12.0
    assert found.paths[0][1].number == 6.0
    assert x.grad == 5.0


def test_an_op_of_the_user_s_under_a_name_of_the_table():
    through = custom_op(stdlib_math.floor, lambda g, y, a: g, name="floor")
    x = Value(2.5)
    y = through(x)
    assert str(explain(y, wrt=x)).splitlines()[1] == "  y = floor(x): d/da = backward_fn = 1"


def test_under_no_grad():
    x = Value(3.0)
    y = x * x
    with no_grad():
        assert explain(y, wrt=x).gradient == 6.0


def test_errors():
    with pytest.raises(TypeError, match=r"^explain: y must be a Value, found 3\.0$"):
        explain(3.0, wrt=Value(1.0))
    with pytest.raises(TypeError, match=r"^explain: wrt must be a Value, found 'w'$"):
        explain(Value(1.0), wrt="w")
    x = Value(1.0)
    y = x * 2
    y.backward(retain_graph=False)
    with pytest.raises(pygrad.GraphError, match="released"):
        explain(y, wrt=x)
