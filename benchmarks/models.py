"""The models that are timed: plain JAX, nothing of them made for Whale but
the strategy of the experts.

In: sizes, and whether to annotate. Out: a `Workload`: initial parameters from a
key, a loss, a fixed mini-batch and an optimizer. Both sides of a measurement
build the same one, without the annotation for JAX, so a difference in time is
the compiler's or the runtime's. Making one costs its mini-batch in memory;
parameters are made by `init` only.
"""

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
        return mean_loss(logits, labels)

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
            x = convolve(x, layer["kernel"])
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
        return mean_loss(logits, labels)

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, image, image, 3), np.float32),
        random.integers(0, classes, batch, np.int32),
    )
    return Workload(init, loss, rows)


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
        keys = jax.random.split(key, 3)
        return {
            "gate": jax.random.normal(keys[0], (width, experts)) * 0.05,
            "up": jax.random.normal(keys[1], (experts, width, hidden)) * 0.05,
            "down": jax.random.normal(keys[2], (experts, hidden, width)) * 0.05,
        }

    def loss(params: Params, rows: Any) -> jax.Array:
        x, wanted = rows
        combine = route(jax.nn.softmax(x @ params["gate"]), capacity)
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


def small_convolution(
    annotate: bool, batch: int = 48, size: int = 6, channels: int = 48
) -> Workload:
    """A step of some tenths of a millisecond, one convolution and its
    gradient: what threads cost that wait for one another."""
    numbers = ("NHWC", "HWIO", "NHWC")

    def init(key: jax.Array) -> Params:
        return jax.random.normal(key, (3, 3, 2, channels)) / 4

    def loss(params: Params, x: jax.Array) -> jax.Array:
        y = jax.lax.conv_general_dilated(
            x, params, (1, 1), "SAME", dimension_numbers=numbers
        )
        return jnp.square(y).mean()

    random = np.random.default_rng(0)
    images = random.standard_normal((batch, size, size, 2), np.float32)
    return Workload(init, loss, images, optax.sgd(1e-3))


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
        keys = iter(jax.random.split(key, 2 + 7 * layers))

        def weight(*shape: int) -> jax.Array:
            return jax.random.normal(next(keys), shape) * 0.02

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

    def norm(scale: jax.Array, x: jax.Array) -> jax.Array:
        mean = jnp.square(x).mean(-1, keepdims=True)
        return x * jax.lax.rsqrt(mean + 1e-6) * scale

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
            x = x + attend(block, norm(block["norm1"], x))
            now = norm(block["norm2"], x)
            gate = jax.nn.silu(now @ block["gate"])
            x = x + (gate * (now @ block["up"])) @ block["down"]
        logits = norm(params["norm"], x) @ params["head"]
        return mean_loss(logits, targets)

    random = np.random.default_rng(0)
    rows = random.integers(0, vocabulary, (batch, context + 1), np.int32)
    return Workload(init, loss, rows, optax.adamw(1e-3))


