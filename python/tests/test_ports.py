"""Scripts of examples/ports: one in JAX, and the same one with Whale.

Each pair must print the same numbers, go on with each other's checkpoints, and
differ in as few lines as its page in docs/tutorials says.
"""

from __future__ import annotations

import difflib
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTS = ROOT / "examples" / "ports"
MOST_CHANGED_LINES = 6
LIBRARIES = ["equinox", "haiku", "keras", "linen", "nnx"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_few_lines_change(library: str) -> None:
    before, after = (
        (PORTS / f"{library}_{name}.py").read_text().splitlines()
        for name in ("jax", "whale")
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    assert sum(line[0] == "+" for line in lines) <= MOST_CHANGED_LINES
    page = (ROOT / "docs" / "tutorials" / f"port-{library}.md").read_text()
    (shown,) = re.findall(r"```diff\n(.*?)\n```", page, re.DOTALL)
    assert shown == "\n".join(lines)
    for name in ("jax", "whale"):
        script = f"{library}_{name}.py"
        text = (PORTS / script).read_text()
        assert f'```python title="{script}"\n{text}```\n' in page


def train(
    script: str, folder: pathlib.Path, epochs: int = 3
) -> list[list[float]]:
    """The numbers of each epoch that a script prints."""
    result = subprocess.run(
        [sys.executable, PORTS / script, folder, str(epochs)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert not result.returncode, result.stderr
    return [
        [float(number) for number in re.findall(r"\d+\.?\d*", line)]
        for line in result.stdout.splitlines()
        if line.startswith("epoch")
    ]


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES)
def test_same_training(library: str, tmp_path: pathlib.Path) -> None:
    jaxs = train(f"{library}_jax.py", tmp_path / "jax")
    whales = train(f"{library}_whale.py", tmp_path / "whale")
    assert len(jaxs) == 3
    # What one began, the other one goes on with.
    both = train(f"{library}_whale.py", tmp_path / "both", 1)
    both += train(f"{library}_jax.py", tmp_path / "both", 2)
    both += train(f"{library}_whale.py", tmp_path / "both", 3)
    for mine, theirs, other in zip(whales, both, jaxs, strict=True):
        assert mine == pytest.approx(other, abs=2e-3)
        assert theirs == pytest.approx(other, abs=2e-3)
    # Nothing is left to do for one that resumes.
    assert not train(f"{library}_whale.py", tmp_path / "jax")
