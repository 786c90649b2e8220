"""`python -m whale`: what it prints and starts, and how launching fails.

Judged by what real processes print and by their exit status: of scripts and
modules that are launched, that never join, raise, or are killed.
"""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest

import whale as wh
from whale import __main__ as commands

ROOT = pathlib.Path(__file__).parents[2]
LIMIT = 120


def run(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )


def test_info():
    text = commands.info()
    for part in (wh.__version__, "Whale works with", "cache", "NCCL"):
        assert part in text


def test_explain(tmp_path, capfd):
    lowered = wh.jit(lambda x: jnp.sin(x)).lower(
        jax.ShapeDtypeStruct((8,), "f")
    )
    path = tmp_path / "step.mlir"
    path.write_text(lowered.as_text())
    assert commands.main(["explain", str(path), "--cluster=2"]) == 0
    assert capfd.readouterr().out
    assert list(tmp_path.iterdir()) == [path]
    assert commands.main(["explain", str(path), "--cluster=x"]) == 1
    assert "error: " in capfd.readouterr().err


def test_unknown_commands(capsys):
    for words in (["fly"], ["info", "more"]):
        with pytest.raises(SystemExit) as ended:
            commands.main(words)
        assert ended.value.code == 2
    assert "info takes no 'more'" in capsys.readouterr().err


def test_no_command(capsys):
    assert commands.main([]) == 2
    assert "python -m whale info" in capsys.readouterr().out


def test_a_module(tmp_path):
    (tmp_path / "train.py").write_text(
        textwrap.dedent(
            """
            import sys
            import whale as wh
            wh.init_distributed()
            if wh.process_index() == 0:
                print(__name__, wh.process_count(), sys.argv[1:])
            """
        )
    )
    words = ("launch", "--nprocs=2", "-m", "train", "--steps", "3")
    result = run(tmp_path, "whale", *words)
    assert result.stdout == "__main__ 2 ['--steps', '3']\n", result.stderr
    assert result.returncode == 0
    result = run(tmp_path, "whale.launch", "--nprocs=2")
    assert "error: give a script, or -m and a module" in result.stderr
    result = run(tmp_path, "whale.launch", "--nprocs=2", "-m", "none.here")
    assert result.returncode == 2
    assert "error: -m: there is no module 'none.here'" in result.stderr


def test_a_script_that_never_joins(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text("print('alone')")
    result = run(tmp_path, "whale", "launch", "--nprocs=2", str(script))
    assert result.returncode == 1
    assert result.stderr.startswith("error: none of the processes has joined")
    assert "call wh.init_distributed()" in result.stderr
    # One process has nobody to join.
    result = run(tmp_path, "whale", "launch", "--nprocs=1", str(script))
    assert (result.returncode, result.stderr) == (0, "")


BEGIN = """
import os, sys
import whale as wh
wh.init_distributed()
def deep(n):
    if n:
        return deep(n - 1)
    raise ValueError("in the depth")
"""


@pytest.mark.parametrize("log", [(), ("--log-dir=log",)])
def test_the_traceback_of_another_process(tmp_path, log):
    script = tmp_path / "fails.py"
    script.write_text(BEGIN + "if wh.process_index() == 1:\n    deep(2)\n")
    result = run(tmp_path, "whale", "launch", "--nprocs=2", *log, str(script))
    assert result.returncode == 1
    assert re.search(
        r"^process 1 \(host \S+, pid \d+\):\nTraceback \(most recent call "
        r"last\):\n(  .*\n)+ValueError: in the depth\n",
        result.stderr,
        re.MULTILINE,
    ), result.stderr
    assert "deep(n - 1)" in result.stderr
    assert re.search(
        # The first process may still be joining, and raise that itself.
        r"^(error|\S+Error): (process 1 .*: )?ValueError: in the depth$",
        result.stderr,
        re.MULTILINE,
    ), result.stderr


@pytest.mark.parametrize(
    ("code", "status", "last"),
    [
        ("'no such rate'", 1, ", and has printed last: no such rate"),
        ("3", 3, ""),
    ],
)
def test_an_exit_that_others_miss(tmp_path, code, status, last):
    """They can only say that it has ended."""
    script = tmp_path / "exits.py"
    script.write_text(
        BEGIN
        + f"if wh.process_index() == 1:\n    sys.exit({code})\n"
        + "wh.jit(lambda x: x, cluster=2)(1.0)\n"
    )
    result = run(tmp_path, "whale", "launch", "--nprocs=2", str(script))
    assert result.returncode == status
    assert re.search(
        r"RuntimeError: process 1 \(.*\) has ended, where process 0 ",
        result.stderr,
    ), result.stderr
    assert re.search(
        rf"^note: process 1 \(.*\) has ended with status {status}{last}$",
        result.stderr,
        re.MULTILINE,
    ), result.stderr
