"""copy, deepcopy and pickle of nodes whose rule is code of the user's: a backward_fn, over the copies, or a custom op.

Next: copies.py, which has the ways to copy and to compare.
"""

import copy
import functools
import pickle

import pytest
from copies import PROTOCOLS, Step, description, dumped, logistic, ways

from pygrad import GraphError, Value, custom_op


def with_closure():
    x = Value(3.0)
    out = Value(9.0, (x,))

    def step():
        x.grad += 6.0 * out.grad

    out.backward_fn = step
    return x, out


def test_a_deep_copy_of_a_closure_is_over_the_copies():
    x, out = with_closure()
    made = copy.deepcopy(out * 2)
    made.backward()
    assert x.grad == 0.0
    made_x = made.parents[0].parents[0]
    assert made_x.grad == 12.0
    (out * 2).backward()
    assert (x.grad, made_x.grad) == (12.0, 12.0)


def test_a_shallow_copy_of_a_closure_is_over_the_copy():
    x, out = with_closure()
    made = copy.copy(out)
    (made * 5).backward()
    assert (x.grad, out.grad) == (30.0, 0.0)


def test_what_else_a_closure_holds_is_shared():
    x = Value(3.0)
    out = Value(9.0, (x,))
    log, lock = [], object()

    def step(x=x, *, out=out, nothing=None):
        log.append(lock)
        x.grad += out.grad * unbound

    out.backward_fn = step
    made = copy.deepcopy(out)
    with pytest.raises(NameError):
        made.backward()
    assert log == [lock]
    unbound = 2.0
    copy.deepcopy(out).backward()
    assert x.grad == 0.0


def add_to(x, out, factor=1.0):
    x.grad += factor * out.grad


@ways
@pytest.mark.parametrize(
    "closure",
    [
        lambda x, out: Step(x, out),
        lambda x, out: Step(x, out).method,
        lambda x, out: functools.partial(add_to, x, out, factor=6.0),
        lambda x, out: functools.partial(add_to, x, out=out, factor=6.0),
    ],
)
def test_closures_that_are_objects(anew, closure):
    x = Value(3.0)
    out = Value(9.0, (x,))
    out.backward_fn = closure(x, out)
    made_x, made_out = anew([x, out])
    made_out.backward()
    assert (made_x.grad, x.grad, out.grad) == (6.0, 0.0, 0.0)
    made = anew(out * 2)
    made.backward()
    assert (made.parents[0].parents[0].grad, x.grad) == (12.0, 0.0)
    out.backward()
    assert (x.grad, made_x.grad) == (6.0, 6.0)


def wrapped(bw, x, out):
    return lambda: bw()


def by_default(bw, x, out):
    return lambda step=bw: step()


def by_keyword(bw, x, out):
    def step(*, steps=(bw,)):
        for each in steps:
            each()

    return step


def by_attribute(bw, x, out):
    def step():
        step.inner()

    step.inner = bw
    return step


def by_partial(bw, x, out):
    run = functools.partial(lambda f: f(), bw)
    return lambda: run()


def by_method(bw, x, out):
    method = Step(x, out).method
    return lambda: method()


def by_object(bw, x, out):
    steps = {"first": [Step(x, out)]}
    return lambda: steps["first"][0]()


def by_held_object(bw, x, out):
    return functools.partial(Step.__call__, Step(x, out))


def by_recursion(bw, x, out):
    def step(k=3):
        step(k - 1) if k else bw()

    return step


def by_mutual_recursion(bw, x, out):
    def even(k):
        odd(k - 1) if k else bw()

    def odd(k):
        even(k - 1)

    return lambda: even(4)


def by_a_long_chain(bw, x, out):
    def before(f):
        return lambda: later.append(f)

    later = [bw]
    for _ in range(20_000):
        bw = before(bw)
    later.append(bw)

    def step():
        while later:
            later.pop()()

    return step


