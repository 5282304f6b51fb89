"""Lanes against one lane: equal to the last bit, or within the promised ulps where a loop of NumPy's is in it.

PYGRAD_GRAPHS sets how many seeded graphs are drawn (a tenth of it here, as each is replayed for many lanes).
"""

from __future__ import annotations

import math
import os
import random
import threading
from typing import Any

import numpy as np
import pytest
from conftest import CORE, bits
from contract import CONTRACT, DEFAULT, errors
from domains import INF, NAN, SPECIALS, samples, special_operands
from random_graphs import build, number, plan, sign_of_nan_matters

import pygrad
from pygrad import Value, _core
from pygrad.ops import TABLE

GRAPHS = int(os.environ.get("PYGRAD_GRAPHS", "4000")) // 10
LEVELS = range(4)

each_row = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)


def program_of(numbers: list[float], function: Any) -> Any:
    """The program of a function of leaves that gives a list, captured at these numbers."""
    leaves = [Value(number) for number in numbers]
    made, outside, _ = _core.capture(lambda: (function(*leaves), None), leaves)
    assert outside == []
    return made


def program_of_row(name: str, arity: int) -> Any:
    return program_of([0.5] * arity, lambda *leaves: [CORE.function(name)(*leaves)])


def columns(points: Any) -> list[Any]:
    return [np.array(column) for column in zip(*points, strict=True)]


def same(found: Any, expected: Any) -> Any:
    """Elementwise: equal bits, all nans alike."""
    found, expected = np.asarray(found), np.asarray(expected)
    return (found.view(np.int64) == expected.view(np.int64)) | (np.isnan(found) & np.isnan(expected))


# --------------------------------------------------------------------------------------------------- against one lane


def compare(seed: int) -> bool:
    """The gradient program of a seed's graph, every lane with numbers of its own."""
    steps, rng = plan(seed), random.Random(seed)
    nodes = build(steps, CORE)
    inputs = [k for k, step in enumerate(steps) if step[0] == "leaf" and step[2]]
    if isinstance(nodes[-1], float) or not nodes[-1].requires_grad:
        return False
    replay = program_of(
        [nodes[k].data for k in inputs],
        lambda *leaves: [build(steps, CORE, dict(zip(inputs, leaves, strict=True)))[-1]],
    ).gradient(list(range(len(inputs))), 0)
    shared = [number(rng) if rng.random() < 0.2 else None for _ in inputs]
    points = []
    while len(points) < rng.randint(1, 20):
        point = [number(rng) if fixed is None else fixed for fixed in shared]
        changed = list(steps)
        for k, x in zip(inputs, point, strict=True):
            changed[k] = ("leaf", x, True)
        if not sign_of_nan_matters(changed, build(changed, CORE)):
            points.append(point)
        elif rng.random() < 0.05:
            return False
    lanes = [column if fixed is None else fixed for fixed, column in zip(shared, columns(points), strict=True)]
    expected = np.array([replay.run(point) for point in points]).T
    for level in LEVELS:
        found, failed = replay.run_lanes(lanes, len(points), exact=True, level=level)
        assert same(found, expected).all(), (seed, level)
        assert (failed == -1).all()
    return True


def test_lanes_equal_one_lane():
    assert sum(map(compare, range(GRAPHS))) > 0.8 * GRAPHS


@each_row
def test_every_row_equals_one_lane(row):
    """Also with operands that are one number for all lanes, and in every instruction set."""
    replay = program_of_row(row.name, row.arity)
    points = [*special_operands(row), *samples(row, 300)]
    if row.name == "copysign":
        points = [point for point in points if not any(map(math.isnan, point))]
    expected = [_core.evaluate(row.name, *point) for point in points]
    for level in LEVELS:
        found, _ = replay.run_lanes(columns(points), len(points), exact=True, level=level)
        assert same(found[0], expected).all()
    rng = random.Random(row.name)
    for k in range(60):
        fixed = [rng.random() < 0.5 for _ in range(row.arity)]
        first, *others = rng.sample(points, 6)
        chosen = [[a if f else b for f, a, b in zip(fixed, first, other, strict=True)] for other in others]
        lanes = [a if f else column for f, a, column in zip(fixed, first, columns(chosen), strict=True)]
        found, _ = replay.run_lanes(lanes, len(chosen), exact=True, level=k % len(LEVELS))
        assert same(found[0], [_core.evaluate(row.name, *point) for point in chosen]).all(), (fixed, chosen)


