"""Sums of gradients that are sent in halves (``communication.bf16``, ``fp16``).

Under test: training steps on CPU ranks beside `jax.jit` in f32. Gradients that
halves have are summed to the bits of `jax.jit`; others stay within 2e-2 of it
after ten steps. All gradients cross in half the bytes, and nothing else does.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from layers import arguments

import whale as wh

LAYERS = 4
UNEVEN = {
    "nodes": [
        {"devices": [{"kind": "cpu", "slowdown": s} for s in (1, 2, 3)]},
    ]
}
NODES = {
    "nodes": [{"devices": [{"kind": "cpu", "count": 2}]}] * 2,
    "network": {"bandwidth": 1e8, "latency": 1e-6},
}
OPTIMIZER = optax.adam(1e-2)


def loss(params, x, stages):
    for i, (w, b) in enumerate(params):
        with wh.replicate(
            2 if stages > 1 else None, f"s{i * stages // LAYERS}"
        ):
            x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


def make_step(stages=1):
    def step(params, state, x):
        value, grads = jax.value_and_grad(loss)(params, x, stages)
        updates, state = OPTIMIZER.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def train(step):
    params, state, batch = arguments(OPTIMIZER, LAYERS)
    for _ in range(10):
        params, state, value = step(params, state, batch)
    return jax.tree.map(np.asarray, params), float(value)


def jitted(cluster, stages=1, **config):
    wh.init(wh.Config(config))
    return wh.jit(
        make_step(stages),
        cluster=cluster,
        batch_argnums=2,
        donate_argnums=(0, 1),
    )


@pytest.mark.parametrize("name", ["communication.bf16", "communication.fp16"])
@pytest.mark.parametrize(
    "cluster, stages, config",
    [
        (2, 1, {}),
        (UNEVEN, 1, {"num_micro_batch": 3}),
        (4, 2, {"num_micro_batch": 2}),
        (NODES, 1, {"communication.bucket_bytes": 0}),
        (UNEVEN, 1, {"zero.level": "v0"}),
        (UNEVEN, 1, {"zero.level": "v1", "num_micro_batch": 3}),
        (4, 1, {"zero.level": "v2", "num_micro_batch": 2}),
    ],
)
def test_ten_steps(name, cluster, stages, config):
    expected, expected_loss = train(jax.jit(make_step()))
    step = jitted(cluster, stages, **{name: True}, **config)
    params, value = train(step)
    assert abs(value - expected_loss) < 2e-2 * abs(expected_loss)
    # Adam's step is the sign of a gradient that is almost zero.
    for one, other in zip(jax.tree.leaves(params), jax.tree.leaves(expected)):
        assert np.mean(np.abs(one - other)) < 2e-2 * np.mean(np.abs(other))
    wide = (
        jitted(cluster, stages, **config)
        .lower(*arguments(OPTIMIZER, LAYERS))
        .plan()
    )
    kinds = ("all_reduce", "reduce_scatter")

    def summed(plan):
        kept = plan["collectives"]
        return sum(kept.get(kind, {"bytes": 0})["bytes"] for kind in kinds)

    # But for the loss.
    assert summed(step.plan) - 4 == (summed(wide) - 4) / 2


def test_what_halves_have_is_exact():
    def step(w, x):
        gradient = jax.grad(lambda w: jnp.sum(x @ w))(w)
        return w - gradient, gradient

    w = jnp.zeros((8, 4))
    x = jnp.arange(32.0).reshape(4, 8) % 5
    expected = jax.jit(step)(w, x)
    for name in ("communication.bf16", "communication.fp16"):
        wh.init(wh.Config({name: True}))
        wh.set_default_strategy(wh.replicate())
        results = wh.jit(step, cluster=2, batch_argnums=1)(w, x)
        for one, other in zip(results, expected):
            np.testing.assert_array_equal(one, other)


def test_what_leaves_the_range_is_infinite():
    def step(w, x):
        return jax.grad(lambda w: jnp.sum(x @ w))(w)

    w, x = jnp.zeros((2, 2)), jnp.full((2, 2), 300.0)
    wh.init(wh.Config({"communication.fp16": True}))
    wh.set_default_strategy(wh.replicate())
    assert np.isinf(wh.jit(step, cluster=2, batch_argnums=1)(w, x)).all()
    wh.init(
        wh.Config({"communication": {"fp16": True, "fp16_scale": 1}}),
    )
    wh.set_default_strategy(wh.replicate())
    np.testing.assert_array_equal(
        wh.jit(step, cluster=2, batch_argnums=1)(w, x), 600
    )


@pytest.mark.parametrize(
    "config, message",
    [
        ({"fp16": True, "bf16": True}, "exclude one another"),
        ({"fp16_scale": 64}, "fp16_scale belongs with communication.fp16"),
        ({"bf16": True, "fp16_scale": 64}, "fp16_scale belongs with"),
    ],
)
def test_errors(config, message):
    wh.init(wh.Config({"communication": config}))
    step = wh.jit(lambda x: x * 2, cluster=2)
    with pytest.raises(wh.CompileError, match=message):
        step(jnp.ones(4))
