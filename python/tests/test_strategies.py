"""The examples of strategies run, and compute what `jax.jit` computes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_examples() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "strategies")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # Five programs of five steps.
    assert done.stdout.count("loss") == 25