ROWS2 = ["mul", "zmul", "add", "sub"]
USES = {"inner + c": lambda i, c: i + c, "inner - c": lambda i, c: i - c, "c - inner": lambda i, c: c - i,
        "inner * c": lambda i, c: i * c, "c * inner": lambda i, c: c * i}  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ROWS2)
def test_fused_pairs_equal_one_lane(name, use):
    replay = program_of([0.5] * 3, lambda a, b, c: [USES[use](CORE.function(name)(a, b), c)])
    assert replay.stats()["fused"] == 1
    rng = random.Random(name + use)
    points = [[rng.choice([*SPECIALS, rng.uniform(-3, 3)]) for _ in range(3)] for _ in range(400)]
    for shared in range(8):
        first = points[shared]
        chosen = [[first[i] if shared >> i & 1 else x for i, x in enumerate(point)] for point in points]
        lanes = [first[i] if shared >> i & 1 else column for i, column in enumerate(columns(chosen))]
        expected = np.array([replay.run(point) for point in chosen]).T
        for level in LEVELS:
            assert same(replay.run_lanes(lanes, len(chosen), level=level)[0], expected).all(), (shared, level)


# ------------------------------------------------------------------------------------------------------ NumPy's loops

SERVED = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "pow",
]  # fmt: skip


@pytest.mark.parametrize("name", SERVED)
def test_loops_keep_the_contract(name):
    row = TABLE[name]
    points = [point for point in samples(row, 1500) if math.isfinite(_core.evaluate(name, *point))]
    found, _ = program_of_row(name, row.arity).run_lanes(columns(points), len(points))
    values = dict(zip(points, found[0].tolist(), strict=True))
    error, where = errors(row, points, evaluate_value=lambda name, *point: values[point])[0]
    assert error <= CONTRACT.get(name, DEFAULT).ulps[0], where


@pytest.mark.parametrize("name", SERVED)
def test_loops_agree_on_special_operands(name):
    """Where the result is no finite number, or zero, it is the same."""
    row = TABLE[name]
    points = list(special_operands(row))
    found, _ = program_of_row(name, row.arity).run_lanes(columns(points), len(points))
    for point, y in zip(points, found[0].tolist(), strict=True):
        expected = _core.evaluate(name, *point)
        if y == 0 or expected == 0 or not (math.isfinite(y) and math.isfinite(expected)):
            assert bits(y) == bits(expected), point
        else:
            assert y == pytest.approx(expected, rel=1e-14, abs=1e-322), point


@pytest.mark.parametrize("name", SERVED)
def test_a_lane_depends_on_its_inputs_alone(name):
    """Neither on its place, nor on how many there are, nor on what is beside it or shared. Note [Lanes] in blocks.h."""
    row, rng = TABLE[name], random.Random(name)
    replay = program_of_row(name, row.arity)
    points = [*samples(row, 200), *special_operands(row)]
    points = points if len(points) < 500 else rng.sample(points, 500)
    alone = []
    for point in points:
        found, _ = replay.run_lanes(columns([point]), 1)
        alone.append(found[0, 0])
        for shared in range(1, 2**row.arity):
            inputs = [x if shared >> i & 1 else np.full(3, x) for i, x in enumerate(point)]
            assert same(replay.run_lanes(inputs, 3)[0], [[alone[-1]] * 3]).all(), (point, shared)
    for count in range(1, 301):
        chosen = rng.choices(range(len(points)), k=count)
        found, _ = replay.run_lanes(columns(points[k] for k in chosen), count)
        assert same(found[0], [alone[k] for k in chosen]).all(), count


# ----------------------------------------------------------------------------------------------------- what a run does


def example() -> tuple[Any, Any]:
    """A program of three inputs with transcendentals, an output that is an input and one that is a constant."""

    def first(x: Any, y: Any, z: Any) -> Any:
        return pygrad.exp(x * y) + pygrad.tanh(z - x) * 3.0

    made = program_of([0.5, 0.3, 2.0], lambda x, y, z: [first(x, y, z), y, 7.0, pygrad.log(z) * z])
    return made, first(Value(0.5), Value(0.3), Value(2.0))


def numbers(lanes: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.1, 2.0, lanes) for _ in range(3)]


