"""Steps that choose what they compute: lax.cond and lax.switch.

Under test: branches by a counter, a key or samples, in loops and in each other,
each with micro-batches, replicas, splits and stages. Loss and updated
parameters must be within 1e-5 of the magnitude of those of jax.jit; seeds are
fixed. A failure means that a branch is taken by the wrong device or for the
wrong samples. Every pair of a loss and a layout is one compilation.
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


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


PARAMS = [normal(i, WIDTH, WIDTH) / 2 for i in range(LAYERS)]
X, Y = normal(10, SAMPLES, WIDTH), normal(11, SAMPLES, WIDTH)


def mse(x, y):
    return jnp.mean((x - y) ** 2)


def layer_by_step(params, x, y, count, key):
    x = jnp.tanh(x @ params[0])
    x = lax.cond(count < 10, lambda x: jnp.tanh(x @ params[1]), lambda x: x, x)
    return mse(x @ params[2], y)


def loss_by_step(params, x, y, count, key):
    x = jnp.tanh(x @ params[0]) @ params[1]
    return lax.cond(
        count < 10, lambda: mse(x, y), lambda: jnp.mean(jnp.abs(x - y))
    )


def stochastic_depth(params, x, y, count, key):
    for w, own in zip(params, jax.random.split(key, LAYERS)):
        x = lax.cond(
            jax.random.bernoulli(own, 0.6),
            jax.checkpoint(lambda x, w: x + jnp.tanh(x @ w)),
            lambda x, w: x,
            x,
            w,
        )
    return mse(x, y)


def activations(params, x, y, count, key):
    for i, w in enumerate(params):
        kinds = [
            lambda x, w: jnp.tanh(x @ w),
            lambda x, w: jax.nn.relu(x @ w),
            lambda x, w: x,
        ]
        x = lax.switch((count + i) % 3, kinds, x, w)
    return mse(x, y)


def layers_in_scan(params, x, y, count, key):
    @jax.checkpoint
    def layer(x, both):
        w, i = both
        return lax.cond(
            i < count,
            lambda x: jnp.tanh(x @ w @ params[0]),
            lambda x: x,
            x,
        ), None

    stack = jnp.stack(params), jnp.arange(LAYERS)
    return mse(lax.scan(layer, x, stack)[0], y)


def inside_another(params, x, y, count, key):
    def inner(x):
        return lax.cond(count % 2 == 0, lambda: x @ params[0], lambda: x)

    return mse(lax.cond(count < 10, inner, lambda x: x @ params[1], x), y)


def chosen_mask(params, x, y, count, key):
    odd = jnp.arange(SAMPLES) % 2 == 1
    x, mask = lax.cond(
        count < 10,
        lambda x: (jnp.tanh(x @ params[0]), jnp.where(odd, 2.0, 0.0)),
        lambda x: (x, jnp.ones(SAMPLES)),
        x,
    )
    return mse(x * mask[:, None], y)


def dropout_in_branch(params, x, y, count, key):
    def drop(x):
        kept = jax.random.bernoulli(key, 0.7, x.shape)
        return jnp.where(kept, x @ params[1] / 0.7, 0)

    return mse(lax.cond(count < 10, drop, lambda x: x, x @ params[0]), y)


def noise_in_scan(params, x, y, count, key):
    noise = jnp.cumsum(jnp.arange(SAMPLES) % count)

    def layer(x, both):
        w, i = both
        factor = lax.cond(i < 1, lambda: noise / 3, lambda: jnp.ones(SAMPLES))
        return jnp.tanh(x @ w) * factor[:, None], None

    stack = jnp.stack(params), jnp.arange(LAYERS)
    return mse(lax.scan(layer, x, stack)[0], y)


def chosen_by_samples(params, x, y, count, key):
    h = x @ params[0]
    h = lax.cond(jnp.sum(x) > 0, lambda h: h @ params[1], lambda h: h, h)
    return mse(h, y)


def step_of(loss):
    def step(params, *inputs):
        value, grads = jax.value_and_grad(loss)(params, *inputs)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


ARGUMENTS = (PARAMS, X, Y, jnp.int32(2), jax.random.key(5))


@functools.cache
def expected(loss):
    """The same for all clusters."""
    return jax.jit(step_of(loss))(*ARGUMENTS)


def compile_step(loss, cluster, config, strategy=None):
    wh.init(wh.Config(config))
    if strategy:
        wh.set_default_strategy(strategy())
    return wh.jit(step_of(loss), cluster=cluster, batch_argnums=(1, 2))


@pytest.mark.parametrize(
    ("cluster", "config", "strategy"),
    [
        (1, {"num_micro_batch": 3}, None),
        pytest.param(2, {}, wh.replicate, marks=pytest.mark.long),
        (2, {"num_micro_batch": 2}, wh.replicate),
        (2, {"num_micro_batch": 2}, wh.split),
        (2, {"num_micro_batch": 4, "num_task_graph": 2}, None),
    ],
    ids=["micro-batches", "replicate", "both", "split", "pipeline"],
)
@pytest.mark.parametrize(
    "loss",
    [
        layer_by_step,
        loss_by_step,
        stochastic_depth,
        activations,
        layers_in_scan,
        inside_another,
        chosen_mask,
        dropout_in_branch,
        noise_in_scan,
        chosen_by_samples,
    ],
    ids=lambda loss: loss.__name__,
)
def test_is_the_step(loss, cluster, config, strategy):
    step = compile_step(loss, cluster, config, strategy)
    close(step(*ARGUMENTS), expected(loss), 1e-5)


def test_predicate_of_activations_waits_for_all_micro_batches():
    """One of them can't know what all of them would choose."""

    def loss(params, x, y, count, key):
        h = jnp.tanh(x @ params[0])
        h = lax.cond(jnp.sum(h) > 0, lambda h: h @ params[1], lambda h: h, h)
        return mse(h, y)

    step = compile_step(loss, 1, {"num_micro_batch": 2})
    close(step(*ARGUMENTS), expected(loss))


def test_loops_of_scalars_have_as_many_turns():
    """More and fewer than a kernel runs at a time, and none."""

    def collatz(n, x):
        def turn(carry):
            n, x, count, odd = carry
            odd = n % 2 == 1
            n = jnp.where(odd, 3 * n + 1, n // 2)
            return n, jnp.sin(x) + 1, count + 1, odd

        start = n, x, jnp.int32(0), jnp.bool_(False)
        return lax.while_loop(
            lambda c: (c[0] != 1) & (c[2] < 20000), turn, start
        )

    def count(to):
        return lax.while_loop(lambda i: i < to, lambda i: i + 3, jnp.uint32(1))

    step = wh.jit(lambda n, x, to: (collatz(n, x), count(to)), cluster=1)
    plain = jax.jit(lambda n, x, to: (collatz(n, x), count(to)))
    # From 0 it never comes to 1.
    for n, to in ((1, 0), (27, 4), (0, 3 * 4096 + 1), (97, 100000)):
        values = jnp.int32(n), jnp.float32(0.5), jnp.uint32(to)
        for own, other in zip(
            jax.tree.leaves(step(*values)), jax.tree.leaves(plain(*values))
        ):
            close(own, other)
