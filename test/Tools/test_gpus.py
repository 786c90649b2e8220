"""Ranks on GPUs of a test machine, in one process and in several: NCCL gives
the bits that the host gives, and an end of one process ends all.

Results must have the same bits for each transport and number of processes, and
be within 1e-4 of the magnitude of those on processors; a killed process must
end its job within 10 s, with its name. A failure means that ranks on GPUs
exchange wrong data, or that a job hangs. Needs libdevice.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from jobs import (
    ENDLESS,
    HANG,
    bits,
    command,
    compile_,
    error,
    free_port,
    has_libdevice,
    run,
    torchrun,
)

pytestmark = pytest.mark.skipif(
    not has_libdevice(), reason="there is no libdevice"
)


def machine(folder: pathlib.Path) -> dict[str, str]:
    """Variables for eight GPUs that the processes of a job share."""
    return {
        "WHALE_TEST_CUDA": "7",
        "WHALE_TEST_CUDA_DIRECTORY": str(folder / "machine"),
    }


def compare(
    folder: pathlib.Path, strategy: str, name: str, steps: str, **given: str
) -> None:
    """Results are near those of the same step on processors."""
    found = safetensors.numpy.load_file(folder / f"{name}.safetensors")
    program = compile_(folder, strategy, n=500, **given)
    cpu = run(program, "cpu", steps)
    assert cpu.returncode == 0, cpu.stderr
    wanted = safetensors.numpy.load_file(folder / "cpu.safetensors")
    for key, value in wanted.items():
        apart = np.abs(value - found[key]).max() / np.abs(value).max()
        assert apart <= 1e-4, (key, apart)


@pytest.mark.parametrize("strategy", ["replicate", "split"])
def test_same_bits(tmp_path: pathlib.Path, strategy: str) -> None:
    # Larger than what all ranks send to all others.
    program = compile_(tmp_path, strategy, n=500, target="cuda-test")
    # The state stays on the GPUs from step to step.
    steps = "--steps=3"
    one = run(program, "host", steps, "--transport=local", WHALE_TEST_CUDA="3")
    assert one.returncode == 0, one.stderr
    many = run(
        *(program, "threads", steps, "--transport=nccl"), WHALE_TEST_CUDA="5"
    )
    assert many.returncode == 0, many.stderr
    assert bits(program, "host") == bits(program, "threads")
    for count in 2, 4:
        variables = machine(tmp_path / str(count))
        # It is the default, too.
        ranks = f"--nprocs={count}"
        many = run(program, "processes", steps, ranks, **variables)
        assert many.returncode == 0, many.stderr
        assert bits(program, "host") == bits(program, "processes")
        entered = list((tmp_path / str(count)).glob("machine/*/rank-*"))
        assert len(entered) % 4 == 0 and entered
    compare(tmp_path, strategy, "host", steps)


MIXED = json.dumps(
    {
        "kinds": {
            kind: {
                "flops": {"f32": 1e11},
                "memory_bytes": 1e10,
                "memory_bandwidth": 1e10,
                "arch": arch,
            }
            for kind, arch in (("old", "sm_80"), ("new", "sm_90"))
        },
        "nodes": [
            {
                "devices": [
                    {"kind": "old"},
                    {"kind": "new"},
                    {"kind": "cpu", "count": 2},
                ]
            }
        ],
    }
)


@pytest.mark.parametrize("strategy", ["replicate", "split"])
def test_gpus_and_processors(tmp_path: pathlib.Path, strategy: str) -> None:
    """The second of two processes, without GPUs, needs no driver."""
    program = compile_(
        tmp_path, strategy, n=500, devices=MIXED, target="cuda-test"
    )
    manifest = json.loads((program / "manifest.json").read_text())
    assert [code["arch"] for code in manifest["gpu"]] == ["sm_80", "sm_90"]
    capabilities: dict[str, Any] = {"WHALE_TEST_CUDA_CAPABILITIES": "80,90"}
    one = run(
        *(program, "threads", "--steps=3"), WHALE_TEST_CUDA="3", **capabilities
    )
    assert one.returncode == 0, one.stderr
    assert "rank 2 is on no GPU" in one.stderr
    first, second = torchrun(free_port())
    first |= machine(tmp_path) | capabilities
    processes = [
        subprocess.Popen(
            command(program, "processes", "--steps=3"),
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | variables,
        )
        for variables in (first, second)
    ]
    for process in processes:
        _, text = process.communicate(timeout=HANG)
        assert process.returncode == 0, text
    assert bits(program, "threads") == bits(program, "processes")
    compare(tmp_path, strategy, "threads", "--steps=3", devices=MIXED)


def test_ranks_that_share_a_gpu(tmp_path: pathlib.Path) -> None:
    nine = '{"nodes": [{"devices": [{"kind": "cpu", "count": 9}]}]}'
    program = compile_(tmp_path, "none", devices=nine, target="cuda-test")
    # Nothing is exchanged.
    good = run(program, "out", "--transport=nccl", WHALE_TEST_CUDA="1")
    assert good.returncode == 0, good.stderr
    program = compile_(
        tmp_path, "replicate", n=90, devices=nine, target="cuda-test"
    )
    text = error(run(program, "out", "--transport=nccl", WHALE_TEST_CUDA="1"))
    assert "the transport 'nccl' cannot carry all data: " in text
    assert "ranks 0 and 8 share a GPU" in text
    # By default it carries what it can, here nothing.
    good = run(program, "out", WHALE_TEST_CUDA="1")
    assert good.returncode == 0, good.stderr
    assert good.stderr.startswith("remark: GPUs exchange data through the host")
    assert "ranks 0 and 8 share a GPU" in good.stderr


def test_a_process_dies(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate", target="cuda-test")
    job = subprocess.Popen(
        command(program, "out", "--nprocs=4", ENDLESS),
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | machine(tmp_path),
    )
    children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
    # Into the steps: the communicators exchange messages.
    while not list((tmp_path / "machine").glob("*/*-*-*")):
        assert job.poll() is None
        time.sleep(0.05)
    os.kill(sorted(map(int, children.read_text().split()))[2], signal.SIGKILL)
    begin = time.monotonic()
    _, text = job.communicate(timeout=HANG)
    assert job.returncode == 1
    assert "process 2" in text
    assert time.monotonic() - begin < 10


def test_a_process_dies_before_all_have_met(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate", target="cuda-test")
    # Communicators of machines that share nothing are never made.
    machines = [machine(tmp_path / name) for name in ("a", "b")]
    first, second = (
        subprocess.Popen(
            command(program, "out"),
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | variables | own,
        )
        for variables, own in zip(torchrun(free_port()), machines, strict=True)
    )
    while len(list(tmp_path.glob("*/machine/*/rank-*"))) < 4:
        assert first.poll() is None and second.poll() is None
        time.sleep(0.05)
    second.kill()
    _, text = first.communicate(timeout=HANG)
    assert first.returncode == 1
    assert "process 1 (host " in text
    second.communicate()