def test_sizes():
    replay, _ = example()
    block = replay.stats()["block"]
    assert block % 8 == 0
    for lanes in (0, 1, 7, 8, 9, block - 1, block, block + 1, 3 * block + 5):
        inputs = numbers(lanes)
        found, failed = replay.run_lanes(inputs, lanes, exact=True)
        assert found.shape == (4, lanes) and failed.shape == (lanes,)
        expected = np.array([replay.run(list(point)) for point in zip(*inputs, strict=True)]).reshape(lanes, 4).T
        assert same(found, expected).all()


@pytest.mark.parametrize("exact", [False, True])
def test_threads_give_equal_bits(exact):
    replay, _ = example()
    for lanes in (0, 1, 100, 300, 5000):
        inputs = numbers(lanes)
        inputs[1] = 0.25
        expected, _ = replay.run_lanes(inputs, lanes, exact=exact)
        for threads in (2, 3, 7):
            assert same(replay.run_lanes(inputs, lanes, threads=threads, exact=exact)[0], expected).all()


def test_threads_of_the_callers_own():
    replay, _ = example()
    cases = [numbers(700, seed) for seed in range(6)]
    for k, case in enumerate(cases[::2]):
        case[k] = 0.7  # other inputs are shared in turn, so that the blocks are made anew
    expected = [replay.run_lanes(case, 700)[0] for case in cases]
    found: list[Any] = [None] * len(cases)

    def work(k: int) -> None:
        for _ in range(20):
            found[k] = replay.run_lanes(cases[k], 700)[0]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(len(cases))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(same(a, b).all() for a, b in zip(found, expected, strict=True))


def test_strides_and_buffers():
    replay, _ = example()
    inputs = numbers(90)
    expected, _ = replay.run_lanes(inputs, 90)
    table = np.array(inputs).T.copy()
    assert same(replay.run_lanes(list(table.T), 90)[0], expected).all()
    assert same(replay.run_lanes([column[::-1] for column in inputs], 90)[0], expected[:, ::-1]).all()
    read_only = inputs[0].copy()
    read_only.flags.writeable = False
    assert same(replay.run_lanes([read_only, memoryview(inputs[1]), inputs[2]], 90)[0], expected).all()
    packed = np.zeros(90, dtype=[("tag", "u1"), ("x", "f8")])  # not aligned
    packed["x"] = inputs[0]
    assert same(replay.run_lanes([packed["x"], *inputs[1:]], 90)[0], expected).all()


def test_shared_inputs():
    replay, _ = example()
    x, y, z = numbers(50)
    expected, _ = replay.run_lanes([x, np.full(50, 0.3), np.full(50, 2.0)], 50)
    for y, z in ((0.3, 2), (np.float64(0.3), np.float32(2)), (np.array(0.3), np.broadcast_to(2.0, 50))):
        assert same(replay.run_lanes([x, y, z], 50)[0], expected).all()
    alone, _ = replay.run_lanes([x[0], 0.3, 2.0], 50)
    assert same(alone, np.repeat(expected[:, :1], 50, axis=1)).all()


def test_out():
    replay, _ = example()
    inputs = numbers(40)
    expected, _ = replay.run_lanes(inputs, 40)
    for out in (np.empty((4, 40)), np.empty((40, 4)).T, np.empty((8, 80))[::2, ::-2]):
        found, _ = replay.run_lanes(inputs, 40, out)
        assert found is out and same(out, expected).all()
    out = np.empty((4, 40))
    out[:3] = inputs  # lane for lane
    assert same(replay.run_lanes(list(out[:3]), 40, out)[0], expected).all()
    swapped = program_of([0.5, 0.3], lambda x, y: [y, x, x - y])
    out = np.empty((3, 40))
    out[:2] = x, y = inputs[:2]
    assert same(swapped.run_lanes(list(out[:2]), 40, out)[0], [y, x, x - y]).all()


def test_guards():
    """Which guard failed first, lane by lane, as one lane says it; nan is not what was expected either."""

    def guarded(x: Any, y: Any) -> list[Any]:
        assert not x < y and y < 1.0 and x == 0.5
        return [x + y]

    replay = program_of([0.5, 0.3], guarded)
    rng = random.Random(0)
    points = [(rng.choice([0.5, 0.5, 0.7, NAN, INF]), rng.uniform(0, 1.5)) for _ in range(700)]
    found, failed = replay.run_lanes(columns(points), len(points), threads=2)
    assert set(failed.tolist()) == {-1, 0, 1, 2}
    for lane, point in enumerate(points):
        one = replay.run(list(point))
        if failed[lane] < 0:
            assert bits(found[0, lane]) == bits(one[0])
        else:
            assert failed[lane] == one[0]
    assert set(replay.run_lanes([0.5, 2.0], 5)[1].tolist()) == {0}
    assert set(replay.run_lanes([0.5, 0.2], 5)[1].tolist()) == {-1}


