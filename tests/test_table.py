"""The op table, row by row: names, formulas against their compiled form, SymPy, mpmath, second derivatives.

Generated over pygrad.ops.TABLE: a new row is tested without a new test. formulas.py reads rows, domains.py says where,
truth.py what is exact, contract.py how close. The last tests are of these tests.
"""

from __future__ import annotations

import ast
import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import mpmath
import pytest
import sympy
from contract import CONTRACT, DEFAULT, KINKS, NO_DERIVATIVE, Promise, errors, truth_of
from domains import INF, NAN, ORDERS, SPECIALS, draw, in_domain, interval, samples, special_operands, spread
from formulas import CONSTANTS, Symbols, evaluate, parse
from mpmath import mp, mpf
from truth import PRECISION, TRUTH

import pygrad
from pygrad import Value, _core, functions, reference, reference_ops
from pygrad.ops import ALIASES, FUNCTIONS, LETTERS, TABLE, Row

each_row = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
ADJOINTS = (1.0, -2.5, 0.0, -0.0, INF, NAN)


def same(x: float, y: float) -> bool:
    """Equal to the bit, but for what a nan carries."""
    return (x != x and y != y) or (x == y and math.copysign(1, x) == math.copysign(1, y))


def formula_texts(row: Row) -> list[ast.expr]:
    return [parse(text) for text in (row.value, *row.gradients)]


# ------------------------------------------------------------------------------------------------------------- names


def test_everything_names_the_same_ops():
    names = {*TABLE, *ALIASES}
    assert reference_ops.OPS.keys() == TABLE.keys()
    assert reference_ops.ALIASES == ALIASES
    assert FUNCTIONS.keys() == names == set(functions.__all__)
    for name in names:
        op = getattr(pygrad, name)
        assert op is getattr(functions, name) is FUNCTIONS[name]
        assert op.row == ALIASES.get(name, name)
        assert callable(getattr(Value, name))
        assert callable(getattr(reference.Value, name))
        assert getattr(reference, name) is reference_ops.OPS[op.row]
    assert TRUTH.keys() | CONTRACT.keys() <= TABLE.keys()
    assert {*KINKS, *ORDERS} <= TABLE.keys()


@each_row
def test_signatures_agree(row):
    op = reference_ops.OPS[row.name]
    assert len(op.rules) == row.arity == len(row.gradients) == len(row.domain)
    assert dict(row.defaults) == op.defaults


@each_row
def test_a_row_is_whole(row):
    assert row.summary
    assert all(interval(text) for text in row.domain)
    for formula in formula_texts(row):
        for node in ast.walk(formula):
            if isinstance(node, ast.Name):
                assert node.id in {"a", "b", "c", "y", "g", "nan", "select"} or node.id in FUNCTIONS
                assert node.id not in LETTERS[row.arity :]
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):  # would be an integer in C
                assert not all(isinstance(getattr(side, "value", None), int) for side in (node.left, node.right))
            if isinstance(node, ast.Constant) and isinstance(node.value, float) and len(repr(node.value)) > 6:
                assert float(CONSTANTS[node.value].evalf(30)) == node.value
    assert "y" not in {node.id for node in ast.walk(parse(row.value)) if isinstance(node, ast.Name)}


