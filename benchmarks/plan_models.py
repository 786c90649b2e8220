"""The large models whose planning is timed: shapes alone, no values."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from models import mean_loss

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "gpt"))
import model  # noqa: E402

Params = Any


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step ``(params, state, batch)`` and what it takes."""

    function: Callable[..., Any]
    arguments: tuple[Any, Any, Any]


def make_step(
    loss: Callable[[Params, Any], jax.Array],
    init: Callable[[jax.Array], Params],
    batch: Any,
    optimizer: optax.GradientTransformation,
) -> Step:
    """The step of a loss under an optimizer."""

    def train_step(params: Params, state: Any, batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.eval_shape(init, jax.random.key(0))
    state = jax.eval_shape(optimizer.init, params)
    return Step(train_step, (params, state, batch))


def gpt(scopes: tuple[Callable[..., Any], ...] = ()) -> Step:
    """A GPT of 24 layers: as many layers in each scope."""
    config = model.Config(
        vocabulary=32000, layers=24, width=1024, heads=16, context=128
    )
    groups = max(1, len(scopes))
    ends = [config.layers * g // groups for g in range(groups + 1)]

    def loss(params: Params, tokens: Any) -> jax.Array:
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        for group in range(groups):
            scope = (
                scopes[group](name=f"layers{group}")
                if scopes
                else contextlib.nullcontext()
            )
            with scope:
                if group == 0:
                    x = params["tokens"][inputs] + params["positions"]
                for block in params["blocks"][ends[group] : ends[group + 1]]:
                    x = model._block(block, x)
                if group == groups - 1:
                    x = model.norm(params["norm"], x)
                    value = mean_loss(x @ params["head"], targets)
        return value

    tokens = jax.ShapeDtypeStruct((2048, config.context + 1), jnp.int32)
    init = functools.partial(model.init_params, config)
    return make_step(loss, init, tokens, optax.adam(1e-3))


def decoder() -> Step:
    """A decoder of 48 layers that computes each layer again in the backward."""
    config = model.Config(
        vocabulary=21128, layers=48, width=4096, heads=32, context=512
    )

    def loss(params: Params, tokens: Any) -> jax.Array:
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = params["tokens"][inputs] + params["positions"]
        for block in params["blocks"]:
            x = jax.checkpoint(model._block)(block, x)
        x = model.norm(params["norm"], x)
        return mean_loss(x @ params["head"], targets)

    tokens = jax.ShapeDtypeStruct((2240, config.context + 1), jnp.int32)
    init = functools.partial(model.init_params, config)
    return make_step(loss, init, tokens, optax.sgd(1e-2, momentum=0.9))


def experts(
    layers: int = 24,
    width: int = 1024,
    count: int = 512,
    hidden: int = 9984,
    groups: int = 512,
    tokens: int = 128,
) -> Step:
    """Layers that send each token to one expert; a group of tokens has places
    of its own at every expert."""
    capacity = max(1, tokens * 2 // count)

    def init(key: jax.Array) -> Params:
        def weight(*shape: int) -> jax.Array:
            return jnp.zeros(shape)

        return [
            {
                "gate": weight(width, count),
                "up": weight(count, width, hidden),
                "down": weight(count, hidden, width),
            }
            for _ in range(layers)
        ]

    def layer(params: Params, x: jax.Array) -> jax.Array:
        gates = jax.nn.softmax(x @ params["gate"])
        mask = jax.nn.one_hot(gates.argmax(-1), count)
        place = ((jnp.cumsum(mask, axis=1) - 1) * mask).sum(-1)
        where = jax.nn.one_hot(place.astype(jnp.int32), capacity)
        dispatch = mask[..., None] * where[..., None, :]
        combine = (gates * mask)[..., None] * where[..., None, :]
        sent = jnp.einsum("gtec,gtd->gecd", dispatch, x)
        with wh.split(512, name="experts"):
            inner = jax.nn.relu(
                jnp.einsum("gecd,edh->gech", sent, params["up"])
            )
            outcome = jnp.einsum("gech,ehd->gecd", inner, params["down"])
        return x + jnp.einsum("gtec,gecd->gtd", combine, outcome)

    def loss(params: Params, x: jax.Array) -> jax.Array:
        for block in params:
            x = layer(block, x)
        return jnp.square(x).mean()

    batch = jax.ShapeDtypeStruct((groups, tokens, width), jnp.float32)
    return make_step(loss, init, batch, optax.sgd(1e-2))
