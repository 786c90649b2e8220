"""The examples of strategies run, and compute what `jax.jit` computes."""

from __future__ import annotations

import pathlib
import runpy
import subprocess
import sys
from typing import Any

import pytest

import whale as wh

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "strategies"


def test_examples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], **_: Any) -> None:
        """In this process, where they run on late devices, too."""
        wh.init()
        runpy.run_path(command[1], run_name="__main__")

    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setitem(sys.modules, "training", None)
    monkeypatch.delitem(sys.modules, "training")
    monkeypatch.setattr(subprocess, "run", run)
    runpy.run_path(str(FOLDER / "__main__.py"))
    # Five programs of five steps.
    assert capsys.readouterr().out.count("loss") == 25
