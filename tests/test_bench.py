"""The benchmarks at toy size, so that they cannot rot: each program on floats, pygrad and reference, then the tables.

The programs and their sizes are in bench/workloads.py.
"""

import importlib.util
import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

import pygrad
from pygrad import bench as quick
from pygrad import reference

BENCH = Path(__file__).parent.parent / "bench"
OPS = {kind: SimpleNamespace(exp=kind.exp, tanh=kind.tanh, relu=kind.relu) for kind in (pygrad.Value, reference.Value)}


def loaded(name):
    """A module of bench/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


workloads, rolled = loaded("workloads"), loaded("rolled")


def value_and_gradient(kind, workload):
    leaves = [kind(number) for number in workload.numbers]
    y = workload.program(leaves, OPS[kind])
    y.backward()
    return y.data, [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_workload(name):
    workload = workloads.WORKLOADS[name]("toy")
    value, gradient = value_and_gradient(pygrad.Value, workload)
    assert value == pytest.approx(workload.program(workload.numbers, workloads.FLOAT_OPS), rel=1e-14)
    assert (value, gradient) == value_and_gradient(reference.Value, workload)
    assert any(gradient)


@pytest.mark.parametrize("name", ("path", "lorenz"))
def test_rolled(name):
    workload = workloads.WORKLOADS[name]("toy")
    loop = getattr(rolled, name)(workload.steps)
    value = loop.unrolled(workload.numbers, workload.constants, workloads.FLOAT_OPS)
    assert value == pytest.approx(workload.program(workload.numbers, workloads.FLOAT_OPS), rel=1e-14)


def test_table():
    command = [sys.executable, BENCH / "table.py", "--size=toy", "--contestants=floats,pygrad,pygrad-vg,reference"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    head, _, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert head.split() == ["floats", "pygrad", "pygrad-vg", "reference"]
    assert len(rows) == 14
    assert "pygrad " + pygrad.__version__ in done.stdout


def test_program_tables():
    names = "pygrad-compiled,pygrad-compiled-array,pygrad-map,pygrad-map-2,numpy-hand"
    command = [sys.executable, BENCH / "table.py", "--programs", "--size=toy", f"--contestants={names}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    tables = [part.splitlines() for part in done.stdout.split("\n\n")[:10]]
    assert [len(lines) - 2 for lines in tables] == [4, 4, 4, 6, 6, 6, 2, 6, 2, 4]
    assert tables[0][0].split()[-2:] == names.split(",")[:2]
    assert tables[3][0].split()[-3:] == names.split(",")[2:]


def test_quick_figures(monkeypatch):
    monkeypatch.setattr(quick, "NODES", 1_000)
    monkeypatch.setattr(quick, "REFERENCE_NODES", 100)
    monkeypatch.setattr(quick, "SECONDS", 0.0)
    text = io.StringIO()
    with redirect_stdout(text):
        quick.main()
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("x" in line.split()[-1] for line in lines[2:8]) == 6
