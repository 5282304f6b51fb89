"""The texts of errors, whole: which op, which operand, what was found, what was expected, what to do next.

Both engines raise the same where both have the operation. Errors of transforms, custom ops, NumPy's protocol, copies
and pickles are pinned beside what they are about: test_transforms*.py, test_custom.py, test_numpy.py, test_copy*.py,
test_pickle.py.
"""

import re

import numpy as np
import pytest

import pygrad
from pygrad import (
    AnomalyError,
    CaptureError,
    CompilerError,
    GradcheckError,
    GraphError,
    Value,
    custom_op,
    errors,
    grad,
    gradcheck,
    jvp,
    no_grad,
)


def text_of(error, run):
    """The text of the error that run() raises, which is exactly of that class."""
    with pytest.raises(error) as caught:
        run()
    assert type(caught.value) is error
    return str(caught.value)


# ---- the classes


def test_each_error_is_the_builtin_that_a_user_would_expect():
    assert errors.__all__ == ["AnomalyError", "CaptureError", "CompilerError", "GradcheckError", "GraphError"]
    for error, builtin in (
        (GraphError, RuntimeError),
        (AnomalyError, ArithmeticError),
        (CaptureError, TypeError),
        (CompilerError, RuntimeError),
        (GradcheckError, AssertionError),
    ):
        assert issubclass(error, builtin)
        assert error.__module__ == "pygrad.errors"
        assert getattr(pygrad, error.__name__) is error
        assert error.__doc__


# ---- operands: of both engines


class Odd:
    def __repr__(self):
        return "Odd()"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda e: e.function("exp")("x"), "exp: operand 0 must be a Value or a real number, found 'x' of type str"),
        (
            lambda e: e.function("exp")(None),
            "exp: operand 0 must be a Value or a real number, found None of type NoneType",
        ),
        (lambda e: e.function("exp")(1j), "exp: operand 0 must be a Value or a real number, found 1j of type complex"),
        (
            lambda e: e.function("exp")(Odd()),
            "exp: operand 0 must be a Value or a real number, found Odd() of type Odd",
        ),
        (
            lambda e: e.function("atan2")(e.Value(1.0), [1]),
            "atan2: operand 1 must be a Value or a real number, found [1] of type list",
        ),
        (
            lambda e: e.function("where")(1.0, 2.0, "c"),
            "where: operand 2 must be a Value or a real number, found 'c' of type str",
        ),
        (lambda e: e.Value(1.0).pow("n"), "pow: operand 1 must be a Value or a real number, found 'n' of type str"),
        (
            lambda e: e.Value(1.0).clip("low"),
            "clip: operand 1 must be a Value or a real number, found 'low' of type str",
        ),
        (lambda e: e.function("exp")(), "exp: needs 1 operand, found 0"),
        (lambda e: e.function("exp")(1.0, 2.0), "exp: needs 1 operand, found 2"),
        (lambda e: e.function("atan2")(1.0), "atan2: needs 2 operands, found 1"),
        (lambda e: e.function("where")(1.0, 2.0), "where: needs 3 operands, found 2"),
        (lambda e: e.function("elu")(), "elu: needs 1 or more operands, found 0"),
        (lambda e: e.function("clip")(1.0, 2.0, 3.0, 4.0), "clip: needs 1 or more operands, found 4"),
        (lambda e: e.function("exp")(1.0, base=2), "exp: unknown keyword 'base'"),
        (lambda e: e.function("elu")(1.0, 2.0, alpha=3.0), "elu: operand 'alpha' is given twice"),
        (
            lambda e: e.sum([1.0, "x"]),
            "sum: element 1 must be a Value or a real number, found 'x' of type str",
        ),
        (
            lambda e: e.dot([1.0, e.Value(2.0)], [3.0, None]),
            "dot: element 1 must be a Value or a real number, found None of type NoneType",
        ),
        (lambda e: e.sum(3.0), "sum: needs an iterable of Values and real numbers, found 3.0 of type float"),
        (lambda e: e.dot([1.0], 3), "dot: needs an iterable of Values and real numbers, found 3 of type int"),
        (lambda e: e.Value("3"), "Value: data: must be a real number, found '3' of type str"),
        (lambda e: e.Value(None), "Value: data: must be a real number, found None of type NoneType"),
        (
            lambda e: e.Value(e.Value(2.0)),
            "Value: data: must be a real number, found Value(data=2.0, grad=0.0) of type Value; take its .data",
        ),
        (
            lambda e: setattr(e.Value(1.0), "data", [1]),
            "Value.data: must be a real number, found [1] of type list",
        ),
        (
            lambda e: setattr(e.Value(1.0), "grad", "g"),
            "Value.grad: must be a real number, found 'g' of type str",
        ),
        (
            lambda e: setattr(e.Value(1.0), "grad", e.Value(2.0)),
            "Value.grad: must be a real number, found Value(data=2.0, grad=0.0) of type Value; take its .data",
        ),
        (lambda e: e.Value(1.0).backward("g"), "backward: grad: must be a real number, found 'g' of type str"),
        (
            lambda e: e.Value(1.0, (e.Value(2.0), 3.0)),
            "Value: parents must be Values, found 3.0 of type float at 1",
        ),
        (
            lambda e: setattr(e.Value(1.0, (e.Value(2.0),)), "backward_fn", 3),
            "Value.backward_fn: must be callable or None, found 3 of type int",
        ),
    ],
)
def test_type_errors_of_both_engines(engine, run, expected):
    # the type of a Value is pygrad.Value in the core, and Value in the reference
    assert text_of(TypeError, lambda: run(engine)).replace("pygrad.Value", "Value") == expected


