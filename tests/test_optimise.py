"""The optimiser (csrc/optimise.c): every identity is exact, for signed zeros, inf and nan; folding, merging, dead code.

Programs come from captures; what they give is compared with the eager run, whose numbers no pass has touched.
"""

import itertools
import math as stdlib_math

import pytest
from captures import same_bits

import pygrad
from pygrad import Value, _core, functions

INF, NAN = float("inf"), float("nan")
NUMBERS = (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 5e-324, -5e-324, 1e308)


def captured(f, arity, *numbers):
    """The program of f at some numbers, by default ones that answer no comparison by chance."""
    leaves = [Value(x) for x in numbers or (0.7, -1.3, 2.9)[:arity]]
    program, outside, _ = _core.capture(lambda: (list(f(*leaves)), None), leaves)
    assert outside == []
    return program


def rows(program):
    """The instructions that compute something: "v3 = mul v0 v1" as ("mul", "v0", "v1")."""
    lines = [
        line.split(" = ", 1)[1].split() for line in str(program).splitlines() if " = " in line and "==" not in line
    ]
    return [tuple(line) for line in lines if line[0].isalpha() and line[0] not in ("input", "inf", "nan")]


# What an expression becomes, by how many instructions; None where it must stay.
IDENTITIES = {
    "x + -0.0": (lambda x, y: x + -0.0, []),
    "-0.0 + x": (lambda x, y: -0.0 + x, []),
    "x - 0.0": (lambda x, y: x - 0.0, []),
    "x * 1": (lambda x, y: x * 1.0, []),
    "1 * x": (lambda x, y: 1.0 * x, []),
    "x * -1": (lambda x, y: x * -1.0, [("neg", "v0")]),
    "-1 * x": (lambda x, y: -1.0 * x, [("neg", "v0")]),
    "x / 1": (lambda x, y: x / 1.0, []),
    "x / -1": (lambda x, y: x / -1.0, [("neg", "v0")]),
    "1 / x": (lambda x, y: 1.0 / x, [("reciprocal", "v0")]),
    "--x": (lambda x, y: -(-x), []),  # noqa: B002
    "+x": (lambda x, y: +x, []),
    "x + -y": (lambda x, y: x + -y, [("sub", "v0", "v1")]),
    "-x + y": (lambda x, y: -x + y, [("sub", "v1", "v0")]),
    "x - -y": (lambda x, y: x - -y, [("add", "v0", "v1")]),
    "-x * -y": (lambda x, y: -x * -y, [("mul", "v0", "v1")]),
    "abs(abs(x))": (lambda x, y: abs(abs(x)), [("abs", "v0")]),
    "abs(-x)": (lambda x, y: abs(-x), [("abs", "v0")]),
    "x ** 1": (lambda x, y: x**1, []),
    "x ** 2": (lambda x, y: x**2, [("mul", "v0", "v0")]),
    "square(x)": (lambda x, y: functions.square(x), [("mul", "v0", "v0")]),
    "zmul(x, 3)": (lambda x, y: functions.zmul(3.0, x), [("mul", "v0", "v2")]),
    "pow_less_one(x, 2)": (lambda x, y: functions.pow_less_one(x, 2.0), []),
    "pow_less_one(x, 5)": (lambda x, y: functions.pow_less_one(x, 5.0), [("pow", "v0", "v2")]),
    "pow_less_one(x, 3)": (lambda x, y: functions.pow_less_one(x, 3.0), None),
    "where(1, x, y)": (lambda x, y: functions.where(1.0, x, y), []),
    "where(0, x, y)": (lambda x, y: functions.where(0.0, x, y), []),
    "where(nan, x, y)": (lambda x, y: functions.where(NAN, x, y), []),
    "where(x, y, y)": (lambda x, y: functions.where(x, y, y), []),
    "y + x again": (lambda x, y: (x + y) * (y + x), [("add", "v0", "v1"), ("mul", "v2", "v2")]),
    "y * x again": (lambda x, y: (x * y) + (y * x), [("mul", "v0", "v1"), ("add", "v2", "v2")]),
    "x - y and y - x": (lambda x, y: (x - y) * (y - x), None),
    "x * 0": (lambda x, y: x * 0.0, None),
    "0 * x": (lambda x, y: 0.0 * x, None),
    "x - x": (lambda x, y: x - x, None),
    "x / x": (lambda x, y: x / x, None),
    "x + 0.0": (lambda x, y: x + 0.0, None),
    "0.0 + x": (lambda x, y: 0.0 + x, None),
    "x - -0.0": (lambda x, y: x - -0.0, None),
    "0.0 - x": (lambda x, y: 0.0 - x, None),
    "x + x": (lambda x, y: x + x, None),
    "x / 2": (lambda x, y: x / 2.0, None),
    "x / 3": (lambda x, y: x / 3.0, None),
    "x ** 0": (lambda x, y: x**0, None),
    "x ** 0.5": (lambda x, y: x**0.5, None),
    "x ** 3": (lambda x, y: x**3, None),
    "log(exp(x))": (lambda x, y: pygrad.log(pygrad.exp(x)), None),
    "x + y - y": (lambda x, y: x + y - y, None),
    "zmul(x, inf)": (lambda x, y: functions.zmul(x, INF), None),
    "zmul(0, x)": (lambda x, y: functions.zmul(0.0, x), None),
    "zmul(x, y)": (lambda x, y: functions.zmul(x, y), None),
    "max(x, x)": (lambda x, y: functions.maximum(x, x), None),
    "-(x - y)": (lambda x, y: -(x - y), None),
    "-x / -y": (lambda x, y: -x / -y, None),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_an_identity_is_exact(name):
    f, expected = IDENTITIES[name]
    program = captured(lambda x, y: [f(x, y)], 2)
    if expected is None:
        assert program.stats()["simplified"] == 0
        assert program.stats()["instructions"] == program.stats()["captured"]
    else:
        assert rows(program) == expected
    for x, y in itertools.product(NUMBERS, repeat=2):
        eager = f(Value(x), Value(y))
        assert same_bits(program.run([x, y])[0], eager.data), (x, y)


def test_the_identity_of_zmul_by_a_constant_keeps_its_zero():
    """zmul(x, 3) is 0.0 at -0.0, x * 3 is -0.0: exact only because the eager formula gives that too."""
    program = captured(lambda x: [functions.zmul(x, 3.0)], 1)
    for x in NUMBERS:
        assert same_bits(program.run([x])[0], functions.zmul(Value(x), 3.0).data), x


def test_constants_are_folded():
    zero = Value(0.0)  # made outside of the capture: an input; within it a constant
    program = captured(lambda x: [x * (pygrad.exp(Value(1.0)) + Value(2.0) ** 3), pygrad.log(Value(-0.0))], 1)
    assert program.run([2.0]) == [2.0 * (stdlib_math.exp(1.0) + 8.0), -INF]
    assert rows(program) == [("mul", "v0", "v1")]
    assert (program.stats()["folded"], program.stats()["captured"]) == (4, 5)
    assert zero.data == 0.0


def test_constants_of_other_bits_are_not_merged():
    program = captured(lambda x: [x / 0.0, x / Value(-0.0), x + NAN, x / 0.0], 1)
    first, second, third, fourth = program.run([1.0])
    assert (first, second, fourth) == (INF, -INF, INF)
    assert third != third
    assert program.stats()["merged"] == 1


def test_what_is_computed_twice_is_computed_once():
    def f(x, y):
        return [
            pygrad.sin(x * y) + pygrad.sin(y * x),
            pygrad.sin(x * y),
            functions.fma(x, y, x),
            functions.fma(x, y, x),
        ]

    program = captured(f, 2)
    assert sorted(row[0] for row in rows(program)) == ["add", "fma", "mul", "sin"]
    assert program.stats()["merged"] == 5
    # The operands of these have an order.
    assert (
        captured(lambda x, y: [x - y, y - x, functions.maximum(x, y), functions.maximum(y, x)], 2).stats()["merged"]
        == 0
    )


def test_dead_code_goes_but_for_guards():
    def f(x):
        unused = pygrad.exp(x) * 3  # noqa: F841
        if pygrad.sin(x) > 0.5:
            return [x]
        return [x * 2]

    program = captured(f, 1)
    assert [row[0] for row in rows(program)] == ["sin", "greater"]
    selected = captured(lambda x: [pygrad.exp(x), pygrad.sin(x)], 1).select([1])
    assert rows(selected) == [("sin", "v0")]
    assert selected.stats()["dead"] == 1
    assert selected.select([0, 2.5, 0]).run([1.0]) == [*selected.run([1.0]), 2.5, *selected.run([1.0])]  # a constant
    assert captured(lambda x, y: [y], 2).run([1.0, 2.0]) == [2.0]  # inputs stay, used or not


def test_guards_stay_in_their_order():
    """Also where two ask the same, and where what they ask is folded into one: variants.py counts them."""

    def f(x):
        count = sum([bool(x > 0), bool(x > 0), bool(x * 1.0 > 0), bool(x < 9)])
        return [x * count]

    program = captured(f, 1)
    assert program.counts == (1, 1, 4)
    assert program.stats()["guards"] == 4
    assert program.expected() == [1.0] * 4
    assert program.run([-1.0]) == (0, 0.0)


def test_sums_become_rows_in_the_order_of_the_eager_run():
    xs = [1e16, 1.0, -1e16, 1.0, -0.0]
    leaves = [Value(x) for x in xs]
    for f in (lambda v: pygrad.sum(v), lambda v: pygrad.dot(v, v[::-1]), lambda v: pygrad.sum([]) + v[0], sum):
        program, _, _ = _core.capture(lambda f=f: ([f(leaves)], None), leaves)
        assert same_bits(program.run(xs)[0], f(leaves).data)
        assert {row[0] for row in rows(program)} <= {"add", "mul"}
    assert captured(lambda x, y: [pygrad.sum([x, y])], 2).stats()["captured"] == 2
    assert same_bits(captured(lambda x: [pygrad.sum([x])], 1).run([-0.0])[0], 0.0)


def chain(x, count):
    for k in range(count):
        x = pygrad.sin(x) * 1.0 + pygrad.sin(x) - (k % 7)
    return x


@pytest.mark.parametrize("derived", [lambda p: p, lambda p: p.gradient([0], 0), lambda p: p.tangent([0])])
def test_the_passes_and_derivatives_are_linear(derived):
    """In what they make: an instruction of the function gives the same number of instructions at any length."""
    lengths, counts = (100, 200, 400, 1600), []
    for length in lengths:
        stats = derived(captured(lambda x, length=length: [chain(x, length)], 1)).stats()
        counts.append([stats[k] for k in ("captured", "merged", "simplified", "instructions")])
    for k in range(4):
        slopes = [(b[k] - a[k]) / (n - m) for (m, a), (n, b) in itertools.pairwise(zip(lengths, counts, strict=True))]
        assert max(slopes) - min(slopes) < 0.05 * max(slopes), slopes
        assert max(slopes) < 40


def test_a_hessian_of_a_banded_function_is_linear():
    """Each sweep passes through what leads to its output alone."""
    counts = []
    for n in (20, 40, 80):
        fast = pygrad.hessian(pygrad.compile(lambda x: sum((p * q * q for p, q in itertools.pairwise(x)), 0.0)))
        fast([0.5] * n)
        counts.append(fast.stats()["captured"])
    assert counts[2] - counts[1] < 2.2 * (counts[1] - counts[0])


def test_the_text_of_the_optimised_program_and_its_figures():
    program = captured(lambda x, y: [(x * 1.0 + -y) ** 2, pygrad.exp(Value(0.0)) * x], 2)
    assert str(program) == "v0 = input 0\nv1 = input 1\nv2 = sub v0 v1\nv3 = mul v2 v2\nreturn v3 v0"
    stats = program.stats()
    assert [stats[k] for k in ("captured", "folded", "instructions", "inputs", "outputs", "guards")] == [
        6,
        1,
        2,
        2,
        2,
        0,
    ]
