"""Arenas are hardly larger than what is in use of them at once."""

from __future__ import annotations

import importlib
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name", ["gpt-split-4", "lstm", "convnet-4", "moe-4", "classifier"]
)
def test_arena_of_a_benchmark(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cases = importlib.import_module("cases")
    worker = importlib.import_module("worker")
    (case,) = (case for case in cases.CASES if case.name == name)
    whale = worker.Whale(case)
    whale.compile()
    whale.step.save(tmp_path)
    assert check(tmp_path) == ""

    # A larger one is refused.
    manifest = tmp_path / "manifest.json"
    text, count = re.subn(
        r'"arena_bytes": (\d+)',
        lambda match: f'"arena_bytes": {int(match[1]) * 26 // 25}',
        manifest.read_text(),
    )
    assert count == 1
    manifest.write_text(text)
    assert "are in use at once" in check(tmp_path)


def check(program: pathlib.Path) -> str:
    """What is wrong with a program."""
    test = ROOT / "build" / "bin" / "whale-program-test"
    return subprocess.run(
        [test, program], capture_output=True, text=True
    ).stderr
