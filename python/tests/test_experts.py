"""A mixture of experts: replicated but for the experts, which are split.

Under test: tokens that travel to split experts and back, in a layer, in a loop
and in micro-batches. Values must be within 1e-4 of the magnitude of those of
jax.jit, or 2e-5; the collectives are counted, and what rank 0 holds of the
parameters is compared exactly. A failure means that tokens go astray, or that
experts or activations are gathered.
"""

import jax
import jax.numpy as jnp
import optax
import pytest
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")

GROUPS, TOKENS, WIDTH, EXPERTS, HIDDEN, WORDS = 8, 6, 8, 4, 16, 11
PLACES = 2 * TOKENS // EXPERTS
OPTIMIZER = optax.adam(1e-2)


def init():
    shapes = {
        "table": (WORDS, WIDTH),
        "gate": (WIDTH, EXPERTS),
        "up": (EXPERTS, WIDTH, HIDDEN),
        "down": (EXPERTS, HIDDEN, WIDTH),
    }
    keys = jax.random.split(jax.random.key(1), len(shapes))
    params = {
        name: jax.random.normal(key, shape) / 3
        for key, (name, shape) in zip(keys, shapes.items())
    }
    return params, OPTIMIZER.init(params)


def layer(x, weights):
    """Each token goes to its two best experts, as far as they have places."""
    gates = jax.nn.softmax(x @ weights["gate"])
    best_gates, best = jax.lax.top_k(gates, 2)
    best = jax.nn.one_hot(best, EXPERTS)
    order = best.swapaxes(1, 2).reshape(GROUPS, 2 * TOKENS, EXPERTS)
    place = jnp.cumsum(order, 1).reshape(GROUPS, 2, TOKENS, EXPERTS)
    place = (place.swapaxes(1, 2) * best - 1).astype("int32")
    place = jax.nn.one_hot(place, PLACES) * best[..., None]
    combine = (place * best_gates[..., None, None]).sum(2)
    h = jnp.einsum("gsec,gsd->egcd", place.sum(2), x)
    with wh.split(4, name="experts"):
        h = jax.nn.relu(jnp.einsum("egcd,edf->egcf", h, weights["up"]))
        h = jnp.einsum("egcf,efd->egcd", h, weights["down"])
    return x + jnp.einsum("gsec,egcd->gsd", combine, h)


def head_loss(params, x, targets):
    logits = x @ params["table"].T
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, targets
    ).mean()


def loss(params, tokens, targets):
    return head_loss(params, layer(params["table"][tokens], params), targets)


def train_step(params, state, tokens, targets):
    value, grads = jax.value_and_grad(loss)(params, tokens, targets)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def make_batch():
    keys = jax.random.split(jax.random.key(2))
    return [jax.random.randint(key, (GROUPS, TOKENS), 0, WORDS) for key in keys]


def held(program, label):
    """The shape of what rank 0 has of an argument."""
    return next(
        argument["boxes"][0][1]
        for argument in program.manifest["arguments"]
        if argument["label"] == label
    )


def test_tokens_travel_to_their_experts():
    batch = make_batch()
    wh.init()
    wh.set_default_strategy(wh.replicate(4))
    step = wh.jit(train_step, cluster=4, batch_argnums=(2, 3))
    program = step.lower(*init(), *batch).compile()
    ours, theirs = init(), init()
    for _ in range(3):
        *ours, our_loss = program(*ours, *batch)
        *theirs, loss = jax.jit(train_step)(*theirs, *batch)
    close((ours, our_loss), (theirs, loss), 1e-4)

    # There and back again, forward and backward; two gradients and the loss,
    # of which two are small and of the same ranks.
    collectives = program.stats["ranks"][0]["collectives"]
    counts = {kind: entry["count"] for kind, entry in collectives.items()}
    assert counts == {"all_to_all": 4, "all_reduce": 2}
    for label in ("params['up']", "state[0].mu['up']"):
        assert held(program, label) == [1, WIDTH, HIDDEN]


def test_experts_in_scanned_layers():
    """Scopes in the body of a loop: tokens stay where they are but for the
    experts."""
    layers = 3

    def loss(params, tokens, targets):
        x, _ = jax.lax.scan(
            lambda x, weights: (layer(x, weights), None),
            params["table"][tokens],
            params["layers"],
        )
        return head_loss(params, x, targets)

    def step(params, tokens, targets):
        value, grads = jax.value_and_grad(loss)(params, tokens, targets)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    weights = init()[0]
    table = weights.pop("table")
    stacked = jax.tree.map(lambda w: jnp.stack([w] * layers), weights)
    params = {"table": table, "layers": stacked}
    batch = make_batch()
    wh.init()
    wh.set_default_strategy(wh.replicate(4))
    program = (
        wh.jit(step, cluster=4, batch_argnums=(1, 2))
        .lower(params, *batch)
        .compile()
    )
    close(program(params, *batch), jax.jit(step)(params, *batch), 1e-4)

    # The fifth: what the experts get is stored as it was before it travelled.
    collectives = program.stats["ranks"][0]["collectives"]
    assert collectives["all_to_all"]["count"] == 5 * layers
    assert held(program, "tokens") == [GROUPS // 4, TOKENS]
    assert held(program, "params['layers']['gate']") == [layers, WIDTH, EXPERTS]
    assert held(program, "params['layers']['up']") == [
        layers,
        1,
        WIDTH,
        HIDDEN,
    ]


def test_gates_are_written_in_micro_batches():
    """`gates.at[jnp.arange(n)[:, None], best].set(...)` is about each token."""

    def routed(params, x, y):
        gates = jax.nn.softmax(x @ params["gate"])
        weights, best = jax.lax.top_k(gates, 2)
        rows = jnp.arange(x.shape[0])
        gates = jnp.zeros_like(gates).at[rows[:, None], best].set(weights)
        h = jnp.einsum("td,edf->tef", x, params["up"])
        h = jnp.einsum("te,tef->tf", gates, jax.nn.relu(h))
        return -jnp.mean(jax.nn.log_softmax(h)[rows, y])

    def step(params, x, y):
        value, grads = jax.value_and_grad(routed)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = {name: init()[0][name] for name in ("gate", "up")}
    key = jax.random.key(3)
    x = jax.random.normal(key, (12, WIDTH))
    y = jax.random.randint(key, (12,), 0, HIDDEN)
    wh.init(wh.Config({"num_micro_batch": 3}))
    wh.set_default_strategy(wh.replicate(2))
    program = wh.jit(step, cluster=2, batch_argnums=(1, 2))
    close(program(params, x, y), jax.jit(step)(params, x, y))


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_entropy_of_the_mean_gates(micro_batches):
    """A sum over the mini-batch, times what is computed from it."""

    def step(params, x):
        def loss(params):
            gates = jax.nn.softmax(x @ params["gate"])
            mean = gates.mean(0)
            out = jnp.tanh(x @ params["up"][0]).mean()
            return out + 0.1 * (mean * jnp.log(mean)).sum()

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = {name: init()[0][name] for name in ("gate", "up")}
    x = jax.random.normal(jax.random.key(3), (12, WIDTH))
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(wh.replicate(2))
    program = wh.jit(step, cluster=2, batch_argnums=1)
    close(program(params, x), jax.jit(step)(params, x))