def test_lengths(engine):
    assert text_of(ValueError, lambda: engine.dot([1.0], [1.0, 2.0])) == (
        "dot: operands must be equally long, found lengths 1 and 2"
    )


def test_an_alias_is_named_as_it_was_typed():
    assert text_of(TypeError, lambda: pygrad.arctan2("a", Value(1.0))) == (
        "arctan2: operand 0 must be a Value or a real number, found 'a' of type str"
    )


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "**", "//", "%"])
@pytest.mark.parametrize("other", ['"x"', "None", "1j", "[1.0]"])
def test_operators_on_what_is_no_number(engine, op, other):
    for text in (f"v {op} {other}", f"{other} {op} v"):
        if text == '"x" % v':
            continue  # the text formats
        with pytest.raises(TypeError) as caught:
            eval(text, {"v": engine.Value(1.0)})
        found = str(caught.value).replace("pygrad.Value", "Value")
        assert re.match(r"unsupported operand type\(s\) for |can.t multiply sequence by non-int of type", found) or (
            "can only concatenate" in found
        )
        assert "Value" in found


def test_pow_with_a_modulus():
    assert text_of(TypeError, lambda: pow(Value(2.0), 3, 5)) == "pow: a Value takes no modulus, found 5"


def test_numbers_that_are_too_large(engine):
    for run in (
        lambda: engine.Value(10**400),
        lambda: engine.function("exp")(10**400),
        lambda: engine.Value(1.0) + 10**400,
    ):
        assert text_of(OverflowError, run) == "int too large to convert to float"


# ---- the graph: of both engines


def test_nothing_to_differentiate(engine):
    for value in (engine.Value(1.0).detach(), engine.Value(1.0, requires_grad=False) * 2):
        with pytest.raises(RuntimeError) as caught:
            value.backward()
        assert str(caught.value).startswith("backward: this Value does not require a gradient: it was made ")
        assert str(caught.value).endswith("by detach(), or from operands that do not require one")


def test_nothing_to_differentiate_names_no_grad():
    with no_grad():
        y = Value(1.0) * 2
    assert text_of(GraphError, y.backward) == (
        "backward: this Value does not require a gradient: it was made under no_grad(), by detach(), or from operands "
        "that do not require one"
    )