@each_row
def test_a_gradient_that_uses_no_letter_but_g_saves_nothing(row):
    """backward refuses where an operand was written since and is needed, or may be; where none is, it runs."""
    letters = {node.id for text in row.gradients for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    for i in range(row.arity):
        operands = [Value(0.5) for _ in range(row.arity)]
        y = FUNCTIONS[row.name](*operands)
        operands[i].data = 0.5
        if LETTERS[i] in letters:
            with pytest.raises(pygrad.GraphError):
                y.backward()
        elif not letters & {*LETTERS, "y"}:
            y.backward()


# --------------------------------------------------------------------------- formula, compiled form and reference agree


def random_operands(row: Row, count: int) -> list[tuple[float, ...]]:
    """Numbers of every exponent, in the domain or not, and points of the domain."""
    rng = random.Random(row.name)
    highest = ORDERS.get(row.name, 0)
    found = []
    for _ in range(count):
        point = [rng.choice([spread(rng, -1070, 1023), rng.uniform(-40, 40)]) for _ in range(row.arity)]
        if highest:
            point[0] = float(rng.randint(0, highest))
        found.append(tuple(point))
    return found + samples(row, count, seed=1)


def copies_a_nan_s_sign(row: Row, operands: tuple[float, ...]) -> bool:
    return row.name == "copysign" and operands[1] != operands[1]


def disagreements(row: Row, points: Iterable[tuple[float, ...]]) -> list[Any]:
    """Where the compiled form, the formula's text read by Python, and the reference are not equal bit for bit."""
    value, *gradients = formula_texts(row)
    op = reference_ops.OPS[row.name]
    found = []
    for k, operands in enumerate(points):
        if copies_a_nan_s_sign(row, operands):
            continue
        letters = dict(zip(LETTERS, operands, strict=False))
        y = _core.evaluate(row.name, *operands)
        if not (same(y, evaluate(value, letters)) and same(y, float(op.value(*operands)))):
            found.append((operands, y))
        g = ADJOINTS[k % len(ADJOINTS)]
        compiled = _core.evaluate_vjp(row.name, g, y, *operands)
        letters |= {"y": y, "g": g}
        for i, gradient in enumerate(gradients):
            texts, rule = evaluate(gradient, letters), float(op.rules[i](g, y, *operands))
            if not (same(compiled[i], texts) and same(compiled[i], rule)):
                found.append((operands, g, i, compiled[i], texts, rule))
    return found


@each_row
def test_formula_compiled_form_and_reference_agree_on_special_operands(row):
    points = [point for point in special_operands(row) for _ in range(len(ADJOINTS) if row.arity == 1 else 1)]
    assert not disagreements(row, points)


@each_row
def test_formula_compiled_form_and_reference_agree_on_random_operands(row):
    assert not disagreements(row, random_operands(row, 1000))


@each_row
def test_a_zero_adjoint_gives_a_zero_gradient(row):
    """Whatever the operands: a branch that was masked out stays out, even where its partial is inf or nan."""
    for operands in special_operands(row):
        y = _core.evaluate(row.name, *operands)
        for g in (0.0, -0.0):
            assert all(partial == 0 for partial in _core.evaluate_vjp(row.name, g, y, *operands)), operands


def test_truths():
    """1.0 or 0.0; nan compares as in Python, and is true as in bool(nan)."""
    numbers = (-1.0, -0.0, 0.0, 2.0, INF, NAN)
    for a, b in product(numbers, repeat=2):
        for name, short in (("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"),
                            ("equal", "eq"), ("not_equal", "ne")):  # fmt: skip
            expected = float(getattr(operator, short)(a, b))
            assert same(FUNCTIONS[name](a, b), expected)
            x = Value(a)
            truth = FUNCTIONS[short](x, b)
            assert (truth.data, truth.op, truth.requires_grad) == (expected, name, True)
            assert getattr(x, name)(b).data == expected
            truth.backward()
            assert x.grad == 0.0
        assert same(FUNCTIONS["logical_and"](a, b), float(bool(a and b)))
        assert same(FUNCTIONS["logical_or"](a, b), float(bool(a or b)))
        assert same(FUNCTIONS["logical_not"](a), float(not a))
        assert (Value(a) < b) is (a < b)  # the operator gives a bool


def test_frozen_is_a_constant_to_gradients():
    x = Value(3.0)
    y = pygrad.frozen(x) * x
    y.backward()
    assert (y.data, x.grad) == (9.0, 3.0)
    assert pygrad.frozen(2.0) == 2.0
    assert pygrad.hessian(lambda v: v[0] * v[1] * pygrad.frozen(v[0]))([2.0, 3.0]) == [[0.0, 2.0], [2.0, 0.0]]


# ------------------------------------------------------------------------------------- SymPy: gradients are derivatives


def moderate_points(row: Row, count: int) -> list[tuple[float, ...]]:
    """Points of the domain off the kinks, with operands that differ: a value may have a branch for where they tie."""
    rng = random.Random(row.name)
    domains = [interval(text) for text in row.domain]
    found = []
    while len(found) < count:
        point = tuple(
            float(rng.randint(0, 3)) if domain.integers else rng.randint(-3000, 3000) / 1024 for domain in domains
        )
        if row.name in ("where", "logical_and", "logical_or", "logical_not") and rng.random() < 0.3:
            at = rng.randrange(1 if row.name == "where" else row.arity)
            point = (*point[:at], 0.0, *point[at + 1 :])
        if (
            in_domain(row, point)
            and len(set(point)) == row.arity
            and not (row.name in KINKS and KINKS[row.name](*point))
        ):
            found.append(point)
    return found


def wrong_derivatives(row: Row, count: int = 300, met: Counter[Any] | None = None) -> list[Any]:
    """Where a gradient's text is not SymPy's derivative of the value's text: numbers to 50 digits, on every branch.

    `met` counts the points by branches taken.
    """
    value, *gradients = formula_texts(row)
    compiled: dict[Any, Callable[..., Any]] = {}
    found = []
    for point in moderate_points(row, count):
        numbers = dict(zip(LETTERS, point, strict=False))
        symbols = {letter: sympy.Symbol(letter, real=True) for letter in numbers}
        fixed = {
            letter: sympy.Integer(int(numbers[letter])) if row.domain[i] == "N" else symbols[letter]
            for i, letter in enumerate(numbers)
        }
        numbers |= {"y": evaluate(value, numbers), "g": 1.0}
        for i, gradient in enumerate(gradients):
            if row.domain[i] == "N":
                if row.gradients[i] != "zmul(g, nan)":
                    found.append((row.name, i, "an order has no derivative"))
                continue
            reader = Symbols(fixed, numbers)
            y = reader.read(value)
            split = len(reader.branches)
            reader.letters = fixed | {"y": y, "g": sympy.Integer(1)}
            expected = reader.read(gradient)
            key = (i, *(point[k] for k in range(row.arity) if row.domain[k] == "N"), *reader.branches)
            if met is not None:
                met[key] += 1
            if key not in compiled:
                arguments = [*symbols.values(), *reader.constants]
                pair = [sympy.diff(y, symbols[LETTERS[i]]), expected]
                compiled[key] = sympy.lambdify(arguments, pair, "mpmath")
            with mp.workdps(50):
                derivative, formula = compiled[key](*map(mpf, point), *map(mpf, reader.constants.values()))
                if not abs(derivative - formula) <= 1e-25 * max(1, abs(derivative)):
                    found.append((row.name, i, point, reader.branches[:split], derivative, formula))
    return found


@each_row
def test_gradients_are_sympy_s_derivatives(row):
    if row.name in NO_DERIVATIVE:
        assert set(row.gradients) == {"0"}
        assert wrong_derivatives(row)
        return
    met: Counter[Any] = Counter()
    assert not wrong_derivatives(row, met=met)
    assert min(met.values()) >= 20


# ------------------------------------------------------------------------------------------------- mpmath: a few ulps


@each_row
def test_within_the_contract_of_mpmath(row):
    points = [point for point in samples(row, 320) if not (row.name in KINKS and KINKS[row.name](*point))]
    assert len(points) >= 200
    promise = CONTRACT.get(row.name, DEFAULT)
    assert promise.why
    worst = errors(row, points)
    over = [(error, at) for (error, at), bound in zip(worst, bounds(row, promise), strict=True) if error > bound]
    assert not over


def bounds(row: Row, promise: Promise) -> tuple[float, ...]:
    return promise.ulps if len(promise.ulps) == row.arity + 1 else promise.ulps * (row.arity + 1)


@each_row
def test_the_domain_is_where_the_value_is_a_number(row):
    assert not lies_of_the_domain(row)


def lies_of_the_domain(row: Row) -> list[Any]:
    """Samples that lie outside of the domain, or where the row is nan although they lie in it."""
    return [
        point
        for point in samples(row, 300)
        if not in_domain(row, point) or math.isnan(_core.evaluate(row.name, *point))
    ]


# ------------------------------------------------------------------------------------------------- second derivatives

SECOND = 1e-14  # relative to the scale below; most rows are within 1e-15


def hessian(row: Row, point: tuple[float, ...]) -> dict[tuple[int, int], float]:
    """Second derivatives by nesting, by pairs of operands."""
    op = FUNCTIONS[row.name]
    if row.domain[0] == "N":
        return {(1, 1): pygrad.grad(pygrad.grad(lambda x: op(point[0], x)))(point[1])}
    if row.arity == 1:
        return {(0, 0): pygrad.grad(pygrad.grad(op))(point[0])}
    matrix = pygrad.hessian(lambda x: op(*x))(list(point))
    return {(i, j): matrix[i][j] for i, j in product(range(row.arity), repeat=2)}


def ordinary_points(row: Row, count: int) -> list[tuple[float, ...]]:
    """Points of the domain from 1e-3 to 25 in size, off the kinks."""
    found = [
        point
        for point in samples(row, 12 * count, seed=2)
        if all(1e-3 <= abs(x) <= 25 or text == "N" for x, text in zip(point, row.domain, strict=True))
        and not (row.name in KINKS and KINKS[row.name](*point))
    ]
    return found[:count]


@each_row
def test_second_derivatives_by_nesting(row):
    points = ordinary_points(row, 24)
    assert len(points) >= 12
    for point in points:
        scale = second_scale(row, point)
        for (i, j), found in hessian(row, point).items():
            exact, size = scale[i, j]
            assert abs(found - exact) <= SECOND * size, (point, i, j, found, float(exact), float(size))


@mpmath.workprec(PRECISION)
def second_scale(row: Row, point: tuple[float, ...]) -> dict[tuple[int, int], tuple[Any, Any]]:
    """By pairs of operands, the second derivative and the magnitude that its error is relative to.

    That is the second derivative itself, unless it is small for cancellation: beside the first derivative, whose
    rounding it inherits, or beside its neighbours in the Hessian. Not below 1e-290, where products of subnormals lose.
    """
    truth, exact = truth_of(row), [mpf(x) for x in point]
    start = 1 if row.domain[0] == "N" else 0
    pairs = list(product(range(start, row.arity), repeat=2))

    def second(i: int, j: int) -> Any:
        return mpmath.diff(lambda z: truth[i + 1](*exact[:j], z, *exact[j + 1 :]), exact[j])

    matrix = {(i, j): second(i, j) for i, j in pairs}
    size = {
        (i, j): max(
            abs(matrix[i, j]), abs(truth[i + 1](*exact)), mp.sqrt(abs(matrix[i, i] * matrix[j, j])), mpf(1e-290)
        )
        for i, j in pairs
    }
    return {pair: (matrix[pair], size[pair]) for pair in pairs}


@each_row
def test_second_derivatives_of_core_and_reference_agree(row):
    """Bit for bit, but for the sign of a zero: the graph of a gradient leaves out the 0.0 that a walk starts from."""
    points = random_operands(row, 60) + list(special_operands(row))[:: 1 if row.arity == 1 else 7]
    for point in points:
        if copies_a_nan_s_sign(row, point):
            continue
        ours, theirs = [Value(x) for x in point], [reference.Value(x) for x in point]
        y = FUNCTIONS[row.name](*ours)
        y_reference = reference_ops.OPS[row.name](*theirs)
        first = _core.gradients_graph(y, ours)
        first_reference = reference.gradients(y_reference, theirs, create_graph=True)
        for i in range(row.arity):
            second = [float(first[i]), *_core.gradients(first[i], ours)]
            second_reference = [float(first_reference[i]), *reference.gradients(first_reference[i], theirs)]
            equal = [same(0.0 + x, 0.0 + z) for x, z in zip(second, second_reference, strict=True)]
            assert all(equal), (point, i, second, second_reference)


# ------------------------------------------------------------------------------------------------ tests of these tests


@pytest.mark.parametrize(
    ("name", "i", "wrong"),
    [
        ("tanh", 0, "zmul(g, 1 - y)"),
        ("tanh", 0, "zmul(g, select(fabs(y) < 0.625, 1 - y * y, 1 / cosh(a)))"),  # wrong on one branch
        ("mul", 1, "zmul(g, b)"),
        ("log2", 0, "zmul(g, 1.4426 / a)"),
        ("clip", 2, "select(a > c, g, 0) * 0"),
        ("mod", 1, "zmul(g, -fmod(a, b))"),
        ("polygamma", 0, "0"),
    ],
)
def test_a_planted_wrong_gradient_is_caught(name, i, wrong):
    gradients = list(TABLE[name].gradients)
    gradients[i] = wrong
    assert wrong_derivatives(TABLE[name]._replace(gradients=tuple(gradients)))


def test_a_planted_wrong_value_is_caught():
    planted = TABLE["sinh"]._replace(value="0.5 * (exp(a) - exp(-a))")  # right in exact arithmetic
    assert not wrong_derivatives(planted)
    assert disagreements(planted, [(0.1,)])


def test_an_inaccurate_formula_is_caught():
    row = TABLE["expm1"]
    points = [(2.0**-k,) for k in range(2, 40)]
    assert max(error for error, _ in errors(row, points)) <= 1
    naive = {"expm1": lambda a: math.exp(a) - 1}
    assert errors(row, points, evaluate_value=lambda name, a: naive[name](a))[0][0] > 1e6


@pytest.mark.parametrize(("name", "domain"), [("log", "R"), ("acosh", "[0, inf)"), ("asin", "[-2, 2]")])
def test_a_lying_domain_is_caught(name, domain):
    assert lies_of_the_domain(TABLE[name]._replace(domain=(domain,)))


def test_a_literal_that_is_not_in_the_table_of_constants_is_caught():
    with pytest.raises(KeyError):
        test_a_row_is_whole(TABLE["log2"]._replace(gradients=("zmul(g, 1.442695040888963 / a)",)))


@pytest.mark.parametrize("text", ["a ** 2", "a if b else c", "a and b", "a < b"])
def test_what_c_and_python_do_not_share_is_caught(text):
    with pytest.raises((SyntaxError, KeyError)):
        evaluate(parse(text), {"a": 1.0, "b": 1.0, "c": 1.0})


def test_samples_cover_the_domain():
    for row in TABLE.values():
        drawn = list(zip(*samples(row, 400), strict=True))
        for i, text in enumerate(row.domain):
            if text == "R":
                assert min(drawn[i]) < -1e100
                assert max(drawn[i]) > 1e100
                assert any(0 < abs(x) < 1e-100 for x in drawn[i])
    assert all(draw(random.Random(1), interval("[0, 1)"), (), 0) < 1 for _ in range(100))
    assert len(set(SPECIALS)) > 40