def test_inputs_and_outputs_together():
    """Arrays of several inputs, by lanes or shared, in whatever layout; a list of arrays to be filled."""
    replay, _ = example()
    x, y, z = numbers(45)
    expected, _ = replay.run_lanes([x, y, z], 45)
    table = np.array([x, y, z])
    for inputs in ([table], [np.asfortranarray(table)], [np.repeat(table, 2, axis=1)[:, ::2]], [table[:2], z]):
        assert same(replay.run_lanes(inputs, 45)[0], expected).all()
    shared = np.array([[0.3], [2.0]])
    expected, _ = replay.run_lanes([x, 0.3, 2.0], 45)
    assert same(replay.run_lanes([x, shared], 45)[0], expected).all()
    assert same(replay.run_lanes([table[:1], shared], 45)[0], expected).all()
    out = [np.empty(45), np.empty((45, 2)).T, np.empty((2, 90))[1, ::-2]]
    found, _ = replay.run_lanes([x, shared], 45, out)
    assert found is out and same(np.concatenate([np.atleast_2d(array) for array in out]), expected).all()
    with pytest.raises(ValueError, match="out has room for 3 outputs, needs it for 4"):
        replay.run_lanes([x, shared], 45, out[:2])
    with pytest.raises(ValueError, match="needs 3 inputs, found 4"):
        replay.run_lanes([table, x], 45)


# --------------------------------------------------------------------------------------------------------------- sums


def summed(replay: Any, inputs: list[Any], lanes: int, segment: int, **how: Any) -> Any:
    """run_sums, held to the sums of the rows."""
    rows, failed = replay.run_lanes(inputs, lanes, **how)
    found = replay.run_sums(inputs, lanes, segment, **how)
    assert (failed == -1).all()
    assert same(found, _core.sum_rows(rows, segment)).all(), (lanes, segment, how)
    return found


def test_the_order_of_a_sum():
    """Note [Sums] in blocks.h, in Python."""
    rows = np.random.default_rng(1).normal(size=(2, 53))
    for segment in (8, 20, 53, 100):
        for first, sums in zip(range(0, 53, segment), _core.sum_rows(rows, segment), strict=True):
            for row, found in zip(rows[:, first : first + segment].tolist(), sums, strict=True):
                s = [0.0] * 8
                for k, x in enumerate(row):
                    s[k % 8] += x
                assert found == ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
    np.testing.assert_allclose(_core.sum_rows(rows, 16).sum(0), rows.sum(1), rtol=1e-14)


