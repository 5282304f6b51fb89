"""copy, deepcopy and pickle: the graph under a Value anew, shared nodes shared, at any depth; damage is noticed."""

import contextlib
import copy
import functools
import io
import math as stdlib_math
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pygrad
from pygrad import GraphError, Value, _core, custom_op, no_grad

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

logistic = custom_op(lambda a: 1 / (1 + stdlib_math.exp(-a)), lambda g, y, a: g * y * (1 - y), name="logistic")


def dumped(protocol, pickler=pickle):
    return lambda x: pickler.loads(pickler.dumps(x, protocol))


class PythonPickle:
    """The pure-Python pickler and unpickler."""

    @staticmethod
    def dumps(x, protocol):
        file = io.BytesIO()
        pickle._Pickler(file, protocol).dump(x)
        return file.getvalue()

    @staticmethod
    def loads(data):
        return pickle._Unpickler(io.BytesIO(data)).load()


WAYS = [copy.deepcopy, *(dumped(p) for p in PROTOCOLS), *(dumped(p, PythonPickle) for p in (0, 2, 5))]
ways = pytest.mark.parametrize("anew", WAYS)


def description(roots):
    """The graph under some Values as plain data: what a copy must have in common with it."""
    order, places = [], {}
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if id(node) in places:
            continue
        operands = [o for o in _core.operands(node) if isinstance(o, Value)]
        missing = [o for o in operands if id(o) not in places]
        if missing:
            stack += [node, *reversed(missing)]
            continue
        places[id(node)] = len(order)
        order.append(node)
    table = [
        (node.op, repr(node.data), repr(node.grad), node.requires_grad, node.backward_fn is None,
         [places[id(o)] if isinstance(o, Value) else repr(o) for o in _core.operands(node)])
        for node in order
    ]  # fmt: skip
    return table, [places[id(root)] for root in roots]


def leaves_of(root):
    found, met, stack = [], set(), [root]
    while stack:
        node = stack.pop()
        if id(node) not in met:
            met.add(id(node))
            stack += node.parents
            if not node.parents:
                found.append(node)
    return found


def mixed():
    """A graph with every kind of node: unary to ternary, constants, n-ary, shared, custom, frozen."""
    x, w, frozen = Value(0.5), Value(-1.25), Value(3.0, requires_grad=False)
    s = x * w + 2.0
    t = 1.0 / s
    u = pygrad.where(s > 0, s.exp(), t)
    v = pygrad.sum([s, 1.5, t, s, u, frozen])
    z = pygrad.dot([s, v, 2.0], [t, 3.0, w])
    return logistic(z * 1e-3) + pygrad.fma(x, s, 0.25) + s**3 + frozen * x


# ---- what a copy is


@ways
def test_the_graph_is_the_same(anew):
    y = mixed()
    y.backward()
    made = anew(y)
    assert made is not y
    assert description([made]) == description([y])
    for node in leaves_of(y) + leaves_of(made):
        node.zero_grad()
    y.backward()
    made.backward()
    assert description([made]) == description([y])
    assert not {id(n) for n in leaves_of(y)} & {id(n) for n in leaves_of(made)}


@ways
def test_leaves(anew):
    for number in (1.5, -0.0, float("inf"), 5e-324):
        v = Value(number)
        v.grad = 2.5
        made = anew(v)
        assert (repr(made), made.requires_grad, made.parents, made.op) == (repr(v), True, (), "leaf")
    frozen = anew(Value(1.0, requires_grad=False))
    assert not frozen.requires_grad
    assert repr(anew(Value(float("nan")))) == "Value(data=nan, grad=0.0)"


@ways
def test_what_is_shared_stays_shared(anew):
    x = Value(3.0)
    a, b = x * 2, x * 3
    c = a + b
    for roots in ([c, a, b, x], [x, b, a, c], [a, c, x, b], [a, b]):
        assert description(anew(roots)) == description(roots)
        assert description(anew(tuple(roots))) == description(roots)
    made = anew({"b": b, "c": c, "list": [x, x, a]})
    assert description([made["b"], made["c"], *made["list"]]) == description([b, c, x, x, a])
    made_x, made_c = anew([x, c])
    made_c.backward()
    assert (made_x.grad, x.grad) == (5.0, 0.0)


@ways
def test_roots_in_any_order(anew):
    x, w = Value(2.0), Value(3.0)
    nodes = [x, w, x * w]
    for _ in range(8):
        nodes.append(nodes[-1] * nodes[-3] + nodes[-2])
    for seed in range(20):
        roots = random.Random(seed).sample(nodes, 6)
        assert description(anew(roots)) == description(roots)


