"""docs/paper.md is what scripts/paper --quick writes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_page_is_what_is_simulated() -> None:
    folders = (ROOT / "python", ROOT / "benchmarks")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, folders))
    }
    result = subprocess.run(
        [sys.executable, "-m", "paper", "--quick", "--check"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
