"""Programs of N ranks in several processes: the same bits as in one.

A sample of the programs runs in two processes, by UCX and by MPI; with
scripts/test --full all of them do, in two and in four.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("test/Inputs", "test/Executable", "test/Tools", "python")
sys.path[:0] = [str(ROOT / folder) for folder in FOLDERS]

import tensor_files  # noqa: E402
from jobs import MPIRUN  # noqa: E402
from late_devices import Failure, check_bits, read_manifest  # noqa: E402

import whale as wh  # noqa: E402
from whale.signature import host_value  # noqa: E402

IS_FULL = "WHALE_TEST_FULL" in os.environ
# One program in so many, by its name.
SAMPLE = 8


def tool(name: str) -> str:
    """A built tool: on the path, or in build/bin."""
    return shutil.which(name) or str(ROOT / "build" / "bin" / name)


def call(
    command: Sequence[Any],
    what: str,
    timeout: float,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs a tool, with more in its environment; its failure is ours."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failure(f"{what}: no end after {timeout} s") from None
    if done.returncode != 0:
        message = (done.stderr or done.stdout).strip().splitlines()
        # Libraries may print warnings before.
        errors = [line for line in message if "error: " in line]
        shown = (errors or message or ["no message"])[0]
        raise Failure(f"{what} (status {done.returncode}): {shown}")


def is_chosen(name: str) -> bool:
    """Whether the program of that name is of the sample."""
    return IS_FULL or zlib.crc32(name.encode()) % SAMPLE == 0


def check(
    program: str,
    inputs: str,
    results: Sequence[Any],
    name: str,
    steps: int = 1,
    timeout: float = 600,
) -> None:
    """That a program directory gives these results for a file of inputs.

    Raises:
        Failure: where it does not, or a process fails.
    """
    if not is_chosen(name):
        return
    ranks = len(read_manifest(program)["ranks"])
    for count in (2, 4) if IS_FULL else (2,):
        for transport in ("ucx", "mpi") if count <= ranks else ():
            where = f"in {count} processes by {transport}"
            with tempfile.TemporaryDirectory() as folder:
                outputs = pathlib.Path(folder, "out.safetensors")
                command = [
                    *(*MPIRUN, str(count), tool("whale-run"), program),
                    *(f"--inputs={inputs}", f"--outputs={outputs}"),
                    *(f"--steps={steps}", f"--transport={transport}"),
                ]
                call(command, f"whale-run {where}", timeout)
                again = tensor_files.read(outputs)
            bits = [
                np.frombuffer(again[f"result{i}"], np.uint8)
                for i in range(len(results))
            ]
            check_bits(results, bits, where)


def check_step(program: wh.Program, values: Sequence[Any], result: Any) -> None:
    """The same of a program in memory, for the leaves of its arguments.

    Values that are donated to it must be copies.
    """
    results, name = jax.tree.leaves(result), str(program.plan)
    if not is_chosen(name) or any(
        array.dtype == jax.dtypes.float0 for array in results
    ):
        return
    leaves = program.signature.arguments
    arguments = {
        f"arg{i}": host_value(value, leaf)
        for i, (value, leaf) in enumerate(zip(values, leaves, strict=True))
    }
    with tempfile.TemporaryDirectory() as folder:
        inputs = pathlib.Path(folder, "in.safetensors")
        tensor_files.write(inputs, arguments)
        path = f"{folder}/step.whale"
        program.save(path)
        words = [
            host_value(array, leaf)
            for array, leaf in zip(results, program.signature.results)
        ]
        check(path, str(inputs), words, name)
