"""Programs as bytes: round trips; bytes that were changed, cut short or made up are a ValueError, never a program.

PYGRAD_GRAPHS sets how many graphs are drawn (default 4,000, of which a tenth). tests/c does the same to the plain C.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import struct

import pytest
from conftest import CORE, bits
from random_graphs import build, plan

import pygrad
from pygrad import Value, _core

GRAPHS = int(os.environ.get("PYGRAD_GRAPHS", "4000")) // 10
from_bytes = _core.Program.from_bytes
SUM_AT, PROGRAMS_AT, HEAD, NAME = 24, 32, 40, 24  # Note [Format] in csrc/serialize.h
INPUTS, INSTRUCTIONS, CONSTANTS, OPERANDS, OUTPUTS, GUARDS, REGIONS = range(7)


def small() -> bytes:
    """Inputs, a constant, a row, a dot, a sum, outputs and a guard."""
    x, y = Value(1.5), Value(2.5)
    outputs = [(x * y + 3.0).tanh(), pygrad.dot([x, y], [y, x]), pygrad.sum([x, y, x])]
    guards = [(pygrad.less(x, y), 1.0)]
    return _core.program_of([x, y], outputs, guards).to_bytes()


def signed(data: bytearray) -> bytes:
    """The same with the checksum that belongs to it: as made up by someone who knows the format."""
    total = 0xCBF29CE484222325
    for byte in data[:SUM_AT] + data[PROGRAMS_AT:]:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    data[SUM_AT:PROGRAMS_AT] = struct.pack("<Q", total)
    return bytes(data)


def counts_at(data: bytes | bytearray) -> int:
    """Where the first program begins: with how many it has of each thing."""
    names: int = struct.unpack_from("<I", data, 12)[0]
    return HEAD + NAME * names


def changed(at: int, text: str, *numbers: int) -> bytes:
    data = bytearray(small())
    struct.pack_into("<" + text, data, at, *numbers)
    return signed(data)


def message_of(data: bytes) -> str:
    with pytest.raises(ValueError) as caught:
        from_bytes(data)
    return str(caught.value)


# ---- round trips


def test_random_graphs_and_their_gradients():
    compared = 0
    for seed in range(GRAPHS):
        steps = plan(seed)
        nodes = build(steps, CORE)
        leaves = [nodes[k] for k, step in enumerate(steps) if step[0] == "leaf" and step[2]]
        if isinstance(nodes[-1], float) or not nodes[-1].requires_grad:
            continue
        program = _core.program_of(leaves, [nodes[-1]])
        data = program.to_bytes()
        loaded = from_bytes(data)
        assert loaded.to_bytes() == data and str(loaded) == str(program) and loaded.counts == program.counts
        point, wrt = [leaf.data for leaf in leaves], list(range(len(leaves)))
        for one, other in ((program, loaded), (program.gradient(wrt, 0), loaded.gradient(wrt, 0))):
            assert [*map(bits, one.run(point))] == [*map(bits, other.run(point))], seed
        assert from_bytes(program.gradient(wrt, 0).to_bytes()).run(point) is not None
        compared += 1
    assert compared > 0.8 * GRAPHS


def test_the_raw_program_is_written():
    """What is dead to the outputs is kept, and constants to the last bit of a nan."""
    payload = struct.unpack("<d", struct.pack("<Q", 0xFFF8DEADBEEF0001))[0]
    x = Value(1.0)
    program = _core.program_of([x], [x * 2.0, payload, -0.0])
    data = program.select([2]).to_bytes()
    assert from_bytes(data).to_bytes() == data
    assert struct.pack("<d", payload) in data
    assert data.count(b"mul") == 1


def test_guards_come_back():
    program = from_bytes(small())
    assert program.counts == (2, 3, 1)
    assert isinstance(program.run([1.0, 2.0]), list) and program.run([2.0, 1.0]) == (0, 0.0)


def test_an_empty_program():
    program = _core.program_of([], [])
    assert from_bytes(program.to_bytes()).run([]) == []


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    program = from_bytes(small())
    again = pickle.loads(pickle.dumps(program, protocol))
    assert type(again) is _core.Program and again.to_bytes() == small()
    assert again.run([1.0, 2.0]) == program.run([1.0, 2.0])


def test_copies():
    program = from_bytes(small())
    assert copy.copy(program).to_bytes() == copy.deepcopy([program])[0].to_bytes() == small()


def test_what_bytes_may_be():
    assert from_bytes(bytearray(small())).to_bytes() == from_bytes(memoryview(small())).to_bytes() == small()
    for other in ("text", 3):
        with pytest.raises((TypeError, BufferError)):
            from_bytes(other)
    with pytest.raises(TypeError):
        from_bytes(None)


def test_the_format_stays():
    """Bytes that version 2 wrote are read by every later pygrad: they are not to be made anew when this fails."""
    data = bytes.fromhex(
        "89707967726164 0a 02000000 03000000 e400000000000000 8f41a5d1bb3037be 0100000000000000"
        "696e707574" + "00" * 19 + "636f6e7374616e74" + "00" * 16 + "6d756c" + "00" * 21 +
        "0100000000000000 0300000000000000 0100000000000000 0000000000000000 0100000000000000" + "00" * 16 +
        "00000000 00000000 00000000 00000000  01000000 00000000 00000000 00000000  02000000 00000000 01000000 00000000"
        "0000000000000440 02000000"
    )  # fmt: skip
    assert from_bytes(data).run([3.0]) == [7.5]
    assert from_bytes(data).to_bytes() == data


# ---- bytes that are wrong


def test_every_changed_byte_is_noticed():
    data = small()
    for at in range(len(data)):
        for change in (1, 0x80, 0xFF, random.Random(at).randrange(1, 256)):
            wrong = bytearray(data)
            wrong[at] ^= change
            assert message_of(bytes(wrong)).startswith("from_bytes: ")


def test_every_truncation_is_noticed():
    data = small()
    for length in range(len(data)):
        message_of(data[:length])
    message_of(data + b"\0")


def test_messages():
    assert message_of(b"") == message_of(b"PK\3\4 a zip file") == "from_bytes: is not a program that pygrad wrote"
    assert message_of(small()[:-1]) == f"from_bytes: has {len(small()) - 1} bytes, needs {len(small())}"
    assert message_of(small()[:39]) == "from_bytes: is cut short: 39 bytes, and no program has less than 40"
    assert message_of(changed(8, "I", 7)) == "from_bytes: has version 7 of the format; this pygrad reads version 2"
    assert message_of(small()[:-1] + b"\1") == "from_bytes: was damaged: its checksum differs"
    newer = bytearray(small().replace(b"tanh\0\0\0", b"tanh_of"))
    assert (
        message_of(signed(newer))
        == "from_bytes: uses the op 'tanh_of', which is not known here: a newer pygrad wrote it"
    )


def test_an_alias_is_read():
    """A row that is renamed leaves its old name as an alias: programs that were written before go on working."""
    renamed = signed(bytearray(small().replace(b"mul\0\0\0\0\0", b"multiply")))
    assert from_bytes(renamed).to_bytes() == small()


@pytest.mark.parametrize("name", [b"leaf", b"closure", b"released", b"Tanh", b"t\xe9nh", b"tan\n", b"", b"x" * 24])
def test_names_that_are_no_op(name):
    data = bytearray(small())
    at = data.index(b"tanh")
    data[at : at + NAME] = name.ljust(NAME, b"\0")
    assert "op" in message_of(signed(data))


@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize("count", [2**60, 2**64 - 1, 2**63, 2**32, 2**32 - 1, 2**32 - 2, 2**28, 1000, 0])
def test_hostile_counts(which, count):
    if which == INPUTS and count == 0:
        assert "is not a program" in message_of(changed(counts_at(small()), "Q", 0))
    elif which != REGIONS or count:
        message_of(changed(counts_at(small()) + 8 * which, "Q", count))


@pytest.mark.parametrize("at", [12, 16, PROGRAMS_AT])
def test_hostile_sizes(at):
    for number in (0, 2, 2**31, 2**32 - 1):
        message_of(changed(at, "I", number))


def test_hostile_instructions():
    """Every field of every instruction, operand, output and guard, set to what it cannot be."""
    data = small()
    counts = struct.unpack_from("<7Q", data, counts_at(data))
    start = counts_at(data) + 8 * len(counts)
    rejected = 0
    for at in range(start, len(data) - 3, 4):
        for number in (2**32 - 1, 2**31, counts[INSTRUCTIONS], 0, 1, 2):
            wrong = changed(at, "I", number)
            try:
                program = from_bytes(wrong)
            except ValueError:
                rejected += 1
            else:  # a field that does not matter, or another program: it runs
                program.run([1.0] * program.counts[0])
                assert "v0" in str(program)
    assert rejected > 100


def test_overlapping_lists_cannot_multiply():
    """Many sums over one long list would be a small file of a huge program."""
    data = bytearray(small())
    at = data.index(b"sum\0") - HEAD
    number = at // NAME
    counts = struct.unpack_from("<7Q", data, counts_at(data))
    start = counts_at(data) + 8 * len(counts)
    places = [start + 16 * i for i in range(counts[INSTRUCTIONS])]
    (place,) = [p for p in places if struct.unpack_from("<I", data, p)[0] == number]
    struct.pack_into("<II", data, place + 4, 0, 7)
    assert message_of(signed(data)) == "from_bytes: has an operand list in a wrong place"


def test_random_bytes_with_a_right_checksum():
    """Whatever passes is a program that runs."""
    rng = random.Random(0)
    data = small()
    passed = 0
    for _ in range(20000):
        wrong = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            wrong[rng.randrange(PROGRAMS_AT, len(wrong))] = rng.choice([0, 1, 2, 3, 5, 9, 255, rng.randrange(256)])
        struct.pack_into("<Q", wrong, 16, len(wrong))
        try:
            program = from_bytes(signed(wrong))
        except ValueError:
            continue
        passed += 1
        program.run([1.0] * program.counts[0])
    assert 0 < passed < 20000
