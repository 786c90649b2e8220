"""Small training steps of several families, as the texts that JAX prints.

Each function takes sizes and returns a step `(params, opt_state, *inputs) ->
(params, opt_state, loss)` with the arguments to trace it on. Labels of batch
arguments are those that `compare.py --batch-args auto` knows.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import optax
from jax import lax


def entropy(logits, labels):
    """The mean cross-entropy of integer labels."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()


def train(loss, params, optimizer, *inputs):
    """The step that optimizes `loss(params, *inputs)`, and its arguments."""

    def update(params, opt_state, inputs):
        value, gradient = jax.value_and_grad(loss)(params, *inputs)
        change, opt_state = optimizer.update(gradient, opt_state, params)
        return optax.apply_updates(params, change), opt_state, value

    def step(params, opt_state, x, y):
        return update(params, opt_state, (x, y))

    def step_with_key(params, opt_state, x, y, key):
        return update(params, opt_state, (x, y, key))

    chosen = step_with_key if len(inputs) == 3 else step
    return chosen, (params, optimizer.init(params), *inputs)


def mlp(batch, features, hidden, classes):
    """Two hidden layers under Adam."""
    params = {
        "w1": jnp.zeros((features, hidden)),
        "b1": jnp.zeros(hidden),
        "w2": jnp.zeros((hidden, hidden)),
        "w3": jnp.zeros((hidden, classes)),
    }

    def loss(params, x, y):
        h = jnp.tanh(x @ params["w1"] + params["b1"])
        h = jax.nn.gelu(h @ params["w2"])
        return entropy(h @ params["w3"], y)

    x, y = jnp.zeros((batch, features)), jnp.zeros(batch, jnp.int32)
    return train(loss, params, optax.adam(1e-3), x, y)


def gpt(batch, length, width, heads, tokens):
    """One block with a tied head and dropout, under clipped AdamW."""
    params = {
        "embedding": jnp.zeros((tokens, width)),
        "qkv": jnp.zeros((width, 3 * width)),
        "out": jnp.zeros((width, width)),
        "up": jnp.zeros((width, 4 * width)),
        "down": jnp.zeros((4 * width, width)),
        "scale": jnp.zeros(width),
    }

    def loss(params, x, y, key):
        table = params["embedding"]
        h = table[x]
        n = h * lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + 1e-5)
        n = n * params["scale"]
        q, k, v = (
            part.reshape(batch, length, heads, width // heads)
            for part in jnp.split(n @ params["qkv"], 3, -1)
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5
        causal = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), -1)
        keep = jax.random.bernoulli(key, 0.8, weights.shape)
        weights = jnp.where(keep, weights / 0.8, 0)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        h = h + mixed.reshape(batch, length, width) @ params["out"]
        h = h + jax.nn.gelu(h @ params["up"]) @ params["down"]
        return entropy(h @ table.T, y)

    x = jnp.zeros((batch, length), jnp.int32)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    key = jnp.zeros(2, jnp.uint32)
    return train(loss, params, optimizer, x, x, key)


def cnn(batch, channels, groups, classes):
    """Convolutions, the second one grouped, with batch norm and pooling."""
    params = {
        "c1": jnp.zeros((3, 3, 4, channels)),
        "c2": jnp.zeros((3, 3, channels // groups, 2 * channels)),
        "gamma": jnp.zeros(2 * channels),
        "head": jnp.zeros((2 * channels * 9, classes)),
    }

    def convolve(x, kernel, groups=1):
        return lax.conv_general_dilated(
            x,
            kernel,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    def loss(params, x, y):
        h = jax.nn.relu(convolve(x, params["c1"]))
        h = convolve(h, params["c2"], groups)
        mean, var = h.mean((0, 1, 2)), h.var((0, 1, 2))
        h = (h - mean) * lax.rsqrt(var + 1e-5) * params["gamma"]
        window = (1, 2, 2, 1)
        h = lax.reduce_window(h, -jnp.inf, lax.max, window, window, "VALID")
        return entropy(h.reshape(batch, -1) @ params["head"], y)

    x, y = jnp.zeros((batch, 6, 6, 4)), jnp.zeros(batch, jnp.int32)
    return train(loss, params, optax.sgd(0.1, momentum=0.9), x, y)


def lstm(batch, length, features, hidden):
    """A recurrent layer under `lax.scan`, with dropout drawn in the loop."""
    params = {
        "wx": jnp.zeros((features, 4 * hidden)),
        "wh": jnp.zeros((hidden, 4 * hidden)),
        "b": jnp.zeros(4 * hidden),
        "out": jnp.zeros((hidden, features)),
    }

    def loss(params, x, y, key):
        def cell(carry, xs):
            h, c = carry
            x, key = xs
            gates = x @ params["wx"] + h @ params["wh"] + params["b"]
            i, f, g, o = jnp.split(gates, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            keep = jax.random.bernoulli(key, 0.8, h.shape)
            return (h, c), jnp.where(keep, h / 0.8, 0)

        zeros = jnp.zeros((batch, hidden))
        keys = jax.random.split(key, length)
        _, h = lax.scan(cell, (zeros, zeros), (x.swapaxes(0, 1), keys))
        return ((h @ params["out"] - y.swapaxes(0, 1)) ** 2).mean()

    x = jnp.zeros((batch, length, features))
    key = jnp.zeros(2, jnp.uint32)
    return train(loss, params, optax.adam(1e-2), x, x, key)


def moe(batch, width, experts, hidden):
    """A top-2 mixture of experts with a capacity, dispatched by one-hots."""
    params = {
        "gate": jnp.zeros((width, experts)),
        "up": jnp.zeros((experts, width, hidden)),
        "down": jnp.zeros((experts, hidden, width)),
    }
    capacity = max(1, 2 * batch // experts)

    def loss(params, x, y):
        gates = jax.nn.softmax(x @ params["gate"])
        values, chosen = lax.top_k(gates, 2)
        chosen = jax.nn.one_hot(chosen, experts)
        flat = chosen.swapaxes(0, 1).reshape(2 * batch, experts)
        place = jnp.cumsum(flat, 0).reshape(2, batch, experts).swapaxes(0, 1)
        place = jax.nn.one_hot((place * chosen - 1).astype("int32"), capacity)
        dispatch = place * chosen[..., None]
        combine = (dispatch * values[:, :, None, None]).sum(1)
        h = jnp.einsum("nec,nd->ecd", dispatch.sum(1), x)
        h = jax.nn.relu(jnp.einsum("ecd,edf->ecf", h, params["up"]))
        h = jnp.einsum("ecf,efd->ecd", h, params["down"])
        out = x + jnp.einsum("nec,ecd->nd", combine, h)
        return ((out - y) ** 2).mean() + gates.mean(0).max()

    x = jnp.zeros((batch, width))
    return train(loss, params, optax.adam(1e-2), x, x)


def lower(model, donate=False):
    """The text of a model with names of arguments, its state donated or not."""
    step, arguments = model
    specs = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)),
        arguments,
    )
    donated = (0, 1) if donate else ()
    jitted = jax.jit(step, donate_argnums=donated, keep_unused=True)
    return jitted.lower(*specs).as_text(debug_info=True)
