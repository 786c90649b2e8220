"""What the examples share: a few steps beside `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import whale as wh

WIDTH, SAMPLES = 32, 16


def layers(count: int, width: int = WIDTH) -> list[jax.Array]:
    """Square weights of `count` layers."""
    keys = jax.random.split(jax.random.key(0), count)
    return [0.2 * jax.random.normal(key, (width, width)) for key in keys]


def train(
    loss: Callable[[Any, jax.Array, jax.Array], jax.Array],
    params: Any,
    cluster: Any,
    outputs: int = WIDTH,
    steps: int = 5,
) -> None:
    """Trains with plain gradient descent, prints the loss of each step, and
    fails if it isn't that of `jax.jit`."""

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        update = lambda p, g: p - 0.05 * g  # noqa: E731
        return jax.tree.map(update, params, grads), value

    x = jax.random.normal(jax.random.key(1), (SAMPLES, WIDTH))
    y = jnp.sin(jnp.arange(SAMPLES * outputs)).reshape(SAMPLES, outputs)
    program = wh.jit(step, cluster=cluster, batch_argnums=(1, 2))
    plain = jax.jit(step)
    expected = actual = params
    for index in range(steps):
        actual, value = program(actual, x, y)
        expected, reference = plain(expected, x, y)
        print(f"step {index}: loss {float(np.asarray(value)):.6f}")
        np.testing.assert_allclose(np.asarray(value), reference, rtol=1e-4)