@ways
def test_within_other_objects(anew):
    class_of = {"model": {"w": [Value(1.0), Value(2.0)], "steps": 3}}
    made = anew(class_of)
    assert [v.data for v in made["model"]["w"]] == [1.0, 2.0]
    assert made["model"]["steps"] == 3


def test_a_shallow_copy_shares_its_parents():
    x = Value(3.0)
    y = x * x
    y.backward()
    made = copy.copy(y)
    assert made is not y
    assert (made.data, made.grad, made.op, made.parents) == (9.0, 1.0, "mul", (x, x))
    assert made.parents[0] is x
    made.backward()
    assert x.grad == 12.0
    leaf = copy.copy(x)
    assert (leaf.data, leaf.grad, leaf.requires_grad) == (3.0, 12.0, True)
    leaf.data = 5.0
    assert x.data == 3.0
    many = copy.copy(pygrad.sum([x, 1.0, x]))
    assert (many.op, many.parents, many.data) == ("sum", (x, x), 7.0)
    custom = copy.copy(logistic(x))
    assert (custom.op, custom.parents) == ("logistic", (x,))


@ways
def test_a_copy_is_independent(anew):
    x = Value(3.0)
    y = x * x
    made = anew(y)
    made.parents[0].data = 100.0
    y.backward()
    assert (x.data, x.grad, made.parents[0].grad) == (3.0, 6.0, 0.0)


@ways
def test_second_derivatives_of_a_copy(anew):
    made = anew(Value(2.0) ** 3)
    made.backward(create_graph=True)
    slope = made.parents[0].grad
    made.parents[0].zero_grad()
    slope.backward()
    assert made.parents[0].grad == 12.0


@ways
def test_after_create_graph(anew):
    x = Value(2.0)
    y = x**3
    y.backward(create_graph=True)
    made = anew(y)
    assert (made.data, float(made.parents[0].grad)) == (8.0, 12.0)
    slope = anew(x.grad)
    assert slope.data == 12.0
    leaf = anew(x)
    assert float(leaf.grad) == 12.0


@ways
def test_under_no_grad(anew):
    y = mixed()
    with no_grad():
        made = anew(y)
        assert not pygrad.is_grad_enabled()
    assert description([made]) == description([y])


@ways
def test_a_write_since_forward_stays_noticed(anew):
    x = Value(2.0)
    y = x * x + 1
    x.data = 5.0
    made = anew(y)
    for node in (y, made):
        with pytest.raises(GraphError, match="written after the node was made"):
            node.backward()
    z = copy.copy(y.parents[0])
    with pytest.raises(GraphError, match="written after the node was made"):
        z.backward()


@ways
def test_a_released_graph(anew):
    x = Value(2.0)
    y = x * x
    z = y * 3
    z.backward(retain_graph=False)
    for node in (z, y):
        with pytest.raises(GraphError, match="released"):
            anew(node)
        with pytest.raises(GraphError, match="released"):
            copy.copy(node)
    assert anew(x).data == 2.0


@ways
def test_a_million_deep(anew):
    x = Value(1.0)
    y = x
    for _ in range(1_000_000 if anew in WAYS[:1] + WAYS[5:7] else 100_000):
        y = y * 1.000001
    made = anew(y)
    assert made.data == y.data
    y.backward()
    made.backward()
    node = made
    while node.parents:
        (node,) = node.parents
    assert (node.data, node.grad) == (1.0, x.grad)


@ways
def test_many_operands(anew):
    leaves = [Value(float(k)) for k in range(1000)]
    made = anew(pygrad.sum(leaves) + pygrad.dot(leaves, leaves))
    made.backward()
    assert [v.grad for v in made.parents[0].parents] == [1.0 + 2.0 * k for k in range(1000)]
    assert anew(pygrad.sum([Value(1.0)])).op == "sum"


numbers = st.floats(allow_nan=False, width=32)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "mul", "exp", "sum", "fma", "relu", "custom"]), st.integers(0, 99), st.integers(0, 99)
    ),
    max_size=25,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=4), steps, st.randoms())
def test_drawn_graphs(data, drawn, rng):
    nodes = [Value(x) for x in data]
    for op, i, k in drawn:
        a, b = nodes[i % len(nodes)], nodes[k % len(nodes)]
        nodes.append({
            "add": lambda a=a: a + 1.5, "mul": lambda a=a, b=b: a * b, "exp": lambda a=a: a.exp(),
            "sum": lambda a=a, b=b: pygrad.sum([a, 2.0, b, a]), "fma": lambda a=a, b=b: pygrad.fma(a, 0.5, b),
            "relu": lambda a=a: a.relu(), "custom": lambda a=a: logistic(pygrad.clip(a, -9.0, 9.0)),
        }[op]())  # fmt: skip
    roots = [rng.choice(nodes) for _ in range(4)]
    expected = description(roots)
    assert description(copy.deepcopy(roots)) == expected
    for protocol in (0, 2, 5):
        assert description(dumped(protocol)(roots)) == expected


