"""Completion knows each option that `--help` of a tool lists."""

from __future__ import annotations

import re
import subprocess

import pytest
from jobs import BIN, HANG, ROOT


def completed(tool: str, *words: str) -> list[str]:
    """What is offered for the last word."""
    given = " ".join(f"'{word}'" for word in (tool, *words))
    done = subprocess.run(
        [
            *("bash", "-c"),
            f"source {ROOT}/tools/completion.bash; COMP_WORDS=({given}); "
            f"COMP_CWORD={len(words)}; _whale_tool {BIN}/{tool} "
            f"'{words[-1]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        ],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "words",
    [
        ("whale-compile",),
        ("whale-run",),
        ("whale-sim",),
        ("whale-opt",),
        ("whale-checkpoint", "export"),
    ],
)
def test_options(words):
    text = subprocess.run(
        [BIN / words[0], *words[1:], "--help"],
        capture_output=True,
        text=True,
        timeout=HANG,
    ).stdout
    options = set(re.findall(r"^ +(?:-\w,)?(--[a-z][a-z0-9-]*)", text, re.M))
    assert len(options) > 3
    assert options <= set(completed(*words, "--"))
    some = sorted(options)[len(options) // 2]
    assert some in completed(*words, some[:-1])


def test_other_words():
    assert completed("whale-run", "fil") == []
    assert completed("whale-checkpoint", "e") == ["export"]
