"""What a program costs pygrad by its length: to capture, to call, an instruction in one lane and in a block of lanes.

Lengths are what is asked for; tables divide by the instructions that the program has.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from workloads import moons, rosenbrock_of

import pygrad

OPS = SimpleNamespace(exp=pygrad.exp, tanh=pygrad.tanh, relu=pygrad.relu)
LENGTHS = {
    "capture": ((1_000, 10_000), (1_000, 10_000, 100_000, 1_000_000)),
    "one lane": ((100, 1_000), (100, 1_000, 10_000, 100_000)),
    "lanes": ((100,), (100, 1_000, 2_500)),
}
LANES = {"toy": 100, "full": 10_000}


def lengths(table):
    """One test a length: those of the other size are left out when it runs."""
    return pytest.mark.parametrize("length", LENGTHS[table][1])


def skip_unless_asked(table, length, size):
    if length not in LENGTHS[table][size == "full"]:
        pytest.skip(f"{length} instructions: at the full size")


def rosenbrock(length):
    """Value and gradient: 16 instructions a term."""
    workload = rosenbrock_of(max(2, round(length / 16)))
    return lambda x: workload.program(x, OPS), workload.numbers, pygrad.value_and_grad


def training(length):
    """Value and gradient of the two-moons step, of a smaller net where the whole is too long."""
    hidden, count = {100: (1, 1), 1_000: (4, 2), 10_000: (16, 4), 100_000: (16, 49)}[length]
    workload = moons("full", hidden, count)
    return lambda x: workload.program(x, OPS), workload.numbers, pygrad.value_and_grad


def serial(length):
    """y * c + d, each needing the one before; y on either side in turn, and four inputs, so that nothing folds."""

    def program(x):
        y, *numbers = x
        pairs = itertools.cycle([(numbers[0], numbers[1]), (numbers[2], numbers[3])])
        for i, (c, d) in zip(range(length // 2), pairs, strict=False):
            y = y * c + d if i % 2 else d + c * y
        return y

    return program, [0.7, 0.9, 0.1, -0.8, 0.2], lambda function: function


def empty(numbers, transform):
    """A program without instructions that takes and gives as many numbers: what a call costs alone."""
    if transform is pygrad.value_and_grad:
        return lambda x: (x[0], np.array(x)), numbers, lambda function: function
    return lambda x: x[0], numbers, transform


PROGRAMS = {"Rosenbrock": rosenbrock, "two-moons step": training, "serial chain": serial}


@lengths("capture")
def test_capture(benchmark, size, length):
    """All until the first value and gradient: the run on nodes, passes, differentiation, plan."""
    skip_unless_asked("capture", length, size)
    made = []

    def run():
        program, numbers, transform = rosenbrock(length)
        function = transform(pygrad.compile(program))
        function(numbers)
        made.append(function)

    benchmark.pedantic(run, rounds=3 if size == "full" else 1, setup=made.clear)
    benchmark.extra_info.update(
        table="capture", row=f"{length:,}", contestant="pygrad-compiled", instructions=made[0].stats()["instructions"]
    )


@lengths("one lane")
@pytest.mark.parametrize("what", ("lists", "arrays", "empty"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_lane(replay, name, what, size, length):
    """With lists of numbers in and out, with arrays, and with arrays and nothing to do."""
    skip_unless_asked("one lane", length, size)
    program, numbers, transform = PROGRAMS[name](length)
    count = transform(pygrad.compile(program)).capture(numbers).stats()["instructions"]
    expected = transform(program)(numbers)  # eager: the serial chain, which has no transform, on floats
    if what == "empty":
        program, numbers, transform = empty(numbers, transform)
    x = numbers if what == "lists" else np.array(numbers)
    function = transform(pygrad.compile(program, as_values=what != "lists"))

    def check(found):
        if isinstance(found, tuple):
            found, same = np.hstack(found), np.hstack(expected)
        else:
            same = expected
        assert what == "empty" or np.array_equal(found, same)

    info = {"instructions": count, "what": what, "length": length}
    replay("one lane", f"{name} {length}", "pygrad-compiled", lambda: lambda: function(x), check, **info)


@pytest.mark.parametrize("threads", (1, 2))
@lengths("lanes")
def test_lanes(replay, benchmark, size, length, threads):
    """Products and sums of what is there, and one exp in ten instructions."""
    skip_unless_asked("lanes", length, size)

    def program(x):
        window = list(x)
        for i in range(length // 10):
            a, b, c, d = (window[(i + k) % 8] for k in (0, 3, 5, 7))
            e = pygrad.exp((a - b) * 0.5)
            window[i % 8] = (e * c - d) * 0.3 + a * 0.2 - b * 0.1
        return pygrad.sum(window)

    function = pygrad.compile(program)
    x = np.asfortranarray(np.random.default_rng(1).uniform(-1.0, 1.0, (LANES[size], 8)))
    count = function.capture(x[0].tolist()).stats()["instructions"]

    def check(found):
        assert np.abs(found[:5] - [function(row.tolist()) for row in x[:5]]).max() < 1e-8

    info = {"instructions": count, "lanes": LANES[size], "length": length, "threads": threads}
    row = f"{length} in {threads}"
    replay("lanes", row, "pygrad-map", lambda: lambda: function.map(x, threads=threads), check, **info)


@pytest.mark.parametrize("what", ("one float", "value and gradient of a float", "three floats", "a list of three"))
def test_call(replay, benchmark, what):
    """A program of five instructions."""
    functions = {
        "one float": (lambda x: pygrad.tanh(x * 2.0 + 1.0) * x - 3.0, (0.3,)),
        "value and gradient of a float": (lambda x: (x * 2.0 + 1.0) * x, (0.3,)),
        "three floats": (lambda x, y, z: (x * y + z) * x - y * z, (0.3, 0.4, 0.5)),
        "a list of three": (lambda v: (v[0] * v[1] + v[2]) * v[0] - v[1] * v[2], ([0.3, 0.4, 0.5],)),
    }
    f, arguments = functions[what]
    function = pygrad.compile(f)
    if what.startswith("value"):
        function = pygrad.value_and_grad(function)
    expected = function.eager(*arguments)
    expected = expected.data if isinstance(expected, pygrad.Value) else expected

    def check(found):
        assert found == expected

    count = function.capture(*arguments).stats()["instructions"]
    run = (lambda: function(0.3)) if len(arguments) == 1 and arguments[0] == 0.3 else (lambda: function(*arguments))
    replay("call", what, "pygrad-compiled", lambda: run, check, instructions=count)
