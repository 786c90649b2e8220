"""Runs the tutorials, each in an empty folder of its own.

A block with a title is a file of that name. In a block of `console`, a line
that begins with `$ ` is run by the shell, and the lines behind it are what it
must print on standard output; `...` stands for anything, also for lines.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(
    r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE
)


# Where toolkits put what code for GPUs is linked with.
LIBDEVICE = [
    pathlib.Path(place, "libdevice", "libdevice.10.bc")
    for place in (
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "nvvm"),
        "/usr/lib/nvidia-cuda-toolkit",
    )
]


def pattern(expected: str) -> str:
    return r"\s*" + r".*".join(map(re.escape, expected.split("..."))) + r"\s*"


def run_console(text: str, folder: pathlib.Path) -> None:
    path = os.pathsep.join(
        [
            str(pathlib.Path(sys.executable).parent),
            str(ROOT / "build" / "bin"),
            os.environ["PATH"],
        ]
    )
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        result = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={
                **os.environ,
                "PATH": path,
                "PYTHONPATH": str(ROOT / "python"),
            },
            capture_output=True,
            text=True,
        )
        said = f"{command}\n{result.stdout}{result.stderr}"
        assert not result.returncode, said
        assert re.fullmatch(pattern(expected), result.stdout, re.DOTALL), said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if page.stem == "gpus" and not any(path.exists() for path in LIBDEVICE):
        pytest.skip("needs the CUDA toolkit's libdevice")
    for language, title, text in BLOCK.findall(page.read_text()):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "console":
            run_console(text, tmp_path)


def test_messages_are_printed() -> None:
    """What troubleshooting.md quotes stands in the sources."""
    sources = "".join(
        path.read_text()
        for pattern in ("lib/**/*.cpp", "runtime/**/*.cpp", "tools/**/*.cpp")
        for path in ROOT.glob(pattern)
    ) + "".join(path.read_text() for path in ROOT.glob("python/whale/*.py"))
    # Literals that a line end divides are one.
    text = re.sub(r'"\s*f?"', "", sources)
    page = (ROOT / "docs" / "tutorials" / "troubleshooting.md").read_text()
    quoted = re.findall(r"^### `(.*)`$", page, re.MULTILINE)
    assert len(quoted) > 5
    assert not [message for message in quoted if message not in text]
