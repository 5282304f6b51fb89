"""Programs with loops and conditions on their way elsewhere: C, bytes, pickles, files. tests/c draws many more of them.

What comes back, and what a compiler makes of the source, equals Program.run to the last bit. PYGRAD_GRAPHS sets how
many functions are drawn (default 4,000, of which a hundredth).
"""

from __future__ import annotations

import os
import pickle
import random
import subprocess
from typing import Any

import numpy as np
import pytest
from conftest import bits
from random_loops import Plan
from test_emit_c import COMPILER, assert_strict, outcome

import pygrad
from pygrad import _core, cc, cond, grad, hessian, jacobian, load, scan

COUNT = int(os.environ.get("PYGRAD_GRAPHS", "4000")) // 100
from_bytes = _core.Program.from_bytes


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYGRAD_CACHE", str(tmp_path_factory.mktemp("libraries")))
        yield


def recurrence(x, y, xs):
    """A loop over inputs side by side, what it stacks, and a condition."""
    c, ys = scan(lambda c, e: (pygrad.tanh(c * y + e), c * e), x, xs)
    return c + ys[2] * cond(x < y, lambda a: a * y, lambda a: pygrad.sin(a), x)


def nested(x, y, xs):
    """A loop in a condition in a loop, over constants, both ways."""

    def step(c, e):
        d, inner = scan(lambda d, k: (d * 0.9 + y * e * k, pygrad.sin(d)), c, np.linspace(-1, 1, 7), reverse=True)
        turned = cond(d > e, lambda a: scan(lambda b, _: (b * y + 0.1, None), a, length=3)[0], lambda a: a - y, d)
        return pygrad.tanh(turned), inner[1]

    c, ys = scan(step, x, xs)
    return c * ys[0] + ys[-1]


def wide(x, y, xs):
    """A hundred numbers carried, in a body that is cut into parts."""

    def step(c, e):
        return [pygrad.tanh(a * y + e) - c[i - 1] * 0.5 for i, a in enumerate(c)], c[3] * e

    c, ys = scan(step, [x * (0.1 * i) for i in range(100)], xs)
    return pygrad.sum([*c, *ys])


FUNCTIONS = [recurrence, nested, wide]
ARGS = (0.3, 1.2, [0.1, 0.2, -0.4, 0.7, 1.1])
POINT = [0.3, 1.2, *ARGS[2]]
TRANSFORMS = [lambda f: f, grad, lambda f: grad(f, argnums=(0, 1, 2)), lambda f: hessian(f, argnums=(0, 1))]


def points() -> list[list[float]]:
    rng = random.Random(0)
    return [POINT, *([rng.uniform(-2, 2) for _ in POINT] for _ in range(20))]


