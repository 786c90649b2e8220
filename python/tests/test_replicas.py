"""Pipelines repeated over devices of unequal speeds and numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

WIDTH, BATCH = 16, 32


def train_step(first: int, second: int) -> Any:
    """A replicated stage before a split one."""

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        with wh.replicate(first, name="first"):
            hidden = x + jnp.tanh(x @ params[0])
        with wh.split(second, name="second"):
            hidden = hidden + jnp.tanh(hidden @ params[1])
            return jnp.mean((hidden - y) ** 2)

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


# The slower replica takes other shares of unequal micro-batches, or none.
@pytest.mark.parametrize(
    ("first", "second", "micro_batches", "slowdown"),
    [(1, 2, 5, 3), (2, 2, 8, 2), (1, 2, 16, 2)],
)
def test_unequal_replicas(
    first: int, second: int, micro_batches: int, slowdown: int
) -> None:
    count = first + second
    devices = [{"kind": "cpu", "count": count}]
    devices += [{"kind": "cpu", "count": count, "slowdown": slowdown}]
    key = jax.random.key(0)
    params = [jax.random.normal(key, (WIDTH, WIDTH)) / 4 for _ in range(2)]
    x = jax.random.normal(key, (BATCH, WIDTH))
    step = train_step(first, second)
    expected = jax.jit(step)(params, x, jnp.tanh(x))
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    parallel = wh.jit(
        step,
        cluster={"nodes": [{"devices": devices}]},
        batch_argnums=(1, 2),
    )
    results = parallel(params, x, jnp.tanh(x))
    for result, wanted in zip(
        jax.tree.leaves(results), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
