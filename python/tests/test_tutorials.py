"""Runs the tutorials, each in an empty folder of its own.

A block with a title is a file of that name. In a block of `console`, a line
that begins with `$ ` is run by the shell, and the lines behind it are what it
must print on standard output; `...` stands for anything, also for lines.
Packages are installed only with WHALE_TEST_INSTALLS; else those of the
environment stay.
"""

from __future__ import annotations

import ast
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
INSTALLS = bool(os.environ.get("WHALE_TEST_INSTALLS"))
# What comes with Whale, and what a script finds beside it.
GIVEN = {"jax", "numpy", "whale", *sys.stdlib_module_names}
# The packages whose modules have other names.
PACKAGES = {"haiku": "dm-haiku", "orbax": "orbax-checkpoint"}

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
        if command.startswith("pip ") and not INSTALLS:
            continue
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


@pytest.mark.parametrize(
    "page",
    [
        # Two scripts that train.
        pytest.param(
            page,
            id=page.stem,
            marks=[pytest.mark.long] if page.stem.startswith("port-") else [],
        )
        for page in PAGES
    ],
)
def test_tutorial(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    has_libdevice = INSTALLS or any(path.exists() for path in LIBDEVICE)
    if page.stem == "gpus" and not has_libdevice:
        pytest.skip("needs the CUDA toolkit's libdevice")
    for language, title, text in BLOCK.findall(page.read_text()):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "console":
            run_console(text, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_installs_what_it_uses(page: pathlib.Path) -> None:
    text = page.read_text()
    installed = set(" ".join(re.findall(r"^\$ pip (.*)", text, re.M)).split())
    files = {title.removesuffix(".py") for _, title, _ in BLOCK.findall(text)}
    codes = re.findall(r'python -c "(.*)"', text)
    codes += [
        block
        for _, title, block in BLOCK.findall(text)
        if title.endswith(".py")
    ]
    modules = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse("\n".join(codes)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    wanted = {PACKAGES.get(n, n) for n in modules - GIVEN - files}
    assert wanted <= installed


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