def classifier(
    annotate: bool, batch: int = 64, image: int = 24, classes: int = 10000
) -> Workload:
    """Convolutions with batch norm and a wide output layer."""
    # By layer: kernel, channels, stride.
    layers = ((5, 16, 2), (3, 128, 1), (1, 128, 1))

    def init(key: jax.Array) -> Params:
        keys = iter(jax.random.split(key, len(layers) + 1))
        kernels, fan = [], 3
        for size, channels, _ in layers:
            shape = (size, size, fan, channels)
            kernels.append(jax.random.normal(next(keys), shape) * 0.1)
            fan = channels
        return {
            "kernels": kernels,
            "norms": [
                {"scale": jnp.ones(width), "bias": jnp.zeros(width)}
                for width in (layers[0][1], fan)
            ],
            "head": jax.random.normal(next(keys), (fan, classes)) * 0.1,
        }

    def norm(params: Params, x: jax.Array) -> jax.Array:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x - mean).mean((0, 1, 2))
        x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
        return x * params["scale"] + params["bias"]

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        strides = [stride for *_, stride in layers]
        first, second, third = params["kernels"]
        x = convolve(x, first, strides[0])
        x = jax.nn.relu(norm(params["norms"][0], x))
        window = (1, 3, 3, 1)
        x = jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, window, (1, 2, 2, 1), "SAME"
        )
        x = jax.nn.relu(convolve(x, second, strides[1]))
        x = convolve(x, third, strides[2])
        x = jax.nn.relu(norm(params["norms"][1], x))
        logits = x.mean((1, 2)) @ params["head"]
        return mean_loss(logits, labels)

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, image, image, 3), np.float32),
        random.integers(0, classes, batch, np.int32),
    )
    return Workload(init, loss, rows, optax.sgd(1e-2, momentum=0.9))


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
        keys = iter(jax.random.split(key, 3 + 6 * layers))

        def weight(*shape: int) -> jax.Array:
            return jax.random.normal(next(keys), shape) * 0.02

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

    def norm(scale: jax.Array, x: jax.Array) -> jax.Array:
        mean = jnp.square(x).mean(-1, keepdims=True)
        return x * jax.lax.rsqrt(mean + 1e-6) * scale

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
            x = x + attend(block, bias[number], norm(block["norm1"], x))
            now = norm(block["norm2"], x)
            x = x + jax.nn.relu(now @ block["up"]) @ block["down"]
        logits = norm(params["norm"], x) @ params["head"]
        return mean_loss(logits, rows)

    random = np.random.default_rng(0)
    rows = random.integers(0, vocabulary, (batch, context), np.int32)
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
        keys = iter(jax.random.split(key, 4 + 4 * layers))

        def weight(*shape: int) -> jax.Array:
            return jax.random.normal(next(keys), shape) * 0.02

        def norm() -> Params:
            return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}

        return {
            "patches": weight(patch, patch, 3, width),
            "class": weight(width),
            "positions": weight(tokens, width),
            "blocks": [
                {
                    "norm1": norm(),
                    "input": weight(width, 3 * width),
                    "out": weight(width, width),
                    "norm2": norm(),
                    "up": weight(width, 4 * width),
                    "bias": jnp.zeros(4 * width),
                    "down": weight(4 * width, width),
                }
                for _ in range(layers)
            ],
            "norm": norm(),
            "head": weight(width, classes),
        }

    def norm(params: Params, x: jax.Array) -> jax.Array:
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(variance + 1e-6)
        return x * params["scale"] + params["bias"]

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
            x = x + attend(block, norm(block["norm1"], x))
            now = norm(block["norm2"], x) @ block["up"] + block["bias"]
            x = x + jax.nn.gelu(now) @ block["down"]
        logits = norm(params["norm"], x)[:, 0] @ params["head"]
        return mean_loss(logits, labels)

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, image, image, 3), np.float32),
        random.integers(0, classes, batch, np.int32),
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
        keys = iter(jax.random.split(key, 2 + 3 * layers))

        def weight(*shape: int) -> jax.Array:
            return jax.random.normal(next(keys), shape) * 0.1

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

    random = np.random.default_rng(0)
    rows = random.integers(0, levels, (batch, steps + 1), np.int32)
    return Workload(init, loss, rows)


