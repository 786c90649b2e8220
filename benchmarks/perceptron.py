"""The step of a deep perceptron, and its runs by ``whale-run``, for benchmarks
of how steps are planned."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

WIDTH = 256
BIN = pathlib.Path(__file__).resolve().parents[1] / "build" / "bin"


def loss(params: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean squared error."""
    for matrix in params:
        x = jnp.tanh(x @ matrix)
    return jnp.mean((x - y) ** 2)


def train_step(
    params: list[jax.Array], x: jax.Array, y: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    """Gradient descent."""
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], value


def write_arguments(folder: str, layers: int, batch: int) -> Any:
    """Draws the arguments of `train_step`, for `run` in that folder, too."""
    key = jax.random.key(0)
    params = [
        jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH**0.5
        for k in jax.random.split(key, layers)
    ]
    x = jax.random.normal(key, (batch, WIDTH))
    args = (params, x, jnp.tanh(x))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
    safetensors.numpy.save_file(
        {f"arg{i}": leaf for i, leaf in enumerate(leaves)},
        f"{folder}/in.safetensors",
    )
    return args


def profile(folder: str, program: str, *options: str) -> tuple[float, float]:
    """Seconds of a step: the mean of a run's, and by the model of a step.

    The model is given the times of instructions in this run.
    """
    text = execute(folder, program, "--profile", *options)
    measured = re.search(r"^([0-9.]+) ms a step", text, re.MULTILINE)
    model = re.search(r"^([0-9.]+) ms by the model", text, re.MULTILINE)
    if not measured or not model:
        raise ValueError(f"the profile does not have both times:\n{text}")
    return float(measured[1]) / 1e3, float(model[1]) / 1e3


def run(folder: str, program: str, *options: str) -> dict[str, Any]:
    """The statistics of the last step of a run with a thread a rank."""
    stats = f"{folder}/stats.json"
    execute(folder, program, f"--stats={stats}", *options)
    result: dict[str, Any] = json.loads(pathlib.Path(stats).read_text())
    return result


def execute(folder: str, program: str, *options: str) -> str:
    """Runs a program with a thread a rank; what it prints."""
    return subprocess.run(
        [
            BIN / "whale-run",
            program,
            f"--inputs={folder}/in.safetensors",
            f"--outputs={folder}/out.safetensors",
            "--threads=1",
            *options,
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
