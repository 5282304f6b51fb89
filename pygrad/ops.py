"""The op table seen from Python: makes functions, methods and their docs from the rows. No mathematics here.

A row is in csrc/ops.def; `pygrad._core.table()` reads it. `python -m pygrad ops` prints what `text` makes of the rows,
and docs/ops.md holds what `markdown` makes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from pygrad import _core

__all__ = ["ALIASES", "FUNCTIONS", "TABLE", "Row", "describe", "markdown", "text"]

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


def _facts(row: Row) -> list[tuple[str, str]]:
    """What there is to say of a row, as (label, text)."""
    facts = [("value", row.value)]
    facts += [(f"d/d{letter}", gradient) for letter, gradient in zip(LETTERS, row.gradients, strict=False)]
    facts.append(("domain", " x ".join(row.domain)))
    if row.aliases:
        facts.append(("also", ", ".join(row.aliases)))
    return facts


def describe(row: Row) -> str:
    """The docstring of an op, from its row."""
    lines = [f"{row.signature}: {row.summary}.", ""]
    lines.append("Operands are Values or real numbers; floats alone give a float. IEEE 754: no exception at a pole.")
    lines += ["", *(f"{label:<10}{fact}" for label, fact in _facts(row))]
    return "\n".join(lines)


NOTATION = (
    "`a`, `b`, `c` are the operands, `y` the value, `g` the adjoint of `y`, and d/da what the gradient of `a` gets. "
    "zmul(g, p) is g * p, but zero where g is zero; select(condition, p, q) is p where the condition holds, else q. "
    "A domain is an interval an operand: R the real line, N the integers from 0. Outside of it the value is nan, or as "
    "IEEE 754 has it."
)


def text(width: int = 80) -> str:
    """The op table as text, a block of lines a row, wrapped to `width` columns."""
    lines = textwrap.wrap(NOTATION.replace("`", ""), width)
    for row in TABLE.values():
        lines += ["", *textwrap.wrap(f"{row.signature}: {row.summary}", width, subsequent_indent="    ")]
        for label, fact in _facts(row):
            lines += textwrap.wrap(fact, width, initial_indent=f"    {label:<8}", subsequent_indent=" " * 12)
    return "\n".join(lines)


def markdown() -> str:
    """The op table as docs/ops.md holds it."""
    lines = ["# The op table", "", "From `csrc/ops.def`, by `python -m pygrad ops --markdown > docs/ops.md`.", ""]
    lines += [NOTATION, "", "| op | value | gradients | domain | what it is |", "|---|---|---|---|---|"]
    for row in TABLE.values():
        gradients = "<br>".join(f"`{gradient}`" for gradient in row.gradients)
        also = f"; also {', '.join(f'`{alias}`' for alias in row.aliases)}" if row.aliases else ""
        domain = " x ".join(f"`{interval}`" for interval in row.domain)
        lines.append(f"| `{row.signature}` | `{row.value}` | {gradients} | {domain} | {row.summary}{also} |")
    return "\n".join(lines) + "\n"


for _name, _function in FUNCTIONS.items():
    _function.__doc__ = describe(TABLE[ALIASES.get(_name, _name)])
    _core.add_to_type(_name, _function)
