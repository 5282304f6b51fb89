"""Compiled functions in pickles and files: what comes back replays the same; what was damaged is an error."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import random
import shutil
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pygrad
from pygrad import CaptureError, Value, grad, hessian, hvp, jacobian, load, saving, value_and_grad

Pair = namedtuple("Pair", ["a", "b"])


@dataclass
class Market:
    spot: Any
    rate: Any


def branching(x, y):
    return x * y if x > y else pygrad.sin(x) - int(2 * y)


@pygrad.compile
def decorated(x):
    return x * x


POINTS = [(1.0, 2.0), (3.0, 2.0), (0.5, 0.25), (-1.0, 0.5)]


def captured() -> Any:
    fast = pygrad.compile(branching)
    for point in POINTS:
        fast(*point)
    return fast


TRANSFORMS = [lambda f: f, grad, value_and_grad, lambda f: jacobian(f, argnums=(0, 1)), hessian,
              lambda f: grad(grad(f, argnums=1)), lambda f: grad(f, argnums=(0, 1))]  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(transform, protocol):
    fast = transform(captured())
    again = pickle.loads(pickle.dumps(fast, protocol))
    for point in [*POINTS, (0.0, 7.5)]:  # the last is a new way
        assert again(*point) == fast(*point)


def test_hvp_and_arrays_pickle():
    fast = hvp(pygrad.compile(lambda x: x[0] ** 2 * x[1], as_values=True).capture(np.ones(2)))
    again = pickle.loads(pickle.dumps(fast))
    assert np.array_equal(again(np.array([1.0, 2.0]), np.ones(2)), fast(np.array([1.0, 2.0]), np.ones(2)))


def test_a_decorated_function_pickles_by_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_values_from_outside_come_along():
    w = Value(3.0)
    fast = grad(pygrad.compile(lambda x: w * x * x))
    assert fast(2.0) == 12.0
    again, other = pickle.loads(pickle.dumps((fast, w)))
    other.data = 5.0
    assert again(2.0) == 20.0 and fast(2.0) == 12.0


def test_a_function_that_does_not_pickle(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    fast = pygrad.compile(lambda x: x * 2.0 if x > 0 else x)
    fast(1.0)
    again = pickle.loads(pickle.dumps(fast))
    assert again(4.0) == 8.0 and grad(again)(4.0) == 2.0
    with pytest.raises(
        CaptureError, match=r"<lambda> could not be pickled, so that only what was captured before can be"
    ):
        again(-1.0)


def test_cloudpickle_helps():
    pytest.importorskip("cloudpickle")
    again = pickle.loads(pickle.dumps(pygrad.compile(lambda x: x * 2.0 if x > 0 else x)))
    assert again(4.0) == 8.0 and again(-1.0) == -1.0


# ---- files


def structured(a, b, n=None, flag=True):
    return {"sum": a[0] + a[1] * b["k"], "all": (a[0], [a[1], 7], "text", None, flag), "n": n}


def test_files(tmp_path):
    path = tmp_path / "f.pygrad"
    fast = captured()
    fast.save(path)
    again = load(path)
    for transform in TRANSFORMS:
        for point in POINTS:
            assert transform(again)(*point) == transform(fast)(*point)
    lanes = np.array(POINTS)
    assert np.array_equal(again.map(lanes[:, 0], lanes[:, 1]), fast.map(lanes[:, 0], lanes[:, 1]))
    with pytest.raises(CaptureError, match="branching was loaded from a file, so that only what was captured before"):
        again(0.0, 7.5)
    with pytest.raises(CaptureError, match="was loaded from a file"):
        again([1.0], 2.0)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_structures_in_files(tmp_path):
    fast = pygrad.compile(structured, static="n")
    arguments = ([1.5, 2.5], {"k": 3.0})
    first, second = fast(*arguments, n=3), fast((1.5, 2.5), {"k": 3.0}, flag=False)
    fast.save(tmp_path / "f")
    again = load(tmp_path / "f")
    assert again(*arguments, n=3) == first and again((1.5, 2.5), {"k": 3.0}, flag=False) == second
    arrays = pygrad.compile(lambda x: [x[0][0] * x[1][1]], as_values=True).capture(np.ones((2, 2)))
    slopes = jacobian(arrays)
    slopes.capture(np.ones((2, 2)))
    slopes.save(tmp_path / "g")
    assert np.array_equal(load(tmp_path / "g")(np.full((2, 2), 3.0)), slopes(np.full((2, 2), 3.0)))


def test_static_arguments_come_back(tmp_path):
    fast = pygrad.compile(lambda x, n: x * (n if isinstance(n, (int, float)) else n[0]), static="n")
    settings = [2]
    assert [fast(2.0, 2.5), fast(2.0, 3), fast(2.0, settings)] == [5.0, 6.0, 4.0]
    settings[0] = 9
    fast.save(tmp_path / "f")
    for again in (load(tmp_path / "f"), pickle.loads(pickle.dumps(fast))):
        assert [again(2.0, 2.5), again(2.0, 3), again(2.0, [2])] == [5.0, 6.0, 4.0]
    with pytest.raises(CaptureError, match="was loaded from a file"):
        load(tmp_path / "f")(2.0, 0.0)


def test_what_a_file_cannot_hold(tmp_path):
    w = Value(2.0)
    cases = [
        (pygrad.compile(lambda m: m.spot * m.rate).capture(Market(1.0, 2.0)), "found Market"),
        (pygrad.compile(lambda p: p.a * p.b).capture(Pair(1.0, 2.0)), "found Pair"),
        (pygrad.compile(lambda x: w * x).capture(1.0), "reads 1 Values from outside at each call"),
        (jacobian(pygrad.compile(lambda x: [x[0]]), sparse=True).capture([1.0]), "sparse or very large Jacobian"),
    ]
    for fast, text in cases:
        with pytest.raises(TypeError, match=text):
            fast.save(tmp_path / "f")
        assert not (tmp_path / "f").exists()


def test_every_byte_flipped_and_every_length(tmp_path):
    fast = pygrad.compile(lambda x, y: pygrad.tanh(x * y) if x > 0 else y)
    fast(1.0, 2.0), fast(-1.0, 2.0)
    path = tmp_path / "f"
    fast.save(path)
    data = path.read_bytes()
    damaged = tmp_path / "damaged"
    for at in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            damaged.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
            with pytest.raises(ValueError, match="cannot be read"):
                load(damaged)
    for length in range(len(data)):
        damaged.write_bytes(data[:length])
        with pytest.raises(ValueError, match="cannot be read"):
            load(damaged)
    damaged.write_bytes(data + b"\0")
    with pytest.raises(ValueError, match="cannot be read"):
        load(damaged)


def signed(header: Any, programs: bytes, version: int = saving.VERSION, length: int | None = None) -> bytes:
    """A file as someone would make it up who knows the format."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    body = saving.MAGIC + version.to_bytes(4, "little") + size.to_bytes(8, "little") + text + programs
    return body + hashlib.blake2b(body, digest_size=saving.DIGEST).digest()