@pytest.fixture(scope="module", params=range(len(FUNCTIONS) * len(TRANSFORMS)))
def program(request) -> Any:
    function, transform = FUNCTIONS[request.param // len(TRANSFORMS)], TRANSFORMS[request.param % len(TRANSFORMS)]
    return transform(pygrad.compile(function)).capture(*ARGS).program


def test_emitted(program, tmp_path):
    source = program.to_c("f")
    assert_strict(source, tmp_path)
    run = cc.build(source, "f")
    for point in points():
        assert [*map(bits, run(point))] == [*map(bits, program.run(point))]


def test_bytes(program):
    data = program.to_bytes()
    loaded = from_bytes(data)
    assert loaded.to_bytes() == data and str(loaded) == str(program)
    again = pickle.loads(pickle.dumps(program))
    for point in points():
        expected = [*map(bits, program.run(point))]
        assert [*map(bits, loaded.run(point))] == [*map(bits, again.run(point))] == expected
    assert loaded.gradient([0, 1]).to_bytes() == program.gradient([0, 1]).to_bytes()


def test_damage():
    data = pygrad.compile(nested).capture(*ARGS).program.to_bytes()
    for at in range(0, len(data), 7):
        wrong = bytearray(data)
        wrong[at] ^= 1 + at % 255
        with pytest.raises(ValueError, match="from_bytes: "):
            from_bytes(bytes(wrong))
        with pytest.raises(ValueError, match="from_bytes: "):
            from_bytes(data[:at])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_files_and_pickles(function, tmp_path):
    fast = pygrad.compile(function).capture(*ARGS)
    fast.save(tmp_path / "f")
    for again in (load(tmp_path / "f"), pickle.loads(pickle.dumps(fast))):
        assert again(*ARGS) == fast(*ARGS)
        assert jacobian(again, argnums=(0, 1))(*ARGS) == jacobian(fast, argnums=(0, 1))(*ARGS)


@pytest.mark.parametrize("part", range(4))
def test_random_functions(part):
    """All derivatives of many functions, emitted, and read from bytes."""
    for seed in range(part, COUNT, 4):
        plan = Plan(seed)
        fast, xs = pygrad.compile(plan), plan.at(0)
        for transform in (lambda f: f, jacobian) if seed % 2 else (lambda f: jacobian(f),):
            program = transform(fast).capture(xs).program
            run = cc.build(program.to_c("f"), "f")
            data = program.to_bytes()
            loaded = from_bytes(data)
            assert loaded.to_bytes() == data
            for number in range(4):
                expected = outcome(program, plan.at(number))
                assert same(outcome(loaded, plan.at(number)), expected), seed
                assert same(run(plan.at(number)), expected), seed


def same(one: Any, other: Any) -> bool:
    return one == other or [*map(bits, one)] == [*map(bits, other)]


def test_one_branch_runs():
    """The branch that is not taken would take minutes."""
    inner = _core.rolled_loop(pygrad.compile(pygrad.sin).capture(1.0).program, 1, 0, [], 10**5, False)
    outer = _core.rolled_loop(inner, 1, 0, [], 10**5, False)
    either = _core.rolled_cond(outer, pygrad.compile(lambda x: x * 2.0).capture(1.0).program, 0)
    assert cc.build(either.to_c("either"), "either")([0.0, 4.0]) == [8.0]


def test_much_work_comes_from_the_caller(tmp_path):
    """Beyond a megabyte there is only the function that is given its work; cc.build and backend="cc" give it."""

    def long(x, y):
        return scan(lambda c, _: (c * y + 0.1, None), x, length=200_000)[0]

    program = grad(pygrad.compile(long), argnums=(0, 1)).capture(0.5, 0.9).program
    source = program.to_c("f")
    assert "there is no f without" in source and "int f(const" not in source.replace("/* int f(", "")
    assert_strict(source, tmp_path)
    assert cc.build(source, "f")([0.5, 0.9]) == program.run([0.5, 0.9])
    other = grad(pygrad.compile(long, backend="cc"), argnums=(0, 1))
    assert [*other(0.5, 0.9)] == program.run([0.5, 0.9])


def test_on_a_small_stack(tmp_path):
    """Ten thousand numbers go through a body, and none of them lies on the stack: it may have 64 KiB."""
    count = 10_000

    def step(c, _):
        return [a * 0.5 for a in c], None

    program = pygrad.compile(lambda x: pygrad.sum(scan(step, [x] * count, length=2)[0])).capture(1.0).program
    (tmp_path / "f.c").write_text(program.to_c("f"))
    (tmp_path / "main.c").write_text(
        "#include <stdlib.h>\nextern const size_t f_counts[4];\n"
        "int f_with(const double *, double *, double *);\n"
        "int main(void) { double x = 3.0, y, *w = malloc(sizeof(double) * f_counts[3]);"
        " return f_with(&x, &y, w) != -1 || y != 7500.0; }\n"
    )
    made = tmp_path / "run"
    sources = [str(tmp_path / "f.c"), str(tmp_path / "main.c")]
    subprocess.run([COMPILER[0], "-O1", *sources, "-o", str(made), "-lm"], check=True)
    assert subprocess.run(["sh", "-c", f"ulimit -s 64; {made}"]).returncode == 0


class _Twice:
    __name__ = "twice"

    def numbers(self, operands):
        return (2.0 * operands[0],)


def test_calls_are_refused_by_name():
    """Also where the call is in a body."""
    call = _core.rolled_call(_Twice(), 1, 1)
    for program in (call, _core.rolled_loop(call, 1, 0, [], 3, False)):
        assert program.run([1.0]) in ([2.0], [8.0])
        for write, name in ((program.to_bytes, "to_bytes"), (lambda p=program: p.to_c("f"), "to_c")):
            with pytest.raises(
                TypeError, match=f"{name}: the program calls twice, an op of the user's, which is Python"
            ):
                write()
        with pytest.raises(TypeError, match="to_bytes: the program calls twice"):
            pickle.dumps(program)


squared = pygrad.custom_op(lambda a: a * a, lambda g, y, a: 2.0 * g * a, name="squared")


def test_an_op_of_the_users(tmp_path):
    """It is called by replays, and by what stays in Python alone."""
    fast = pygrad.compile(lambda x: scan(lambda c, _: (squared(c) * 0.5, None), x, length=3)[0] + x)
    assert fast(1.0) == fast.function(1.0)
    for write, name in ((lambda: fast.to_c(tmp_path / "f.c"), "to_c"), (lambda: fast.save(tmp_path / "f"), "to_bytes")):
        with pytest.raises(TypeError, match=f"{name}: the program calls squared, an op of the user's, which is Python"):
            write()
    assert not list(tmp_path.iterdir())
