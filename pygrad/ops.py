"""The op table seen from Python: makes functions, methods and their docs from the rows. No mathematics here.

A row is in csrc/ops.def; `pygrad._core.table()` reads it. `python -m pygrad ops` prints what `describe` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pygrad import _core

__all__ = ["ALIASES", "FUNCTIONS", "TABLE", "Row", "describe"]

LETTERS = "abc"


class Row(NamedTuple):
    """One row of the op table. Domains are one interval an operand: R the real line, N the integers from 0."""

    name: str
    arity: int
    value: str
    gradients: tuple[str, ...]
    domain: tuple[str, ...]
    summary: str
    defaults: tuple[tuple[str, float], ...]
    aliases: tuple[str, ...]

    @property
    def signature(self) -> str:
        """As in `leaky_relu(a, negative_slope=0.01)`."""
        required = self.arity - len(self.defaults)
        operands = [*LETTERS[:required], *(f"{keyword}={value:g}" for keyword, value in self.defaults)]
        return f"{self.name}({', '.join(operands)})"


ALIASES: dict[str, str] = _core.aliases()

TABLE: dict[str, Row] = {
    row["name"]: Row(**row, aliases=tuple(a for a, name in ALIASES.items() if name == row["name"]))
    for row in _core.table()
}

FUNCTIONS: dict[str, Callable[..., Any]] = _core.functions()


def describe(row: Row) -> str:
    """The docstring of an op, from its row."""
    lines = [f"{row.signature}: {row.summary}.", ""]
    lines.append("Operands are Values or real numbers; floats alone give a float. IEEE 754: no exception at a pole.")
    lines += ["", f"value     {row.value}"]
    lines += [f"d/d{letter}      {gradient}" for letter, gradient in zip(LETTERS, row.gradients, strict=False)]
    lines.append(f"domain    {' x '.join(row.domain)}")
    if row.aliases:
        lines.append(f"also      {', '.join(row.aliases)}")
    return "\n".join(lines)


for _name, _function in FUNCTIONS.items():
    _function.__doc__ = describe(TABLE[ALIASES.get(_name, _name)])
    _core.add_to_type(_name, _function)