def parts(data: bytes) -> tuple[Any, bytes]:
    start = len(saving.MAGIC) + 12
    end = start + int.from_bytes(data[start - 8 : start], "little")
    return json.loads(data[start:end]), data[end : -saving.DIGEST]


def test_made_up_files(tmp_path):
    """Headers with parts replaced by others, at random: ValueError, or a function that runs."""
    path, made = tmp_path / "f", tmp_path / "made"
    pygrad.compile(structured).capture([1.0, 2.0], {"k": 3.0}).save(path)
    header, programs = parts(path.read_bytes())
    made.write_bytes(signed(header, programs))
    assert load(made)([1.0, 2.0], {"k": 3.0}) == structured([1.0, 2.0], {"k": 3.0})
    junk = [None, True, -1, 0, 1, 2**70, 1e300, "", "x", [], [[]], {}, {"int": "x"}, {"array": [2**40, 2**40]},
            {"list": 1}, {"dict": [[1, 2]]}, {"tuple": [None]}, {"array": [-1]}, {"a": 1, "b": 2}]  # fmt: skip
    rng = random.Random(0)

    def spoilt(x: Any) -> Any:
        if rng.random() < 0.12:
            return rng.choice(junk)
        if isinstance(x, list):
            return [spoilt(item) for item in x if rng.random() > 0.03]
        if isinstance(x, dict):
            return {key: spoilt(item) for key, item in x.items()}
        return x

    refused = 0
    for _ in range(3000):
        made.write_bytes(signed(spoilt(header), programs))
        try:
            again = load(made)
        except ValueError as error:
            assert "cannot be read" in str(error)
            refused += 1
            continue
        with contextlib.suppress(CaptureError):
            again([1.0, 2.0], {"k": 3.0})
    assert refused > 2000