@pytest.mark.parametrize("seed", range(GRAPHS // 4))
def test_sums_are_those_of_the_rows(seed):
    """Gradients of random graphs by inputs that are shared and that are not, whatever runs them."""
    steps, rng = plan(seed), random.Random(seed)
    nodes = build(steps, CORE)
    inputs = [k for k, step in enumerate(steps) if step[0] == "leaf" and step[2]]
    if isinstance(nodes[-1], float) or not nodes[-1].requires_grad:
        return
    replay = program_of(
        [nodes[k].data for k in inputs],
        lambda *leaves: [build(steps, CORE, dict(zip(inputs, leaves, strict=True)))[-1]],
    ).gradient(list(range(len(inputs))), 0)
    lanes = rng.choice([1, 5, 8, 40, 300])
    columns = [
        number(rng) if rng.random() < 0.4 else np.array([number(rng) for _ in range(lanes)]) for _ in inputs
    ]  # fmt: skip
    for segment in (8, 64):
        for level in LEVELS:
            found = summed(replay, columns, lanes, segment, exact=True, level=level)
            assert same(replay.run_sums(columns, lanes, segment, exact=True, threads=3), found).all()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ROWS2)
def test_sums_of_fused_pairs(name, use):
    """With inf and nan, which zmul masks, and with operands that are shared; also of a row that is read elsewhere."""
    rng = random.Random(name + use)
    points = [[rng.choice([*SPECIALS, rng.uniform(-3, 3)]) for _ in range(3)] for _ in range(100)]
    finite = [[rng.choice([0.0, -0.0, rng.uniform(-3, 3)]) for _ in range(3)] for _ in range(100)]

    def outputs(a: Any, b: Any, c: Any) -> list[Any]:
        pair = USES[use](CORE.function(name)(a, b), c)
        return [pair, -c, a * b, a * b + c, CORE.function(name)(c, a)]

    for made in (lambda a, b, c: outputs(a, b, c)[:1], outputs, lambda a, b, c: [*outputs(a, b, c), a, 2.0, a]):
        replay = program_of([0.5] * 3, made)
        for chosen in (points, finite):
            for shared in range(8):
                lanes = [chosen[0][i] if shared >> i & 1 else column for i, column in enumerate(columns(chosen))]
                for level in LEVELS:
                    summed(replay, lanes, len(chosen), 24, level=level)


def test_sums_do_not_depend_on_threads_or_blocks():
    replay, _ = example()
    for lanes in (0, 1, 7, 8, 9, 255, 256, 257, 3000):
        inputs = numbers(lanes)
        inputs[1] = 0.25
        for segment in (8, 256, 1000):
            expected = summed(replay, inputs, lanes, segment)
            assert expected.shape == (-(-lanes // segment), 4)
            for threads in (2, 3, 7):
                assert same(replay.run_sums(inputs, lanes, segment, threads=threads), expected).all()
            whole = []
            for first in range(0, lanes, segment):
                part = [x if isinstance(x, float) else x[first : first + segment] for x in inputs]
                whole.append(replay.run_sums(part, min(segment, lanes - first), segment))
            assert not whole or same(np.concatenate(whole), expected).all()


def test_sums_where_a_guard_fails():
    def guarded(x: Any) -> list[Any]:
        assert x > 0.0
        return [x * x]

    replay = program_of([0.5], guarded)
    x = np.full(3000, 2.0)
    assert replay.run_sums([x], 3000, 1000, threads=2).tolist() == [[4000.0]] * 3
    for lane in (0, 1500, 2999):
        x[lane] = -1.0
        assert replay.run_sums([x], 3000, 1000, threads=2) is None
        x[lane] = NAN
        assert replay.run_sums([x], 3000, 1000) is None
        x[lane] = 2.0
    assert replay.run_sums([3.0], 5, 8).tolist() == [[45.0]] and replay.run_sums([-3.0], 5, 8) is None
    with pytest.raises(ValueError, match="needs a segment of at least one lane, found 0"):
        replay.run_sums([x], 3000, 0)


def test_errors():
    replay, _ = example()
    x, y, z = numbers(9)
    with pytest.raises(ValueError, match=r"needs 3 inputs, found 2"):
        replay.run_lanes([x, y], 9)
    with pytest.raises(ValueError, match=r"input 1 has shape \(8,\), needs \(9,\)"):
        replay.run_lanes([x, y[:8], z], 9)
    with pytest.raises(ValueError, match=r"input 2 has shape \(3, 3\), needs \(9,\)"):
        replay.run_lanes([x, y, z.reshape(3, 3)], 9)
    with pytest.raises(TypeError, match=r"input 0 needs numbers of type float64"):
        replay.run_lanes([x.astype(np.float32), y, z], 9)
    with pytest.raises(TypeError, match=r"input 0 needs numbers of type float64"):
        replay.run_lanes([x.astype(">f8"), y, z], 9)
    with pytest.raises(TypeError):
        replay.run_lanes(["1", y, z], 9)
    with pytest.raises(ValueError, match=r"out has shape \(9, 4\), needs \(4, 9\)"):
        replay.run_lanes([x, y, z], 9, np.empty((9, 4)))
    with pytest.raises((ValueError, BufferError)):
        replay.run_lanes([x, y, z], 9, np.broadcast_to(0.0, (4, 9)))
    with pytest.raises(ValueError, match=r"lanes >= 0 and threads >= 1, found 9 and 0"):
        replay.run_lanes([x, y, z], 9, threads=0)


def test_a_program_without_inputs():
    replay = program_of([], lambda: [3.0])
    assert replay.run_lanes([], 4)[0].tolist() == [[3.0] * 4]


def test_arrays_are_released():
    replay, _ = example()
    inputs = numbers(20)
    replay.run_lanes(inputs, 20)
    with pytest.raises(ValueError):
        replay.run_lanes([inputs[0], inputs[1], inputs[2][:3]], 20)
    for array in inputs:
        array.resize(40, refcheck=False)  # raises where a buffer is still out
