"""The papers' models as training steps, by their shapes: no values are made.

In: sizes, batch and strategies. Out: a `Step` as the planner's benchmarks have
it. A normalization of images is over groups of eight samples, as each GPU of
the paper had its own: over the mini-batch it would exchange sums in each layer.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from models import mean_loss
from models.images import RESNET_50, resnet_features, resnet_params
from models.workload import convolve, norm_params, rms_norm
from plan_models import Step, make_step

Params = Any
Scope = Callable[..., Any]
GROUP = 8

OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "adam": lambda: optax.adam(1e-3),
    "momentum": lambda: optax.sgd(1e-2, momentum=0.9),
    "sgd": lambda: optax.sgd(1e-2),
}


def enter(scope: Scope | None, name: str) -> Any:
    """The scope, or none."""
    return scope(name=name) if scope else contextlib.nullcontext()


def zeros(*shape: int) -> jax.Array:
    """A parameter; only its shape counts."""
    return jnp.zeros(shape)


def images_of(batch: int, size: int = 224) -> Any:
    """Square images of three colours, and a class for each."""
    return (
        jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32),
        jax.ShapeDtypeStruct((batch,), jnp.int32),
    )


def resnet(
    batch: int,
    classes: int = 1000,
    optimizer: str = "adam",
    backbone: Scope | None = None,
    head: Scope | None = None,
) -> Step:
    """ResNet-50 with a class head in a scope of its own."""

    def layer_params(size: int, fan: int, out: int) -> Params:
        return {"kernel": zeros(size, size, fan, out)} | norm_params(out)

    def init(key: jax.Array) -> Params:
        params, fan = resnet_params(layer_params, RESNET_50, 64)
        return params | {"head": zeros(fan, classes)}

    def layer(params: Params, x: jax.Array, stride: int = 1) -> jax.Array:
        x = convolve(x, params["kernel"], stride)
        groups = x.reshape(-1, GROUP, *x.shape[1:])
        mean = groups.mean((1, 2, 3), keepdims=True)
        square = jnp.square(groups).mean((1, 2, 3), keepdims=True)
        scale = jax.lax.rsqrt(square - jnp.square(mean) + 1e-5)
        groups = (groups - mean) * (scale * params["scale"])
        return (groups + params["bias"]).reshape(x.shape)

    def loss(params: Params, rows: Any) -> jax.Array:
        x, labels = rows
        with enter(backbone, "backbone"):
            x = resnet_features(layer, params, x, RESNET_50).mean((1, 2))
        with enter(head, "head"):
            return mean_loss(x @ params["head"], labels)

    return make_step(loss, init, images_of(batch), OPTIMIZERS[optimizer]())


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of a transformer."""

    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    length: int


def linear(fan: int, out: int) -> Params:
    """A product with a bias."""
    return {"weight": zeros(fan, out), "bias": zeros(out)}


def apply_linear(params: Params, x: jax.Array) -> jax.Array:
    return x @ params["weight"] + params["bias"]


def layer_norm(params: Params, x: jax.Array) -> jax.Array:
    """Over the last dimension."""
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return x * params["scale"] + params["bias"]


def attend(
    query: jax.Array, key: jax.Array, value: jax.Array, heads: int, bias: Any
) -> jax.Array:
    """Of [batch, tokens, width]; `bias` is added to the scores."""

    def by_head(x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:2], heads, -1)

    scores = jnp.einsum("bqhd,bkhd->bhqk", by_head(query), by_head(key))
    weights = jax.nn.softmax(scores + bias)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, by_head(value))
    return mixed.reshape(query.shape)


