"""Programs as C: what compiler and library make of the source equals Program.run to the last bit; its form; pygrad.cc.

A program of many graphs is one source, so that the compiler starts seldom. PYGRAD_GRAPHS sets how many are drawn.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import threading
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import CORE, bits
from domains import FEW_SPECIALS, SPECIALS, samples
from random_graphs import ORDERS, build, plan, sign_of_nan_matters
from test_programs import elsewhere

import pygrad
from pygrad import CompilerError, Value, _core, cc
from pygrad.ops import TABLE

GRAPHS = int(os.environ.get("PYGRAD_GRAPHS", "4000")) // 20
try:
    COMPILER = cc.compiler()
except CompilerError as error:
    pytest.skip(str(error), allow_module_level=True)
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"]
NUMBERS = [0.1, -0.0, 0.0, 1.0, -3.0, 999999999.0, 1e9, 2.0**53, 1e22, 5e-324, -2.5e-310, 2.2250738585072014e-308,
           1e308, 1 / 3, -1e-5, float("inf"), float("-inf"), float("nan")]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYGRAD_CACHE", str(tmp_path_factory.mktemp("libraries")))
        yield


def program_over(leaves: list[Value], outputs: list[Any], guards: list[tuple[Value, float]] | None = None) -> Any:
    return _core.program_of(leaves, outputs, guards or [])


def outcome(program: Any, point: list[float]) -> list[float] | int:
    """What emitted code gives: the outputs, or the number of the guard that failed."""
    found = program.run(point)
    return found if isinstance(found, list) else found[0]


def assert_strict(source: str, directory: Path, *more: str) -> None:
    """Compiles without a warning, as C99."""
    path = directory / "strict.c"
    path.write_text(source, encoding="utf-8")
    command = [COMPILER[0], *STRICT, *more, "-c", str(path), "-o", os.devnull]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[:4000]


def many(count: int = 900) -> Any:
    """A program that is cut into parts: values go from part to part, guards and outputs are many, some constant."""
    rng = random.Random(1)
    leaves = [Value(rng.uniform(-1, 1)) for _ in range(8)]
    nodes = list(leaves)
    while len(nodes) < count:
        a, b = rng.choice(nodes[-30:]), rng.choice(nodes)
        nodes.append(rng.choice([lambda a, b: a * b + 0.3, lambda a, b: (a - b) * 0.7, lambda a, b: a.tanh()])(a, b))
    guards = [(pygrad.less(a, b), float(a.data < b.data)) for a, b in zip(nodes, nodes[7:], strict=False)]
    return program_over(leaves, [*nodes, 2.5, *leaves], guards), [leaf.data for leaf in leaves]


# ---- equal to the last bit


def test_random_graphs_and_their_gradients():
    """Many graphs side by side, each with leaves of its own, then the gradient of the sum by all of them."""
    leaves, outputs, points = [], [], [[], [], []]
    for seed in range(GRAPHS):
        steps, rng = plan(seed), random.Random(seed)
        variants = [steps, elsewhere(steps, rng), elsewhere(steps, rng)]
        nodes = build(steps, CORE)
        if isinstance(nodes[-1], float) or any(
            sign_of_nan_matters(changed, build(changed, CORE)) for changed in variants
        ):
            continue
        inputs = [k for k, step in enumerate(steps) if step[0] == "leaf" and step[2]]
        leaves += [nodes[k] for k in inputs]
        outputs.append(nodes[-1])
        for point, changed in zip(points, variants, strict=True):
            point += [changed[k][1] for k in inputs]
    assert len(outputs) > 0.7 * GRAPHS
    program = program_over(leaves, outputs).gradient(list(range(len(leaves))))
    run = cc.build(program.to_c("graphs"), "graphs")
    for point in points:
        point += [1.0] * len(outputs)
        assert [*map(bits, run(point))] == [*map(bits, program.run(point))]


def every_row() -> tuple[Any, dict[str, list[int]]]:
    """The program of all rows at (a, b, c) and of their partial derivatives; {row: its outputs}."""
    operands = [Value(2.0), Value(0.5), Value(0.25)]
    rows = list(TABLE)
    values = [getattr(pygrad.functions, name)(*operands[: TABLE[name].arity]) for name in rows]
    program, of, _ = program_over(operands, values).jacobian([0, 1, 2], False)
    places = {name: [k] for k, name in enumerate(rows)}
    for entry, row in enumerate(of):
        places[rows[row]].append(len(rows) + entry)
    return program, places


@pytest.fixture(scope="module")
def differing() -> dict[str, list[Any]]:
    """{row: where it or a partial of it differs}, over special operands and samples of the row's own domain."""
    program, places = every_row()
    run = cc.build(program.to_c("rows"), "rows")
    points = [*product(SPECIALS, SPECIALS, [0.5]), *product(FEW_SPECIALS, repeat=3)]
    points += [(float(n), x, 0.5) for n in range(5) for x in SPECIALS]
    for row in TABLE.values():
        points += [(*operands, 1.0, 1.0)[:3] for operands in samples(row, 40)]
    found: dict[str, list[Any]] = {name: [] for name in places}
    for point in points:
        if point[0] in (710.0, 745.2, 1024.0, 170.0) or point[0] > 2000:  # as the order of a derivative: slow
            continue
        emitted, expected = run([*point]), program.run([*point])
        if [*map(bits, emitted)] == [*map(bits, expected)]:
            continue
        for name, outputs in places.items():
            if any(bits(emitted[k]) != bits(expected[k]) for k in outputs):
                found[name].append(point)
    return found