def resnet(
    annotate: bool,
    blocks: tuple[int, ...] = (3, 4, 6, 3),
    width: int = 64,
    batch: int = 128,
    image: int = 224,
    classes: int = 1000,
    dtype: str = "float32",
) -> Workload:
    """A ResNet with bottlenecks, by default ResNet-50, with the strides in the
    3 x 3 convolutions. Convolutions compute in `dtype`; parameters and
    statistics are in f32."""

    def init(key: jax.Array) -> Params:
        keys = iter(jax.random.split(key, 2 + 4 * sum(blocks)))

        def layer(size: int, fan: int, out: int) -> Params:
            shape = (size, size, fan, out)
            scale = np.sqrt(2 / (size * size * fan))
            return {
                "kernel": jax.random.normal(next(keys), shape) * scale,
                "scale": jnp.ones(out),
                "bias": jnp.zeros(out),
            }

        params = {"stem": layer(7, 3, width), "blocks": []}
        fan = width
        for stage, count in enumerate(blocks):
            inner = width << stage
            for number in range(count):
                block = {
                    "reduce": layer(1, fan, inner),
                    "inner": layer(3, inner, inner),
                    "expand": layer(1, inner, 4 * inner),
                }
                if number == 0:
                    block["shortcut"] = layer(1, fan, 4 * inner)
                params["blocks"].append(block)
                fan = 4 * inner
        head = jax.random.normal(next(keys), (fan, classes)) * 0.01
        return params | {"head": head}

    def layer(params: Params, x: jax.Array, stride: int = 1) -> jax.Array:
        """A convolution and batch norm."""
        x = convolve(x, params["kernel"].astype(dtype), stride)
        wide = x.astype(jnp.float32)
        mean = wide.mean((0, 1, 2))
        variance = jnp.square(wide).mean((0, 1, 2)) - jnp.square(mean)
        scale = params["scale"] * jax.lax.rsqrt(variance + 1e-5)
        return ((wide - mean) * scale + params["bias"]).astype(dtype)

    def bottleneck(params: Params, x: jax.Array, stride: int) -> jax.Array:
        inner = jax.nn.relu(layer(params["reduce"], x))
        inner = jax.nn.relu(layer(params["inner"], inner, stride))
        inner = layer(params["expand"], inner)
        if "shortcut" in params:
            x = layer(params["shortcut"], x, stride)
        return jax.nn.relu(x + inner)

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        x = jax.nn.relu(layer(params["stem"], x.astype(dtype), 2))
        window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
        x = jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, window, strides, "SAME"
        )
        each = iter(params["blocks"])
        for stage, count in enumerate(blocks):
            for number in range(count):
                is_smaller = stage > 0 and number == 0
                x = bottleneck(next(each), x, 2 if is_smaller else 1)
        logits = x.astype(jnp.float32).mean((1, 2)) @ params["head"]
        return mean_loss(logits, labels)

    random = np.random.default_rng(0)
    rows = (
        random.standard_normal((batch, image, image, 3), np.float32),
        random.integers(0, classes, batch, np.int32),
    )
    return Workload(init, loss, rows, optax.sgd(0.1, momentum=0.9))


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
        base, *keys = jax.random.split(key, 1 + 3 * layers)
        params = gpt_model.init_params(config, base)

        def weight(*shape: int) -> jax.Array:
            return jax.random.normal(keys.pop(), shape) * 0.02

        for block in params["blocks"]:
            block["gate"] = weight(width, experts)
            block["up"] = weight(experts, width, hidden)
            block["down"] = weight(experts, hidden, width)
        return params

    def mix(block: Params, x: jax.Array) -> jax.Array:
        """What its two experts make of each token."""
        wide = x.astype(jnp.float32)
        gates = jax.nn.softmax(wide @ block["gate"].astype(jnp.float32))
        combine = route(gates, capacity).astype(x.dtype)
        dispatch = (combine > 0).astype(x.dtype)
        sent = jnp.einsum("btec,btd->becd", dispatch, x)
        inner = jax.nn.gelu(jnp.einsum("becd,edh->bech", sent, block["up"]))
        outcome = jnp.einsum("bech,ehd->becd", inner, block["down"])
        return jnp.einsum("btec,becd->btd", combine, outcome)

    def loss(params: Params, rows: jax.Array) -> jax.Array:
        params = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
        inputs, targets = rows[:, :-1], rows[:, 1:]
        x = params["tokens"][inputs] + params["positions"]
        for block in params["blocks"]:
            now = gpt_model.norm(block["norm1"], x)
            x = x + gpt_model.attention(block, now)
            x = x + mix(block, gpt_model.norm(block["norm2"], x))
        logits = gpt_model.norm(params["norm"], x) @ params["head"]
        return mean_loss(logits, targets).astype(jnp.float32)

    random = np.random.default_rng(0)
    rows = random.integers(0, vocabulary, (batch, context + 1), np.int32)
    return Workload(init, loss, rows)
