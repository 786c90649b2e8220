"""What all models are made of: the workload itself, layers that several have,
and mini-batches of random data.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Params = Any


def mean_loss(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean cross-entropy with labels that are class numbers."""
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, labels
    ).mean()


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """Images [N, H, W, C] by a kernel [H, W, C, features], padded so that a
    stride of 1 keeps their size."""
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model with its mini-batch: what a training step is made of."""

    init: Callable[[jax.Array], Params]
    loss: Callable[[Params, Any], jax.Array]
    batch: Any
    optimizer: optax.GradientTransformation = optax.adam(1e-3)

    def train_step(self) -> Callable[..., Any]:
        """``step(params, state, batch) -> (params, state, loss)``, a function
        of its own on every call, so that nothing of it is cached."""

        def step(params: Params, state: Any, batch: Any) -> Any:
            loss, grads = jax.value_and_grad(self.loss)(params, batch)
            updates, state = self.optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state, loss

        return step


def drawer(key: jax.Array, scale: float = 0.02) -> Callable[..., jax.Array]:
    """`weight(*shape)`: normal numbers of a scale, others on each call."""
    numbers = itertools.count()

    def weight(*shape: int) -> jax.Array:
        part = jax.random.fold_in(key, next(numbers))
        return jax.random.normal(part, shape) * scale

    return weight


def rms_norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    """Divides vectors by the root of their mean square."""
    mean = jnp.square(x).mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(mean + 1e-6) * scale


def norm_params(width: int) -> Params:
    """A scale and a bias for each feature, which change nothing at first."""
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def random_images(
    batch: int, size: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Square images of three colours, and a class for each."""
    random = np.random.default_rng(0)
    return (
        random.standard_normal((batch, size, size, 3), np.float32),
        random.integers(0, classes, batch, np.int32),
    )


def random_tokens(batch: int, count: int, vocabulary: int) -> np.ndarray:
    """Rows of numbers below the size of a vocabulary."""
    random = np.random.default_rng(0)
    return random.integers(0, vocabulary, (batch, count), np.int32)