# ---- closures and custom ops


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


class Step:
    """A picklable closure, as an object."""

    def __init__(self, x, out, more=None):
        self.x, self.out, self.more = x, out, more

    def __call__(self):
        self.x.grad += 6.0 * self.out.grad

    def method(self):
        self()


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


# ---- several dumps


def test_a_pickle_is_of_the_numbers_of_now():
    x = Value(2.0)
    y = x * 3
    kept = pickle.Pickler(io.BytesIO())
    kept.dump(y)
    x.data = 7.0
    x.grad = 1.5
    assert (pickle.loads(pickle.dumps(x)).data, pickle.loads(pickle.dumps(y)).parents[0].data) == (7.0, 7.0)
    assert pickle.loads(pickle.dumps(y)).parents[0].grad == 1.5
    kept = [pickle.Pickler(io.BytesIO()) for _ in range(3)]
    z = x * 4
    for change in (z.backward, x.zero_grad, lambda: setattr(x, "requires_grad", False)):
        for pickler in kept:
            pickler.dump([x, z])
        change()
        made = pickle.loads(pickle.dumps([x, z]))
        assert (made[0].grad, made[0].requires_grad) == (x.grad, x.requires_grad)


def test_two_dumps_of_one_pickler():
    x = Value(2.0)
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dump(x)
    pickler.dump(x * 3)
    file.seek(0)
    unpickler = pickle.Unpickler(file)
    a, b = unpickler.load(), unpickler.load()
    assert b.parents == (a,)
    assert b.parents[0] is a
    pickler.clear_memo()
    file = io.BytesIO()
    pickle.Pickler(file).dump(x)
    assert pickle.loads(file.getvalue()).data == 2.0


def test_two_picklers_at_once():
    x = Value(2.0)
    y = x * 3
    files = [io.BytesIO(), io.BytesIO()]
    picklers = [pickle.Pickler(file) for file in files]
    picklers[0].dump(x)
    picklers[1].dump([y, x])  # must not lean on what only the first file has
    made_y, made_x = pickle.loads(files[1].getvalue())
    assert made_y.parents[0] is made_x
    assert (made_y.data, made_x.data) == (6.0, 2.0)


def test_nodes_that_die_between_dumps():
    for k in range(50):
        x = Value(float(k))
        made = pickle.loads(pickle.dumps([x * 2, x * 3]))
        assert [m.data for m in made] == [2.0 * k, 3.0 * k]
        assert made[0].parents[0] is made[1].parents[0]
        del x


def test_a_failed_dump_leaves_nothing_behind():
    x = Value(2.0)
    for _ in range(20):
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
            pickle.dumps([x, x * 3, lambda: 0])
        made = pickle.loads(pickle.dumps([x * 4, x]))
        assert made[0].parents[0] is made[1]
        assert made[0].data == 8.0


# ---- damage


def bundle():
    """The state of a pickle with every kind of node."""
    y = mixed()
    load, (state, place) = y.__reduce_ex__(2)
    loader, parts, *_ = state.__reduce__()
    assert (load, loader) == (_core.load_node, _core.load_bundle)
    assert description([load(loader(*parts), place)]) == description([y])
    return parts


def loaded(parts):
    """What load_bundle makes of a damaged state: nodes that can be walked, or one of two errors."""
    try:
        nodes = _core.load_bundle(*parts)
    except (ValueError, TypeError):
        return None
    for node in nodes:
        assert isinstance(node, Value)
        assert repr(node)
        if node.requires_grad:
            with contextlib.suppress(GraphError):
                node.backward()
    return nodes


def test_versions():
    parts = bundle()
    with pytest.raises(ValueError, match="this pickle of a Value is of version 2; this pygrad reads version 1"):
        _core.load_bundle(2, *parts[1:])


def test_an_op_that_is_not_known():
    parts = list(bundle())
    parts[1] = ["frobnicate" if name == "mul" else name for name in parts[1]]
    with pytest.raises(ValueError, match="has an op that this pygrad does not know"):
        _core.load_bundle(*parts)


