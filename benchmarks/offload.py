"""How much of the copies from and to hosts does computation hide?

Two ranks of one thread each run a step of Adam whose state is in the memory of
their host (``offload.level``), over an emulated link (``whale-run --network``)
that needs a given part of the step's own time for all copies, there and back.
Shown is the step's time over the larger of both. Copies go on from the first
update on: a forward hides those of one update alone, so that a step whose
copies take as long as all it computes takes a third longer.

``benchmarks/offload.py [--repeats N]`` prints a table in Markdown, and fails
where copies that take half as long as the step cost more than 10%. Nothing else
should run beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import optax
import perceptron
import safetensors.numpy
from perceptron import WIDTH

import whale as wh

LAYERS, BATCH, RANKS = 32, 2048, 2
ADAM = optax.adam(1e-3)
# Both moments of both ranks, there and back.
COPIED_BYTES = RANKS * 2 * 2 * LAYERS * WIDTH * WIDTH * 4


def train_step(params: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
    value, grads = jax.value_and_grad(perceptron.loss)(params, x, y)
    updates, state = ADAM.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def cluster_of(bandwidth: float) -> dict[str, Any]:
    """Two ranks, about as fast as cores, and the link of their host."""
    core = {
        "flops": {"f32": 1e11},
        "memory_bytes": 8e9,
        "memory_bandwidth": 1e10,
    }
    node = {
        "devices": [{"kind": "core", "count": RANKS}],
        "host": {"memory_bytes": 1e10, "bandwidth": bandwidth},
    }
    return {"kinds": {"core": core}, "nodes": [node]}


def compile_step(path: str, args: Any, level: str, bandwidth: float) -> None:
    wh.init(wh.Config({"offload.level": level} if level else {}))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(
        train_step,
        cluster=cluster_of(bandwidth),
        batch_argnums=(2, 3),
        donate_argnums=(0, 1),
    )
    step.lower(*args).compile().save(path)


def seconds_of(folder: str, program: str, repeats: int, *options: str) -> float:
    """The median of steps of several runs."""
    return statistics.median(
        perceptron.run(folder, program, "--steps=3", *options)["step_time_s"]
        for _ in range(repeats)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        params, x, y = perceptron.write_arguments(folder, LAYERS, BATCH)
        args = (params, ADAM.init(params), x, y)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
        safetensors.numpy.save_file(
            {f"arg{i}": leaf for i, leaf in enumerate(leaves)},
            f"{folder}/in.safetensors",
        )
        compile_step(f"{folder}/plain.whale", args, "", 1e9)
        plain = seconds_of(folder, f"{folder}/plain.whale", repeats)
        print("| copies | computation | copies take | step | over the larger |")
        print("|---|---|---|---|---|")
        for part in (0.25, 0.5, 1, 3):
            copies = part * plain
            bandwidth = COPIED_BYTES / copies
            program = f"{folder}/{part}.whale"
            compile_step(program, args, "state", bandwidth)
            network = pathlib.Path(folder, "network.json")
            network.write_text(json.dumps(cluster_of(bandwidth)))
            step = seconds_of(folder, program, repeats, f"--network={network}")
            over = step / max(plain, copies)
            failed |= part == 0.5 and over > 1.1
            print(
                f"| {part:.0%} | {plain * 1e3:.0f} ms | {copies * 1e3:.0f} ms "
                f"| {step * 1e3:.0f} ms | {over:.2f} x |",
                flush=True,
            )
    if failed:
        sys.exit("copies that could be hidden cost more than 10% of a step")


if __name__ == "__main__":
    main()
