"""Replicas that share out the state of the optimizer (``zero.level``).

Under test: steps of optax's optimizers on CPU ranks, with and without the
option, beside `jax.jit`. Parameters and state must be those of `jax.jit` up to
rounding, and each device must hold its part of the state alone: bytes are those
of the parameters and of the state over the number of replicas. Gradients are
scattered and parameters gathered, and nothing else is exchanged.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import whale as wh

WIDTH, LAYERS, ROWS, STEPS = 32, 3, 24, 3
UNEVEN = {
    "nodes": [
        {
            "devices": [
                {"kind": "cpu"},
                {"kind": "cpu", "slowdown": 2},
                {"kind": "cpu", "slowdown": 3},
            ]
        }
    ]
}
OPTIMIZERS = {
    "momentum": lambda: optax.sgd(0.1, momentum=0.9),
    "adam": lambda: optax.adam(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "clipped": lambda: optax.chain(
        optax.clip_by_global_norm(0.1), optax.adamw(1e-2)
    ),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=8),
}


def make_step(optimizer):
    def step(params, state, x):
        def loss(params):
            y = x
            for w, b in params:
                y = jnp.tanh(y @ w + b)
            return jnp.mean(y**2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def arguments(optimizer):
    keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    params = [
        (jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH**0.5, jnp.zeros(WIDTH))
        for k in keys[:-1]
    ]
    batch = jax.random.normal(keys[-1], (ROWS, WIDTH))
    return params, optimizer.init(params), batch


def size_of(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def lowered(optimizer, cluster, strategy=wh.replicate, **config):
    """The step, and what it is called with."""
    wh.init(wh.Config(config))
    wh.set_default_strategy(strategy())
    step = wh.jit(
        make_step(optimizer),
        cluster=cluster,
        batch_argnums=2,
        donate_argnums=(0, 1),
    )
    return step, arguments(optimizer)


def run(name, cluster, strategy=wh.replicate, **config):
    """Steps of it beside those of `jax.jit`; the plan."""
    optimizer = OPTIMIZERS[name]()
    step, (params, state, batch) = lowered(
        optimizer, cluster, strategy, **{"zero.level": "v0"} | config
    )
    expected = jax.jit(make_step(optimizer))
    own = jax.tree.map(jnp.copy, (params, state))
    other = params, state
    for _ in range(STEPS):
        *own, _ = step(*own, batch)
        *other, _ = expected(*other, batch)
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)
    return step.plan


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    plan = run(name, 4)
    kinds = plan["collectives"]
    # Of the loss and of norms, scalars; Adafactor's sums of rows stay whole.
    if name != "adafactor":
        assert kinds["all_reduce"]["bytes"] < 512
        gradients = size_of(arguments(OPTIMIZERS[name]())[0])
        for kind in ("reduce_scatter", "all_gather"):
            assert kinds[kind]["bytes"] == gradients


@pytest.mark.parametrize("name, copies", [("momentum", 1), ("adam", 2)])
@pytest.mark.parametrize("ranks", [2, 4])
def test_bytes_of_state(name, copies, ranks):
    """4P of parameters and 4P/N for each moment, in f32 (ZeRO, section 5.1)."""
    optimizer = OPTIMIZERS[name]()
    step, given = lowered(optimizer, ranks, **{"zero.level": "v0"})
    params, _, batch = given
    plan = step.lower(*given).plan()
    held = plan["devices"][0]["memory"]["arguments"]
    count = 4 if name == "adam" else 0
    assert held == (
        size_of(params)
        + copies * size_of(params) // ranks
        + batch.nbytes // ranks
        + count
    )


@pytest.mark.parametrize(
    "strategy, config, cluster",
    [
        (wh.replicate, {"num_micro_batch": 3}, 4),
        (wh.replicate, {"num_micro_batch": 4, "num_task_graph": 2}, 4),
        (
            lambda: wh.replicate(1),
            {"num_micro_batch": 2, "num_task_graph": 2},
            4,
        ),
        (lambda: wh.replicate(2), {}, 4),
        (wh.replicate, {}, UNEVEN),
        (wh.replicate, {"num_micro_batch": 4}, UNEVEN),
        (wh.replicate, {"communication.bucket_bytes": 0}, 3),
    ],
)
def test_nests(strategy, config, cluster):
    plan = run("adam", cluster, strategy, **config)
    params, state, batch = arguments(OPTIMIZERS["adam"]())
    everything = size_of((params, state, batch))
    parts = [d["memory"]["arguments"] for d in plan["devices"]]
    assert max(parts) < everything - size_of(state) // 3


def test_state_goes_between_plans():
    """What one step has shared out another takes whole, and back."""
    optimizer = OPTIMIZERS["adam"]()
    shared, (params, state, batch) = lowered(
        optimizer, 4, **{"zero.level": "v0"}
    )
    shared.lower(params, state, batch).compile()
    whole, _ = lowered(optimizer, 2)
    expected = jax.jit(make_step(optimizer))
    own = jax.tree.map(jnp.copy, (params, state))
    other = params, state
    for step in itertools.islice(itertools.cycle([shared, whole]), 4):
        *own, _ = step(*own, batch)
        *other, _ = expected(*other, batch)
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize(
    "optimizer, ranks, strategy",
    [
        (optax.sgd(0.1), 4, wh.replicate),
        (optax.adam(0.1), 1, wh.replicate),
        (optax.adam(0.1), 4, lambda: wh.split(4)),
    ],
)
def test_nothing_to_share_is_an_error(optimizer, ranks, strategy):
    step, given = lowered(optimizer, ranks, strategy, **{"zero.level": "v0"})
    with pytest.raises(wh.CompileError, match="zero.level: no replicas have"):
        step.lower(*given).plan()


def test_levels():
    with pytest.raises(ValueError, match="'zero.level' must be 'v0'"):
        wh.Config({"zero.level": "v1"})
