"""The benchmarks at toy size, so that they cannot rot: each program on floats, pygrad and reference, then the table.

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

spec = importlib.util.spec_from_file_location("bench_workloads", BENCH / "workloads.py")
workloads = sys.modules["bench_workloads"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(workloads)


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


def test_table():
    command = [sys.executable, BENCH / "table.py", "--size=toy", "--contestants=floats,pygrad,pygrad-vg,reference"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    head, _, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert head.split() == ["floats", "pygrad", "pygrad-vg", "reference"]
    assert len(rows) == 14
    assert "pygrad " + pygrad.__version__ in done.stdout


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
