"""The models that are timed: plain JAX, nothing of them made for Whale but
the strategy of the experts."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import whale as wh

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parent.parent / "examples" / "gpt")
)
import data as gpt_data  # noqa: E402
import model as gpt_model  # noqa: E402

Params = Any


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model with its mini-batch: what a training step is made of."""

    init: Callable[[jax.Array], Params]
    loss: Callable[[Params, Any], jax.Array]
    batch: Any

    def train_step(self) -> Callable[..., Any]:
        """``step(params, state, batch) -> (params, state, loss)``, a function
        of its own on every call, so that nothing of it is cached."""

        def step(params: Params, state: Any, batch: Any) -> Any:
            loss, grads = jax.value_and_grad(self.loss)(params, batch)
            updates, state = optimizer().update(grads, state, params)
            return optax.apply_updates(params, updates), state, loss

        return step


def optimizer() -> optax.GradientTransformation:
    """The optimizer of every workload."""
    return optax.adam(1e-3)


def gpt(
    annotate: bool,
    layers: int = 4,
    width: int = 256,
    heads: int = 4,
    batch: int = 16,
    context: int = 128,
    dtype: str = "float32",
) -> Workload:
    """The GPT of the examples; parameters and moments stay in f32."""
    tokens, vocabulary = gpt_data.load()
    config = gpt_model.Config(len(vocabulary), layers, width, heads, context)

    def loss(params: Params, rows: jax.Array) -> jax.Array:
        params = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
        value = gpt_model.loss_fn(params, rows, annotate=False)
        return value.astype(jnp.float32)

    rows = next(gpt_data.batches(tokens, batch, context))
    return Workload(lambda key: gpt_model.init_params(config, key), loss, rows)


def lstm(
    annotate: bool,
    batch: int = 64,
    steps: int = 64,
    inputs: int = 128,
    width: int = 256,
    classes: int = 64,
) -> Workload:
    """One LSTM layer, scanned over time, with a class for each step."""

    def init(key: jax.Array) -> Params:
        keys = jax.random.split(key, 3)
        return {
            "input": jax.random.normal(keys[0], (inputs, 4 * width)) * 0.05,
            "hidden": jax.random.normal(keys[1], (width, 4 * width)) * 0.05,
            "bias": jnp.zeros(4 * width),
            "head": jax.random.normal(keys[2], (width, classes)) * 0.05,
        }

    def cell(params: Params, carry: Any, x: jax.Array) -> Any:
        hidden, memory = carry
        gates = x @ params["input"] + hidden @ params["hidden"] + params["bias"]
        take, forget, new, out = jnp.split(gates, 4, axis=-1)
        memory = jax.nn.sigmoid(forget) * memory
        memory += jax.nn.sigmoid(take) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(out) * jnp.tanh(memory)
        return (hidden, memory), hidden

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        zero = jnp.zeros((x.shape[0], width))
        _, hidden = jax.lax.scan(
            lambda carry, now: cell(params, carry, now),
            (zero, zero),
            jnp.swapaxes(x, 0, 1),
        )
        logits = jnp.swapaxes(hidden, 0, 1) @ params["head"]
        return optax.softmax_cross_entropy_with_integer_labels(
            logits, labels
        ).mean()

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, steps, inputs), np.float32),
        random.integers(0, classes, (batch, steps), np.int32),
    )
    return Workload(init, loss, rows)


def convnet(annotate: bool, batch: int = 128, image: int = 32) -> Workload:
    """Three 3 x 3 convolutions with two max-poolings, and a classifier."""
    channels = (3, 32, 64, 128)
    classes = 10

    def init(key: jax.Array) -> Params:
        keys = iter(jax.random.split(key, len(channels)))
        layers = [
            {
                "kernel": jax.random.normal(next(keys), (3, 3, fan, out)) * 0.1,
                "bias": jnp.zeros(out),
            }
            for fan, out in zip(channels, channels[1:])
        ]
        head = jax.random.normal(next(keys), (channels[-1], classes)) * 0.1
        return {"layers": layers, "head": head}

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        for number, layer in enumerate(params["layers"]):
            x = jax.lax.conv_general_dilated(
                x,
                layer["kernel"],
                (1, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            x = jax.nn.relu(x + layer["bias"])
            if number < 2:
                x = jax.lax.reduce_window(
                    x,
                    -jnp.inf,
                    jax.lax.max,
                    (1, 2, 2, 1),
                    (1, 2, 2, 1),
                    "VALID",
                )
        logits = x.mean((1, 2)) @ params["head"]
        return optax.softmax_cross_entropy_with_integer_labels(
            logits, labels
        ).mean()

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, image, image, 3), np.float32),
        random.integers(0, classes, batch, np.int32),
    )
    return Workload(init, loss, rows)


def moe(
    annotate: bool,
    batch: int = 16,
    context: int = 128,
    width: int = 256,
    experts: int = 8,
    hidden: int = 1024,
) -> Workload:
    """A top-2 mixture of experts that fits a vector to each token. Each
    sequence has its own places at the experts, as in GShard; the experts are
    split over the devices."""
    capacity = context * 2 // experts * 5 // 4

    def init(key: jax.Array) -> Params:
        keys = jax.random.split(key, 3)
        return {
            "gate": jax.random.normal(keys[0], (width, experts)) * 0.05,
            "up": jax.random.normal(keys[1], (experts, width, hidden)) * 0.05,
            "down": jax.random.normal(keys[2], (experts, hidden, width)) * 0.05,
        }

    def route(gates: jax.Array) -> jax.Array:
        """Weights by token, expert and place: [batch, context, experts,
        capacity]."""
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

    def loss(params: Params, rows: Any) -> jax.Array:
        x, wanted = rows
        combine = route(jax.nn.softmax(x @ params["gate"]))
        dispatch = (combine > 0).astype(x.dtype)
        sent = jnp.einsum("btec,btd->becd", dispatch, x)
        with wh.split(name="experts") if annotate else contextlib.nullcontext():
            inner = jax.nn.gelu(
                jnp.einsum("becd,edh->bech", sent, params["up"])
            )
            outcome = jnp.einsum("bech,ehd->becd", inner, params["down"])
        result = jnp.einsum("btec,becd->btd", combine, outcome)
        return jnp.square(x + result - wanted).mean()

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, context, width), np.float32),
        random.standard_normal((batch, context, width), np.float32),
    )
    return Workload(init, loss, rows)
