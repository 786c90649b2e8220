"""Programs on disk: saved whole, loaded whole, and removed when unused."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

X = np.arange(4, dtype=np.float32)


def program(factor: float) -> wh.Program:
    def step(x: Any) -> Any:
        return jnp.tanh(x) * factor

    return wh.jit(step, cluster=1).lower(X).compile()


def value(compiled: wh.Program) -> float:
    result = np.asarray(compiled(X)) / np.tanh(X).clip(1e-9)
    return round(float(result[-1]), 3)


def test_saving_follows_links(tmp_path: pathlib.Path) -> None:
    program(2.0).save(tmp_path / "p.whale")
    (tmp_path / "link").symlink_to("p.whale")
    program(3.0).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert value(wh.load(tmp_path / "p.whale")) == 3
    assert sorted(os.listdir(tmp_path)) == ["link", "p.whale"]


def test_saving_leaves_what_is_no_program(tmp_path: pathlib.Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "an extension"}')
    (tmp_path / "file").write_text("precious")
    with pytest.raises(FileExistsError, match="not a Whale program"):
        program(2.0).save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["file", "manifest.json"]
    with pytest.raises(FileNotFoundError):
        program(2.0).save(tmp_path / "none" / "p.whale")


def test_failed_saves_leave_the_old_program(
    tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    program(2.0).save(tmp_path / "p.whale")

    def fail(source: str, place: str) -> None:
        os.mkdir(place)
        raise KeyboardInterrupt

    other = program(3.0)
    monkeypatch.setattr(shutil, "copytree", fail)
    with pytest.raises(KeyboardInterrupt):
        other.save(tmp_path / "p.whale")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["p.whale"]
    assert value(wh.load(tmp_path / "p.whale")) == 2


def test_a_replaced_program_is_another_one(tmp_path: pathlib.Path) -> None:
    program(2.0).save(tmp_path / "p.whale")
    loaded = [wh.load(tmp_path / "p.whale")]
    for factor in (3.0, 4.0):
        program(factor).save(tmp_path / "p.whale")
        # The dynamic loader would take it for the one that it has.
        loaded.append(wh.load(tmp_path / "p.whale"))
    assert [value(each) for each in loaded] == [2, 3, 4]
    loaded[-1].save(tmp_path / "p.whale")
    loaded[-1].save(tmp_path / "q.whale")
    assert value(wh.load(tmp_path / "q.whale")) == 4
    with pytest.raises(wh.RuntimeError, match="holds another program"):
        loaded[0].save(tmp_path / "q.whale")
    assert value(wh.load(tmp_path / "q.whale")) == 4
    assert sorted(os.listdir(tmp_path)) == ["p.whale", "q.whale"]


def test_loading_what_was_moved_aside(tmp_path: pathlib.Path) -> None:
    """As a writer leaves it that died between two renames."""
    program(2.0).save(tmp_path / "p.whale")
    aside = tmp_path / ".p.whale.whale-0123abcd"
    aside.mkdir()
    (tmp_path / "p.whale").rename(aside / "old")
    assert value(wh.load(tmp_path / "p.whale")) == 2
    program(3.0).save(tmp_path / "p.whale")
    assert value(wh.load(tmp_path / "p.whale")) == 3
    assert os.listdir(tmp_path) == ["p.whale"]


COMPILE = """
import os, signal
import numpy as np
import whale as wh
from whale import files
program = wh.jit(lambda x: x + x, cluster=1).lower(np.ones(3)).compile()
print(program._path, flush=True)
"""


def scratch(folder: pathlib.Path, end: str) -> subprocess.CompletedProcess[str]:
    paths = {
        "TMPDIR": str(folder),
        "PYTHONPATH": str(pathlib.Path(wh.__file__).parents[1]),
    }
    return subprocess.run(
        [sys.executable, "-c", COMPILE + end],
        env=os.environ | paths,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_scratch_directories(tmp_path: pathlib.Path) -> None:
    killed = scratch(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert killed.returncode == -signal.SIGKILL
    assert os.path.isdir(killed.stdout.strip())
    # The next one removes it; a forked child leaves its parent's.
    end = """
directory = files.ScratchDirectory()
if os.fork() == 0:
    path = directory.path
    del directory
    os._exit(not os.path.isdir(path))
assert os.wait()[1] == 0
files.ScratchDirectory()
assert len(os.listdir(os.path.dirname(directory.path))) == 2
"""
    lived = scratch(tmp_path, end)
    assert lived.returncode == 0, lived.stderr
    assert os.listdir(tmp_path) == []


def test_scratch_directory_that_others_removed(monkeypatch: Any) -> None:
    first = program(2.0)
    workspace = pathlib.Path(first._path).parents[2]
    assert workspace.parent == pathlib.Path(tempfile.gettempdir())
    shutil.rmtree(workspace)
    assert value(program(3.0)) == 3


def test_names_are_bytes(tmp_path: pathlib.Path) -> None:
    # What is no UTF-8, what looks like the escape of such a byte, and neither.
    names = [os.fsdecode(b"caf\xe9 \xff\xfe"), "a\\xFF", "\u00e9"]

    def step(x: Any) -> Any:
        for name in names:
            with wh.split(2, name=name):
                x = x * 2
        return x

    wh.init()
    x = np.ones((4, 4), np.float32)
    lowered = wh.jit(step, cluster=2).lower(x)
    place = tmp_path / os.fsdecode(b"\xff.whale")
    lowered.compile().save(place)
    program = wh.load(place)
    graphs = [graph["name"] for graph in program.plan["task_graphs"]]
    assert graphs == names
    np.testing.assert_array_equal(program(x), x * 8)
