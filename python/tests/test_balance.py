"""Unequal devices and shares that rotate give what one device gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from test_pipelines import check, halves, nowhere

import whale as wh


def cluster_of(*slowdowns: float) -> dict[str, Any]:
    """One node of CPU ranks that are so many times slower than their kind."""
    kind = {
        "flops": {"f32": 1e9},
        "memory_bytes": 1 << 30,
        "memory_bandwidth": 1e12,
    }
    devices = [{"kind": "c", "slowdown": factor} for factor in slowdowns]
    return {"kinds": {"c": kind}, "nodes": [{"devices": devices}]}


@pytest.mark.parametrize("count", [1, 3, 4, 5])
@pytest.mark.parametrize("slowdowns", [(1, 2), (1, 3.3), (2, 1, 1.5)])
def test_replicas_of_unequal_speed(
    slowdowns: tuple[float, ...], count: int
) -> None:
    cluster = cluster_of(*slowdowns)
    scope = len(slowdowns)
    check(
        {"num_micro_batch": count},
        lambda i: wh.replicate(scope, name="all"),
        cluster,
        masked=True,
    )


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zero-bubble"])
def test_pipelines_whose_shares_rotate(schedule: str) -> None:
    config = {"num_micro_batch": 4, "pipeline.strategy": schedule}
    check(config, halves, cluster_of(1, 2, 2.5, 1))


def test_split_and_replicas_of_unequal_speed() -> None:
    def scope(i: int) -> Any:
        if i % 2:
            return wh.split(2, name=f"layer{i}")
        return wh.replicate(2, name=f"layer{i}")

    check({"num_micro_batch": 4}, scope, cluster_of(1, 2))


# The slower replica takes other shares of unequal micro-batches, or none.
@pytest.mark.parametrize(
    ("first", "second", "micro_batches", "slowdown"),
    [(1, 2, 5, 3), (2, 2, 8, 2), (1, 2, 16, 2)],
)
def test_unequal_replicas_of_a_pipeline(
    first: int, second: int, micro_batches: int, slowdown: int
) -> None:
    def scope(i: int) -> Any:
        if i < 2:
            return wh.replicate(first, name="first")
        return wh.split(second, name="second")

    count = first + second
    cluster = cluster_of(*[1] * count, *[slowdown] * count)
    check({"num_micro_batch": micro_batches}, scope, cluster, samples=32)


def test_automatic_stages_on_unequal_devices() -> None:
    config = {"num_micro_batch": 5, "num_task_graph": 2}
    wh.set_default_strategy(wh.replicate(2))
    check(config, nowhere, cluster_of(1, 2, 1.7, 1))


def products(
    instructions: list[dict[str, Any]],
    manifest: dict[str, Any],
    runs: Sequence[dict[str, Any]] = (),
) -> int:
    """The FLOPs of all products, loops entered once."""

    def count(instruction: dict[str, Any]) -> int:
        if "matmul" in instruction:
            return int(instruction["flops"])
        if "run" in instruction:
            run = runs[instruction["run"]]
            function = manifest["functions"][run["function"]]
            return products(function["instructions"], manifest)
        return sum(
            products(instruction.get(region, []), manifest, runs)
            for region in ("cond", "body")
        )

    return sum(map(count, instructions))


# What a micro-batch begins at has common divisors with the mini-batch; they
# are no reason to keep samples together.
@pytest.mark.parametrize(
    ("samples", "micro_batches", "ranks"),
    [(292, 5, 4), (256, 5, 4), (192, 7, 2)],
)
def test_unequal_micro_batches_are_shared_out_by_sample(
    samples: int, micro_batches: int, ranks: int
) -> None:
    def loss(params: Any, x: Any) -> Any:
        for weight in params:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def step(params: Any, x: Any) -> Any:
        grads = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    width, layers = 64, 3  # Less is no call of the library.
    params = [jnp.zeros((width, width))] * layers
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(wh.replicate())
    program = (
        wh.jit(step, cluster=ranks, donate_argnums=0, batch_argnums=1)
        .lower(params, jnp.zeros((samples, width)))
        .compile()
    )
    # Forward, the weights' gradients, and those of all inputs but the first.
    sample = (3 * layers - 1) * 2 * width**2
    taken = {
        rank: products(
            entry["instructions"], program.manifest, entry.get("runs", ())
        )
        / sample
        for entry in program.manifest["classes"]
        for rank in entry["ranks"]
    }
    assert set(taken.values()) == {samples / ranks}
