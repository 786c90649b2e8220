"""Models of series, and of many small parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from models.workload import (
    Params,
    Workload,
    drawer,
    mean_loss,
    random_tokens,
)


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
        weight = drawer(key, 0.05)
        return {
            "input": weight(inputs, 4 * width),
            "hidden": weight(width, 4 * width),
            "bias": jnp.zeros(4 * width),
            "head": weight(width, classes),
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
        return mean_loss(logits, labels)

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, steps, inputs), np.float32),
        random.integers(0, classes, (batch, steps), np.int32),
    )
    return Workload(init, loss, rows)


def wavenet(
    annotate: bool,
    layers: int = 10,
    width: int = 64,
    levels: int = 256,
    batch: int = 4,
    steps: int = 2048,
) -> Workload:
    """A WaveNet: gated causal convolutions of two steps that are 1, 2, 4, ...
    apart, with a class for the next step of the sound."""

    def init(key: jax.Array) -> Params:
        weight = drawer(key, 0.1)
        return {
            "levels": weight(levels, width),
            "layers": [
                {
                    "filter": weight(2, width, width),
                    "gate": weight(2, width, width),
                    "out": weight(width, width),
                }
                for _ in range(layers)
            ],
            "head": weight(width, levels),
        }

    def convolution(x: jax.Array, kernel: jax.Array, apart: int) -> jax.Array:
        return jax.lax.conv_general_dilated(
            x,
            kernel,
            (1,),
            [(apart, 0)],
            rhs_dilation=(apart,),
            dimension_numbers=("NWC", "WIO", "NWC"),
        )

    def loss(params: Params, rows: jax.Array) -> jax.Array:
        x = params["levels"][rows[:, :-1]]
        total = jnp.zeros_like(x)
        for number, layer in enumerate(params["layers"]):
            apart = 2**number
            inner = jnp.tanh(convolution(x, layer["filter"], apart))
            inner *= jax.nn.sigmoid(convolution(x, layer["gate"], apart))
            inner = inner @ layer["out"]
            x, total = x + inner, total + inner
        return mean_loss(jax.nn.relu(total) @ params["head"], rows[:, 1:])

    rows = random_tokens(batch, steps + 1, levels)
    return Workload(init, loss, rows)


def small_parameters(
    annotate: bool, batch: int = 32, width: int = 16, layers: int = 100
) -> Workload:
    """Two vectors a layer: a step that is all small gradients."""

    def init(key: jax.Array) -> Params:
        scale, bias = jax.random.normal(key, (2, layers, width))
        return [
            {"scale": scale[number], "bias": bias[number]}
            for number in range(layers)
        ]

    def loss(params: Params, x: jax.Array) -> jax.Array:
        for layer in params:
            x = jnp.tanh(x * layer["scale"] + layer["bias"])
        return jnp.square(x).mean()

    random = np.random.default_rng(0)
    rows = random.standard_normal((batch, width), np.float32)
    return Workload(init, loss, rows, optax.sgd(1e-3))
