"""The command line, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pygrad import ops, tour
from pygrad.__main__ import main


def run(*arguments: str) -> str:
    ran = subprocess.run([sys.executable, "-m", "pygrad", *arguments], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout


def test_tour_as_a_user_runs_it():
    text = run()
    assert "dy/dw = +1.26947917" in text and text.rstrip().endswith("times)")


def test_tour(capsys):
    assert main(["tour"]) == 0
    text = capsys.readouterr().out
    for part in ("y     = -0.6043677", "dy/dw = +1.26947917", "tanh(add): d/da = 1 - y * y", "agrees to the last bit",
                 "epoch  60/60", "held-back plants", "nodes a second"):  # fmt: skip
        assert part in text
    assert max(map(len, text.splitlines())) <= 110
    losses = [float(line.split()[-1]) for line in text.splitlines() if line.startswith("epoch")]
    assert losses == sorted(losses, reverse=True)


def test_ops(capsys):
    assert main(["ops"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ops.TABLE)
    assert main(["ops", "arctan2"]) == 0
    assert "gradient 0 at the origin" in capsys.readouterr().out
    assert main(["ops", "nosuch"]) == 2
    assert "no op is called nosuch" in capsys.readouterr().err


def test_info(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "regions of 2 MiB" in text
    assert "64 bytes" in text and "-ffp-contract=off" in text


def test_the_bar_redraws_itself_on_a_terminal():
    written = []
    bar = tour.Progress(4, 60, written.append)
    bar.live = True
    bar.show(2, "loss 1.000", False)
    bar.close()
    assert written == ["\repoch   2/4 [" + "#" * 16 + "." * 16 + "] loss 1.000", "\n"]


def test_bench(capsys):
    assert main(["bench"]) == 0
    assert "floats" in capsys.readouterr().out


def test_an_unknown_command():
    with pytest.raises(SystemExit):
        main(["nosuch"])


def test_a_closed_pipe():
    command = f"{sys.executable} -m pygrad ops | head -n 1"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.returncode == 0 and "Traceback" not in ran.stderr
