"""The gradients that no derivative gives: at kinks, at the edges of domains, where operands tie, at infinity.

As the summaries of the rows and the head of csrc/ops.def promise them; docs/ops.md shows the formulas.
"""

import pytest
from domains import INF, NAN, TINY

from pygrad import _core


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("relu", (0.0,), (0.0,)),
        ("relu", (-0.0,), (0.0,)),
        ("relu", (TINY,), (1.0,)),
        ("abs", (0.0,), (0.0,)),
        ("abs", (-0.0,), (0.0,)),
        ("sign", (0.0,), (0.0,)),
        ("sqrt", (0.0,), (INF,)),
        ("sqrt", (-0.0,), (INF,)),
        ("cbrt", (0.0,), (INF,)),
        ("log", (0.0,), (INF,)),
        ("log1p", (-1.0,), (INF,)),
        ("asin", (1.0,), (INF,)),
        ("asin", (-1.0,), (INF,)),
        ("acos", (1.0,), (-INF,)),
        ("acosh", (1.0,), (INF,)),
        ("atanh", (1.0,), (INF,)),
        ("pow", (0.0, 2.0), (0.0, 0.0)),
        ("pow", (0.0, 1.0), (1.0, 0.0)),
        ("pow", (0.0, 0.5), (INF, 0.0)),
        ("pow", (0.0, 0.0), (0.0, -INF)),
        ("pow", (-2.0, 3.0), (12.0, NAN)),
        ("pow", (0.0, -1.0), (-INF, -INF)),
        ("div", (1.0, 0.0), (INF, -INF)),
        ("atan2", (0.0, 0.0), (0.0, 0.0)),
        ("hypot", (0.0, 0.0), (0.0, 0.0)),
        ("maximum", (2.0, 2.0), (0.5, 0.5)),
        ("maximum", (0.0, -0.0), (0.5, 0.5)),
        ("minimum", (2.0, 2.0), (0.5, 0.5)),
        ("fmax", (2.0, 2.0), (0.5, 0.5)),
        ("fmin", (2.0, 2.0), (0.5, 0.5)),
        ("fmax", (NAN, 2.0), (0.0, 1.0)),
        ("fmin", (2.0, NAN), (1.0, 0.0)),
        ("clip", (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        ("clip", (1.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        ("clip", (-0.5, 0.0, 1.0), (0.0, 1.0, 0.0)),
        ("clip", (1.5, 0.0, 1.0), (0.0, 0.0, 1.0)),
        ("clip", (0.0, 2.0, 1.0), (0.0, 0.0, 1.0)),  # crossed bounds: the upper wins
        ("where", (0.0, 2.0, 3.0), (0.0, 0.0, 1.0)),
        ("where", (NAN, 2.0, 3.0), (0.0, 1.0, 0.0)),
        ("leaky_relu", (0.0, 0.25), (0.25, 0.0)),
        ("elu", (0.0, 2.0), (2.0, 0.0)),
        ("copysign", (0.0, -1.0), (0.0, 0.0)),
        ("copysign", (3.0, -0.0), (-1.0, 0.0)),
        ("floor", (2.0,), (0.0,)),
        ("round", (2.5,), (0.0,)),
        ("frozen", (2.5,), (0.0,)),
        ("less", (2.0, 2.0), (0.0, 0.0)),
        ("equal", (2.0, 2.0), (0.0, 0.0)),
        ("logical_and", (0.0, NAN), (0.0, 0.0)),
        ("floordiv", (6.0, 2.0), (0.0, 0.0)),
        ("mod", (6.0, 2.0), (1.0, -3.0)),
        ("fmod", (-7.0, 2.0), (1.0, 3.0)),
        ("logaddexp", (INF, INF), (0.5, 0.5)),
        ("logaddexp", (-INF, -INF), (0.5, 0.5)),
        ("logaddexp", (-INF, 0.0), (0.0, 1.0)),
        ("xlogy", (0.0, 0.0), (-INF, 0.0)),
        ("gelu", (-INF,), (0.0,)),
        ("silu", (-INF,), (0.0,)),
        ("silu", (INF,), (1.0,)),
        ("tanh", (INF,), (0.0,)),
        ("sigmoid", (-INF,), (0.0,)),
    ],
)  # fmt: skip
def test_subgradients_at_kinks_and_edges(name, operands, expected):
    """The sign of a zero is not promised."""
    y = _core.evaluate(name, *operands)
    found = _core.evaluate_vjp(name, 1.0, y, *operands)
    assert all(x == y or (x != x and y != y) for x, y in zip(found, expected, strict=True)), found