WRAPPERS = [
    wrapped, by_default, by_keyword, by_attribute, by_partial, by_method, by_object, by_held_object, by_recursion,
    by_mutual_recursion,
]  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPPERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("times", [1, 3])
def test_closures_within_closures(wrap, times):
    x = Value(3.0)
    out = Value(9.0, (x,))

    def bw():
        x.grad += 6.0 * out.grad

    step = bw
    for _ in range(times):
        step = wrap(step, x, out)
    out.backward_fn = step
    made = copy.deepcopy(out * 2)
    made.backward()
    made_x = made.parents[0].parents[0]
    assert (made_x.grad, x.grad, out.grad) == (12.0, 0.0, 0.0)
    twice = copy.deepcopy(made)
    twice.parents[0].parents[0].zero_grad()
    twice.backward()
    assert (twice.parents[0].parents[0].grad, made_x.grad, x.grad) == (12.0, 12.0, 0.0)
    out.backward()
    assert (x.grad, made_x.grad) == (6.0, 12.0)


def test_a_long_chain_of_closures():
    x = Value(3.0)
    out = Value(9.0, (x,))

    def bw():
        x.grad += 6.0 * out.grad

    out.backward_fn = by_a_long_chain(bw, x, out)
    made_x, made = copy.deepcopy([x, out])
    made.backward()
    assert (made_x.grad, x.grad) == (12.0, 0.0)


def test_functions_that_share_a_name_share_it_in_the_copy():
    x = Value(3.0)
    out = Value(9.0, (x,))
    seen = x

    def swap():
        nonlocal seen
        seen, before = out, seen
        return before

    def step():
        swap().grad += seen.grad

    out.backward_fn = step
    made_x, made = copy.deepcopy([x, out])
    made.backward()
    assert (made_x.grad, x.grad, seen is x) == (1.0, 0.0, True)


def test_a_closure_that_holds_itself_in_a_list():
    x = Value(3.0)
    steps = [x]
    steps.append(steps)
    out = Value(9.0, (x,))
    out.backward_fn = lambda: steps
    with pytest.raises(RecursionError, match=r"^copy: a backward_fn holds lists, tuples, dicts or methods that are "):
        copy.deepcopy(out)


def test_a_method_of_a_value():
    x = Value(3.0)
    out = Value(9.0, (x,))
    out.backward_fn = x.conjugate
    made_x, made = copy.deepcopy([x, out])
    assert made.backward_fn() is made_x


def test_what_a_closure_calls_and_holds_no_value_is_shared():
    x = Value(3.0)
    out = Value(9.0, (x,))
    count = functools.lru_cache(lambda: 6.0)
    factor = functools.partial(float, 6.0)
    found = []

    def step():
        found.append((count, factor))
        x.grad += count() * out.grad

    out.backward_fn = step
    copy.deepcopy(out).backward()
    assert found == [(count, factor)]
    assert x.grad == 0.0


def test_a_closure_that_holds_nothing():
    x = Value(3.0)
    out = Value(9.0, (x,))
    for closure in (print, dict, int.bit_length):
        out.backward_fn = closure
        assert copy.deepcopy(out).backward_fn is closure


@ways
def test_a_node_without_its_closure(anew):
    x = Value(3.0)
    made = anew(Value(9.0, (x,)))
    assert made.parents[0].data == 3.0
    with pytest.raises(GraphError, match="has no backward_fn"):
        made.backward()


@ways
def test_custom_ops(anew):
    made = anew(logistic(Value(0.0)) * 3)
    made.backward()
    assert made.parents[0].op == "logistic"
    assert made.parents[0].parents[0].grad == 0.75


def test_an_op_that_does_not_pickle():
    x = Value(1.0)
    local = custom_op(lambda a: a, lambda g, y, a: g, name="local")
    y = local(x) + x * 2
    for protocol in PROTOCOLS:
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pickle.dumps(y, protocol)
        z = x * 2
        assert description(dumped(protocol)([z, x])) == description([z, x])  # the next one is whole
    x, out = with_closure()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(out)
    assert dumped(2)(x * 5).data == 15.0
