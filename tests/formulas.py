"""The op table's formulas read a second time, with Python's `ast`: as arithmetic on floats, and as SymPy expressions.

Owns the two readers that test_table.py holds the compiled table against. Must not use the compiled ops: names mean the
functions of the reference, or SymPy's. Next: csrc/formula.c, the reader that second derivatives run on.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import sympy

from pygrad.reference_ops import ALIASES, OPS, float_div

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip

# Literals of the table that stand for an irrational number, and the number.
CONSTANTS: dict[float, Any] = {
    0.6931471805599453: sympy.log(2),
    1.4426950408889634: 1 / sympy.log(2),
    0.4342944819032518: 1 / sympy.log(10),
    57.29577951308232: 180 / sympy.pi,
    0.017453292519943295: sympy.pi / 180,
    1.1283791670955126: 2 / sympy.sqrt(sympy.pi),
    0.7071067811865476: 1 / sympy.sqrt(2),
    0.7978845608028654: sympy.sqrt(2 / sympy.pi),
}


def parse(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


class Reader:
    """Walks a formula. Subclasses say what letters, literals, division and calls are."""

    def __init__(self, letters: dict[str, Any]) -> None:
        self.letters = letters

    def read(self, node: ast.expr) -> Any:
        match node:
            case ast.Name("nan"):
                return self.literal(float("nan"))
            case ast.Name(name):
                return self.letters[name]
            case ast.Constant(value):
                return self.literal(value)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.read(operand)
            case ast.BinOp(left, ast.Div(), right):
                return self.divide(self.read(left), self.read(right))
            case ast.BinOp(left, op, right):
                return ARITHMETIC[type(op)](self.read(left), self.read(right))
            case ast.Call(ast.Name("select"), [ast.Compare(left, [comparison], [right]), p, q]):
                return self.read(p if self.holds(COMPARISONS[type(comparison)], left, right) else q)
            case ast.Call(ast.Name(name), args):
                return self.call(ALIASES.get(name, name), args)
        raise SyntaxError(f"not in the common subset of C and Python: {ast.unparse(node)}")

    def literal(self, value: float) -> Any:
        raise NotImplementedError

    def divide(self, p: Any, q: Any) -> Any:
        raise NotImplementedError

    def holds(self, compare: Callable[[Any, Any], bool], left: ast.expr, right: ast.expr) -> bool:
        raise NotImplementedError

    def call(self, name: str, args: list[ast.expr]) -> Any:
        raise NotImplementedError


class Numbers(Reader):
    """A formula on floats, as IEEE 754 has them."""

    def literal(self, value: float) -> float:
        return float(value)

    def divide(self, p: float, q: float) -> float:
        return float_div(p, q)

    def holds(self, compare: Callable[[Any, Any], bool], left: ast.expr, right: ast.expr) -> bool:
        return compare(self.read(left), self.read(right))

    def call(self, name: str, args: list[ast.expr]) -> float:
        return float(OPS[name].value(*(self.read(arg) for arg in args)))


def evaluate(formula: ast.expr, letters: dict[str, float]) -> float:
    return Numbers(letters).read(formula)


def sympy_ierfcx(n: int, x: Any) -> Any:
    """exp(x^2) times the n-th repeated integral of erfc, by the recurrence that defines it (DLMF 7.18.7)."""
    before, value = 2 / sympy.sqrt(sympy.pi), sympy.exp(x**2) * sympy.erfc(x)
    for k in range(1, int(n) + 1):
        before, value = value, (before - 2 * x * value) / (2 * k)
    return value


def sympy_sinc_derivative(n: int, x: Any) -> Any:
    z = sympy.Symbol("z", real=True)
    return sympy.diff(sympy.sin(sympy.pi * z) / (sympy.pi * z), z, int(n)).subs(z, x)


def sympy_norm_pdf(x: Any) -> Any:
    return sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)


# What names mean by definition, where they are smooth.
SMOOTH: dict[str, Callable[..., Any]] = {
    "zmul": lambda a, b: a * b,
    "pow": lambda a, b: a**b,
    "pow_less_one": lambda a, b: a ** (b - 1),
    "fma": lambda a, b, c: a * b + c,
    "sqrt": sympy.sqrt,
    "exp": sympy.exp,
    "expm1": lambda a: sympy.exp(a) - 1,
    "log": sympy.log,
    "log2": lambda a: sympy.log(a) / sympy.log(2),
    "log10": lambda a: sympy.log(a) / sympy.log(10),
    "log1p": lambda a: sympy.log(1 + a),
    "ldexp": lambda a, b: a * 2**b,
    **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: getattr(sympy, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc")},
    "hypot": lambda a, b: sympy.sqrt(a**2 + b**2),
    "sinc": lambda a: sympy_sinc_derivative(0, a),
    "sinc_derivative": sympy_sinc_derivative,
    "erfcx": lambda a: sympy_ierfcx(0, a),
    "ierfcx": sympy_ierfcx,
    "gaussian": lambda a: sympy.exp(-(a**2)),
    "norm_pdf": sympy_norm_pdf,
    "ndtr": lambda a: sympy.erfc(-a / sympy.sqrt(2)) / 2,
    "gamma": sympy.gamma,
    "lgamma": sympy.loggamma,
    "digamma": lambda a: sympy.polygamma(0, a),
    "polygamma": sympy.polygamma,
    "sigmoid": lambda a: 1 / (1 + sympy.exp(-a)),
}

# Those that are smooth but for a factor or term that is constant between jumps: by operands, then the constants.
STEPS: dict[str, tuple[Callable[..., Any], Callable[..., tuple[float, ...]]]] = {
    "abs": (lambda a, s: s * a, lambda a: (OPS["sign"].value(a),)),
    "cbrt": (lambda a, s: s * (s * a) ** sympy.Rational(1, 3), lambda a: (OPS["sign"].value(a),)),
    "copysign": (lambda a, b, s, t: s * t * a, lambda a, b: (OPS["sign"].value(a), OPS["sign"].value(b))),
    "mod": (lambda a, b, k: a - k * b, lambda a, b: (a // b,)),
    "fmod": (lambda a, b, k: a - k * b, lambda a, b: (float(int(a / b)),)),
    "ieee_remainder": (lambda a, b, k: a - k * b, lambda a, b: (float(round(a / b)),)),
    "maximum": (lambda a, b, w: w * a + (1 - w) * b, lambda a, b: (float(a >= b),)),
    **{
        name: (lambda *operands: operands[-1], lambda *operands, name=name: (float(OPS[name].value(*operands)),))
        for name in ("floordiv", "sign", "floor", "ceil", "trunc", "round")
    },
}


class Symbols(Reader):
    """A formula as the SymPy expression that holds around the point `numbers`.

    `branches` tells which way each select went there; `constants` are (symbol, number) of what is constant around it.
    """

    def __init__(self, letters: dict[str, Any], numbers: dict[str, float]) -> None:
        super().__init__(letters)
        self.numbers = Numbers(numbers)
        self.branches: list[bool] = []
        self.constants: dict[Any, float] = {}

    def literal(self, value: float) -> Any:
        if value in CONSTANTS:
            return CONSTANTS[value]
        return sympy.nan if value != value else sympy.Rational(str(value))

    def divide(self, p: Any, q: Any) -> Any:
        return p / q

    def holds(self, compare: Callable[[Any, Any], bool], left: ast.expr, right: ast.expr) -> bool:
        self.branches.append(self.numbers.holds(compare, left, right))
        return self.branches[-1]

    def call(self, name: str, args: list[ast.expr]) -> Any:
        operands = [self.read(arg) for arg in args]
        if name in SMOOTH:
            return SMOOTH[name](*operands)
        smooth, steps = STEPS[name]
        symbols = []
        for number in steps(*(self.numbers.read(arg) for arg in args)):
            symbols.append(sympy.Symbol(f"k{len(self.constants)}", real=True))
            self.constants[symbols[-1]] = number
        return smooth(*operands, *symbols)