def test_ops_are_found_by_name():
    parts = list(bundle())
    order = list(range(len(parts[1])))
    random.Random(3).shuffle(order)
    names = [parts[1][k] for k in order]
    heads = bytearray(parts[2])
    for i in range(0, len(heads), 4):
        heads[i] = order.index(heads[i])
    made = _core.load_bundle(parts[0], names, bytes(heads), *parts[3:])
    assert description([made[-1]]) == description([_core.load_bundle(*parts)[-1]])


@pytest.mark.parametrize("where", [2, 3, 4, 5])
def test_flipped_bytes(where):
    parts = list(bundle())
    whole = parts[where]
    for i in range(len(whole)):
        for value in (0, 1, 2, 3, 127, 255, whole[i] ^ 1):
            damaged = bytearray(whole)
            damaged[i] = value
            loaded([*parts[:where], bytes(damaged), *parts[where + 1 :]])


@pytest.mark.parametrize("where", [2, 3, 4, 5])
def test_cut_and_lengthened_arrays(where):
    parts = list(bundle())
    for damaged in (
        b"",
        parts[where][:-1],
        parts[where][:8],
        parts[where] + b"\0",
        parts[where] + bytes(64),
        parts[where] * 2,
    ):
        if damaged != parts[where]:
            assert loaded([*parts[:where], damaged, *parts[where + 1 :]]) is None or where == 2
    for wrong in (None, 3, "text", bytearray(parts[where]), [1]):
        with pytest.raises(TypeError):
            _core.load_bundle(*parts[:where], wrong, *parts[where + 1 :])


@pytest.mark.parametrize("count", [-1, 2**31, 2**62, 2**63 - 1, 2**63, 2**70, -(2**70), 1.5, "2", None, True, [2]])
def test_counts_that_cannot_be(count):
    parts = list(bundle())
    for k in range(len(parts[6])):
        counts = [(i, count if j == k else n) for j, (i, n) in enumerate(parts[6])]
        with pytest.raises((ValueError, TypeError)):
            _core.load_bundle(*parts[:6], counts, *parts[7:])


@pytest.mark.parametrize(
    "wrong", [None, 3, [1], [(1,)], [(1, 2, 3)], [([], 1)], ["ab"], [(0, 1)], [(10**6, 1)], {}, ()]
)
@pytest.mark.parametrize("where", [1, 6, 7, 8])
def test_lists_that_cannot_be(where, wrong):
    parts = list(bundle())
    loaded([*parts[:where], wrong, *parts[where + 1 :]])
    if isinstance(wrong, list) and where == 8:
        return  # nothing refers to an outside bundle here
    if wrong == [(10**6, 1)]:
        return
    assert loaded([*parts[:where], wrong, *parts[where + 1 :]]) is None


@pytest.mark.parametrize("wrong", [None, 3, "text", print, Step(1, 2), object()])
def test_custom_ops_that_are_none(wrong):
    parts = list(bundle())
    customs = [(i, wrong) for i, _ in parts[7]]
    with pytest.raises(ValueError, match="is no custom op"):
        _core.load_bundle(*parts[:7], customs, *parts[8:])


def test_a_place_that_is_not_there():
    nodes = _core.load_bundle(*bundle())
    for place in (-1, len(nodes), 2**40):
        with pytest.raises(ValueError, match="this pickle of a Value is damaged: a node is not there"):
            _core.load_node(nodes, place)
    for wrong in (None, (), "text"):
        with pytest.raises(TypeError):
            _core.load_node(wrong, 0)
    with pytest.raises(ValueError, match="a node is not there"):
        _core.load_node(["no node"], 0)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_drawn_damage(data):
    parts = list(bundle())
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.sampled_from([2, 3, 4, 5]))
        damaged = bytearray(parts[where])
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        parts[where] = bytes(damaged)
    loaded(parts)


def test_drawn_states():
    rng = random.Random(5)
    names = bundle()[1]
    for _ in range(3000):
        count, total = rng.randrange(5), rng.randrange(8)
        heads = bytes(rng.choice([rng.randrange(len(names)), rng.randrange(256)]) for _ in range(4 * count))
        kinds = bytes(rng.choice([0, 0, 1, 1, 2, 7]) for _ in range(total))
        operands = b"".join(rng.choice([0, 1, 2, 2**63, 2**64 - 1]).to_bytes(8, "little") for _ in range(total))
        counts = [(rng.randrange(5), rng.choice([0, 1, 2, 2**62, -5])) for _ in range(rng.randrange(3))]
        outside = rng.choice([[], [(_core.load_bundle(*bundle()), 0)], [([], 0)], [(None, 0)], [([1], 0)]])
        loaded((1, names, heads, bytes(16 * count), kinds, operands, counts, [], outside))
