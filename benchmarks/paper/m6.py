"""M6 by its shapes: dense with 10 billion parameters, and with experts."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax
from models import mean_loss
from models.workload import norm_params
from plan_models import Step, make_step

from paper.models import (
    Params,
    Scope,
    Sizes,
    attend,
    ends_of,
    enter,
    layer_norm,
    zeros,
)


def adafactor() -> optax.GradientTransformation:
    return optax.adafactor(1e-3)


def attention_params(width: int) -> Params:
    names = ("query", "key", "value", "out")
    return {name: zeros(width, width) for name in names} | {
        "norm1": norm_params(width),
        "norm2": norm_params(width),
    }


def attention(params: Params, x: jax.Array, heads: int) -> jax.Array:
    """Causal, with its residual."""
    length, width = x.shape[1:]
    places = jnp.arange(length)
    causal = jnp.where(places[:, None] >= places, 0, -1e9)
    now = layer_norm(params["norm1"], x)
    query = now @ params["query"] / (width / heads) ** 0.5
    mixed = attend(
        query, now @ params["key"], now @ params["value"], heads, causal
    )
    return x + mixed @ params["out"]


def embedding_params(sizes: Sizes) -> Params:
    return {
        "tokens": zeros(sizes.vocabulary, sizes.width),
        "positions": zeros(sizes.length, sizes.width),
        "norm": norm_params(sizes.width),
        "head": zeros(sizes.width, sizes.vocabulary),
    }


def m6_10b(
    batch: int, length: int, recomputes: bool, stages: int, scope: Scope
) -> Step:
    """48 layers of width 4096, as many in each stage; `recomputes` keeps a
    layer's input alone."""
    sizes = Sizes(48, 4096, 32, 16384, 21128, length)
    ends = ends_of(sizes.layers, stages)

    def init(key: jax.Array) -> Params:
        blocks = [
            attention_params(sizes.width)
            | {
                "up": zeros(sizes.width, sizes.hidden),
                "down": zeros(sizes.hidden, sizes.width),
            }
            for _ in range(sizes.layers)
        ]
        return embedding_params(sizes) | {"blocks": blocks}

    def block(params: Params, x: jax.Array) -> jax.Array:
        x = attention(params, x, sizes.heads)
        inner = layer_norm(params["norm2"], x) @ params["up"]
        return x + jax.nn.gelu(inner) @ params["down"]

    def loss(params: Params, rows: Any) -> jax.Array:
        inputs, targets = rows
        for stage in range(stages):
            with enter(scope, f"stage{stage}"):
                if stage == 0:
                    x = params["tokens"][inputs] + params["positions"]
                for layer in params["blocks"][ends[stage] : ends[stage + 1]]:
                    x = (jax.checkpoint(block) if recomputes else block)(
                        layer, x
                    )
                if stage == stages - 1:
                    x = layer_norm(params["norm"], x)
                    value = mean_loss(x @ params["head"], targets)
        return value

    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    return make_step(loss, init, (tokens, tokens), adafactor())


def by_expert(
    optimizer: optax.GradientTransformation,
) -> optax.GradientTransformation:
    """The optimizer of each expert by itself: dimension 0 of a parameter."""

    def init(params: Params) -> Any:
        return jax.vmap(optimizer.init)(params)

    def update(grads: Params, state: Any, params: Params) -> Any:
        return jax.vmap(optimizer.update)(grads, state, params)

    return optax.GradientTransformation(init, update)


def m6_experts(
    batch: int,
    length: int,
    layers: int,
    experts: int,
    hidden: int,
    scope: Scope,
    sequences: int = 8,
    capacity_factor: float = 1.25,
) -> Step:
    """Layers of width 1024 that send each token to one of the experts, which
    `scope` splits. As many sequences as a group has share the places there."""
    width = 1024
    sizes = Sizes(layers, width, 16, hidden, 21128, length)
    tokens = sequences * length
    capacity = max(1, round(tokens * capacity_factor / experts))

    def init(key: jax.Array) -> Params:
        blocks = [
            attention_params(width) | {"gate": zeros(width, experts)}
            for _ in range(layers)
        ]
        mixtures = [
            {
                "up": zeros(experts, width, hidden),
                "down": zeros(experts, hidden, width),
            }
            for _ in range(layers)
        ]
        return embedding_params(sizes) | {"blocks": blocks, "experts": mixtures}

    def mix(params: Params, mixture: Params, x: jax.Array) -> jax.Array:
        now = layer_norm(params["norm2"], x).reshape(-1, tokens, width)
        gates = jax.nn.softmax(now @ params["gate"])
        mask = jax.nn.one_hot(gates.argmax(-1), experts)
        place = ((jnp.cumsum(mask, axis=1) - 1) * mask).sum(-1)
        where = jax.nn.one_hot(place.astype(jnp.int32), capacity)
        dispatch = mask[..., None] * where[..., None, :]
        combine = (gates * mask)[..., None] * where[..., None, :]
        sent = jnp.einsum("gtec,gtd->gecd", dispatch, now)
        with enter(scope, "experts"):
            inner = jnp.einsum("gecd,edh->gech", sent, mixture["up"])
            outcome = jnp.einsum(
                "gech,ehd->gecd", jax.nn.relu(inner), mixture["down"]
            )
        mixed = jnp.einsum("gtec,gecd->gtd", combine, outcome)
        return x + mixed.reshape(x.shape)

    def loss(params: Params, rows: Any) -> jax.Array:
        inputs, targets = rows
        x = params["tokens"][inputs] + params["positions"]
        for layer, mixture in zip(params["blocks"], params["experts"]):
            x = mix(layer, mixture, attention(layer, x, sizes.heads))
        x = layer_norm(params["norm"], x)
        return mean_loss(x @ params["head"], targets)

    def labels(params: Params) -> Any:
        def label(name: str, part: Params) -> Any:
            kind = "experts" if name == "experts" else "dense"
            return jax.tree.map(lambda _: kind, part)

        return {name: label(name, part) for name, part in params.items()}

    optimizer = optax.multi_transform(
        {"experts": by_expert(adafactor()), "dense": adafactor()}, labels
    )
    rows = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    return make_step(loss, init, (rows, rows), optimizer)


m6_100b = functools.partial(m6_experts, layers=24, experts=512, hidden=4096)
m6_1t = functools.partial(m6_experts, layers=24, experts=960, hidden=21248)
