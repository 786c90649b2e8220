"""A small step on four ranks, and ways to run it in several processes.

In: a strategy, a size, a cluster, options of whale-run. Out: a compiled program
with inputs of a fixed seed; then exit statuses, messages, and the bytes of the
results, by which tests compare. Also ports, variables as torchrun sets them,
and what /proc says of processes. Each wait is limited to 120 s.
"""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
from typing import Any

import numpy as np
import safetensors.numpy

ROOT = pathlib.Path(__file__).parents[2]
BIN = ROOT / "build" / "bin"
# Far more than any of these take.
HANG = 120
# Followed by the number of processes.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
ENDLESS = "--steps=1000000000"


def has_libdevice() -> bool:
    """Whether kernels for GPUs can be compiled."""
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return any(
        os.path.exists(f"{place}/libdevice/libdevice.10.bc")
        for place in (f"{toolkit}/nvvm", "/usr/lib/nvidia-cuda-toolkit")
    )


STEP = """\
func.func @main(
    %w: tensor<{n}x48xf32> {{whale.donated}},
    %x: tensor<24x{n}xf32> {{whale.batch_dim = 0 : i64}})
    -> (tensor<{n}x48xf32>, tensor<24x48xf32>, tensor<f32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<1.0e-3> : tensor<{n}x48xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x{n}xf32>, tensor<{n}x48xf32>) -> tensor<24x48xf32>
  %t = stablehlo.tanh %y : tensor<24x48xf32>
  %g = stablehlo.dot_general %x, %t, contracting_dims = [0] x [0]
    : (tensor<24x{n}xf32>, tensor<24x48xf32>) -> tensor<{n}x48xf32>
  %d = stablehlo.multiply %g, %rate : tensor<{n}x48xf32>
  %next = stablehlo.subtract %w, %d : tensor<{n}x48xf32>
  %sum = stablehlo.reduce(%t init: %zero) applies stablehlo.add
    across dimensions = [0, 1]
    : (tensor<24x48xf32>, tensor<f32>) -> tensor<f32>
  return %next, %t, %sum : tensor<{n}x48xf32>, tensor<24x48xf32>, tensor<f32>
}}
"""


ONE_HOST = """{"nodes": [{"devices": [
  {"kind": "cpu", "count": 3}, {"kind": "cpu", "slowdown": 2.0}]}]}"""
FOUR_HOSTS = """{"nodes": [{"devices": [{"kind": "cpu"}]},
  {"devices": [{"kind": "cpu"}]}, {"devices": [{"kind": "cpu"}]},
  {"devices": [{"kind": "cpu", "slowdown": 2.0}]}]}"""


def compile_(
    folder: pathlib.Path,
    strategy: str,
    n: int = 80,
    devices: str = ONE_HOST,
    target: str = "cpu",
) -> pathlib.Path:
    """A step on four ranks that differ in speed, with its inputs."""
    text = folder / "step.mlir"
    text.write_text(STEP.format(n=n))
    cluster = folder / "cluster.json"
    cluster.write_text(devices)
    program = folder / "step.whale"
    subprocess.run(
        [
            *(BIN / "whale-compile", text, f"--cluster={cluster}"),
            *(f"--strategy={strategy}", "--feedback=arg0:result0"),
            *("-o", program, f"--target={target}"),
        ],
        check=True,
        timeout=HANG,
    )
    random = np.random.default_rng(0)
    safetensors.numpy.save_file(
        {
            "arg0": random.normal(size=(n, 48)).astype(np.float32),
            "arg1": random.normal(size=(24, n)).astype(np.float32),
        },
        folder / "in.safetensors",
    )
    return program


def command(program: pathlib.Path, name: str, *options: str) -> list[str]:
    folder = program.parent
    return [
        *(str(BIN / "whale-run"), str(program)),
        f"--inputs={folder / 'in.safetensors'}",
        f"--outputs={folder / name}.safetensors",
        *options,
    ]


def run(
    program: pathlib.Path, name: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(program, name, *options),
        capture_output=True,
        text=True,
        timeout=HANG,
        env=os.environ | environment,
    )


def bits(program: pathlib.Path, name: str) -> bytes:
    return (program.parent / f"{name}.safetensors").read_bytes()


def error(result: Any) -> str:
    """The one line of a failure."""
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("error: ")
    return result.stderr


def free_port() -> int:
    """One with a free port behind it."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


def torchrun(port: int, count: int = 2) -> list[dict[str, str]]:
    return [
        {
            "RANK": str(rank),
            "WORLD_SIZE": str(count),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        for rank in range(count)
    ]


def start_each(
    program: pathlib.Path, environments: list[dict[str, str]]
) -> list[subprocess.CompletedProcess[str]]:
    """Starts processes as a launcher does, and waits for them."""
    started = [
        subprocess.Popen(
            command(program, "each", "--threads=1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        for environment in environments
    ]
    results = []
    for process in started:
        out, err = process.communicate(timeout=HANG)
        results.append(
            subprocess.CompletedProcess([], process.returncode, out, err)
        )
    return results


def descendants(pid: int) -> list[int]:
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    except OSError:
        pass  # It has ended.
    return found


def has_ended(pid: int) -> bool:
    """Also if nobody has asked for its status yet."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return text.rsplit(")", 1)[1].split()[0] == "Z"


def number_of(pid: int) -> int:
    """Which process of its job it is, as whale-run has said to it, or -1 if it
    does not run the program yet; ids say nothing, as they begin anew where they
    have reached the system's limit."""
    try:
        text = pathlib.Path(f"/proc/{pid}/environ").read_text()
    except OSError:
        return -1  # It becomes the program just now.
    variables = dict(
        entry.split("=", 1) for entry in text.split("\0") if "=" in entry
    )
    return int(variables.get("WHALE_PROCESS", -1))


def is_whale_run(pid: int) -> bool:
    try:
        path = pathlib.Path(f"/proc/{pid}/comm")
        return path.read_text().strip() == "whale-run"
    except OSError:
        return False


def runs_steps(pid: int) -> bool:
    """Whether it has used some processor time since it loaded the kernels."""
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    used = sum(map(int, text.rsplit(")", 1)[1].split()[11:13]))
    return "kernels.so" in maps and used > 20
