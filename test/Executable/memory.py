#!/usr/bin/env python
"""Steps that fit the memory of their devices are not refused.

What a program takes when it runs is enough to compile it again; automatic
stages are cut elsewhere where the first cut doesn't fit.
"""

from __future__ import annotations

import os
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import late_devices

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
    """Bytes that each rank of a perceptron's step takes, which is run on late
    devices, too."""
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

    weights = [jnp.zeros((width, width))] * layers
    x = jnp.zeros((samples, width))
    compiled = wh.jit(
        step,
        cluster=cluster_of(memories),
        donate_argnums=0,
        batch_argnums=(1, 2),
    )
    program = compiled.lower(weights, x, x).compile()
    arguments = (weights, x, x)
    moved = late_devices.check_step(program, arguments, program(*arguments))
    print(f"{config}: {moved} transfers moved")
    return peaks(program)


def peaks(program: wh.Program) -> list[int]:
    """Bytes that each rank has taken in the last step."""
    assert program.stats
    return [rank["peak_bytes"] for rank in program.stats["ranks"]]


def check_convolution() -> None:
    """The compiler knows to the byte what convolutions take besides."""
    wh.init(wh.Config({}))

    def loss(weights: tuple, x: jax.Array) -> jax.Array:
        kernel, scale = weights
        dims = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=dims
        )
        return jnp.sum(jnp.tanh(scale * x))

    args = (
        (jnp.ones((3, 3, 8, 16)), jnp.float32(2)),
        jnp.ones((8, 16, 16, 8)),
    )

    def compile_within(memory: int) -> wh.Program:
        step = wh.jit(jax.grad(loss), cluster=cluster_of([memory]))
        return step.lower(*args).compile()

    program = compile_within(1 << 30)
    program(*args)
    (peak,) = peaks(program)
    compile_within(peak)
    try:
        compile_within(peak - 1)
    except wh.CompileError as error:
        print(error)
        assert ") lacks 1 B: " in str(error)
        assert "for what products and convolutions take" in str(error)
    else:
        raise AssertionError(f"{peak - 1} bytes are enough")


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

    check_convolution()

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
