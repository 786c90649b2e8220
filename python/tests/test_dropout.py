"""Random bits that a step draws: each rank its part, wherever they are drawn.

JAX draws with threefry, a loop over counters of every element and a key. Masks
are drawn here in layers that are unrolled, scanned and computed again for the
backward, in the steps of an LSTM, and for each sample or each element.

Values must be within 2e-5 of the magnitude of those of jax.jit with the same
keys, so each bit drawn must be the same. By the manifest, each of two ranks may
spend at most 55% of the FLOPs of one. A failure means other masks, or masks
that every rank draws as a whole.
"""

import functools

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")

SAMPLES, WIDTH, LAYERS = 7, 6, 3
KEY = jax.random.key(7)


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


PARAMS = {
    "layers": normal(1, LAYERS, WIDTH, WIDTH) / 2,
    "gates": normal(2, 2 * WIDTH, 4 * WIDTH) / 2,
}
X, Y = normal(3, SAMPLES, WIDTH), normal(4, SAMPLES, WIDTH)


def drop(x, key, shape=None):
    return jnp.where(jax.random.bernoulli(key, 0.7, shape or x.shape), x, 0)


def unrolled(params, x, key):
    for i, w in enumerate(params["layers"]):
        x = drop(jnp.tanh(x @ w), jax.random.fold_in(key, i))
    return x


def split_keys(params, x, key):
    def layer(x, both):
        w, key = both
        return drop(jnp.tanh(x @ w), key), None

    keys = jax.random.split(key, LAYERS)
    return lax.scan(layer, x, (params["layers"], keys))[0]


def carried_key(params, x, key):
    def layer(carry, w):
        x, key = carry
        key, own = jax.random.split(key)
        return (drop(jnp.tanh(x @ w), own), key), None

    return lax.scan(layer, (x, key), params["layers"])[0][0]


def folded_key(params, x, key):
    @jax.checkpoint
    def layer(x, both):
        w, i = both
        own = jax.random.fold_in(key, i)
        return x + drop(jnp.tanh(x @ w), own, (len(x), 1)), None

    return lax.scan(layer, x, (params["layers"], jnp.arange(LAYERS)))[0]


def lstm(params, x, key):
    def cell(carry, key):
        h, c = carry
        gates = jnp.concatenate([x, drop(h, key)], -1) @ params["gates"]
        i, f, g, o = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    keys = jax.random.split(key, LAYERS)
    start = jnp.zeros_like(x), jnp.zeros_like(x)
    return lax.scan(cell, start, keys)[0][0]


def step_of(model):
    def loss(params, x, y, key):
        return jnp.mean((model(params, x, key) - y) ** 2)

    def step(params, x, y, key):
        value, grads = jax.value_and_grad(loss)(params, x, y, key)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


@functools.cache
def expected(model):
    return jax.jit(step_of(model))(PARAMS, X, Y, KEY)


CASES = [
    *((model, "replicas", 3) for model in (unrolled, split_keys, carried_key)),
    *((model, "replicas", 2) for model in (folded_key, lstm)),
    pytest.param(split_keys, "replicas", 1, marks=pytest.mark.long),
    (split_keys, "shards", 3),
    pytest.param(lstm, "shards", 1, marks=pytest.mark.long),
    (carried_key, "stages", 3),
]


@pytest.mark.parametrize("model,layout,micro_batches", CASES)
def test_draws_as_jax_does(model, layout, micro_batches):
    step = step_of(model)
    config = {"num_micro_batch": micro_batches}
    if layout == "stages":
        config["num_task_graph"] = 2
    wh.init(wh.Config(config))
    if layout != "stages":
        kind = {"replicas": wh.replicate, "shards": wh.split}[layout]
        wh.set_default_strategy(kind(2))
    ours = wh.jit(step, cluster=2, batch_argnums=(1, 2))(PARAMS, X, Y, KEY)
    close(ours, expected(model))


def drawing(instructions, manifest, runs=()):
    """The FLOPs of drawing masks; a loop's body counts once."""
    total = 0
    for instruction in instructions:
        if "origin" in instruction:
            origin = manifest["origins"][instruction["origin"]]
            if "bernoulli" in origin.get("label", ""):
                total += instruction.get("flops", 0)
        total += drawing(instruction.get("body", []), manifest, runs)
        if "run" in instruction:
            run = runs[instruction["run"]]
            function = manifest["functions"][run["function"]]
            total += drawing(function["instructions"], manifest)
    return total


@pytest.mark.parametrize("model", [unrolled, split_keys, lstm])
def test_each_rank_draws_its_part(model):
    x, y = jnp.ones((8, WIDTH)), jnp.zeros((8, WIDTH))

    def drawn(replicas):
        wh.init(wh.Config({"num_micro_batch": 2}))
        wh.set_default_strategy(wh.replicate(replicas))
        step = wh.jit(step_of(model), cluster=replicas, batch_argnums=(1, 2))
        manifest = step.lower(PARAMS, x, y, KEY).compile().manifest
        return [
            drawing(c["instructions"], manifest, c.get("runs", ()))
            for c in manifest["classes"]
        ]

    (whole,) = drawn(1)
    assert whole > 1000
    # What is done with the key alone, all do.
    assert all(2 * part < 1.1 * whole for part in drawn(2))