@pytest.mark.parametrize("name", TABLE)
def test_a_row_at_the_edges(name, differing):
    assert not differing[name]


def test_constant_operands_change_no_bit():
    """A compiler knows pow(x, -1), and log(3): what it makes of them must not show. See Note [Bits] in emit_c.c."""
    x, y = Value(1.7), Value(-0.3)
    outputs = []
    for name, row in TABLE.items():
        if row.arity != 2:
            continue
        function = getattr(pygrad.functions, name)
        outputs += [function(x, k) for k in (-3.0, -1.0, -0.5, 0.5, 1.0, 3.0, 0.1)]
        outputs += [function(k, x) for k in (0.5, 2.0, 3.0, 10.0)] if name not in ORDERS else []
        outputs += [function(x, pygrad.sign(y)), function(x, pygrad.where(pygrad.less(y, 0.0), 0.5, 3.0))]
    outputs += [row for a in (x.sin() * x.cos(), (x * 1.0).exp() * (-x).exp()) for row in (a, a.log())]
    program = program_over([x, y], outputs)
    run = cc.build(program.to_c("constants"), "constants")
    rng = random.Random(0)
    for _ in range(500):
        point = [rng.uniform(0.0, 4.0), rng.uniform(-1, 1)]
        assert [*map(bits, run(point))] == [*map(bits, program.run(point))], point


def test_a_compiler_that_knows_an_operand_is_kept_from_it():
    """gcc makes 1 / x of pow(x, -1) where it sees both, which differs from libm's pow once in a thousand."""
    x = Value(1.7)
    program = program_over([x], [x**-1.0])
    run = cc.build(program.to_c("inverse"), "inverse")
    rng = random.Random(0)
    points = [[rng.uniform(0.0, 4.0)] for _ in range(20000)]
    assert [run(point) for point in points] == [program.run(point) for point in points]


def test_a_program_that_is_cut():
    program, point = many()
    source = program.to_c("many")
    assert source.count("static void pg_part_") > 2 and source.count("static int pg_guards_") > 2
    run = cc.build(source, "many")
    expected = program.run(point)
    assert isinstance(expected, list) and [*map(bits, run(point))] == [*map(bits, expected)]
    rng = random.Random(2)
    for _ in range(50):
        other = [x + rng.choice([0.0, 1e-9, 0.5]) * rng.uniform(-1, 1) for x in point]
        assert run(other) == outcome(program, other)