def test_hostile_files(tmp_path):
    path = tmp_path / "f"
    pygrad.compile(branching).capture(1.0, 2.0).save(path)
    header, programs = parts(path.read_bytes())
    nested: Any = 0.0
    for _ in range(5000):
        nested = {"list": [nested]} if len(str(nested)) < 2000 else nested
    cases = [
        b"", b"PK\x03\x04", pickle.dumps(print), signed(header, programs, version=2),
        signed(header, programs, length=2**62),
        signed(b"{", programs), signed(b"[" * 100_000, programs), signed(header, programs[:-1]), signed(header, b""),
        signed(header, programs + b"x"), signed({**header, "structures": [[[nested], [], []]]}, b""),
    ]  # fmt: skip
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(ValueError, match="cannot be read"):
            load(path)
    path.write_bytes(signed(header, programs, version=2))
    with pytest.raises(ValueError, match="it is of version 2; this pygrad reads version 1"):
        load(path)


# ---- C


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
class TestC:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PYGRAD_CACHE", str(tmp_path / "cache"))

    def test_backend(self):
        fast, plain = pygrad.compile(branching, backend="cc"), pygrad.compile(branching)
        for transform in TRANSFORMS:
            ours, theirs = transform(fast), transform(plain)
            for _ in range(2):
                for point in POINTS:
                    assert ours(*point) == theirs(*point)

    def test_a_long_program(self):
        def f(x):
            for k in range(1500):
                x = x * 0.999 + pygrad.sin(x) * (0.001 * k)
            return x

        fast, plain = pygrad.compile(f, backend="cc"), pygrad.compile(f)
        for x in (0.1, 2.5):
            assert value_and_grad(fast)(x) == value_and_grad(plain)(x)

    def test_a_program_that_is_too_long(self, monkeypatch):
        monkeypatch.setattr(pygrad.cc, "MOST_INSTRUCTIONS", 3)
        monkeypatch.setattr(pygrad.cc, "build", None)
        fast = pygrad.compile(lambda x: pygrad.sin(x * x + 1.0) * x, backend="cc")
        assert not pygrad.cc.attach(fast.capture(1.0).program)
        assert fast(2.0) == fast.function(2.0)

    def test_it_pickles(self):
        again = pickle.loads(pickle.dumps(pygrad.compile(branching, backend="cc").capture(1.0, 2.0)))
        assert again.backend == "cc" and [again(*point) for point in POINTS] == [captured()(*point) for point in POINTS]

    def test_to_c(self, tmp_path):
        path = tmp_path / "model.c"
        fast = captured()
        value_and_grad(fast, argnums=(0, 1)).to_c(path, 3.0, 2.0, name="greeks")
        run = pygrad.cc.build(path.read_text(), "greeks")
        assert run([5.0, 4.0]) == [20.0, 4.0, 5.0] and run([1.0, 2.0]) == 0
        fast.to_c(path)
        assert "int branching(const double *inputs, double *outputs)" in path.read_text()
        with pytest.raises(ValueError, match="to_c: the name 'double'"):
            fast.to_c(path, name="double")


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(pygrad.CompilerError, match="no C compiler was found; looked for"):
        pygrad.compile(branching, backend="cc")
    with pytest.raises(ValueError, match="backend must be None, for the interpreter, or 'cc', found 'llvm'"):
        pygrad.compile(branching, backend="llvm")
