"""A small GPT in plain JAX, annotated for Whale.

Nothing but the `wh.` lines knows of devices; `annotate=False` leaves them out.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

import whale as wh

Params = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Config:
    """The sizes of the model."""

    vocabulary: int
    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 64

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def init_params(config: Config, key: jax.Array) -> Params:
    """Parameters as nested dictionaries."""
    keys = iter(jax.random.split(key, 3 + 4 * config.layers))

    def weight(*shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) * 0.02

    width = config.width

    def norm() -> Params:
        return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}

    return {
        "tokens": weight(config.vocabulary, width),
        "positions": weight(config.context, width),
        "blocks": [
            {
                "norm1": norm(),
                "qkv": weight(width, 3, config.heads, config.head_width),
                "out": weight(config.heads, config.head_width, width),
                "norm2": norm(),
                "up": weight(width, 4 * width),
                "down": weight(4 * width, width),
            }
            for _ in range(config.layers)
        ],
        "norm": norm(),
        "head": weight(width, config.vocabulary),
    }


def norm(params: Params, x: jax.Array) -> jax.Array:
    """Layer norm over the last dimension."""
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return x * params["scale"] + params["bias"]


def attention(params: Params, x: jax.Array) -> jax.Array:
    """Causal attention of [batch, time, width]."""
    q, k, v = jnp.einsum("btd,dnhk->nbhtk", x, params["qkv"])
    scores = jnp.einsum("bhqk,bhtk->bhqt", q, k) / jnp.sqrt(q.shape[-1])
    time = x.shape[1]
    mask = jnp.tril(jnp.ones((time, time), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    mixed = jnp.einsum("bhqt,bhtk->bhqk", weights, v)
    return jnp.einsum("bhqk,hkd->bqd", mixed, params["out"])


def _block(params: Params, x: jax.Array) -> jax.Array:
    x = x + attention(params, norm(params["norm1"], x))
    hidden = jax.nn.gelu(norm(params["norm2"], x) @ params["up"])
    return x + hidden @ params["down"]


def loss_fn(params: Params, tokens: jax.Array, annotate: bool) -> jax.Array:
    """The mean cross-entropy of each token given those before it."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    x = params["tokens"][inputs] + params["positions"]
    for block in params["blocks"]:
        x = _block(block, x)
    x = norm(params["norm"], x)
    # The output layer has a column for each token: shard it. All else, under
    # the default strategy, is replicated and shares out the batch.
    with wh.split(name="head") if annotate else contextlib.nullcontext():
        logits = x @ params["head"]
        losses = optax.softmax_cross_entropy_with_integer_labels(
            logits, targets
        )
        return losses.mean()


def make_train_step(
    optimizer: optax.GradientTransformation, annotate: bool = True
) -> Any:
    """``train_step(params, state, tokens) -> (params, state, loss)``."""

    def train_step(params: Params, state: Any, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens, annotate)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return train_step