def test_places_are_given_back():
    """A chain needs few places, however long it is."""
    x = y = Value(0.5)
    for _ in range(5000):
        y = y * x + 0.5
    source = program_over([x], [y]).to_c("chain")
    assert "chain_counts[4] = {1, 1, 0, 1}" in source
    assert cc.build(source, "chain")([0.5]) == [y.data]


def test_constants_are_exact():
    x = Value(0.0)
    program = program_over([x], [*NUMBERS, *(pygrad.copysign(k, x + 1.0) + x for k in NUMBERS)])
    run = cc.build(program.to_c("numbers"), "numbers")
    assert [*map(bits, run([0.0]))] == [*map(bits, program.run([0.0]))]
    assert [*map(bits, run([0.0])[: len(NUMBERS)])] == [*map(bits, NUMBERS)]


# ---- guards


def test_guards_in_their_order():
    x, y = Value(1.0), Value(2.0)
    program = program_over(
        [x, y], [x * y], [(pygrad.less(x, y), 1.0), (pygrad.greater(x, 0.0), 1.0), (x * 1.0, 1.0), (y, float("nan"))]
    )
    run = cc.build(program.to_c("guarded"), "guarded")
    for point in ([1.0, 2.0], [3.0, 2.0], [-1.0, 2.0], [0.5, 2.0], [float("nan"), 1.0]):
        assert run(point) == outcome(program, point)
    assert run([3.0, 2.0]) == 0 and run([-1.0, 2.0]) == 1 and run([0.5, 2.0]) == 2 and run([1.0, 2.0]) == 3


def test_a_guard_on_a_constant():
    x = Value(1.0)
    kept = program_over([x], [x * 3.0], [(pygrad.where(pygrad.less(x, 0.0), 1.0, 1.0), 1.0)])
    broken = program_over([x], [x * 3.0], [(x, 1.0), (pygrad.where(pygrad.less(x, 0.0), 1.0, 1.0), 0.0)])
    assert cc.build(kept.to_c("kept"), "kept")([2.0]) == [6.0]
    assert cc.build(broken.to_c("broken"), "broken")([1.0]) == outcome(broken, [1.0]) == 1


def test_a_guard_that_expects_a_nan():
    """It holds where a nan is found, as pg_guard_holds has it: on inputs, rows and constants."""
    x, nan = Value(1.0), float("nan")
    always = pygrad.where(pygrad.less(x, 0.0), nan, nan)
    program = program_over([x], [2.5], [(x, nan), (x * 2.0, nan), (always, nan)])
    run = cc.build(program.to_c("expects"), "expects")
    assert run([1.0]) == outcome(program, [1.0]) == 0
    assert run([nan]) == outcome(program, [nan]) == [2.5]


# ---- form


def test_no_warning(tmp_path):
    x, y = Value(1.0), Value(2.0)
    for program in (
        every_row()[0],
        many()[0],
        program_over([x], []),
        program_over([], [1.0, 2.0]),
        program_over([x, y], [y, 3.0, y], [(x, 1.0), (pygrad.less(x, y), 1.0)]),
        program_over([x], [x * k for k in range(3, 1200)]),
        program_over([x], [2.0] * 1200),
    ):
        assert_strict(program.to_c("strict"), tmp_path)


def test_each_row_alone_has_what_it_calls(tmp_path):
    """What is used is there, and nothing else: either would be a warning. Rows that call the same go together."""
    a, b, c = Value(2.0), Value(0.5), Value(0.25)
    called: dict[frozenset[str], str] = {}
    for name, row in TABLE.items():
        source = program_over([a, b, c], [getattr(pygrad.functions, name)(*[a, b, c][: row.arity])]).to_c("alone")
        called.setdefault(
            frozenset(line for line in source.splitlines() if "static" in line and "row" not in line), source
        )
    assert len(called) > 15
    for source in called.values():
        assert_strict(source, tmp_path, "-fsyntax-only")


