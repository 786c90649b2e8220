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
import sys
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


def test_a_switch(tmp_path: pathlib.Path) -> None:
    """The state goes from GPU to GPU, with the bits that go by the host."""
    strategies = ("replicate", "split")
    for strategy in strategies:
        (tmp_path / strategy).mkdir()
    program, other = (
        compile_(tmp_path / strategy, strategy, n=500, target="cuda-test")
        for strategy in strategies
    )
    steps = ["--steps=5", f"--switch=2:{other}", f"--switch=4:{program}"]
    host = run(
        program, "host", *steps, "--transport=local", WHALE_TEST_CUDA="3"
    )
    assert host.returncode == 0, host.stderr
    variables = {
        1: {"WHALE_TEST_CUDA": "5"},
        2: machine(tmp_path / "2"),
        4: machine(tmp_path / "4"),
    }
    for count, environment in variables.items():
        ranks = [f"--nprocs={count}"] if count > 1 else []
        moved = run(program, "gpus", *steps, *ranks, **environment)
        assert moved.returncode == 0, moved.stderr
        assert bits(program, "host") == bits(program, "gpus")


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
    assert good.stderr.startswith("warning: GPUs exchange data through the ")
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


def python(
    folder: pathlib.Path, script: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a script on the test machine, on which programs without kernels
    run as they are compiled for GPUs."""
    file = folder / "script.py"
    file.write_text("import jax, numpy as np, whale as wh\n" + script)
    return subprocess.run(
        [sys.executable, file],
        capture_output=True,
        text=True,
        timeout=HANG,
        env=os.environ | {"WHALE_TEST_CUDA": "1"} | environment,
    )


def test_python_warns_where_ranks_share_gpus(tmp_path: pathlib.Path) -> None:
    script = """
wh.init()
wh.set_default_strategy(wh.replicate({ranks}))
step = wh.jit(lambda x, y: x.T @ y, cluster={ranks}, target="cuda",
              batch_argnums=(0, 1))
# For so many rows of each rank products are the library's.
x = np.random.default_rng(0).normal(size=(72 * 8, 256)).astype(np.float32)
assert np.allclose(step(x, x), x.T @ x, rtol=1e-4, atol=1e-3)
"""
    shared = python(tmp_path, script.format(ranks=9))
    assert shared.returncode == 0, shared.stderr
    assert (
        "WhaleWarning: GPUs exchange data through the host: " in shared.stderr
    )
    assert "ranks 0 and 8 share a GPU" in shared.stderr
    own = python(tmp_path, script.format(ranks=8))
    assert own.returncode == 0, own.stderr
    assert "Warning" not in own.stderr


def test_memory_is_for_the_program_that_runs(tmp_path: pathlib.Path) -> None:
    """Each program keeps more than half of the GPU's memory: that of the one
    that rests is given back, and taken again for its next step."""
    script = """
def chain(x, a):
    return x @ a @ a @ a

wh.init()
programs = []
for rows in 512, 1024:
    x = np.full((rows, 256), 0.5, np.float32)
    a = np.eye(256, dtype=np.float32) * 2
    step = wh.jit(chain, cluster=1, target="cuda")
    programs.append((step, x, a))
for turn in range(3):
    for step, x, a in programs:
        for _ in range(4):
            assert (np.asarray(step(x, a)) == 8 * x).all()
"""
    # The workspace of products alone is 32 MiB.
    memory = {"WHALE_TEST_CUDA_MEMORIES": str(50 << 20)}
    good = python(tmp_path, script, **memory)
    assert good.returncode == 0, good.stderr
    little = {"WHALE_TEST_CUDA_MEMORIES": str(30 << 20)}
    bad = python(tmp_path, script, **little)
    assert "GPU 0 (Test GPU) has too little free memory" in bad.stderr


def test_ranks_keep_no_more_than_their_program_needs(
    tmp_path: pathlib.Path,
) -> None:
    """What a program has left on ranks that another one shares, an arena and
    memory that NCCL's transfers stage in, is given up for that one's arrays."""
    script = """
eye = np.eye(256, dtype=np.float32) * 2
wide = np.ones((72 * 2, 1024), np.float32)
large = np.ones((4096 * 2, 256), np.float32)
wh.init()
wh.set_default_strategy(wh.replicate(2))
gradient = wh.jit(lambda x, y: x.T @ y, cluster=2, target="cuda",
                  batch_argnums=(0, 1))
product = wh.jit(lambda x, a: x @ a, cluster=2, target="cuda",
                 batch_argnums=(0,))
for turn in range(2):
    assert np.asarray(gradient(wide, wide))[0, 0] == 144
    assert np.asarray(product(large, eye))[-1, -1] == 2
"""
    # The second one needs 32 MiB for products and 8 for arrays; the first one
    # leaves 2 of an arena, and 2 that are staged in.
    memory = {"WHALE_TEST_CUDA_MEMORIES": str(42 << 20)}
    done = python(tmp_path, script, **memory)
    assert done.returncode == 0, done.stderr


def kinds(**archs: tuple[str, float, int]) -> str:
    """A node with devices of kinds: architecture, memory and count of each."""
    return json.dumps(
        {
            "kinds": {
                name: {
                    "flops": {"f32": 1e13},
                    "memory_bytes": memory,
                    "memory_bandwidth": 1e12,
                    "arch": arch,
                }
                for name, (arch, memory, _) in archs.items()
            },
            "nodes": [
                {
                    "devices": [
                        {"kind": name, "count": count}
                        for name, (_, _, count) in archs.items()
                    ]
                }
            ],
        }
    )


def test_ranks_get_gpus_of_their_kind(tmp_path: pathlib.Path) -> None:
    devices = kinds(big=("sm_80", 80e9, 1), old=("sm_70", 32e9, 3))
    program = compile_(
        tmp_path, "replicate", devices=devices, target="cuda-test"
    )
    machine = {"WHALE_TEST_CUDA": "1"}
    # Of the machine's eight GPUs the last three are like the fifth.
    good = run(
        program,
        "out",
        "--steps=2",
        **machine,
        WHALE_TEST_CUDA_CAPABILITIES="70,70,70,80,90",
        WHALE_TEST_CUDA_MEMORIES=f"{32 << 30},{32 << 30},{32 << 30},{80 << 30}",
    )
    assert good.returncode == 0, good.stderr
    text = error(
        run(
            program,
            "out",
            **machine,
            WHALE_TEST_CUDA_CAPABILITIES="70,70,70,80,90",
            WHALE_TEST_CUDA_MEMORIES=f"{32 << 30},{32 << 30},{16 << 30}",
        )
    )
    assert "no GPU of this machine is what rank 0 was compiled for" in text
    assert "wanted for ranks 0 (big, sm_80, 74.5 GiB); 1, 2, 3 (old, " in text
    assert "found GPUs 0, 1 (Test GPU, sm_70, 32.0 GiB); 2 (Test " in text
