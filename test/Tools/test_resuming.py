"""Runs of whale-run that stop and go on, and what whale-checkpoint says.

Under test: --checkpoint-dir, --checkpoint-every, --keep, --resume, SIGTERM, and
the commands of whale-checkpoint. A run that went on, on any number of processes
and under another plan, must have the results of one that did not stop, to the
bit under one plan; a failed test means lost steps, or half a checkpoint.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import safetensors.numpy
from jobs import BIN, ENDLESS, HANG, command, compile_, run

LOAD = safetensors.numpy.load_file


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    program = compile_(tmp_path_factory.mktemp("program"), "replicate", n=16)
    inputs = LOAD(program.parent / "in.safetensors")
    rows = np.random.default_rng(1).normal(size=(5, 24, 16))
    # The batch comes from --data.
    safetensors.numpy.save_file(
        {"arg0": inputs["arg0"]}, program.parent / "in.safetensors"
    )
    safetensors.numpy.save_file(
        {"arg1": rows.astype(np.float32)}, program.parent / "data.safetensors"
    )
    done = run(program, "whole", data(program), "--steps=8")
    assert done.returncode == 0, done.stderr
    return program


def data(program: pathlib.Path) -> str:
    return f"--data={program.parent / 'data.safetensors'}"


def check(program: pathlib.Path, name: str) -> None:
    """Compares results with those of a run that did not stop."""
    ours = LOAD(program.parent / f"{name}.safetensors")
    whole = LOAD(program.parent / "whole.safetensors")
    for tensor in whole:
        np.testing.assert_array_equal(ours[tensor], whole[tensor])


def checkpoint(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "whale-checkpoint", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def lines(*words: object) -> list[str]:
    done = checkpoint(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_goes_on_where_it_stopped(program, tmp_path):
    place = tmp_path / "states"
    kept = (f"--checkpoint-dir={place}", "--checkpoint-every=2", data(program))
    stats = tmp_path / "stats.json"
    first = run(
        program,
        "part",
        *(*kept, "--steps=5", "--resume", "--keep=2", f"--stats={stats}"),
    )
    assert first.returncode == 0, first.stderr
    # The memory that a process copies into is on its first rank: a file, in
    # whole blocks of a disk.
    ranks = json.loads(stats.read_text())["ranks"]
    staged = [rank.get("staging_bytes") for rank in ranks]
    assert 3072 < staged[0] < 3072 + 8192
    assert staged[1:] == [None] * 3
    assert "there is no complete checkpoint: beginning with" in first.stderr
    assert lines("list", place) == [
        "step 2: 1 leaves, 3072 bytes in 1 files",
        "step 4: 1 leaves, 3072 bytes in 1 files",
    ]
    again = run(program, "rest", *kept, "--steps=8", "--resume", "--nprocs=2")
    assert again.returncode == 0, again.stderr
    check(program, "rest")
    # Three of three: the option has its default again.
    verified = lines("verify", place)
    assert [line.split(":")[0] for line in verified] == [
        "step 4",
        "step 6",
        "step 8",
    ]
    assert verified[2].endswith("in 2 files, all as they were saved")
    (title, leaf, extra) = lines("list", place, "--leaves", "--step=8")
    assert leaf.startswith("  arg0 f32[16, 48] in ")
    assert extra == "  extra null"
    manifest = json.loads((place / "step-8" / "manifest.json").read_text())
    assert manifest["plan"]["task_graphs"]
    # The last one followed the outputs.
    done = run(program, "none", *kept, "--steps=8", "--resume")
    assert done.returncode == 1
    assert "step 8 has nothing left to do of --steps=8" in done.stderr


@pytest.mark.parametrize("sends", ["to the launcher", "to all of them"])
def test_sigterm_saves(program, tmp_path, sends):
    place = tmp_path / "states"
    words = command(program, "ended", f"--checkpoint-dir={place}")
    process = subprocess.Popen(
        [*words, ENDLESS, data(program), "--nprocs=2"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(1)
    if sends == "to all of them":
        # The launcher sends it once more.
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.terminate()
    _, errors = process.communicate(timeout=HANG)
    assert process.returncode == -signal.SIGTERM, errors
    (saved,) = lines("verify", place)
    # As the run goes on from there: the state of so many steps.
    step = int(saved.split(":")[0].removeprefix("step "))
    more = run(
        program,
        "more",
        *(f"--checkpoint-dir={place}", "--resume", data(program)),
        f"--steps={step + 1}",
    )
    assert more.returncode == 0, more.stderr
    assert not (program.parent / "ended.safetensors").exists()


def test_under_another_plan(program, tmp_path):
    place = tmp_path / "states"
    kept = (f"--checkpoint-dir={place}", "--checkpoint-every=4")
    first = run(program, "part", *kept, data(program), "--steps=4")
    assert first.returncode == 0, first.stderr
    other = compile_(tmp_path, "split", n=16)
    for file in ("in.safetensors", "data.safetensors"):
        shutil.copy(program.parent / file, tmp_path / file)
    done = run(other, "rest", *kept, data(other), "--steps=8", "--resume")
    assert done.returncode == 0, done.stderr
    ours = LOAD(tmp_path / "rest.safetensors")
    whole = LOAD(program.parent / "whole.safetensors")
    for tensor in whole:
        np.testing.assert_allclose(ours[tensor], whole[tensor], rtol=2e-5)

    narrow = compile_(tmp_path, "replicate", n=8)
    wrong = run(narrow, "rest", *kept, "--steps=9", "--resume")
    assert wrong.returncode == 1
    assert (
        "the checkpoint of step 8: arg0: must have shape [8, 48], the array "
        "has [16, 48]" in wrong.stderr
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_switches(program, tmp_path, processes):
    """Goes on with another program, and back, at boundaries of steps."""
    other = compile_(tmp_path, "split", n=16)
    place = f"--nprocs={processes}"
    words = (data(program), "--steps=8", place)
    done = run(
        program,
        "switched",
        *words,
        *(f"--switch=3:{other}", f"--switch=6:{program}"),
    )
    assert done.returncode == 0, done.stderr
    ours = LOAD(program.parent / "switched.safetensors")
    whole = LOAD(program.parent / "whole.safetensors")
    for tensor in whole:
        np.testing.assert_allclose(ours[tensor], whole[tensor], rtol=2e-5)
    # The same bits as what is saved under one and resumed under the other.
    kept = (f"--checkpoint-dir={tmp_path / 'states'}", "--checkpoint-every=3")
    assert run(program, "a", *kept, data(program), "--steps=3").returncode == 0
    for file in ("in.safetensors", "data.safetensors"):
        shutil.copy(program.parent / file, tmp_path / file)
    resumed = run(
        other, "b", *kept, data(program), "--steps=6", "--resume", place
    )
    assert resumed.returncode == 0, resumed.stderr
    last = run(program, "b", *kept, data(program), "--steps=8", "--resume")
    assert last.returncode == 0, last.stderr
    for tensor, value in LOAD(program.parent / "b.safetensors").items():
        np.testing.assert_array_equal(value, ours[tensor])


def test_switches_that_do_not_fit(program, tmp_path):
    narrow = compile_(tmp_path, "replicate", n=8)
    steps = (data(program), "--steps=4")

    def refused(message, *words):
        done = run(program, "none", *steps, *words)
        assert done.returncode == 1
        assert message in done.stderr

    refused("takes arg0 f32[8, 48]", f"--switch=2:{narrow}")
    refused("'x' is no N:PROGRAM", "--switch=x")
    refused("'0:a' is no N:PROGRAM", "--switch=0:a")
    refused("none of --steps=4", f"--switch=4:{program}")
    refused(
        "step 2 is not behind",
        *(f"--switch=2:{program}", f"--switch=2:{program}"),
    )
    refused("No such file", f"--switch=2:{tmp_path / 'none.whale'}")
    refused("are of one program", f"--switch=2:{program}", "--profile")


def test_a_full_disk(program, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    kept = (f"--checkpoint-dir={place}", "--checkpoint-every=1", data(program))
    assert run(program, "part", *kept, "--steps=1").returncode == 0
    # A file may have that many blocks of 1 KiB.
    full = subprocess.run(
        [
            *("bash", "-c", 'ulimit -f 2; exec "$@"', "bash"),
            *command(program, "part", *kept, "--steps=3", "--resume"),
        ],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert full.returncode == 1
    assert "shard-0.safetensors: cannot be written: File too large" in (
        full.stderr
    )
    assert sorted(os.listdir(place)) == [".lock", "step-1"]
    assert len(lines("verify", place)) == 1


def test_whole_files(program, tmp_path):
    place = tmp_path / "states"
    kept = (f"--checkpoint-dir={place}", "--checkpoint-every=4", data(program))
    assert run(program, "part", *kept, "--steps=4").returncode == 0
    assert lines("export", place, "-o", tmp_path / "whole") == []
    (file,) = (tmp_path / "whole").glob("*.safetensors")
    part = LOAD(program.parent / "part.safetensors")
    np.testing.assert_array_equal(LOAD(file)["arg0"], part["result0"])
    index = json.loads(
        (tmp_path / "whole" / "model.safetensors.index.json").read_text()
    )
    assert index["weight_map"] == {"arg0": file.name}
    assert index["metadata"]["total_size"] == 3072

    back = tmp_path / "back"
    assert lines("import", back, "-i", tmp_path / "whole") == []
    assert lines("list", back) == ["step 4: 1 leaves, 3072 bytes in 1 files"]
    lines("import", back, "-i", file, "--step=7")
    again = run(
        program,
        "rest",
        *(f"--checkpoint-dir={back}", data(program), "--resume"),
        "--steps=8",
    )
    assert again.returncode == 0, again.stderr
    refused = checkpoint("export", place, "-o", tmp_path / "whole")
    assert refused.returncode == 1
    assert "index.json: is there already" in refused.stderr


@pytest.mark.parametrize(
    "words, message",
    [
        (("list", "none"), "none: there is no complete checkpoint"),
        (("verify", "none", "--step=3"), "step-3/manifest.json: No such file"),
        (("import", "x", "-i", "none"), "none: No such file"),
        (("import", "x", "-i", "."), "index.json: No such file"),
        (("export", "none"), "--output is required"),
        (("list",), "directory is required"),
        ((), "A subcommand is required"),
    ],
)
def test_errors(tmp_path, words, message):
    done = subprocess.run(
        [BIN / "whale-checkpoint", *words],
        capture_output=True,
        text=True,
        timeout=HANG,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_that_belong_together(program):
    for option in ("--checkpoint-every=2", "--keep=1", "--resume"):
        done = run(program, "none", option)
        assert done.returncode == 1
        assert "requires --checkpoint-dir" in done.stderr
