#!/usr/bin/env python
"""Steps that fit the memory of their devices are not refused.

What the buffers of a program take is enough to compile it again; automatic
stages are cut elsewhere where the first cut doesn't fit.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

import whale as wh


def cluster_of(memories: list[int]) -> dict:
    """One node of devices that differ in nothing but their memory, in bytes."""
    kinds = {
        f"k{i}": {
            "flops": {"f32": 1e12},
            "memory_bytes": memory,
            "memory_bandwidth": 1e12,
        }
        for i, memory in enumerate(memories)
    }
    return {
        "kinds": kinds,
        "nodes": [{"devices": [{"kind": k} for k in kinds]}],
    }


def compile_step(
    memories: list[int],
    config: dict,
    default: Callable | None = None,
    layers: int = 6,
    samples: int = 1024,
    width: int = 64,
) -> list[int]:
    """Bytes that each rank of a perceptron's step needs."""
    wh.init(wh.Config(config))
    if default is not None:
        wh.set_default_strategy(default())

    def loss(weights: list, x: jax.Array, y: jax.Array) -> jax.Array:
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean((x - y) ** 2)

    def step(weights: list, x: jax.Array, y: jax.Array) -> tuple:
        value, grads = jax.value_and_grad(loss)(weights, x, y)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), value

    weights = [jax.ShapeDtypeStruct((width, width), jnp.float32)] * layers
    x = jax.ShapeDtypeStruct((samples, width), jnp.float32)
    step = wh.jit(
        step,
        cluster=cluster_of(memories),
        donate_argnums=0,
        batch_argnums=(1, 2),
    )
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "step.whale"
        step.lower(weights, x, x).compile().save(path)
        manifest = json.loads((path / "manifest.json").read_text())
    needs = [0] * len(memories)
    for rank_class in manifest["classes"]:
        buffers = {
            (buffer["space"], buffer.get("index", i)): buffer["bytes"]
            for i, buffer in enumerate(rank_class["buffers"])
            if buffer["space"] != "arena"
        }
        for rank in rank_class["ranks"]:
            needs[rank] = rank_class["arena_bytes"] + sum(buffers.values())
    return needs


def main() -> None:
    enough = 1 << 30
    stages = {"num_task_graph": 2, "num_micro_batch": 8}
    for schedule in ("1f1b", "gpipe", "zero-bubble"):
        config = stages | {"pipeline.strategy": schedule}
        needs = compile_step([enough] * 2, config)
        again = compile_step(needs, config)
        print(f"{schedule}: {needs}, within that {again}")
        assert all(a <= b for a, b in zip(again, needs, strict=True))
    for micro_batches in (1, 4):
        config = {"num_micro_batch": micro_batches}
        for default in (wh.replicate, wh.split):
            needs = compile_step([enough] * 2, config, default)
            again = compile_step(needs, config, default)
            print(f"{default.__name__}: {needs}, within that {again}")
            assert all(a <= b for a, b in zip(again, needs, strict=True))

    # Half the layers are too many for either device.
    for memories in ([6000000, 2200000], [2200000, 6000000]):
        needs = compile_step(
            memories,
            {"num_task_graph": 2, "num_micro_batch": 4},
            layers=8,
            samples=64,
            width=256,
        )
        print(f"stages within {memories}: {needs}")
        assert all(a <= b for a, b in zip(needs, memories, strict=True))


if __name__ == "__main__":
    main()
