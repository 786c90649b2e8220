"""Training steps as users write them, beside `jax.jit` on unlike clusters.

Under test: seven families of models, each under a pair of a strategy and a
cluster of even, uneven or mixed devices, with --full under a second one. State
and metrics after one step and after two must be within 1e-4 of the magnitude
of those of `jax.jit`; integers must be equal. A failure means that operations
are right alone and wrong together. Each pair compiles a model, besides what
XLA does.
"""

import contextlib
import functools
import math
import os

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import pytest
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")


def devices(*slowdowns):
    entries = [{"kind": "cpu", "slowdown": s} for s in slowdowns]
    return {"nodes": [{"devices": entries}]}


KINDS = {
    name: {
        "flops": {"f32": rate, "f16": rate, "bf16": rate},
        "memory_bytes": 1 << 34,
        "memory_bandwidth": rate / 10,
    }
    for name, rate in (("quick", 9e12), ("slow", 3e12))
}
MIXED = {
    "kinds": KINDS,
    "nodes": [
        {"devices": [{"kind": "quick", "count": 2}]},
        {"count": 2, "devices": [{"kind": "slow"}]},
    ],
    "network": {"bandwidth": 6e9, "latency": 1e-5},
}
CLUSTERS = {"3": 3, "4": 4, "8": 8, "uneven": devices(1, 2, 3), "mixed": MIXED}

# The default strategy, and those of a model's body and head.
STRATEGIES = {
    "replicate": (wh.replicate(), None, None),
    "split": (wh.split(), None, None),
    "head": (wh.replicate(), None, wh.split()),
    "body": (wh.replicate(), wh.split(), None),
    "turned": (wh.split(), None, wh.replicate()),
    "named": (wh.replicate(), wh.split(name="a"), wh.split(name="a")),
    "part": (wh.replicate(), None, wh.split(2)),
    "halves": (None, wh.replicate(2), wh.split(2)),
    "nested": (wh.split(2), None, None),
    "one and three": (wh.replicate(1), None, wh.split(3)),
}


def scope(strategy):
    return contextlib.nullcontext() if strategy is None else strategy


def normal(seed, *shape):
    scale = 1 / math.sqrt(math.prod(shape[:-1]))
    return jax.random.normal(jax.random.key(seed), shape) * scale


def numbers(seed, bound, *shape):
    return jax.random.randint(jax.random.key(seed), shape, 0, bound)


