"""The examples of strategies run, and compute what `jax.jit` computes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "pipeline",
        "split_classifier",
        "automatic_pipeline",
        "experts",
        "nested_pipeline",
    ],
)
def test_example(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "strategies" / f"{name}.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 5
