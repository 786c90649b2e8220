"""Products in halves (``amp.level``) beside `jax.jit` in f32.

Under test: training steps of the example's GPT on CPU ranks. Losses must stay
within 0.02 of those of f32, parameters and state keep their types, and all
ranks hold the same.
"""

import os
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import whale as wh

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/gpt"
sys.path.insert(0, str(EXAMPLE))

import data  # noqa: E402
import model  # noqa: E402

pytest.importorskip("whale._whale")

IS_FULL = "WHALE_TEST_FULL" in os.environ
STEPS = 200 if IS_FULL else 4
ROWS, CONTEXT = 8, 64
OPTIMIZER = optax.adamw(1e-3)


def gpt_step(annotate):
    return model.make_train_step(OPTIMIZER, annotate)


def start():
    tokens, vocabulary = data.load()
    config = model.Config(len(vocabulary), layers=2, width=32, heads=2)
    params = model.init_params(config, jax.random.key(0))
    return params, OPTIMIZER.init(params), data.batches(tokens, ROWS, CONTEXT)


def train(step, count):
    params, state, batches = start()
    losses = []
    for _ in range(count):
        params, state, loss = step(params, state, next(batches))
        losses.append(loss)
    return np.asarray(losses, np.float32), params


def jitted(step, cluster, strategy=None, **config):
    wh.init(wh.Config(config))
    if strategy is not None:
        wh.set_default_strategy(strategy)
    return wh.jit(step, cluster=cluster, donate_argnums=(0, 1), batch_argnums=2)


@pytest.fixture(scope="module")
def expected():
    """Losses and parameters of `jax.jit` in f32."""
    return train(jax.jit(gpt_step(False)), STEPS)


STAGES = {"num_task_graph": 2, "num_micro_batch": 4}


@pytest.mark.parametrize(
    "cluster, strategy, annotate, config",
    [
        pytest.param(1, None, False, {}, marks=pytest.mark.long),
        (2, wh.replicate(), True, {}),
        (4, None, False, STAGES),
        (4, wh.replicate(), False, {"zero.level": "v2", "num_micro_batch": 2}),
        (2, wh.replicate(), False, {"communication.bf16": True}),
    ],
    ids=["alone", "split", "stages", "zero", "wire"],
)
def test_gpt(expected, cluster, strategy, annotate, config):
    step = jitted(
        gpt_step(annotate), cluster, strategy, **{"amp.level": "bf16"}, **config
    )
    losses, params = train(step, STEPS)
    assert np.mean(np.abs(losses - expected[0])[-50:]) < 0.02
    # Not what f32 gives.
    assert np.any(losses != expected[0])
    for mine, theirs in zip(
        jax.tree.leaves(params), jax.tree.leaves(expected[1])
    ):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape


def test_products_take_halves():
    """A value is read as bf16 by a product, and as f32 by what is none."""

    def step(x, w):
        y = x @ w
        return jnp.sum(jnp.sin(y), 0), jnp.sum(jnp.sin(x), 0)

    x = jax.random.normal(jax.random.key(0), (8, 16))
    w = jax.random.normal(jax.random.key(1), (16, 4))
    wh.init(wh.Config({"amp.level": "bf16"}))
    wh.set_default_strategy(wh.replicate())
    product, other = wh.jit(step, cluster=2, batch_argnums=0)(x, w)
    y = jnp.dot(
        x.astype(jnp.bfloat16),
        w.astype(jnp.bfloat16),
        preferred_element_type=jnp.float32,
    ).astype(jnp.bfloat16)
    close = {"rtol": 1e-5, "atol": 1e-5}
    exact = jnp.sum(jnp.sin(y.astype(jnp.float32)), 0)
    np.testing.assert_allclose(product, exact, **close)
    np.testing.assert_allclose(other, jnp.sum(jnp.sin(x), 0), **close)


def test_gradients_are_summed_in_f32():
    """Sums over 4096 samples of micro-batches and replicas lose nothing."""

    def step(w, x):
        return w - jax.grad(lambda w: jnp.sum(x @ w))(w)

    w, x = jnp.zeros((2, 2)), jnp.ones((4096, 2)).at[0].set(1.5)
    wh.init(wh.Config({"amp.level": "bf16", "num_micro_batch": 4}))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(step, cluster=2, batch_argnums=1)
    np.testing.assert_array_equal(step(w, x), -4096.5)


def test_convolution():
    def loss(w, x):
        y = jax.lax.conv(x, w, (1, 1), "SAME")
        return jnp.mean(jax.nn.relu(y) ** 2)

    def step(w, x):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return w - 0.1 * gradient, value

    w = jax.random.normal(jax.random.key(0), (4, 3, 3, 3))
    x = jax.random.normal(jax.random.key(1), (4, 3, 8, 8))
    wh.init(wh.Config({"amp.level": "bf16"}))
    wh.set_default_strategy(wh.replicate())
    results = wh.jit(step, cluster=2, batch_argnums=1)(w, x)
    for mine, theirs in zip(results, jax.jit(step)(w, x)):
        np.testing.assert_allclose(mine, theirs, rtol=0.02, atol=0.02)
        assert np.any(mine != theirs)


def test_other_products_are_exact():
    """Of integers, of f64, of more precision, and of the optimizer."""

    def step(m, x, i):
        y = jnp.dot(x, x, precision="highest")
        return m + jnp.dot(m, m, precision="high"), y, i @ i

    m = jax.random.normal(jax.random.key(0), (8, 8))
    i = jnp.arange(64).reshape(8, 8)
    wh.init(wh.Config({"amp.level": "bf16"}))
    results = wh.jit(step, cluster=1)(m, m, i)
    for mine, theirs in zip(results, jax.jit(step)(m, m, i)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_errors():
    with pytest.raises(ValueError, match="amp.level.* must be one of"):
        wh.Config({"amp": {"level": "O3"}})
    wh.init(wh.Config({"amp.debug_log": True}))
    with pytest.raises(wh.CompileError, match="belongs with amp.level"):
        wh.jit(lambda x: x * 2, cluster=1)(jnp.ones(4))
