"""Mixtures of experts, alone and in a transformer."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import whale as wh
from models.example import gpt_model
from models.workload import (
    Params,
    Workload,
    drawer,
    mean_loss,
    random_tokens,
)


def capacity_of(context: int, experts: int) -> int:
    """The places of an expert for the tokens of a sample, of which two experts
    have each: a quarter more than if they were shared out evenly."""
    return context * 2 // experts * 5 // 4


def route(gates: jax.Array, capacity: int) -> jax.Array:
    """Weights of the two likeliest experts of each token, by its place there:
    [batch, tokens, experts] to [batch, tokens, experts, capacity]. Each
    sequence has its own places, as in GShard."""
    experts = gates.shape[-1]
    weights, chosen = jax.lax.top_k(gates, 2)
    weights /= weights.sum(-1, keepdims=True)
    combine = jnp.zeros((*gates.shape, capacity))
    taken = jnp.zeros((gates.shape[0], 1, experts))
    for rank in range(2):
        mask = jax.nn.one_hot(chosen[..., rank], experts)
        place = jnp.cumsum(mask, axis=1) - mask + taken
        taken += mask.sum(1, keepdims=True)
        place = (place * mask).sum(-1).astype(jnp.int32)
        # A place beyond the capacity is a row of zeros.
        where = jax.nn.one_hot(place, capacity)
        combine += (
            weights[..., rank, None, None]
            * mask[..., None]
            * where[..., None, :]
        )
    return combine


def mix(
    params: Params,
    gates: jax.Array,
    x: jax.Array,
    capacity: int,
    annotate: bool,
) -> jax.Array:
    """What the two experts of each token make of it; `annotate` splits them
    over the devices."""
    combine = route(gates, capacity).astype(x.dtype)
    dispatch = (combine > 0).astype(x.dtype)
    sent = jnp.einsum("btec,btd->becd", dispatch, x)
    with wh.split(name="experts") if annotate else contextlib.nullcontext():
        inner = jax.nn.gelu(jnp.einsum("becd,edh->bech", sent, params["up"]))
        outcome = jnp.einsum("bech,ehd->becd", inner, params["down"])
    return jnp.einsum("btec,becd->btd", combine, outcome)


def moe(
    annotate: bool,
    batch: int = 16,
    context: int = 128,
    width: int = 256,
    experts: int = 8,
    hidden: int = 1024,
) -> Workload:
    """A top-2 mixture of experts that fits a vector to each token; the experts
    are split over the devices."""
    capacity = capacity_of(context, experts)

    def init(key: jax.Array) -> Params:
        weight = drawer(key, 0.05)
        return {
            "gate": weight(width, experts),
            "up": weight(experts, width, hidden),
            "down": weight(experts, hidden, width),
        }

    def loss(params: Params, rows: Any) -> jax.Array:
        x, wanted = rows
        gates = jax.nn.softmax(x @ params["gate"])
        result = mix(params, gates, x, capacity, annotate)
        return jnp.square(x + result - wanted).mean()

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, context, width), np.float32),
        random.standard_normal((batch, context, width), np.float32),
    )
    return Workload(init, loss, rows)


def moe_transformer(
    annotate: bool,
    layers: int = 4,
    width: int = 1024,
    heads: int = 16,
    experts: int = 8,
    hidden: int = 2048,
    vocabulary: int = 4096,
    batch: int = 16,
    context: int = 1024,
    dtype: str = "float32",
) -> Workload:
    """A transformer whose feed-forward layers are top-2 mixtures of experts.
    Products are in `dtype`; parameters and the weights of experts in f32."""
    capacity = capacity_of(context, experts)
    config = gpt_model.Config(vocabulary, layers, width, heads, context)

    def init(key: jax.Array) -> Params:
        base, rest = jax.random.split(key)
        params = gpt_model.init_params(config, base)
        weight = drawer(rest)
        for block in params["blocks"]:
            block["gate"] = weight(width, experts)
            block["up"] = weight(experts, width, hidden)
            block["down"] = weight(experts, hidden, width)
        return params

    def feed_forward(block: Params, x: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        gates = jax.nn.softmax(wide @ block["gate"].astype(jnp.float32))
        return mix(block, gates, x, capacity, annotate)

    def loss(params: Params, rows: jax.Array) -> jax.Array:
        params = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
        inputs, targets = rows[:, :-1], rows[:, 1:]
        x = params["tokens"][inputs] + params["positions"]
        for block in params["blocks"]:
            now = gpt_model.norm(block["norm1"], x)
            x = x + gpt_model.attention(block, now)
            x = x + feed_forward(block, gpt_model.norm(block["norm2"], x))
        logits = gpt_model.norm(params["norm"], x) @ params["head"]
        return mean_loss(logits, targets).astype(jnp.float32)

    rows = random_tokens(batch, context + 1, vocabulary)
    return Workload(init, loss, rows)