def test_two_sources_link(tmp_path):
    x = Value(2.0)
    program = program_over([x], [x.digamma() * x])
    for name in ("first", "second"):
        (tmp_path / f"{name}.c").write_text(program.to_c(name))
    main = (
        "int first(const double *, double *); int second(const double *, double *);\n"
        "int main(void) { double x = 2.0, y, z; return first(&x, &y) != -1 || second(&x, &z) != -1 || y != z; }\n"
    )
    (tmp_path / "main.c").write_text(main)
    sources = [str(path) for path in sorted(tmp_path.glob("*.c"))]
    subprocess.run([COMPILER[0], *STRICT, *sources, "-o", str(tmp_path / "both"), "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "both")]).returncode == 0


def test_names_of_inputs_and_outputs(tmp_path):
    x, y = Value(1.0), Value(2.0)
    program = program_over([x, y], [x * y])
    source = program.to_c("named", ["spot */ int x; /*", "ç\u202e ??/\nline\\"], ["price\0"])
    assert " *   inputs[0]  spot _/ int x; _*\n" in source and " *   inputs[1]  ç" in source and "price_" in source
    assert source.count("*/") == source.count("/*") and "\u202e" not in source
    assert_strict(source, tmp_path)
    with pytest.raises(ValueError, match="to_c: needs 2 names of inputs, found 1"):
        program.to_c("named", ["spot"])
    with pytest.raises(ValueError, match="to_c: needs 1 names of outputs, found 0"):
        program.to_c("named", None, [])


@pytest.mark.parametrize("name", ["", "2x", "a b", "f;", "é", "xé", "f\0g", "_f", "int", "main", "gamma", "exp", "PI",
                                  "pg_x", "NAN", "stirling", "f" * 201])  # fmt: skip
def test_names_that_a_function_cannot_have(name):
    x = Value(1.0)
    with pytest.raises(ValueError, match="to_c: the name"):
        program_over([x], [x * 2.0]).to_c(name)


# ---- pygrad.cc


@pytest.fixture
def source() -> str:
    x = Value(1.0)
    return program_over([x], [x * 2.0 + random.random()]).to_c("f")  # new, so that no library is there


def test_numbers_are_counted(source):
    run = cc.build(source, "f")
    assert run.__name__ == "f"
    with pytest.raises(ValueError, match="f: needs 1 numbers, found 2"):
        run([1.0, 2.0])
    with pytest.raises(TypeError):
        run(["x"])


def test_a_library_is_made_once(source, monkeypatch):
    expected = cc.build(source, "f")([1.0])
    monkeypatch.setattr(cc, "_compile", None)
    assert cc.build(source, "f")([1.0]) == expected
    assert not list(cc.cache_directory().glob("build-*"))


def test_a_library_that_does_not_load_is_made_anew(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PYGRAD_CACHE", str(tmp_path / "deep" / "cache"))
    compiled = cc._compile
    monkeypatch.setattr(cc, "_compile", lambda source, command, path: path.write_bytes(b"not a library"))
    with pytest.raises(OSError):
        cc.build(source, "f")
    monkeypatch.setattr(cc, "_compile", compiled)
    assert len(cc.build(source, "f")([1.0])) == 1


def test_without_a_cache(source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYGRAD_CACHE", str(tmp_path / "file"))
    assert len(cc.build(source, "f")([1.0])) == 1


def test_no_compiler(source, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -x")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        CompilerError, match=r"no C compiler was found; looked for no-such-compiler, .*cc.*clang. Install"
    ):
        cc.build(source, "f")


def test_a_compiler_that_fails():
    with pytest.raises(CompilerError, match=r"the C compiler failed\.\n(?s:.*)error"):
        cc.build("int f(void) { return x; }", "f")


def test_threads(source):
    program, point = many()
    run, found = cc.build(program.to_c("many"), "many"), []
    threads = [threading.Thread(target=lambda: found.extend(run(point) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200 and all(result == found[0] for result in found)
