"""What is written down of the op table elsewhere: the ops in the type stubs, and docs/ops.md.

`python tests/generated.py` renews all three; test_table.py asserts that they are current. Owns the stubs of ops; what
else is in pygrad/_core.pyi is written by hand.
"""

from __future__ import annotations

from pathlib import Path

from pygrad.ops import ALIASES, LETTERS, TABLE, Row, markdown

ROOT = Path(__file__).parent.parent
BEGIN, END = "    # Ops of the table: python tests/generated.py writes these.\n", "    # End of the ops.\n"

FUNCTIONS_HEAD = '''\
"""The elementwise ops of the table as functions. Written by `python tests/generated.py`, which also renews it."""

from typing import Any, Protocol, overload

from numpy.typing import NDArray

from pygrad._core import Operand, Real, Value

class _Unary(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, /) -> Value: ...
    @overload
    def __call__(self, a: Real, /) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], /) -> NDArray[Any]: ...

class _Binary(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, b: Operand, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Value, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Real, /) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], b: Operand | NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Operand, b: NDArray[Any], /) -> NDArray[Any]: ...

class _Ternary(Protocol):
    @property
    def row(self) -> str: ...
    @overload
    def __call__(self, a: Value, b: Operand, c: Operand, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Value, c: Operand, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Real, c: Value, /) -> Value: ...
    @overload
    def __call__(self, a: Real, b: Real, c: Real, /) -> float: ...
    @overload
    def __call__(self, a: NDArray[Any], b: Operand | NDArray[Any], c: Operand | NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Operand, b: NDArray[Any], c: Operand | NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, a: Operand, b: Operand, c: NDArray[Any], /) -> NDArray[Any]: ...
'''
WIDEST = 120
KINDS = {1: "_Unary", 2: "_Binary", 3: "_Ternary"}


def kind(row: Row) -> str:
    """The name of the protocol that the function of a row has."""
    return f"_{row.name.title().replace('_', '')}" if row.defaults else KINDS[row.arity]


def protocol_with_defaults(row: Row) -> str:
    """A protocol for a row with operands that may be left out: any Value among the operands gives a Value."""
    required = LETTERS[: row.arity - len(row.defaults)]
    keywords = [keyword for keyword, _ in row.defaults]
    lines = [f"class {kind(row)}(Protocol):", "    @property", "    def row(self) -> str: ..."]

    def overload(types: dict[str, str], given: int, result: str) -> None:
        """`given` is the place of the keyword that must be given, and by its name where others before it are not."""
        parts = [f"{letter}: {types[letter]}" for letter in required] + ["/"]
        for i, keyword in enumerate(keywords):
            if i == given and i > 0:
                parts.append("*")
            parts.append(f"{keyword}: {types[keyword]}" + ("" if i == given else " | None = ..."))
        line = f"    def __call__(self, {', '.join(parts)}) -> {result}: ..."
        if len(line) > WIDEST:
            line = f"    def __call__(\n        self, {', '.join(parts)}\n    ) -> {result}: ..."
        lines.extend(["    @overload", line])

    everything = [*required, *keywords]
    for at, name in enumerate(everything):
        types = {other: "Real" if i < at else "Operand" for i, other in enumerate(everything)} | {name: "Value"}
        overload(types, at - len(required), "Value")
    overload(dict.fromkeys(everything, "Real"), -1, "float")
    types = dict.fromkeys(everything, "Operand | NDArray[Any]") | {required[0]: "NDArray[Any]"}
    overload(types, -1, "NDArray[Any]")
    return "\n".join(lines) + "\n"


def functions_stub() -> str:
    """pygrad/functions.pyi."""
    text = FUNCTIONS_HEAD
    for row in TABLE.values():
        if row.defaults:
            text += "\n" + protocol_with_defaults(row)
    text += "\n" + "".join(f"{row.name}: {kind(row)}\n" for row in TABLE.values())
    text += "\n" + "".join(f"{alias}: {kind(TABLE[name])}\n" for alias, name in ALIASES.items())
    names = "".join(f'    "{name}",\n' for name in sorted([*TABLE, *ALIASES]))
    return f"{text}\n__all__ = [  # noqa: RUF022\n{names}]\n"


def method(name: str, row: Row) -> str:
    required = [f"{letter}: Operand" for letter in LETTERS[1 : row.arity - len(row.defaults)]]
    keywords = [f"{keyword}: Operand | None = ..." for keyword, _ in row.defaults]
    operands = ["self", *([*required, "/"] if required else []), *keywords]
    return f"    def {name}({', '.join(operands)}) -> Value: ...\n"


def methods_stub() -> str:
    """The methods of Value in pygrad/_core.pyi."""
    names = {name: name for name in TABLE} | ALIASES
    return "".join(method(name, TABLE[row]) for name, row in names.items())


def core_stub(old: str) -> str:
    """pygrad/_core.pyi with its methods renewed."""
    head, rest = old.split(BEGIN)
    return head + BEGIN + methods_stub() + END + rest.split(END)[1]


def files() -> dict[Path, str]:
    """Each file, and what it should hold."""
    core = ROOT / "pygrad" / "_core.pyi"
    return {
        ROOT / "pygrad" / "functions.pyi": functions_stub(),
        core: core_stub(core.read_text(encoding="utf-8")),
        ROOT / "docs" / "ops.md": markdown(),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
