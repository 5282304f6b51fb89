"""What is written down of the op table elsewhere is current and right: type stubs, docs/ops.md, docs/adding-an-op.md.

generated.py writes the first two.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

import pytest
from domains import samples, special_operands
from formulas import evaluate, parse
from generated import ROOT, files
from test_table import formula_texts, same, wrong_derivatives

import pygrad
from pygrad import Value, _core, ops, reference_ops
from pygrad.ops import ALIASES, LETTERS, TABLE, Row


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_what_is_generated_is_current(path):
    assert path.read_text(encoding="utf-8") == files()[path], "renew it with: python tests/generated.py"


def stub(name: str) -> ast.Module:
    return ast.parse((ROOT / "pygrad" / name).read_text(encoding="utf-8"))


def defined(body: list[ast.stmt]) -> set[str]:
    """The names that statements of a stub define."""
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_the_stub_of_the_functions_names_the_ops():
    names = {name for name in defined(stub("functions.pyi").body) if not name.startswith("_")}
    assert names == {*TABLE, *ALIASES}


def test_the_stub_of_the_core_names_what_is_there():
    """Each attribute and method of Value, and of the module's functions none that is not there."""
    module = stub("_core.pyi")
    value = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Value")
    hidden = {"__new__", "__doc__", "__repr__", "__reduce_ex__", "__init__"}  # as object has them
    assert defined(value.body) - hidden == vars(Value).keys() - hidden
    assert defined(module.body) - {"Real", "Operand"} <= vars(_core).keys()


def test_stubs_and_functions_have_the_same_keywords():
    for name, function in ops.FUNCTIONS.items():
        row = TABLE[ALIASES.get(name, name)]
        if row.defaults:
            keywords = dict.fromkeys([keyword for keyword, _ in row.defaults], 0.5)
            assert isinstance(function(0.25, **keywords), float)
            assert isinstance(getattr(Value(0.25), name)(**keywords), Value)
        with pytest.raises(TypeError):
            function(*[0.25] * row.arity, wrong=1.0)


def test_types_of_ops(tmp_path, monkeypatch):
    """What a type checker sees: floats give a float, a Value among the operands gives a Value."""
    api = pytest.importorskip("mypy.api")
    program = """
        import numpy as np
        from typing_extensions import assert_type
        from numpy.typing import NDArray
        from typing import Any
        from pygrad import Value, clip, exp, hypot, leaky_relu, where, sum as total

        x = Value(2.0)
        assert_type(exp(x), Value)
        assert_type(exp(1), float)
        assert_type(exp(np.float64(1)), float)
        assert_type(exp(np.ones(3)), NDArray[Any])
        assert_type(hypot(1, x), Value)
        assert_type(hypot(1, 2.0), float)
        assert_type(leaky_relu(x, negative_slope=0.1), Value)
        assert_type(clip(1.0, max=x), Value)
        assert_type(clip(1.0, 0, 2), float)
        assert_type(where(x > 0, x, 1.0), Value)
        assert_type(1 / x - x**2 + x % 2, Value)
        assert_type(x.clip(min=0.0).tanh(), Value)
        assert_type(total([x, x]), Value)
        exp("x")  # error
        hypot(x)  # error
        x + "y"  # error
        x.clip(least=0.0)  # error
    """
    lines = textwrap.dedent(program).splitlines()
    (tmp_path / "program.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    flags = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={ROOT / '.mypy_cache' / 'tests'}"]
    out, err, _ = api.run([*flags, str(tmp_path / "program.py")])
    found = {int(line) for line in re.findall(r"program\.py:(\d+): error", out)}
    assert found == {i for i, line in enumerate(lines, 1) if line.endswith("# error")}, out + err


def test_text_fits_the_width():
    for width in (60, 80, 100):
        lines = ops.text(width).splitlines()
        assert max(map(len, lines)) <= width
        assert sum(not line for line in lines) == len(TABLE)


# ------------------------------------------------------------------------------------------------- docs/adding-an-op.md


def hunks() -> dict[str, tuple[list[str], list[str]]]:
    """Of the diff in docs/adding-an-op.md, by file: the lines of context and those that are added."""
    text = (ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
    found: dict[str, tuple[list[str], list[str]]] = {}
    name = ""
    for line in text.split("```diff\n")[1].split("```")[0].splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
            found[name] = ([], [])
        elif line.startswith(("+", " ")) and name:
            found[name][line.startswith("+")].append(line[1:])
    return found


def row_of(line: str) -> Row:
    """A line of csrc/ops.def, which reads as a call."""
    call: Any = parse(line)
    kind, (name, *formulas, domain, summary) = call.func.id, call.args
    arity = {"UNARY": 1, "BINARY": 2, "TERNARY": 3}[kind]
    value, *gradients = map(ast.unparse, formulas)
    assert len(gradients) == arity
    return Row(name.id, arity, value, tuple(gradients), tuple(domain.value.split("; ")), summary.value, (), ())


def test_the_example_of_a_new_op_still_applies():
    for name, (context, added) in hunks().items():
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert context
        assert all(lines.count(line) == 1 for line in context), name
        assert added


def test_the_example_of_a_new_op_is_right():
    (row,) = map(row_of, hunks()["csrc/ops.def"][1])
    before = dict(reference_ops.OPS)
    try:
        exec("\n".join(hunks()["pygrad/reference_ops.py"][1]), dict(vars(reference_ops)))
        twin = reference_ops.OPS[row.name]
    finally:
        reference_ops.OPS.clear()
        reference_ops.OPS.update(before)
    assert not wrong_derivatives(row)
    value, *gradients = formula_texts(row)
    for operands in [*special_operands(row), *samples(row, 300)]:
        letters = dict(zip(LETTERS, operands, strict=False))
        y = evaluate(value, letters)
        assert same(y, float(twin.value(*operands)))
        for g in (1.0, -2.5, 0.0):
            for gradient, rule in zip(gradients, twin.rules, strict=True):
                assert same(evaluate(gradient, letters | {"y": y, "g": g}), float(rule(g, y, *operands)))


def test_docs_of_functions_come_from_the_rows():
    assert inspect.cleandoc(pygrad.tanh.__doc__).startswith("tanh(a): hyperbolic tangent.")
    for name, function in ops.FUNCTIONS.items():
        row = TABLE[ALIASES.get(name, name)]
        assert row.value in function.__doc__
        assert function.__name__ == name
