"""One test body over both engines: `engine` is the C core, then the pure-Python reference."""

from __future__ import annotations

import signal
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import pygrad
from pygrad import _core, reference

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer")

CORE = SimpleNamespace(
    name="core",
    Value=pygrad.Value,
    sum=pygrad.sum,
    dot=pygrad.dot,
    gradients=_core.gradients,
    gradients_graph=_core.gradients_graph,
    function=lambda name: getattr(pygrad.functions, name),
)
REFERENCE = SimpleNamespace(
    name="reference",
    Value=reference.Value,
    sum=reference.sum,
    dot=reference.dot,
    gradients=reference.gradients,
    gradients_graph=lambda y, wrt: reference.gradients(y, wrt, create_graph=True),
    function=lambda name: getattr(reference, name),
)


@pytest.fixture(params=[CORE, REFERENCE], ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


def bits(x: float) -> bytes:
    """A float's bits, all nans alike: what bit-equality compares."""
    return b"nan" if x != x else struct.pack("<d", x)


@pytest.fixture
def same_bits() -> Callable[[float, float], bool]:
    return lambda a, b: bits(a) == bits(b)
