"""Pickles: several dumps by one pickler, by two at once, after a failure; and damage, which is noticed.

Next: copies.py, which has the ways to copy and to compare.
"""

import contextlib
import io
import pickle
import random

import pytest
from copies import Step, description, mixed
from hypothesis import given, settings
from hypothesis import strategies as st

from pygrad import GraphError, Value, _core

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
