"""The step of a deep perceptron, and its runs by ``whale-run``, for benchmarks
of how steps are planned."""

from __future__ import annotations

import json
import pathlib
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


def run(folder: str, program: str, *options: str) -> dict[str, Any]:
    """The statistics of the last step of a run with a thread a rank."""
    stats = f"{folder}/stats.json"
    subprocess.run(
        [
            BIN / "whale-run",
            program,
            f"--inputs={folder}/in.safetensors",
            f"--outputs={folder}/out.safetensors",
            f"--stats={stats}",
            "--threads=1",
            *options,
        ],
        check=True,
    )
    result: dict[str, Any] = json.loads(pathlib.Path(stats).read_text())
    return result