def test_a_released_graph(engine):
    x = engine.Value(2.0)
    y = x * x
    z = y + 1
    z.backward(retain_graph=False)
    for node, op in ((z, "add"), (y, "mul"), (y * 3, "mul")):
        with pytest.raises(RuntimeError) as caught:
            node.backward()
        assert str(caught.value) == (
            f"backward: a node of op '{op}' has been released by an earlier backward(retain_graph=False); run the "
            "forward pass again, or leave retain_graph=True in the first call"
        )


def test_a_node_without_backward_fn(engine):
    out = engine.Value(2.5, (engine.Value(1.0),))
    with pytest.raises(RuntimeError) as caught:
        (out * 2).backward()
    assert str(caught.value) == (
        "backward: a node made by Value(2.5, parents) has no backward_fn; assign a function that adds to the parents' "
        ".grad, or use detach() to cut the graph here"
    )


def test_a_backward_fn_differentiated_again(engine):
    x = engine.Value(1.0)
    out = engine.Value(2.0, (x,))
    out.backward_fn = lambda: None
    with pytest.raises(RuntimeError) as caught:
        (out * 2).backward(create_graph=True)
    assert str(caught.value) == (
        "backward: a backward_fn adds numbers, so its gradient cannot be differentiated again; make the op with "
        "pygrad.custom_op, whose gradient may be written in terms of Values"
    )


def test_a_backward_fn_on_a_node_that_has_one(engine):
    x = engine.Value(1.0)
    for node, op in ((x, "leaf"), (x * x, "mul"), (x.exp(), "exp")):
        with pytest.raises(RuntimeError) as caught:
            node.backward_fn = lambda: None
        assert str(caught.value) == (
            f"Value.backward_fn: can be set on a node made by Value(data, parents), this is a node of op '{op}' with a "
            "gradient of its own; make one with out = Value(data, parents)"
        )


def test_freezing_what_is_no_leaf(engine):
    x = engine.Value(1.0)
    with pytest.raises(RuntimeError) as caught:
        (x * x).requires_grad = False
    assert str(caught.value) == (
        "Value.requires_grad: only a leaf can be frozen, this is a node of op 'mul'; use detach()"
    )


# ---- the graph: of the core alone


def test_a_write_after_forward():
    x = Value(2.0)
    y = x * x
    x.data = 3.0
    assert text_of(GraphError, y.backward) == (
        "backward: the data of an operand of a node of op 'mul' was written after the node was made, and its gradient "
        "needs the old number; run the forward pass again, or write .data only after backward"
    )
    x = Value(2.0)
    y = x.exp()
    y.data = 3.0
    assert text_of(GraphError, y.backward) == (
        "backward: the data of a node of op 'exp' was written after the node was made, and its gradient needs the "
        "old number; run the forward pass again, or write .data only after backward"
    )


def test_forward_mode_through_a_backward_fn():
    def f(x):
        out = Value(x.data, (x,))
        out.backward_fn = lambda: None
        return out

    assert text_of(GraphError, lambda: jvp(f, (1.0,), (1.0,))) == (
        "jvp: a backward_fn adds to the gradients of parents, so it cannot be run forwards; make the op with "
        "pygrad.custom_op"
    )


def test_a_float_within_a_transform():
    assert text_of(TypeError, lambda: grad(float)(1.0)) == (
        "float(): a Value that is being differentiated would leave the graph as a constant; use pygrad.math in place "
        "of math, or stop_gradient(x) where a constant is meant"
    )


def test_arguments_of_backward():
    y = Value(1.0) * 2
    assert text_of(TypeError, lambda: y.backward(1.0, 2.0)) == "backward: takes one positional argument, found 2"
    assert text_of(TypeError, lambda: y.backward(retain=True)) == "backward: unexpected keyword 'retain'"
    assert text_of(TypeError, lambda: y.backward(1.0, grad=2.0)) == "backward: unexpected keyword 'grad'"
    assert text_of(TypeError, lambda: y.backward(grad=Value(1.0))) == (
        "backward: grad: must be a real number, found Value(data=1.0, grad=0.0) of type pygrad.Value; take its .data"
    )
    with pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=Untrue())