def trained(loss, optimizer):
    """``step(params, state, *inputs) -> (params, state, loss and metrics)``."""

    def step(params, state, *inputs):
        value, grads = jax.value_and_grad(loss, has_aux=True)(params, *inputs)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def attention(body, head):
    """Rotary positions, grouped queries, masks, a gated feed-forward part."""
    width, heads, groups, size, words, time, batch = 30, 6, 3, 5, 23, 7, 12
    params = {
        "words": normal(0, words, width) * 3,
        "qkv": normal(1, width, (heads + 2 * groups) * size),
        "out": normal(2, heads, size, width),
        "up": normal(3, width, 2 * 48),
        "down": normal(4, 48, width),
        "head": normal(5, width, words),
        "scale": jnp.ones(width),
    }
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 9)),
    )

    def norm(x, scale):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True)) * scale

    def rotate(x, places):
        half = size // 2
        angle = places[..., None] * 1e4 ** (-jnp.arange(half) / half)
        sin, cos = jnp.sin(angle)[:, :, None], jnp.cos(angle)[:, :, None]
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)

    def loss(params, tokens, places, mask):
        with scope(body):
            x = jnp.take(params["words"], tokens, axis=0)
            qkv = norm(x, params["scale"]) @ params["qkv"]
            parts = [heads * size, (heads + groups) * size]
            q, k, v = jnp.split(qkv, parts, -1)
            shape = (batch, time, groups, size)
            q = rotate(q.reshape(batch, time, heads, size), places)
            q = q.reshape(batch, time, groups, heads // groups, size)
            k, v = rotate(k.reshape(shape), places), v.reshape(shape)
            scores = jnp.einsum("btgrd,bsgd->bgrts", q, k) * size**-0.5
            sees = places[:, :, None] >= places[:, None]
            sees = (sees & mask[:, None])[:, None, None]
            weights = jax.nn.softmax(jnp.where(sees, scores, -1e30))
            mixed = jnp.einsum("bgrts,bsgd->btgrd", weights, v)
            mixed = mixed.reshape(batch, time, heads, size)
            x = x + jnp.einsum("bthd,hdm->btm", mixed, params["out"])
        gate, value = jnp.split(norm(x, params["scale"]) @ params["up"], 2, -1)
        x = x + (jax.nn.silu(gate) * value) @ params["down"]
        with scope(head):
            logits = jax.nn.log_softmax(x @ params["head"])
        targets = jnp.roll(tokens, -1, 1)[..., None]
        losses = -jnp.take_along_axis(logits, targets, -1)[..., 0]
        hits = (logits.argmax(-1) == targets[..., 0]) & mask
        return (losses * mask).sum() / mask.sum(), hits.sum()

    inputs = (
        numbers(6, words, batch, time),
        jnp.broadcast_to(jnp.arange(time), (batch, time)),
        jnp.arange(time) < 1 + jnp.arange(batch)[:, None] % time,
    )
    return trained(loss, optimizer), (params, optimizer.init(params)), inputs


def convolutions(body, head):
    """Batch norm with running statistics, pooling, many classes."""
    classes, batch = 203, 6
    params = {
        "conv": normal(0, 3, 3, 3, 8),
        "scale": jnp.ones(8),
        "bias": jnp.zeros(8),
        "head": normal(1, 128, classes),
    }
    optimizer = optax.sgd(0.05, momentum=0.9, nesterov=True)

    def loss(params, statistics, x, labels):
        with scope(body):
            x = jax.lax.conv_general_dilated(
                x,
                params["conv"],
                (1, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
            x = (x - mean) * jax.lax.rsqrt(var + 1e-5)
            x = jax.nn.relu(x * params["scale"] + params["bias"])
        x = jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"
        )
        with scope(head):
            logits = x.reshape(batch, -1) @ params["head"]
            losses = optax.softmax_cross_entropy_with_integer_labels(
                logits, labels
            )
        statistics = optax.incremental_update((mean, var), statistics, 0.1)
        best = jax.lax.top_k(logits, 5)[1]
        hits = (best == labels[:, None]).any(-1)
        return losses.mean(), (statistics, hits.mean(), best)

    def step(params, state, statistics, x, labels):
        (value, (statistics, *metrics)), grads = jax.value_and_grad(
            loss, has_aux=True
        )(params, statistics, x, labels)
        updates, state = optimizer.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        return params, state, statistics, value, metrics

    state = (params, optimizer.init(params), (jnp.zeros(8), jnp.ones(8)))
    return step, state, (normal(2, batch, 8, 8, 3), numbers(3, classes, batch))


def experts(body, head):
    """The two best experts of each sample, found by sorting."""
    width, count, hidden, batch = 12, 4, 16, 12
    params = {
        "in": normal(0, 7, width),
        "gate": normal(1, width, count),
        "up": normal(2, count, width, hidden) * 2,
        "bias": jnp.zeros((count, hidden)),
        "down": normal(3, count, hidden, width) * 2,
        "out": normal(4, width, 3),
    }
    optimizer = optax.adam(1e-2, eps=1e-4)
    capacity = 2 * batch // count

    def loss(params, x, y):
        with scope(body):
            h = jnp.tanh(x @ params["in"])
        with scope(head):
            share, chosen = jax.lax.top_k(jax.nn.softmax(h @ params["gate"]), 2)
            order = jnp.argsort(chosen.reshape(-1), stable=True)
            expert = chosen.reshape(-1)[order]
            first = jnp.searchsorted(expert, jnp.arange(count))
            rank = jnp.arange(2 * batch) - first[expert]
            fits = rank < capacity
            slot = jnp.where(fits, expert * capacity + rank, count * capacity)
            given = jnp.zeros((count * capacity + 1, width))
            given = given.at[slot].set(h[order // 2])[:-1]
            given = given.reshape(count, capacity, width)
            z = jnp.einsum("ecd,edf->ecf", given, params["up"])
            z = jax.nn.relu(z + params["bias"][:, None])
            z = jnp.einsum("ecf,efd->ecd", z, params["down"])
            z = z.reshape(count * capacity, width)
            z = jnp.where(fits[:, None], z[slot], 0)
            z = z * share.reshape(-1)[order][:, None]
            h = h + jnp.zeros_like(h).at[order // 2].add(z)
        load = jnp.bincount(chosen.reshape(-1), length=count)
        return jnp.mean((h @ params["out"] - y) ** 2), load

    inputs = (normal(5, batch, 7) * 3, normal(6, batch, 3))
    return trained(loss, optimizer), (params, optimizer.init(params)), inputs


def recurrent(body, head):
    """An LSTM in a scan with dropout, its key a part of the state."""
    words, width, hidden, time, batch = 29, 11, 14, 5, 12
    params = {
        "words": normal(0, words, width) * 2,
        "x": normal(1, width, 4 * hidden),
        "h": normal(2, hidden, 4 * hidden),
        "head": normal(3, hidden, words),
    }
    optimizer = optax.chain(
        optax.clip_by_global_norm(0.5),
        optax.adam(optax.exponential_decay(1e-2, 5, 0.9)),
    )

    def cell(params, carry, inputs):
        h, c = carry
        x, key = inputs
        gates = x @ params["x"] + h @ params["h"]
        i, f, g, o = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h * jax.random.bernoulli(key, 0.8, h.shape) / 0.8

    def loss(params, tokens, key):
        with scope(body):
            x = params["words"][tokens[:, :-1]].swapaxes(0, 1)
            zero = (jnp.zeros((batch, hidden)),) * 2
            _, x = jax.lax.scan(
                functools.partial(cell, params),
                zero,
                (x, jax.random.split(key, time)),
            )
        with scope(head):
            losses = optax.softmax_cross_entropy_with_integer_labels(
                x @ params["head"], tokens[:, 1:].T
            )
            return losses.mean()

    def step(params, state, key, tokens):
        key, use = jax.random.split(key)
        value, grads = jax.value_and_grad(loss)(params, tokens, use)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, key, value

    state = (params, optimizer.init(params), jax.random.key(7))
    return step, state, (numbers(4, words, batch, time + 1),)


def contrastive(body, head):
    """The logits of all pairs of two samples: most ranks have none."""
    params = {
        "image": normal(0, 13, 10),
        "words": normal(1, 17, 20),
        "text": normal(2, 20, 10),
        "scale": jnp.float32(2.0),
    }
    optimizer = optax.adamw(1e-2)

    def loss(params, images, tokens):
        with scope(head):
            a = images @ params["image"]
            a = a / jnp.linalg.norm(a, axis=-1, keepdims=True)
        with scope(body):
            b = params["words"][tokens].mean(1) @ params["text"]
            b = b / jnp.linalg.norm(b, axis=-1, keepdims=True)
        logits = a @ b.T * jnp.exp(params["scale"])
        entropy = optax.softmax_cross_entropy_with_integer_labels
        labels = jnp.arange(len(images))
        both = entropy(logits, labels) + entropy(logits.T, labels)
        return both.mean() / 2, logits

    inputs = (normal(3, 2, 13), numbers(4, 17, 2, 5))
    return trained(loss, optimizer), (params, optimizer.init(params)), inputs


class Net(nn.Module):
    """A flax module with its own batch norm and dropout."""

    scopes: tuple

    @nn.compact
    def __call__(self, x):
        with scope(self.scopes[0]):
            x = nn.Conv(6, (3, 3), use_bias=False)(x)
            x = nn.BatchNorm(use_running_average=False, momentum=0.9)(x)
            x = nn.avg_pool(nn.relu(x), (2, 2), (2, 2))
        x = nn.Dropout(0.3, deterministic=False)(x.reshape(x.shape[0], -1))
        with scope(self.scopes[1]):
            return nn.Dense(21)(nn.LayerNorm()(x))


def flax_module(body, head):
    """Mutable collections, and a state that counts from a Python number."""
    net = Net((body, head))
    x, labels = normal(0, 6, 6, 6, 3) * 3, numbers(1, 21, 6)
    variables = Net((None, None)).init(jax.random.key(0), x)
    optimizer = optax.chain(
        optax.add_decayed_weights(1e-4), optax.sgd(0.1, momentum=0.9)
    )

    def step(state, x, labels):
        def loss(params):
            logits, updated = net.apply(
                {"params": params, "batch_stats": state["batch_stats"]},
                x,
                mutable=["batch_stats"],
                rngs={"dropout": jax.random.fold_in(state["key"], state["n"])},
            )
            losses = optax.softmax_cross_entropy_with_integer_labels(
                logits, labels
            )
            return losses.mean(), updated

        (value, updated), grads = jax.value_and_grad(loss, has_aux=True)(
            state["params"]
        )
        changes, optimizer_state = optimizer.update(
            grads, state["optimizer"], state["params"]
        )
        params = optax.apply_updates(state["params"], changes)
        state = state | updated | {"params": params, "n": state["n"] + 1}
        return state | {"optimizer": optimizer_state}, value

    first = {"optimizer": optimizer.init(variables["params"]), "n": 0}
    first["key"] = jax.random.PRNGKey(3)
    return step, ({**variables, **first},), (x, labels)


def metrics(body, head):
    """Integers, flags, orders and look-ups of a sharded result."""

    def step(weights, x, labels):
        with scope(body):
            h = jnp.tanh(x @ weights[0])
        with scope(head):
            logits = h @ weights[1]
        best = logits.argmax(-1)
        return weights, {
            "best": best,
            "hits": best == labels,
            "top": jax.lax.top_k(logits, 3),
            "confusion": jnp.zeros((8, 8), int).at[labels, best].add(1),
            "order": jnp.argsort(logits[:, 0]),
            "median": jnp.median(logits, axis=1),
            "rows": jnp.take(logits, jnp.array([1, 3]), axis=0),
            "blocks": logits.reshape(3, -1),
            "sums": jax.ops.segment_sum(logits, labels, num_segments=8),
            "running": jnp.cumsum(logits, 0),
        }

    weights = [normal(0, 6, 9), normal(1, 9, 8)]
    return step, (weights,), (normal(2, 12, 6) * 3, numbers(3, 8, 12))


@pytest.mark.parametrize(
    ("model", "runs"),
    [
        (attention, [("head", "uneven"), ("nested", "8")]),
        (convolutions, [("body", "mixed"), ("split", "uneven")]),
        (experts, [("head", "3"), ("named", "8")]),
        (recurrent, [("part", "mixed"), ("one and three", "4")]),
        (contrastive, [("body", "uneven"), ("split", "8")]),
        pytest.param(
            *(flax_module, [("halves", "4"), ("turned", "uneven")]),
            marks=pytest.mark.long,
        ),
        (metrics, [("head", "3"), ("body", "8")]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_models(model, runs):
    step, state, inputs = model(None, None)
    reference = jax.jit(step)
    expected = [reference(*state, *inputs)]
    count = len(state)
    expected.append(reference(*expected[0][:count], *inputs))
    # The second way to run each model takes as long again.
    is_full = "WHALE_TEST_FULL" in os.environ
    for strategy, cluster in runs if is_full else runs[:1]:
        default, body, head = STRATEGIES[strategy]
        wh.init()
        wh.set_default_strategy(default)
        compiled = wh.jit(
            model(body, head)[0],
            cluster=CLUSTERS[cluster],
            donate_argnums=tuple(range(count)),
            batch_argnums=tuple(range(count, count + len(inputs))),
        )
        ours = state
        for values in expected:
            ours = compiled(*ours[:count], *inputs)
            close(ours, values, 1e-4)
