"""Transformers: of text, with other positions and biases, and of images."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from models.example import gpt_data, gpt_model
from models.workload import (
    Params,
    Workload,
    drawer,
    mean_loss,
    norm_params,
    random_images,
    random_tokens,
    rms_norm,
)


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


def rope_transformer(
    annotate: bool,
    layers: int = 4,
    width: int = 256,
    heads: int = 8,
    pairs: int = 4,
    hidden: int = 704,
    vocabulary: int = 4096,
    batch: int = 16,
    context: int = 128,
) -> Workload:
    """Rotary positions, `pairs` heads of keys and values for `heads` of
    queries, RMS norms, SwiGLU and an output layer of its own."""
    head = width // heads
    frequencies = 1e4 ** (-np.arange(0, head, 2, dtype=np.float32) / head)
    angles = np.arange(context, dtype=np.float32)[:, None] * frequencies
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    mask = np.tril(np.ones((context, context), bool))

    def init(key: jax.Array) -> Params:
        weight = drawer(key)
        return {
            "tokens": weight(vocabulary, width),
            "blocks": [
                {
                    "norm1": jnp.ones(width),
                    "query": weight(width, heads, head),
                    "key": weight(width, pairs, head),
                    "value": weight(width, pairs, head),
                    "out": weight(heads, head, width),
                    "norm2": jnp.ones(width),
                    "gate": weight(width, hidden),
                    "up": weight(width, hidden),
                    "down": weight(hidden, width),
                }
                for _ in range(layers)
            ],
            "norm": jnp.ones(width),
            "head": weight(width, vocabulary),
        }

    def rotate(x: jax.Array) -> jax.Array:
        """Turns each pair of features by its angle; x is [batch, time, heads,
        head]."""
        first, second = jnp.split(x, 2, axis=-1)
        turned = first * cosine - second * sine, second * cosine + first * sine
        return jnp.concatenate(turned, axis=-1)

    def attend(block: Params, x: jax.Array) -> jax.Array:
        query = rotate(jnp.einsum("btd,dhk->bthk", x, block["query"]))
        key = rotate(jnp.einsum("btd,dpk->btpk", x, block["key"]))
        value = jnp.einsum("btd,dpk->btpk", x, block["value"])
        shape = *x.shape[:2], pairs, heads // pairs, head
        scores = jnp.einsum("bqpgk,btpk->bpgqt", query.reshape(shape), key)
        scores = jnp.where(mask, scores / np.sqrt(head), -1e9)
        weights = jax.nn.softmax(scores)
        mixed = jnp.einsum("bpgqt,btpk->bqpgk", weights, value)
        mixed = mixed.reshape(*x.shape[:2], heads, head)
        return jnp.einsum("bthk,hkd->btd", mixed, block["out"])

    def loss(params: Params, rows: jax.Array) -> jax.Array:
        inputs, targets = rows[:, :-1], rows[:, 1:]
        x = params["tokens"][inputs]
        for block in params["blocks"]:
            x = x + attend(block, rms_norm(block["norm1"], x))
            now = rms_norm(block["norm2"], x)
            gate = jax.nn.silu(now @ block["gate"])
            x = x + (gate * (now @ block["up"])) @ block["down"]
        logits = rms_norm(params["norm"], x) @ params["head"]
        return mean_loss(logits, targets)

    rows = random_tokens(batch, context + 1, vocabulary)
    return Workload(init, loss, rows, optax.adamw(1e-3))


def biased_transformer(
    annotate: bool,
    layers: int = 4,
    width: int = 256,
    heads: int = 4,
    hidden: int = 1024,
    buckets: int = 32,
    vocabulary: int = 4096,
    batch: int = 16,
    context: int = 128,
) -> Workload:
    """An encoder as T5 has it: a bias of attention is learned for each head and
    bucket of distances, by all layers together; no scale, RMS norms. It says
    for each token which one it is. Without buckets each layer has a bias for
    each pair of positions."""
    distances = np.arange(context)[:, None] - np.arange(context)
    size = np.log2(np.abs(distances) + 1) * (buckets // 2 - 1)
    bucket = (size / np.log2(context + 1)).astype(np.int32)
    bucket += np.where(distances > 0, buckets // 2, 0).astype(np.int32)
    shape = (buckets, heads) if buckets else (layers, heads, context, context)

    def init(key: jax.Array) -> Params:
        weight = drawer(key)
        return {
            "tokens": weight(vocabulary, width),
            "bias": weight(*shape),
            "blocks": [
                {
                    "norm1": jnp.ones(width),
                    "query": weight(width, width),
                    "key": weight(width, width),
                    "value": weight(width, width),
                    "out": weight(width, width),
                    "norm2": jnp.ones(width),
                    "up": weight(width, hidden),
                    "down": weight(hidden, width),
                }
                for _ in range(layers)
            ],
            "norm": jnp.ones(width),
            "head": weight(width, vocabulary),
        }

    def attend(block: Params, bias: jax.Array, x: jax.Array) -> jax.Array:
        shape = *x.shape[:2], heads, width // heads
        query, key, value = (
            (x @ block[name]).reshape(shape)
            for name in ("query", "key", "value")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) + bias
        weights = jax.nn.softmax(scores)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        return mixed.reshape(x.shape) @ block["out"]

    def loss(params: Params, rows: jax.Array) -> jax.Array:
        x = params["tokens"][rows]
        if buckets:
            bias = [params["bias"][bucket].transpose(2, 0, 1)] * layers
        else:
            bias = list(params["bias"])
        for number, block in enumerate(params["blocks"]):
            x = x + attend(block, bias[number], rms_norm(block["norm1"], x))
            now = rms_norm(block["norm2"], x)
            x = x + jax.nn.relu(now @ block["up"]) @ block["down"]
        logits = rms_norm(params["norm"], x) @ params["head"]
        return mean_loss(logits, rows)

    rows = random_tokens(batch, context, vocabulary)
    return Workload(init, loss, rows)


def vision_transformer(
    annotate: bool,
    layers: int = 4,
    width: int = 192,
    heads: int = 3,
    patch: int = 4,
    image: int = 32,
    classes: int = 100,
    batch: int = 32,
) -> Workload:
    """A ViT: patches by a convolution, a token for the class before them, and
    learned positions."""
    tokens = (image // patch) ** 2 + 1

    def init(key: jax.Array) -> Params:
        weight = drawer(key)
        return {
            "patches": weight(patch, patch, 3, width),
            "class": weight(width),
            "positions": weight(tokens, width),
            "blocks": [
                {
                    "norm1": norm_params(width),
                    "input": weight(width, 3 * width),
                    "out": weight(width, width),
                    "norm2": norm_params(width),
                    "up": weight(width, 4 * width),
                    "bias": jnp.zeros(4 * width),
                    "down": weight(4 * width, width),
                }
                for _ in range(layers)
            ],
            "norm": norm_params(width),
            "head": weight(width, classes),
        }

    def attend(block: Params, x: jax.Array) -> jax.Array:
        shape = *x.shape[:2], 3, heads, width // heads
        inputs = (x @ block["input"]).reshape(shape)
        query, key, value = inputs[:, :, 0], inputs[:, :, 1], inputs[:, :, 2]
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
        weights = jax.nn.softmax(scores / np.sqrt(width // heads))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        return mixed.reshape(x.shape) @ block["out"]

    def loss(params: Params, rows: Any) -> jax.Array:
        pixels, labels = rows
        x = jax.lax.conv_general_dilated(
            pixels,
            params["patches"],
            (patch, patch),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        x = x.reshape(batch, tokens - 1, width)
        first = jnp.broadcast_to(params["class"], (batch, 1, width))
        x = jnp.concatenate([first, x], axis=1) + params["positions"]
        for block in params["blocks"]:
            x = x + attend(block, gpt_model.norm(block["norm1"], x))
            now = (
                gpt_model.norm(block["norm2"], x) @ block["up"] + block["bias"]
            )
            x = x + jax.nn.gelu(now) @ block["down"]
        logits = gpt_model.norm(params["norm"], x)[:, 0] @ params["head"]
        return mean_loss(logits, labels)

    rows = random_images(batch, image, classes)
    return Workload(init, loss, rows)
