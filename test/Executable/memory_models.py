"""Random training steps for what the compiler expects of devices' memory.

`draw(family, seed)` gives a step of that family, with sizes, optimizer,
strategy and cluster from the seed, and `lower` its annotated StableHLO. All are
shapes alone: no value is ever made. The families are towers of dense layers
over embeddings, convolutions, attention, scans over layers or time, and
experts.
Seeds below 4 were there when estimates were made; those from 4 on were not
looked at, and say how good they are on other models.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import whale as wh

Params = Any
Random = np.random.Generator


@dataclasses.dataclass(frozen=True)
class Case:
    """A step ``(params, state, batch)``, shapes of its arguments, and how it is
    to be compiled."""

    name: str
    step: Callable[..., Any]
    arguments: tuple[Any, Any, Any]
    config: dict[str, Any]
    strategy: Callable[[], Any] | None
    devices: int


def shape(*extents: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(extents, dtype)


def pick(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


def activation_of(random: Random) -> Callable[[jax.Array], jax.Array]:
    return pick(random, jax.nn.relu, jax.nn.gelu, jnp.tanh, jax.nn.silu)


def norm(gain: jax.Array, x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, labels
    ).mean()


# A model: the shapes of its parameters, its loss, the shapes of its mini-batch.
Model = tuple[Params, Callable[[Params, Any], jax.Array], Any]


def towers(random: Random) -> Model:
    """Two towers over tables of embeddings, and dense layers over both."""
    activate = activation_of(random)
    batch = pick(random, 4096, 8192, 16384)
    width = pick(random, 128, 192, 256)
    rows = pick(random, 20_000, 50_000)
    normed = pick(random, True, False)

    def widths(count: int) -> list[int]:
        return [int(random.integers(2, 9)) * 128 for _ in range(count)]

    def dense(first: int, sizes: list[int]) -> Params:
        return [
            {
                "w": shape(before, after),
                "b": shape(after),
                "gain": shape(after),
            }
            for before, after in zip([first, *sizes], sizes)
        ]

    tower = widths(int(random.integers(2, 5)))
    head = widths(int(random.integers(2, 6)))
    params = {
        "tables": [shape(rows, width) for _ in range(2)],
        "towers": [dense(width, tower) for _ in range(2)],
        "head": dense(2 * tower[-1], head),
        "out": shape(head[-1], 1),
    }

    def layers(params: Params, x: jax.Array) -> jax.Array:
        for layer in params:
            x = activate(x @ layer["w"] + layer["b"])
            if normed:
                x = norm(layer["gain"], x)
        return x

    def loss(params: Params, data: Any) -> jax.Array:
        users, items, labels = data
        sides = [
            layers(tower, table[keys])
            for tower, table, keys in zip(
                params["towers"], params["tables"], (users, items)
            )
        ]
        x = layers(params["head"], jnp.concatenate(sides, axis=1))
        logits = (x @ params["out"])[:, 0]
        return optax.sigmoid_binary_cross_entropy(logits, labels).mean()

    keys = shape(batch, dtype=jnp.int32)
    return params, loss, (keys, keys, shape(batch))


def convolutions(random: Random) -> Model:
    """Residual blocks over images that become smaller, with norms."""
    activate = activation_of(random)
    batch = pick(random, 64, 128)
    size = pick(random, 32, 64)
    blocks = int(random.integers(2, 4))
    features = pick(random, 32, 48, 64)
    stages = pick(random, 2, 3)
    kernel = pick(random, 3, 3, 5)
    batch_norm = pick(random, True, False)
    params: Params = {"stem": shape(3, 3, 3, features), "blocks": []}
    before = features
    for stage in range(stages):
        after = features << stage
        for _ in range(blocks):
            params["blocks"].append(
                {
                    "first": shape(kernel, kernel, before, after),
                    "second": shape(3, 3, after, after),
                    "gain": shape(after),
                    "skip": shape(1, 1, before, after),
                }
            )
            before = after
    params["head"] = shape(before, 1000)

    def convolve(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
        return jax.lax.conv_general_dilated(
            x,
            w,
            (stride, stride),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )

    def normalize(gain: jax.Array, x: jax.Array) -> jax.Array:
        axes = (1, 2) if batch_norm else (3,)
        mean = x.mean(axes, keepdims=True)
        variance = jnp.square(x - mean).mean(axes, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain

    def loss(params: Params, data: Any) -> jax.Array:
        images, labels = data
        x = convolve(images, params["stem"])
        for number, block in enumerate(params["blocks"]):
            stride = 2 if number and number % blocks == 0 else 1
            y = activate(convolve(x, block["first"], stride))
            y = normalize(block["gain"], convolve(y, block["second"]))
            x = activate(y + convolve(x, block["skip"], stride))
        return cross_entropy(x.mean((1, 2)) @ params["head"], labels)

    return (
        params,
        loss,
        (shape(batch, size, size, 3), shape(batch, dtype=jnp.int32)),
    )


def attend(x: jax.Array, block: Params, heads: int, causal: bool) -> jax.Array:
    """Attention of [batch, tokens, width] to itself."""
    batch, tokens, width = x.shape
    q, k, v = jnp.split(x @ block["qkv"], 3, axis=-1)
    q, k, v = (
        y.reshape(batch, tokens, heads, width // heads) for y in (q, k, v)
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads)
    if causal:
        mask = jnp.tril(jnp.ones((tokens, tokens), bool))
        scores = jnp.where(mask, scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(batch, tokens, width) @ block["proj"]


def block_shapes(width: int, inner: int, *stack: int) -> Params:
    return {
        "norm1": shape(*stack, width),
        "qkv": shape(*stack, width, 3 * width),
        "proj": shape(*stack, width, width),
        "norm2": shape(*stack, width),
        "up": shape(*stack, width, inner),
        "down": shape(*stack, inner, width),
    }


def transformer_block(
    block: Params,
    x: jax.Array,
    heads: int,
    causal: bool,
    activate: Callable[[jax.Array], jax.Array],
) -> jax.Array:
    x = x + attend(norm(block["norm1"], x), block, heads, causal)
    y = activate(norm(block["norm2"], x) @ block["up"])
    return x + y @ block["down"]


def language_model(
    random: Random,
    batch: int,
    tokens: int,
    width: int,
    blocks: Params,
    apply: Callable[[Params, jax.Array], jax.Array],
) -> Model:
    """Embeddings, what `apply` makes of them with the blocks, and a head."""
    vocabulary = pick(random, 8000, 16000, 32000)
    params = {
        "tokens": shape(vocabulary, width),
        "positions": shape(tokens, width),
        "blocks": blocks,
        "norm": shape(width),
        "head": shape(width, vocabulary),
    }

    def loss(params: Params, text: jax.Array) -> jax.Array:
        x = params["tokens"][text[:, :-1]] + params["positions"]
        x = norm(params["norm"], apply(params["blocks"], x))
        return cross_entropy(x @ params["head"], text[:, 1:])

    return params, loss, shape(batch, tokens + 1, dtype=jnp.int32)


def attention(random: Random) -> Model:
    """A transformer, with each layer kept or computed again."""
    layers = pick(random, 4, 8, 16)
    width = pick(random, 512, 768, 1024)
    heads = width // pick(random, 64, 128)
    causal = pick(random, True, False)
    again = pick(random, True, False)
    activate = activation_of(random)

    def apply(blocks: Params, x: jax.Array) -> jax.Array:
        def one(block: Params, x: jax.Array) -> jax.Array:
            return transformer_block(block, x, heads, causal, activate)

        one = jax.checkpoint(one) if again else one
        for block in blocks:
            x = one(block, x)
        return x

    return language_model(
        random,
        pick(random, 32, 64),
        pick(random, 128, 256, 384),
        width,
        [block_shapes(width, 4 * width) for _ in range(layers)],
        apply,
    )


def scans(random: Random) -> Model:
    """Stacked layers in a scan, or a recurrent cell over time."""
    width = pick(random, 256, 512, 768)
    batch, tokens = pick(random, 32, 64), pick(random, 64, 128)
    if pick(random, True, False):
        layers = pick(random, 4, 8, 12)
        heads = width // 64
        again = pick(random, True, False)
        activate = activation_of(random)

        def apply(blocks: Params, x: jax.Array) -> jax.Array:
            def one(x: jax.Array, block: Params) -> Any:
                return transformer_block(block, x, heads, True, activate), None

            return jax.lax.scan(
                jax.checkpoint(one) if again else one, x, blocks
            )[0]

        blocks = block_shapes(width, 4 * width, layers)
    else:
        cells = pick(random, 1, 2)

        def apply(blocks: Params, x: jax.Array) -> jax.Array:
            def one(h: jax.Array, x: jax.Array, cell: Params) -> Any:
                gates = jnp.concatenate([x, h], -1) @ cell["gates"]
                reset, update = jnp.split(jax.nn.sigmoid(gates), 2, -1)
                new = jnp.tanh(
                    jnp.concatenate([x, reset * h], -1) @ cell["new"]
                )
                h = (1 - update) * h + update * new
                return h, h

            for cell in blocks:
                start = jnp.zeros((x.shape[0], x.shape[2]))
                _, out = jax.lax.scan(
                    functools.partial(one, cell=cell),
                    start,
                    jnp.swapaxes(x, 0, 1),
                )
                x = jnp.swapaxes(out, 0, 1)
            return x

        blocks = [
            {
                "gates": shape(2 * width, 2 * width),
                "new": shape(2 * width, width),
            }
            for _ in range(cells)
        ]
    return language_model(random, batch, tokens, width, blocks, apply)


def experts(random: Random) -> Model:
    """Layers that send each token to one of several experts, by products."""
    layers, count = pick(random, 2, 4), pick(random, 8, 16)
    width, inner = pick(random, 256, 512), pick(random, 1024, 2048)
    groups, tokens = pick(random, 32, 64), pick(random, 64, 128)
    capacity = 2 * tokens // count
    activate = activation_of(random)
    params = {
        "blocks": [
            {
                "dense": shape(width, width),
                "gate": shape(width, count),
                "up": shape(count, width, inner),
                "down": shape(count, inner, width),
            }
            for _ in range(layers)
        ],
        "head": shape(width, 512),
    }

    def layer(block: Params, x: jax.Array) -> jax.Array:
        x = x + activate(x @ block["dense"])
        gates = jax.nn.softmax(x @ block["gate"])
        mask = jax.nn.one_hot(gates.argmax(-1), count)
        place = ((jnp.cumsum(mask, axis=1) - 1) * mask).sum(-1)
        where = jax.nn.one_hot(place.astype(jnp.int32), capacity)
        dispatch = mask[..., None] * where[..., None, :]
        combine = (gates * mask)[..., None] * where[..., None, :]
        sent = jnp.einsum("gtec,gtd->gecd", dispatch, x)
        hidden = activate(jnp.einsum("gecd,edh->gech", sent, block["up"]))
        outcome = jnp.einsum("gech,ehd->gecd", hidden, block["down"])
        return x + jnp.einsum("gtec,gecd->gtd", combine, outcome)

    def loss(params: Params, data: Any) -> jax.Array:
        x, labels = data
        for block in params["blocks"]:
            x = layer(block, x)
        return cross_entropy(x @ params["head"], labels)

    return (
        params,
        loss,
        (shape(groups, tokens, width), shape(groups, tokens, dtype=jnp.int32)),
    )


FAMILIES: dict[str, Callable[[Random], Model]] = {
    "towers": towers,
    "convolutions": convolutions,
    "attention": attention,
    "scans": scans,
    "experts": experts,
}
SEEDS, HELD_OUT = range(6), range(4, 6)


def draw_strategy(
    random: Random,
) -> tuple[dict[str, Any], Callable[[], Any] | None, int]:
    """Config, default strategy and devices: one device, replicas, parts, or
    automatic stages, with or without micro-batches."""
    moments = pick(random, 1, 4, 8)
    config: dict[str, Any] = {"num_micro_batch": moments} if moments > 1 else {}
    kind = pick(
        random, "one", "replicas", "replicas", "parts", "stages", "stages"
    )
    if kind == "one":
        return config, None, 1
    devices = pick(random, 4, 8)
    if kind == "parts":
        return config, lambda: wh.split(devices), devices
    if kind == "stages":
        config |= {"num_micro_batch": 8, "num_task_graph": pick(random, 2, 4)}
    return config, wh.replicate, devices


def draw(family: str, seed: int) -> Case:
    """The same case for the same arguments."""
    random = np.random.default_rng([seed, *family.encode()])
    params, loss, batch = FAMILIES[family](random)
    optimizer = pick(
        random, optax.sgd(1e-2), optax.sgd(1e-2, momentum=0.9), optax.adam(1e-3)
    )

    def step(params: Params, state: Any, batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    config, strategy, devices = draw_strategy(random)
    state = jax.eval_shape(optimizer.init, params)
    return Case(
        f"{family} {seed}",
        step,
        (params, state, batch),
        config,
        strategy,
        devices,
    )


def make_cluster(devices: int) -> dict[str, Any]:
    """Nodes of at most four devices whose memory holds anything."""
    kind = {
        "flops": {"f32": 15.7e12},
        "memory_bytes": 1 << 40,
        "memory_bandwidth": 9e11,
    }
    return {
        "kinds": {"large": kind},
        "nodes": [
            {
                "count": max(1, devices // 4),
                "devices": [{"kind": "large", "count": min(devices, 4)}],
                "link": {"bandwidth": 1.5e11, "latency": 3e-6},
            }
        ],
        "network": {"bandwidth": 6.25e9, "latency": 1e-5},
    }


def lower(case: Case) -> str:
    """The annotated step as text."""
    wh.init(wh.Config(case.config))
    if case.strategy:
        wh.set_default_strategy(case.strategy())
    step = wh.jit(
        case.step,
        cluster=make_cluster(case.devices),
        batch_argnums=2,
        donate_argnums=(0, 1),
    )
    return step.lower(*case.arguments).as_text()