class Untrue:
    def __bool__(self):
        raise ZeroDivisionError


def test_attributes():
    v = Value(1.0)
    for name in ("data", "grad", "requires_grad"):
        assert text_of(AttributeError, lambda name=name: delattr(v, name)) == f"Value.{name}: cannot be deleted"
    for name in ("op", "parents"):
        with pytest.raises(AttributeError):
            setattr(v, name, None)
    with pytest.raises(AttributeError):
        v.nothing = 1
    with pytest.raises(ZeroDivisionError):
        v.requires_grad = Untrue()
    for arguments in ((), (1.0, (), 3)):
        with pytest.raises(TypeError):
            Value(*arguments)
    with pytest.raises(TypeError):
        Value(1.0, wanted=True)
    with pytest.raises(TypeError):
        Value(1.0, 3)


def test_values_are_not_iterable():
    assert text_of(TypeError, lambda: pygrad.sum(Value(1.0))) == (
        "sum: needs an iterable of Values and real numbers, found Value(data=1.0, grad=0.0) of type pygrad.Value"
    )
    with pytest.raises(TypeError, match=r"not iterable"):
        list(Value(1.0))


def test_an_iterable_that_raises():
    def numbers():
        yield 1.0
        raise ZeroDivisionError("in the iterable")

    assert text_of(ZeroDivisionError, lambda: pygrad.sum(numbers())) == "in the iterable"
    assert text_of(ZeroDivisionError, lambda: pygrad.dot([1.0], numbers())) == "in the iterable"


def test_a_number_that_raises():
    import numbers

    class Bad(float):
        pass

    @numbers.Real.register
    class Raises:
        def __float__(self):
            raise ZeroDivisionError("in __float__")

    assert (Value(2.0) * Bad(3.0)).data == 6.0
    for run in (
        lambda: Value(Raises()),
        lambda: Value(1.0) + Raises(),
        lambda: pygrad.exp(Raises()),
        lambda: pygrad.sum([Value(1.0), Raises()]),
        lambda: Value(1.0) < Raises(),
    ):
        assert text_of(ZeroDivisionError, run) == "in __float__"


# ---- arrays where a number is meant


def test_arrays_as_data():
    assert text_of(TypeError, lambda: Value(np.array([1.0, 2.0]))) == (
        "Value: data: must be a real number, found array([1., 2.]) of type numpy.ndarray"
    )
    assert text_of(TypeError, lambda: pygrad.exp(np.complex64(1j))) == (
        "exp: operand 0 must be a Value or a real number, found np.complex64(1j) of type numpy.complex64"
    )
    assert text_of(TypeError, lambda: pygrad.atan2(np.array(["a"]), 1.0)) == (
        "atan2: operand 0 must be a Value or a real number, found 'a' of type str"
    )


# ---- anomalies, checks, ops of the user's


def test_notes_of_a_backward_that_stops():
    op = custom_op(lambda a: a, lambda g, y, a: 1 / 0, name="fails")
    y = op(Value(1.0) * 2) * 3
    with pytest.raises(ZeroDivisionError) as caught:
        y.backward()
    assert caught.value.__notes__ == [
        "pygrad: backward stopped after 1 node(s); .grad of leaves holds part of the gradient (zero it before trying "
        "again), the graph is whole"
    ]


def test_gradcheck_text():
    op = custom_op(lambda a: a * 3, lambda g, y, a: g * 2, name="wrong")
    assert text_of(GradcheckError, lambda: gradcheck(op, 1.0, method="complex")).startswith(
        "gradcheck: the derivative of result 0 by argument number 0 is 2.0, expected 3.0 by complex step: off by 1 "
    )
