"""Replicas that share out the state (``zero.level``).

Under test: steps of optax's optimizers on CPU ranks, with and without the
option, beside `jax.jit`. Parameters and state must be those of `jax.jit` up to
rounding, and each device must hold its part alone, as the formulas of ZeRO
(Rajbhandari et al., 2020, section 5) say. Gradients are scattered and
parameters gathered, and nothing else is exchanged.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from layers import OPTIMIZERS, ROWS, WIDTH, arguments, make_step, size_of

import whale as wh

LAYERS, STEPS = 3, 3
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
# Two nodes of unlike devices, between which little can be sent.
UNEVEN_NODES = {
    "nodes": [
        {
            "devices": [{"kind": "cpu", "slowdown": slowdown, "count": 2}],
            "link": {"bandwidth": 1e11, "latency": 1e-9},
        }
        for slowdown in (1, 3)
    ],
    "network": {"bandwidth": 1e6, "latency": 1e-9},
}


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
    return step, arguments(optimizer, LAYERS)


def run(name, cluster, strategy=wh.replicate, **config):
    """Steps of it beside those of `jax.jit`; the plan."""
    # Else all exchanges, which are small, are joined in one.
    config = {"communication.bucket_bytes": 0} | config
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


@pytest.mark.parametrize("level", ["v0", "v2"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, level):
    plan = run(name, 4, **{"zero.level": level})
    kinds = plan["collectives"]
    # Of the loss and of norms, scalars; Adafactor's sums of rows stay whole.
    if name != "adafactor":
        assert kinds["all_reduce"]["bytes"] < 512
        gradients = size_of(arguments(OPTIMIZERS[name](), LAYERS)[0])
        assert kinds["reduce_scatter"]["bytes"] == gradients
        if level == "v0":
            assert kinds["all_gather"]["bytes"] == gradients
        else:
            # For the forward, and where the backward reads them: not biases,
            # nor what only the gradient of the batch would need.
            matrix = 4 * WIDTH**2
            assert kinds["all_gather"]["bytes"] == (
                gradients + (LAYERS - 1) * matrix
            )


def memory_of(step, given):
    return step.lower(*given).plan()["devices"][0]["memory"]


@pytest.mark.parametrize(
    "level, parts",
    # Bytes of a parameter's element, whole and over the number of replicas, in
    # f32: of itself, of its sum over micro-batches, and of Adam's two moments.
    [("v0", (4 + 4, 8)), ("v1", (4, 4 + 8)), ("v2", (0, 4 + 4 + 8))],
)
@pytest.mark.parametrize("ranks", [2, 4])
def test_bytes_of_state(level, parts, ranks):
    optimizer = OPTIMIZERS["adam"]()
    config = {"zero.level": level, "communication.bucket_bytes": 0}
    step, given = lowered(optimizer, ranks, num_micro_batch=3, **config)
    params, state, batch = given
    memory = memory_of(step, given)
    whole, shared = parts
    elements = size_of(params) // 4
    held = elements * whole + elements * shared // ranks
    sums = elements * 4 // (1 if level == "v0" else ranks)
    # And the counter.
    assert memory["arguments"] == held - sums + batch.nbytes // ranks + 4
    # Sums, beside a few values of one layer, whole and scattered.
    layer = size_of(params) // LAYERS
    rows = ROWS // 3 // ranks * WIDTH * 4
    assert (
        0
        <= memory["activations and gradients"] - sums
        <= (2 * layer + 4 * LAYERS * rows)
    )


def mixed_step(params, state, x):
    """Adam on f32 copies of bf16 parameters, as section 5 has it."""
    master, moments = state
    optimizer = optax.adam(1e-2)

    def loss(params):
        y = x.astype(jnp.bfloat16)
        for w in params:
            y = jnp.tanh(y @ w)
        return jnp.mean(y.astype(jnp.float32) ** 2)

    grads = jax.grad(loss)(params)
    grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
    updates, moments = optimizer.update(grads, moments, master)
    master = optax.apply_updates(master, updates)
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), master)
    return params, (master, moments)


@pytest.mark.parametrize(
    "level, whole, shared", [("v0", 2, 12), ("v1", 2, 12), ("v2", 0, 14)]
)
def test_bytes_of_mixed_precision(level, whole, shared):
    """2P + 12P/N beside gradients of 2P or 2P/N; 16P/N with them in stage 3."""
    ranks, master = 4, [w for w, _ in arguments(optax.adam(1e-2), LAYERS)[0]]
    params = [w.astype(jnp.bfloat16) for w in master]
    batch = arguments(optax.adam(1e-2), LAYERS)[2]
    given = (params, (master, optax.adam(1e-2).init(master)), batch)
    wh.init(wh.Config({"zero.level": level}))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(
        mixed_step, cluster=ranks, batch_argnums=2, donate_argnums=(0, 1)
    )
    elements = LAYERS * WIDTH**2
    held = elements * whole + elements * shared // ranks
    found = memory_of(step, given)["arguments"]
    assert found == held + batch.nbytes // ranks + 4
    own, other = jax.tree.map(jnp.copy, given[:2]), given[:2]
    own, other = step(*own, batch), jax.jit(mixed_step)(*other, batch)
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(
            np.float32(mine), np.float32(theirs), rtol=2e-2, atol=2e-2
        )


def scan_step(params, state, x):
    def loss(params):
        def layer(y, p):
            return jnp.tanh(y @ p["w"] + p["b"]), None

        return jnp.mean(jax.lax.scan(layer, x, params)[0] ** 2)

    grads = jax.grad(loss)(params)
    updates, state = optax.adam(1e-2).update(grads, state, params)
    return optax.apply_updates(params, updates), state


@pytest.mark.parametrize("level", ["v0", "v1", "v2"])
@pytest.mark.parametrize("micro", [1, 2])
def test_scans(level, micro):
    """Layers in a loop: each iteration scatters its gradient, whose parts are
    stacked, and gathers its parameters."""
    params = {
        "w": jax.random.normal(jax.random.key(0), (6, WIDTH, WIDTH)) / 6,
        "b": jnp.zeros((6, WIDTH)),
    }
    given = params, optax.adam(1e-2).init(params), jnp.ones((ROWS, WIDTH))
    config = {"zero.level": level, "num_micro_batch": micro}
    wh.init(wh.Config({"communication.bucket_bytes": 0} | config))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(scan_step, cluster=4, batch_argnums=2, donate_argnums=(0, 1))
    own, other = jax.tree.map(jnp.copy, given[:2]), given[:2]
    for _ in range(STEPS):
        own = step(*own, given[2])
        other = jax.jit(scan_step)(*other, given[2])
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)
    kinds = step.plan["collectives"]
    assert "all_reduce" not in kinds
    assert kinds["reduce_scatter"]["bytes"] == size_of(params) * micro
    memory = step.plan["devices"][0]["memory"]["arguments"]
    parameters = size_of(params) // (4 if level == "v2" else 1)
    batch = given[2].nbytes // 4
    assert memory == parameters + size_of(params) // 2 + batch + 4


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
@pytest.mark.parametrize("level", ["v0", "v1", "v2"])
def test_nests(strategy, config, cluster, level):
    config = config | {"zero.level": level}
    plan = run("adam", cluster, strategy, **config)
    params, state, batch = arguments(OPTIMIZERS["adam"](), LAYERS)
    everything = size_of((params, state, batch))
    shared = size_of(state) + (level == "v2") * size_of(params)
    parts = [d["memory"]["arguments"] for d in plan["devices"]]
    assert max(parts) < everything - shared // 3


@pytest.mark.parametrize("level", ["v0", "v2"])
def test_unlike_nodes(level):
    """Parts of unlike devices cross the network once for a node, too."""
    plan = run("adam", UNEVEN_NODES, **{"zero.level": level})
    kinds = plan["collectives"]
    # What is gathered and scattered in nodes, and fetched across.
    assert kinds["send_recv"]["count"] > 0
    assert kinds["reduce_scatter"]["bytes"] >= kinds["all_gather"]["bytes"] / 2
    held = [d["memory"]["arguments"] for d in plan["devices"]]
    assert held[0] > held[2]


def test_memory_falls():
    """A deeper model: each level holds less than the one before."""
    config = {"communication.bucket_bytes": 0, "num_micro_batch": 3}
    held = []
    for level in ({}, *({"zero.level": f"v{i}"} for i in range(3))):
        step, given = lowered(optax.adam(1e-2), 4, **config | level)
        held.append(sum(memory_of(step, given).values()))
    assert held == sorted(held, reverse=True) and len(set(held)) == 4


@pytest.mark.parametrize("level", ["v0", "v2"])
def test_state_goes_between_plans(level):
    """What one step has shared out another takes whole, and back."""
    optimizer = OPTIMIZERS["adam"]()
    shared, (params, state, batch) = lowered(
        optimizer, 4, **{"zero.level": level}
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
    "optimizer, ranks, strategy, why",
    [
        (optax.sgd(0.1), 4, wh.replicate, "not only the optimizer reads it"),
        (optax.adam(0.1), 1, wh.replicate, "its TaskGraph has one replica"),
        (optax.adam(0.1), 4, lambda: wh.split(4), "its TaskGraph is split"),
    ],
)
def test_nothing_to_share_is_an_error(optimizer, ranks, strategy, why):
    step, given = lowered(optimizer, ranks, strategy, **{"zero.level": "v0"})
    with pytest.raises(
        wh.CompileError, match="zero.level: no replicas have"
    ) as error:
        step.lower(*given).plan()
    assert why in str(error.value)


def test_sgd_shares_parameters():
    wh.init(wh.Config({"zero.level": "v2"}))
    optimizer = optax.sgd(0.1)
    step, given = lowered(optimizer, 4, **{"zero.level": "v2"})
    expected = jax.jit(make_step(optimizer))(*given)
    copies = jax.tree.map(jnp.copy, given[:2])
    found = step(*copies, given[2])
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("level", ["v0", "v2"])
def test_optimizer_in_a_loop(level):
    """Several steps in a call: it says why there is nothing, and what to do."""
    optimizer = optax.adam(1e-2)
    one = make_step(optimizer)

    def many(params, state, xs):
        def body(carry, x):
            params, state, loss = one(*carry, x)
            return (params, state), loss

        return *jax.lax.scan(body, (params, state), xs)[0], 0.0

    params, state, batch = arguments(optimizer, LAYERS)
    wh.init(wh.Config({"zero.level": level}))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(
        many, cluster=2, in_axes=(None, None, 1), donate_argnums=(0, 1)
    )
    with pytest.raises(wh.CompileError, match="a loop updates it: call"):
        step.lower(params, state, jnp.stack([batch] * 2)).plan()


def test_levels():
    with pytest.raises(ValueError, match="must be one of 'v0', 'v1', 'v2'"):
        wh.Config({"zero.level": "v3"})
