"""Automatic stages beside `jax.jit`: `num_task_graph` without any scope.

Under test: networks with skips, scans, shared weights and empty arrays that the
compiler cuts by itself. Losses must be within 2e-5 of the magnitude of those of
`jax.jit`, state after two steps within 1e-4 (3e-2 in bf16); what ranks store
and send is bounded in bytes. A failure means that a cut changes the result, or
moves parameters between stages.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")

OPTIMIZER = optax.adam(1e-2)
WIDTH = 12


def init():
    keys = jax.random.split(jax.random.key(1), 6)
    params = {
        f"w{i}": jax.random.normal(key, (WIDTH, WIDTH)) / 4
        for i, key in enumerate(keys)
    }
    params["table"] = jax.random.normal(keys[0], (20, WIDTH)) / 4
    return params, OPTIMIZER.init(params)


def batch(seed):
    keys = jax.random.split(jax.random.key(seed + 50))
    return tuple(jax.random.randint(key, (8,), 0, 20) for key in keys)


def loss(params, tokens, targets):
    """Layers with connections that skip others, and a table at both ends."""
    x = params["table"][tokens]
    downs = []
    for i in range(3):
        x = jnp.tanh(x @ params[f"w{i}"])
        downs.append(x)
    for i in range(3, 6):
        x = jnp.tanh(x @ params[f"w{i}"] + downs.pop())
    logits = x @ params["table"].T
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, targets
    ).mean()


def train_step(params, state, tokens, targets):
    value, grads = jax.value_and_grad(loss)(params, tokens, targets)
    grads, _ = optax.clip_by_global_norm(0.5).update(grads, None)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def scanned_loss(remat):
    """Five equal layers in a scan, whose weights are stacked."""

    def layer(x, w):
        y = jnp.tanh(x @ w) + x
        return y, y.sum(-1)

    def loss(params, tokens, targets):
        x = params["table"][tokens]
        body = jax.checkpoint(layer) if remat else layer
        x, sums = jax.lax.scan(body, x, params["layers"])
        logits = x @ params["table"].T
        return (
            optax.softmax_cross_entropy_with_integer_labels(
                logits, targets
            ).mean()
            + (sums**2).mean() / 100
        )

    return loss


@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize("count, cluster", [(2, 2), (3, 3), (2, 4)])
def test_scan_over_layers(count, cluster, remat):
    wh.init(wh.Config({"num_task_graph": count}))
    params = init()[0]
    layers = jnp.stack([params[f"w{i}"] for i in range(5)])
    params = {"layers": layers, "table": params["table"]}
    state = OPTIMIZER.init(params)

    def train_step(params, state, tokens, targets):
        value, grads = jax.value_and_grad(scanned_loss(remat))(
            params, tokens, targets
        )
        updates, state = OPTIMIZER.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    step = wh.jit(
        train_step, cluster=cluster, donate_argnums=(0, 1), batch_argnums=(2, 3)
    )
    text = step.lower(params, state, *batch(0)).as_text()
    assert text.count("stablehlo.while") == 2
    reference = jax.jit(train_step)
    ours = theirs = params, state
    for n in range(2):
        *ours, value = step(*ours, *batch(n))
        *theirs, expected = reference(*theirs, *batch(n))
        close(value, expected)
    close(tuple(ours), tuple(theirs), 1e-4)


@pytest.mark.parametrize(
    "count, cluster, micro_batches", [(3, 4, 2), (4, 5, 1)]
)
def test_a_shared_weight_in_stages_of_other_sizes(
    count, cluster, micro_batches
):
    """The gradient of a loop's weight goes through stages of 1 and 2 devices.

    What one stage has of it is a term of the next one's sum.
    """
    config = {"num_task_graph": count, "num_micro_batch": micro_batches}
    wh.init(wh.Config(config))
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (6, 6), (5, 6), (12, 5)
    w, v, x = map(jax.random.normal, keys, shapes)

    def loss(w, v, x):
        def cell(h, x):
            h = jnp.tanh(x @ v + h @ w)
            return h, h

        h, every = jax.lax.scan(
            cell, jnp.zeros((len(x), 6)), jnp.stack([x, x * 2, x - 1])
        )
        return jnp.sum((h + every.mean(0)) ** 2)

    step = jax.value_and_grad(loss, (0, 1))
    compiled = wh.jit(step, cluster=cluster, batch_argnums=2)
    close(compiled(w, v, x), jax.jit(step)(w, v, x), 1e-4)


@pytest.mark.parametrize(
    "count, strategy, cluster, dtype",
    [
        (4, None, 4, jnp.float32),
        (4, None, 4, jnp.bfloat16),
        # Two pipelines of two stages, and a split inside of each stage.
        (2, wh.replicate(1), 4, jnp.float32),
        (2, wh.split(2), 4, jnp.float32),
    ],
    ids=str,
)
def test_stacked_layers_stay_in_their_stages(count, strategy, cluster, dtype):
    """No stage sends parameters, gradients or optimizer state."""
    layers, width = 8, 48
    config = {
        "num_task_graph": count,
        "num_micro_batch": 4,
        "pipeline.strategy": "1f1b",
    }
    wh.init(wh.Config(config))
    wh.set_default_strategy(strategy)

    def loss(params, x):
        # Cast outside of the layers, as in mixed precision.
        weights = params["layers"].astype(dtype)
        x, _ = jax.lax.scan(
            lambda x, w: (jnp.tanh(x @ w) + x, None), x.astype(dtype), weights
        )
        decay = jnp.sum(params["layers"] ** 2)
        return jnp.mean(x.astype(jnp.float32) ** 2) + decay / 1000

    optimizer = optax.chain(
        optax.clip_by_global_norm(0.1), optax.adamw(1e-2, eps=1e-3)
    )

    def train_step(params, state, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    key = jax.random.key(3)
    shape = layers, width, width
    params = {"layers": jax.random.normal(key, shape) / width**0.5}
    state = optimizer.init(params)
    x = jax.random.normal(key, (8, width))
    step = wh.jit(
        train_step, cluster=cluster, donate_argnums=(0, 1), batch_argnums=2
    )
    program = step.lower(params, state, x).compile()
    reference = jax.jit(train_step)
    ours = theirs = params, state
    for _ in range(2):
        *ours, value = program(*ours, x)
        *theirs, expected = reference(*theirs, x)
        close(value, expected, 2e-5 if dtype == jnp.float32 else 1e-2)
    close(tuple(ours), tuple(theirs), 1e-4 if dtype == jnp.float32 else 3e-2)

    # In the memory of what is donated, though no stage has all of it.
    stacks = [r for r in program.manifest["results"] if r["view"]]
    assert stacks and all(stack["alias"] is not None for stack in stacks)
    # Weights and two moments, of the layers of one stage.
    parts = cluster if isinstance(strategy, wh.split) else count
    layer = width * width * 4
    stored = 3 * layers * layer // parts
    for rank in program.stats["ranks"]:
        assert stored <= rank["argument_bytes"] < stored + layer
        sent = rank["collectives"].get("send_recv", {}).get("bytes_sent", 0)
        assert sent < layer


@pytest.mark.parametrize("scanned", [False, True])
def test_scopes_store_the_layers_that_they_take(scanned):
    """Also without a loop that is cut: slices of a stack in two scopes."""
    wh.init(wh.Config({"num_micro_batch": 2}))
    layers, first, width = 5, 2, 48

    def layer(x, w):
        return jnp.tanh(x @ w) + x, None

    def run(x, weights, begin, end):
        if scanned:
            return jax.lax.scan(layer, x, weights[begin:end])[0]
        for i in range(begin, end):
            x, _ = layer(x, weights[i])
        return x

    def loss(weights, x):
        with wh.replicate(1, name="front"):
            x = run(x, weights, 0, first)
        with wh.replicate(1, name="back"):
            return jnp.mean(run(x, weights, first, layers) ** 2)

    def train_step(weights, x):
        value, grad = jax.value_and_grad(loss)(weights, x)
        return weights - 0.1 * grad, value

    weights = jax.random.normal(jax.random.key(5), (layers, width, width))
    weights /= width**0.5
    x = jax.random.normal(jax.random.key(6), (4, width))
    step = wh.jit(train_step, cluster=2, donate_argnums=0, batch_argnums=1)
    program = step.lower(weights, x).compile()
    close(program(weights, x), jax.jit(train_step)(weights, x))
    layer_bytes = width * width * 4
    for rank, count in zip(
        program.stats["ranks"], (first, layers - first), strict=True
    ):
        own = count * layer_bytes
        assert own <= rank["argument_bytes"] < own + layer_bytes / 2
        assert rank["collectives"]["send_recv"]["bytes_sent"] < layer_bytes


SLOW_LINKS = {
    "nodes": [
        {
            "count": 2,
            "devices": [{"kind": "cpu"}, {"kind": "cpu", "slowdown": 3}],
            "link": {"bandwidth": 1e9, "latency": 1e-6},
        }
    ],
    "network": {"bandwidth": 1e8, "latency": 1e-5},
}


@pytest.mark.parametrize(
    "count, strategy, cluster",
    [
        (2, None, 2),
        (3, None, 3),
        (2, None, 3),
        (4, None, SLOW_LINKS),
        # Two pipelines of two stages, and stages that share their devices.
        (2, wh.replicate(1), 4),
        (3, wh.replicate(1), 2),
        (2, wh.split(2), 4),
    ],
    ids=str,
)
def test_training(count, strategy, cluster):
    wh.init(wh.Config({"num_task_graph": count}))
    wh.set_default_strategy(strategy)
    step = wh.jit(
        train_step, cluster=cluster, donate_argnums=(0, 1), batch_argnums=(2, 3)
    )
    reference = jax.jit(train_step)
    ours = theirs = init()
    for n in range(2):
        *ours, value = step(*ours, *batch(n))
        *theirs, expected = reference(*theirs, *batch(n))
        close(value, expected)
    close(tuple(ours), tuple(theirs), 1e-4)


def test_fewer_stages_than_wanted_where_there_is_little_to_do():
    """One operation is one stage, on all devices."""
    wh.init(wh.Config({"num_task_graph": 9}))
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    program = wh.jit(lambda x: jnp.tanh(x), cluster=9).lower(x).compile()
    (graph,) = program.plan["task_graphs"]
    assert graph["name"] == "stage0"
    assert graph["devices"] == [list(range(9))]
    close(program(x), jnp.tanh(x), 1e-6)


def test_scopes_and_a_number_of_stages():
    def step(x):
        with wh.replicate(1):
            return jnp.tanh(x) + 1

    wh.init(wh.Config({"num_task_graph": 2}))
    with pytest.raises(wh.CompileError, match="leave num_task_graph or the"):
        wh.jit(step, cluster=2)(np.ones(4, np.float32))


def assert_close(ours, expected):
    for a, b in zip(
        jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True
    ):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def between_scopes(case: str, h0: jax.Array, h1: jax.Array) -> jax.Array:
    if case == "skip":
        skip = 2 * h0
        return h1 + skip
    if case == "gate":
        return jnp.tanh(h1) * jax.nn.sigmoid(h0)
    mean = jnp.mean(h1, axis=-1, keepdims=True)
    return (h1 - mean) * h0 + h0


@pytest.mark.parametrize("case", ["skip", "gate", "norm"])
def test_operations_between_scopes(case):
    """They are where the last of what they read is made, and their gradients
    where the first of what they feed is."""

    def loss(params, x):
        levels = jnp.floor(jnp.abs(x) * 3)
        scaled = x * jnp.sqrt(levels + 1)
        with wh.replicate(1, "first"):
            h0 = jnp.tanh(jnp.sin(levels) @ params[0])
        with wh.replicate(1, "second"):
            h1 = (h0 + scaled) @ params[1]
        h = between_scopes(case, h0, h1)
        with wh.replicate(1, "third"):
            h2 = h @ params[2]
        return jnp.mean(h2**2) + 0.1 * jnp.mean(h0 * h1)

    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return [
            w - 0.1 * g for w, g in zip(params, gradients, strict=True)
        ], value

    keys = jax.random.split(jax.random.key(0), 4)
    params = [jax.random.normal(k, (4, 4)) for k in keys[:3]]
    x = jax.random.normal(keys[3], (6, 4))
    wh.init(wh.Config({"num_micro_batch": 3}))
    program = wh.jit(step, cluster=3, batch_argnums=(1,))
    assert_close(program(params, x), jax.jit(step)(params, x))


@pytest.mark.parametrize("count, strategy", [(2, "replicate"), (3, "split")])
def test_arrays_without_elements(count, strategy):
    """Inputs, parameters and stacks of no layers, in stages of their own."""

    def loss(params, x, extra):
        h = (
            jnp.tanh(x @ params["w"][0]) @ params["w"][1]
            + extra @ params["extra"]
        )
        h, sums = jax.lax.scan(
            lambda h, w: (h @ w, jnp.sum(h)), h, params["layers"]
        )
        h = jnp.concatenate([h, extra], axis=1) @ params["w"][2]
        h = jnp.sin(h) + extra @ params["extra"]
        penalty = jnp.sum(params["extra"] ** 2) + jnp.sum(params["layers"])
        return jnp.mean(h**2) + jnp.sum(sums) + penalty, 2 * extra

    def step(params, x, extra):
        value, gradients = jax.value_and_grad(loss, has_aux=True)(
            params, x, extra
        )
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients), value

    keys = jax.random.split(jax.random.key(0), 4)
    params = {
        "w": [jax.random.normal(k, (4, 4)) for k in keys[:3]],
        "extra": jnp.zeros((0, 4)),
        "layers": jnp.zeros((0, 4, 4)),
    }
    args = params, jax.random.normal(keys[3], (5, 4)), jnp.zeros((5, 0))
    wh.init(wh.Config({"num_micro_batch": 2, "num_task_graph": count}))
    wh.set_default_strategy(getattr(wh, strategy)(2))
    program = wh.jit(step, cluster=2 * count, batch_argnums=(1, 2))
    assert_close(program(*args), jax.jit(step)(*args))
