"""GNMT by its shapes: LSTMs that are scanned over time, with attention."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from models import mean_loss
from plan_models import Step, make_step

from paper.models import OPTIMIZERS, Params, zeros


def lstm_params(inputs: int, width: int) -> Params:
    """Of four gates."""
    return {
        "input": zeros(inputs, 4 * width),
        "hidden": zeros(width, 4 * width),
        "bias": zeros(4 * width),
    }


def cell(params: Params, carry: Any, gates: jax.Array) -> Any:
    """One step, of which the inputs have been multiplied already."""
    hidden, memory = carry
    gates = gates + hidden @ params["hidden"]
    take, forget, new, out = jnp.split(gates, 4, axis=-1)
    memory = jax.nn.sigmoid(forget) * memory
    memory += jax.nn.sigmoid(take) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(out) * jnp.tanh(memory)
    return hidden, memory


def lstm(params: Params, x: jax.Array, is_reversed: bool = False) -> jax.Array:
    """Of [time, batch, inputs]; all inputs are multiplied at once, as cuDNN
    does."""
    zero = jnp.zeros((x.shape[1], params["hidden"].shape[0]))

    def step(carry: Any, gates: jax.Array) -> Any:
        carry = cell(params, carry, gates)
        return carry, carry[0]

    gates = x @ params["input"] + params["bias"]
    return jax.lax.scan(step, (zero, zero), gates, reverse=is_reversed)[1]


def gnmt(
    batch: int,
    length: int = 50,
    optimizer: str = "adam",
    layers: int = 8,
    width: int = 1024,
    vocabulary: int = 32000,
) -> Step:
    """Eight layers of LSTM on each side, the encoder's first in both
    directions. The decoder's first layer attends to the encoder at each step,
    and all its layers see what it found."""

    def init(key: jax.Array) -> Params:
        return {
            "source": zeros(vocabulary, width),
            "target": zeros(vocabulary, width),
            "forward": lstm_params(width, width),
            "backward": lstm_params(width, width),
            "encoder": [
                lstm_params(2 * width if number == 0 else width, width)
                for number in range(layers - 1)
            ],
            "first": lstm_params(2 * width, width),
            "decoder": [
                lstm_params(2 * width, width) for _ in range(layers - 1)
            ],
            "key": zeros(width, width),
            "query": zeros(width, width),
            "score": zeros(width),
            "head": zeros(width, vocabulary),
            "bias": zeros(vocabulary),
        }

    def attended(params: Params, x: jax.Array, memory: jax.Array) -> Any:
        """The first layer of the decoder, and what it attends to."""
        keys = memory @ params["key"]
        zero = jnp.zeros(x.shape[1:])
        first = params["first"]

        def step(carry: Any, now: jax.Array) -> Any:
            hidden, cells, found = carry
            gates = now + found @ first["input"][width:]
            hidden, cells = cell(first, (hidden, cells), gates)
            query = hidden @ params["query"]
            scores = jnp.tanh(keys + query) @ params["score"]
            weights = jax.nn.softmax(scores, axis=0)
            found = jnp.einsum("tb,tbd->bd", weights, memory)
            return (hidden, cells, found), (hidden, found)

        gates = x @ first["input"][:width] + first["bias"]
        return jax.lax.scan(step, (zero, zero, zero), gates)[1]

    def loss(params: Params, rows: Any) -> jax.Array:
        source, inputs, targets = rows
        x = params["source"][source.T]
        both = lstm(params["forward"], x), lstm(params["backward"], x, True)
        x = jnp.concatenate(both, axis=-1)
        for number, layer in enumerate(params["encoder"]):
            after = lstm(layer, x)
            x = after if number == 0 else after + x
        y = params["target"][inputs.T]
        y, found = attended(params, y, x)
        for number, layer in enumerate(params["decoder"]):
            after = lstm(layer, jnp.concatenate([y, found], axis=-1))
            y = after if number == 0 else after + y
        logits = y @ params["head"] + params["bias"]
        return mean_loss(logits, targets.T)

    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    return make_step(
        loss, init, (tokens, tokens, tokens), OPTIMIZERS[optimizer]()
    )
