"""Four families of models in sections, each of which can be in a scope.

A model is called with `scope(i)`, a context manager for its i-th section, and
returns `(loss, params, inputs)`. All inputs carry the mini-batch in dimension
0.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

Scope = Callable[[int], Any]


class Staged(NamedTuple):
    """A model: its loss of (params, *inputs), and what to begin with."""

    loss: Callable[..., jax.Array]
    params: Any
    inputs: tuple[jax.Array, ...]


def nowhere(section: int) -> Any:
    """No scope for any section."""
    return contextlib.nullcontext()


def normal(seed: int, *shape: int) -> jax.Array:
    """Values of the size that keeps sums over all but one dimension near 1."""
    scale = 1 / math.sqrt(math.prod(shape[:-1]))
    return jax.random.normal(jax.random.key(seed), shape) * scale


def numbers(seed: int, bound: int, *shape: int) -> jax.Array:
    return jax.random.randint(jax.random.key(seed), shape, 0, bound)


def entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def attention(weights: Any, x: jax.Array, heads: int, seen: Any) -> jax.Array:
    """Attention of x to `seen`, or causal to itself."""
    of = x if seen is None else seen
    size = x.shape[-1] // heads
    q, k, v = (
        (a @ weights[name]).reshape(*a.shape[:-1], heads, size)
        for a, name in ((x, "q"), (of, "k"), (of, "v"))
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(size)
    if seen is None:
        causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(causal, scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return x + mixed.reshape(x.shape) @ weights["o"]


def feed_forward(weights: Any, x: jax.Array) -> jax.Array:
    h = norm(x, weights["scale"])
    return x + jax.nn.gelu(h @ weights["up"]) @ weights["down"]


def attention_weights(seed: int, width: int) -> Any:
    return {
        name: normal(seed + i, width, width) for i, name in enumerate("qkvo")
    }


def layer_weights(seed: int, width: int) -> Any:
    return attention_weights(seed, width) | {
        "scale": jnp.ones(width),
        "up": normal(seed + 4, width, 2 * width),
        "down": normal(seed + 5, 2 * width, width),
    }


def gpt(
    scope: Scope,
    batch: int,
    layers: int = 3,
    tied: bool = False,
    remat: bool = False,
    scanned: bool = False,
    masked: bool = False,
) -> Staged:
    """Sections: embedding, attention and feed-forward part of each layer (under
    `lax.scan` those of all layers together), head."""
    words, width, heads, time = 13, 12, 3, 5
    blocks = [layer_weights(10 * i + 10, width) for i in range(layers)]
    params = {
        "words": normal(0, words, width) * 3,
        "places": normal(1, time, width),
        "scale": jnp.ones(width),
        "layers": jax.tree.map(lambda *a: jnp.stack(a), *blocks)
        if scanned
        else blocks,
    }
    if not tied:
        params["head"] = normal(2, width, words)

    def layer(x: jax.Array, weights: Any, section: int) -> jax.Array:
        with scope(section):
            x = attention(weights, x, heads, None)
        with scope(section + 1):
            return feed_forward(weights, x)

    def loss(params: Any, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        run = jax.checkpoint(layer, static_argnums=2) if remat else layer
        with scope(0):
            x = params["words"][tokens] + params["places"]
        if scanned:
            x, _ = jax.lax.scan(
                lambda x, weights: (run(x, weights, 1), None),
                x,
                params["layers"],
            )
        else:
            for i, weights in enumerate(params["layers"]):
                x = run(x, weights, 2 * i + 1)
        with scope(3 if scanned else 2 * layers + 1):
            head = params["words"].T if tied else params["head"]
            losses = entropy(norm(x, params["scale"]) @ head, targets)
            if not masked:
                return losses.mean()
            mask = (targets % 4 != 0).astype(losses.dtype)
            return (losses * mask).sum() / mask.sum()

    inputs = numbers(3, words, batch, time), numbers(4, words, batch, time)
    return Staged(loss, params, inputs)


def experts(
    scope: Scope, batch: int, balance: bool = True, count: int = 4
) -> Staged:
    """Sections: embedding, attention, gate and dispatch, experts, return of the
    tokens, head. Each token goes to its two best experts while they have
    places; `balance` is a loss of the whole mini-batch's loads."""
    words, width, hidden, heads, time = 11, 8, 12, 2, 6
    places = 2 * time // count
    params = {
        "words": normal(0, words, width) * 3,
        "attention": attention_weights(10, width),
        "gate": normal(1, width, count),
        "up": normal(2, count, width, hidden) * 2,
        "down": normal(3, count, hidden, width) * 2,
        "scale": jnp.ones(width),
        "head": normal(4, width, words),
    }

    def loss(params: Any, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        with scope(0):
            x = params["words"][tokens]
        with scope(1):
            x = attention(params["attention"], x, heads, None)
        with scope(2):
            gates = jax.nn.softmax(norm(x, params["scale"]) @ params["gate"])
            weights, best = jax.lax.top_k(gates, 2)
            best = jax.nn.one_hot(best, count)
            order = best.swapaxes(1, 2).reshape(batch, 2 * time, count)
            place = jnp.cumsum(order, 1).reshape(batch, 2, time, count)
            place = (place.swapaxes(1, 2) * best - 1).astype("int32")
            place = jax.nn.one_hot(place, places) * best[..., None]
            combine = (place * weights[..., None, None]).sum(2)
            given = jnp.einsum("gsec,gsd->egcd", place.sum(2), x)
            load = best[:, :, 0].mean((0, 1)) * gates.mean((0, 1))
            extra = count * load.sum() / 10
        with scope(3):
            h = jnp.einsum("egcd,edf->egcf", given, params["up"])
            h = jnp.einsum("egcf,efd->egcd", jax.nn.relu(h), params["down"])
        with scope(4):
            x = x + jnp.einsum("gsec,egcd->gsd", combine, h)
        with scope(5):
            value = entropy(x @ params["head"], targets).mean()
            return value + extra if balance else value

    inputs = numbers(5, words, batch, time), numbers(6, words, batch, time)
    return Staged(loss, params, inputs)


def classifier(scope: Scope, batch: int, classes: int = 100_000) -> Staged:
    """Sections: two layers, features, head of many classes."""
    width = 6
    params = {
        "in": normal(0, 10, 24),
        "deep": normal(1, 24, 24),
        "features": normal(2, 24, width),
        "bias": jnp.zeros(width),
        "head": normal(3, width, classes) * 2,
    }

    def loss(params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        with scope(0):
            x = jnp.tanh(x @ params["in"])
        with scope(1):
            x = x + jax.nn.silu(x @ params["deep"])
        with scope(2):
            x = jnp.tanh(x @ params["features"] + params["bias"])
        with scope(3):
            return entropy(x @ params["head"], labels).mean()

    return Staged(
        loss, params, (normal(4, batch, 10) * 3, numbers(5, classes, batch))
    )


def encoder_decoder(scope: Scope, batch: int, layers: int = 2) -> Staged:
    """Sections: embedding, encoder layers, decoder's embedding, decoder layers,
    head. Every decoder layer attends to the encoder's end, and adds what the
    encoder layer of its height made; all three tables are one."""
    words, width, heads, time = 13, 8, 2, 5

    def decoder_weights(seed: int) -> Any:
        return layer_weights(seed, width) | {
            "cross": attention_weights(seed + 6, width)
        }

    params = {
        "words": normal(0, words, width) * 3,
        "down": [layer_weights(10 * i + 10, width) for i in range(layers)],
        "up": [decoder_weights(10 * i + 50) for i in range(layers)],
    }

    def loss(params: Any, source: Any, tokens: Any, targets: Any) -> jax.Array:
        skips = []
        with scope(0):
            x = params["words"][source]
        for i, weights in enumerate(params["down"]):
            with scope(1 + i):
                x = attention(weights, x, heads, x)
                x = feed_forward(weights, x)
                skips.append(x)
        memory = x
        with scope(1 + layers):
            x = params["words"][tokens]
        for i, weights in enumerate(params["up"]):
            with scope(2 + layers + i):
                x = attention(weights, x + skips.pop(), heads, None)
                x = attention(weights["cross"], x, heads, memory)
                x = feed_forward(weights, x)
        with scope(2 + 2 * layers):
            return entropy(x @ params["words"].T, targets).mean()

    inputs = tuple(numbers(i, words, batch, time) for i in (3, 4, 5))
    return Staged(loss, params, inputs)


# Name: the function, its options, how many sections it has.
MODELS: dict[str, tuple[Callable[..., Staged], dict[str, Any], int]] = {
    "gpt": (gpt, {}, 8),
    "gpt tied": (gpt, {"tied": True, "masked": True}, 8),
    "gpt remat": (gpt, {"remat": True}, 8),
    "gpt scan": (gpt, {"scanned": True, "layers": 5}, 4),
    "gpt scan tied remat": (
        gpt,
        {"scanned": True, "layers": 4, "tied": True, "remat": True},
        4,
    ),
    "experts": (experts, {"balance": False}, 6),
    "experts balanced": (experts, {}, 6),
    "classifier": (classifier, {}, 4),
    "encoder-decoder": (encoder_decoder, {}, 7),
}

# The sections that are in the body of one loop.
LOOPS = {"gpt scan": (1, 2), "gpt scan tied remat": (1, 2)}
