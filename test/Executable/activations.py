#!/usr/bin/env python
"""Under 1F1B stage s of S keeps the activations of S - s micro-batches.

The arena of each rank, for programs whose activations outweigh everything else,
must grow by equal steps from the last stage to the first, whatever the number
of micro-batches; under GPipe all stages keep all micro-batches. Gradients are
added up as they come: of one parameter there are no more at once, the more
micro-batches there are.
"""

from __future__ import annotations

import itertools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import late_devices

import whale as wh

STAGES, LAYERS, SAMPLES, WIDTH = 4, 6, 256, 16
# What a layer keeps of a micro-batch.
LAYER = SAMPLES * WIDTH * 4


def measure(schedule: str, micro_batches: int) -> list[float]:
    """The most that each rank keeps, in activations of one layer."""
    wh.init(
        wh.Config(
            {"num_micro_batch": micro_batches, "pipeline.strategy": schedule}
        )
    )

    def loss(weights: list, x: jax.Array) -> jax.Array:
        for stage, layers in enumerate(weights):
            with wh.replicate(1, name=f"stage{stage}"):
                for weight in layers:
                    x = jnp.tanh(x @ weight)
                if stage + 1 == STAGES:
                    x = jnp.mean(x**2)
        return x

    def step(weights: list, x: jax.Array) -> tuple:
        value, grads = jax.value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), value

    weights = [[jnp.eye(WIDTH)] * LAYERS] * STAGES
    x = jnp.ones((micro_batches * SAMPLES, WIDTH))
    program = wh.jit(step, cluster=STAGES, batch_argnums=1, donate_argnums=0)
    program = program.lower(weights, x).compile()
    run(f"{schedule}, {micro_batches} micro-batches", program, (weights, x))
    return [
        (rank["peak_bytes"] - rank["argument_bytes"]) / LAYER
        for rank in program.stats["ranks"]
    ]


def measure_embedding(micro_batches: int) -> float:
    """The most that a table's stage keeps, in tables."""
    wh.init(wh.Config({"num_micro_batch": micro_batches}))

    def loss(params: tuple, x: jax.Array) -> jax.Array:
        with wh.replicate(1, name="front"):
            h = jnp.tanh(params[0][x])
        with wh.replicate(1, name="back"):
            return jnp.mean(jnp.tanh(h @ params[1]) ** 2)

    def step(params: tuple, x: jax.Array) -> tuple:
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = (jnp.ones((4096, WIDTH)), jnp.eye(WIDTH))
    x = jnp.arange(4 * micro_batches)
    program = wh.jit(step, cluster=2, batch_argnums=1, donate_argnums=0)
    program = program.lower(params, x).compile()
    run(f"{micro_batches} micro-batches", program, (params, x))
    rank = program.stats["ranks"][0]
    return (rank["peak_bytes"] - rank["argument_bytes"]) / params[0].nbytes


def run(what: str, program: wh.Program, arguments: tuple) -> None:
    """Runs a step, and again on late devices."""
    moved = late_devices.check_step(program, arguments, program(*arguments))
    print(f"{what}: {moved} transfers moved")


def main() -> None:
    few, many = measure_embedding(2), measure_embedding(12)
    print(f"tables with 2 micro-batches: {few}, with 12: {many}")
    assert many < few + 0.5, (few, many)
    for micro_batches in (4, 9):
        peaks = measure("1f1b", micro_batches)
        print(f"1f1b, {micro_batches} micro-batches: {peaks}")
        # The last stage keeps one micro-batch, what it computes with, and what
        # it receives meanwhile; each before it one micro-batch more: its
        # layers' values and what it receives, one of it ahead, but for the
        # first one, whose inputs stay where they are.
        assert LAYERS <= peaks[-1] < 2 * LAYERS + 1, peaks
        peaks[0] += STAGES + 1
        for earlier, later in itertools.pairwise(peaks):
            assert LAYERS - 0.5 < earlier - later < LAYERS + 2.5, peaks
    micro_batches = 6
    peaks = measure("gpipe", micro_batches)
    print(f"gpipe, {micro_batches} micro-batches: {peaks}")
    assert all(peak >= micro_batches * LAYERS for peak in peaks), peaks


if __name__ == "__main__":
    main()
