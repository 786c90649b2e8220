"""Loops over the same rows that become one kernel, on one and several ranks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

WIDTH, CLASSES = 64, 40


def normalize(x, scale):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale


def loss(params, x, labels):
    """Softmax, layer norm, RMS norm and cross-entropy."""
    x = normalize(x.astype(params["scale"].dtype), params["scale"])
    x = x + jax.nn.softmax(x @ params["mix"]) @ params["mix"]
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    logits = jax.nn.log_softmax((x @ params["head"]).astype(jnp.float32))
    return -jnp.take_along_axis(logits, labels[..., None], -1).mean()


def step(params, x, labels):
    value, grads = jax.value_and_grad(loss)(params, x, labels)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def arguments(batch, dtype):
    random = np.random.default_rng(batch)

    def normal(*shape):
        return jnp.asarray(random.standard_normal(shape) / 8, dtype)

    params = {
        "scale": 1 + normal(WIDTH),
        "mix": normal(WIDTH, WIDTH),
        "head": normal(WIDTH, CLASSES),
    }
    x = random.standard_normal((batch, 5, WIDTH)).astype(np.float32)
    labels = random.integers(0, CLASSES, (batch, 5), np.int32)
    return params, x, labels


def check(strategy, ranks, batch, dtype=jnp.float32, micro_batches=1):
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(strategy)
    values = arguments(batch, dtype)
    program = wh.jit(step, cluster=ranks, batch_argnums=(1, 2))
    ours, theirs = program(*values), jax.jit(step)(*values)
    again = program(*values)
    limit = 1e-5 if dtype == jnp.float32 else 2e-2
    for a, b, c in zip(*map(jax.tree.leaves, (ours, theirs, again))):
        a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
        assert a.tobytes() == c.tobytes()
        a, b = a.astype(np.float64), b.astype(np.float64)
        assert np.abs(a - b).max() <= limit * np.abs(b).max()


DTYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])


@DTYPES
def test_one_rank(dtype):
    check(wh.replicate(1), 1, 6, dtype)


@DTYPES
def test_uneven_shards(dtype):
    check(wh.replicate(4), 4, 6, dtype)


def test_empty_shards():
    check(wh.replicate(4), 4, 3)


@DTYPES
def test_split(dtype):
    check(wh.split(4), 4, 6, dtype)


@pytest.mark.parametrize("ranks", [1, 4])
def test_micro_batches(ranks):
    check(wh.replicate(ranks), ranks, 8, micro_batches=2)