def ends_of(layers: int, groups: int) -> list[int]:
    """Where groups of layers begin and end."""
    return [layers * group // groups for group in range(groups + 1)]


def bert(
    batch: int,
    length: int = 384,
    optimizer: str = "adam",
    scopes: tuple[Scope, ...] = (),
    recomputes: bool = False,
    sizes: Sizes | None = None,
) -> Step:
    """BertLarge that marks the begin and end of an answer, as for SQuAD; as
    many layers in each scope. `recomputes` keeps a layer's input alone."""
    sizes = sizes or Sizes(24, 1024, 16, 4096, 30522, length)
    width = sizes.width

    def init(key: jax.Array) -> Params:
        return {
            "tokens": zeros(sizes.vocabulary, width),
            "positions": zeros(512, width),
            "kinds": zeros(2, width),
            "norm": norm_params(width),
            "blocks": [
                {
                    "query": linear(width, width),
                    "key": linear(width, width),
                    "value": linear(width, width),
                    "out": linear(width, width),
                    "norm1": norm_params(width),
                    "up": linear(width, sizes.hidden),
                    "down": linear(sizes.hidden, width),
                    "norm2": norm_params(width),
                }
                for _ in range(sizes.layers)
            ],
            "head": linear(width, 2),
        }

    def block(params: Params, x: jax.Array) -> jax.Array:
        query = apply_linear(params["query"], x) / (width / sizes.heads) ** 0.5
        mixed = attend(
            query,
            apply_linear(params["key"], x),
            apply_linear(params["value"], x),
            sizes.heads,
            0,
        )
        x = layer_norm(params["norm1"], x + apply_linear(params["out"], mixed))
        inner = jax.nn.gelu(apply_linear(params["up"], x))
        return layer_norm(
            params["norm2"], x + apply_linear(params["down"], inner)
        )

    groups = max(1, len(scopes))
    ends = ends_of(sizes.layers, groups)

    def loss(params: Params, rows: Any) -> jax.Array:
        tokens, kinds, answers = rows
        for group in range(groups):
            with enter(scopes[group] if scopes else None, f"layers{group}"):
                if group == 0:
                    x = params["tokens"][tokens] + params["kinds"][kinds]
                    x = x + params["positions"][:length]
                    x = layer_norm(params["norm"], x)
                for layer in params["blocks"][ends[group] : ends[group + 1]]:
                    x = (jax.checkpoint(block) if recomputes else block)(
                        layer, x
                    )
                if group == groups - 1:
                    logits = apply_linear(params["head"], x)
                    value = mean_loss(logits.swapaxes(1, 2), answers)
        return value

    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    answers = jax.ShapeDtypeStruct((batch, 2), jnp.int32)
    return make_step(
        loss, init, (tokens, tokens, answers), OPTIMIZERS[optimizer]()
    )


def t5(
    batch: int,
    length: int = 512,
    optimizer: str = "adam",
    recomputes: bool = False,
) -> Step:
    """T5-Large: an encoder and a decoder of 24 layers, with a table of biases
    by distance for each."""
    sizes = Sizes(24, 1024, 16, 4096, 32128, length)
    width, buckets = sizes.width, 32

    def attention_params() -> Params:
        names = ("query", "key", "value", "out")
        return {name: zeros(width, width) for name in names}

    def layer_params(*attentions: str) -> Params:
        params: Params = {name: attention_params() for name in attentions}
        params |= {f"{name}_norm": jnp.ones(width) for name in attentions}
        return params | {
            "up": zeros(width, sizes.hidden),
            "down": zeros(sizes.hidden, width),
            "norm": jnp.ones(width),
        }

    def init(key: jax.Array) -> Params:
        return {
            "tokens": zeros(sizes.vocabulary, width),
            "encoder_bias": zeros(buckets, sizes.heads),
            "decoder_bias": zeros(buckets, sizes.heads),
            "encoder": [layer_params("own") for _ in range(sizes.layers)],
            "decoder": [
                layer_params("own", "other") for _ in range(sizes.layers)
            ],
            "encoder_norm": jnp.ones(width),
            "decoder_norm": jnp.ones(width),
        }

    def attention(
        params: Params, name: str, x: jax.Array, memory: Any, bias: Any
    ) -> jax.Array:
        now = rms_norm(params[f"{name}_norm"], x)
        memory = now if memory is None else memory
        inner = params[name]
        mixed = attend(
            now @ inner["query"],
            memory @ inner["key"],
            memory @ inner["value"],
            sizes.heads,
            bias,
        )
        return x + mixed @ inner["out"]

    def feed_forward(params: Params, x: jax.Array) -> jax.Array:
        now = rms_norm(params["norm"], x)
        return x + jax.nn.relu(now @ params["up"]) @ params["down"]

    def encode(params: Params, x: jax.Array, bias: Any) -> jax.Array:
        return feed_forward(params, attention(params, "own", x, None, bias))

    def decode(
        params: Params, x: jax.Array, memory: Any, bias: Any
    ) -> jax.Array:
        x = attention(params, "own", x, None, bias)
        return feed_forward(params, attention(params, "other", x, memory, 0))

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.checkpoint(function) if recomputes else function

    def loss(params: Params, rows: Any) -> jax.Array:
        source, inputs, targets = rows
        places = jnp.arange(length)
        distances = jnp.clip(
            places[:, None] - places + buckets // 2, 0, buckets - 1
        )
        causal = jnp.where(places[:, None] >= places, 0, -1e9)
        bias = params["encoder_bias"][distances].transpose(2, 0, 1)
        x = params["tokens"][source]
        for layer in params["encoder"]:
            x = wrapped(encode)(layer, x, bias)
        memory = rms_norm(params["encoder_norm"], x)
        bias = params["decoder_bias"][distances].transpose(2, 0, 1) + causal
        x = params["tokens"][inputs]
        for layer in params["decoder"]:
            x = wrapped(decode)(layer, x, memory, bias)
        x = rms_norm(params["decoder_norm"], x)
        return mean_loss(x @ params["tokens"].T, targets)

    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    return make_step(
        loss, init, (tokens, tokens, tokens), OPTIMIZERS[optimizer]()
    )
