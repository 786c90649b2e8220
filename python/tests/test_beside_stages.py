"""What stands beside stages, next to `jax.jit`.

Under test: stacks of layers on several stages that something else reads whole,
values of the mini-batch that are made outside of all scopes, and loops beside
loops that are cut automatically. Results must be within 1e-5 of those of
`jax.jit`. A failure means that the step can't be compiled, or that what no
stage owns is computed of another value.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

pytest.importorskip("whale._whale")

LAYERS, WIDTH, BATCH = 5, 4, 6


def normal(seed, *shape):
    return 0.4 * jax.random.normal(jax.random.key(seed), shape)


def assert_same(step, arguments, config, cluster, batch_argnums):
    """The step gives on this cluster what it gives under `jax.jit`."""
    expected = jax.jit(step)(*arguments)
    wh.init(wh.Config(config))
    found = wh.jit(step, cluster=cluster, batch_argnums=batch_argnums)(
        *arguments
    )
    wh.init(wh.Config({}))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


# --------------------------------------------------------------------------- #
# Stacks that are used whole
# --------------------------------------------------------------------------- #


def of_stack(w, x):
    """Three layers of a stack on two stages, and what each of them reads."""
    h, inputs = x, []
    for i in range(3):
        with wh.replicate(1, name="front" if i < 2 else "back"):
            inputs.append(h)
            h = jnp.tanh(h @ w[i])
    return h, inputs


def shampoo(w, statistic, x):
    def loss(w):
        return (of_stack(w, x)[0] ** 2).mean()

    value, g = jax.value_and_grad(loss)(w)
    statistic = statistic + g @ jnp.swapaxes(g, 1, 2)
    factor = jnp.linalg.cholesky(statistic + jnp.eye(WIDTH))
    update = jax.scipy.linalg.solve_triangular(factor, g, lower=True)
    return w - 0.1 * update, statistic, value


def spectral(w, statistic, x):
    """A penalty on the singular values of all layers."""

    def loss(w):
        values = jnp.linalg.svd(w + 2 * jnp.eye(WIDTH), compute_uv=False)
        return (of_stack(w, x)[0] ** 2).mean() + 0.01 * jnp.log(values).sum()

    value, g = jax.value_and_grad(loss)(w)
    return w - 0.1 * g, statistic + jnp.linalg.qr(w)[0], value


def curvature(w, statistic, x):
    """Statistics of each layer's activations and gradients, as K-FAC's."""

    def loss(w):
        h, inputs = of_stack(w, x)
        return (h**2).mean(), jnp.stack([a.T @ a / BATCH for a in inputs])

    (value, products), g = jax.value_and_grad(loss, has_aux=True)(w)
    update = jnp.linalg.solve(products + jnp.eye(WIDTH), g)
    other = jnp.linalg.inv(g @ jnp.swapaxes(g, 1, 2) + jnp.eye(WIDTH))
    return w - 0.1 * update, statistic + other, value


@pytest.mark.parametrize(
    ("step", "micro_batches"),
    [(shampoo, 1), (spectral, 2), (curvature, 2)],
)
def test_stack_is_also_used_whole(step, micro_batches):
    w, statistic = normal(0, 3, WIDTH, WIDTH), jnp.zeros((3, WIDTH, WIDTH))
    config = {"num_micro_batch": micro_batches} if micro_batches > 1 else {}
    assert_same(step, (w, statistic, normal(1, BATCH, WIDTH)), config, 2, 2)


# --------------------------------------------------------------------------- #
# Values of the mini-batch outside of all scopes
# --------------------------------------------------------------------------- #


def test_values_of_the_batch_that_no_scope_makes():
    def step(w, o, key, x):
        def noisy(key, row):
            return row * jax.random.bernoulli(key, 0.8, row.shape)

        z = jax.vmap(noisy)(jax.random.split(key, BATCH), x * 2)
        mask = (x.sum(1) > 0).astype(x.dtype)

        def loss(w, o):
            with wh.replicate(1, name="a"):
                h = jnp.tanh(z @ w)
            with wh.replicate(1, name="b"):
                h = h @ o
            each = (h**2).mean(1) * mask
            return each.mean(), each

        (value, each), g = jax.value_and_grad(loss, (0, 1), has_aux=True)(w, o)
        more = z.sum(1), mask.sum(), each + z[:, 0], x.max()
        return w - 0.1 * g[0], o - 0.1 * g[1], value, *more

    w, o = normal(0, WIDTH, 3), normal(1, 3, 3)
    arguments = (w, o, jax.random.PRNGKey(2), normal(3, BATCH, WIDTH))
    assert_same(step, arguments, {"num_micro_batch": 3}, 4, 3)


# --------------------------------------------------------------------------- #
# Loops beside loops
# --------------------------------------------------------------------------- #


def loops(masks, unroll, policy, w, key, x):
    """Two scans over the parts of one stack."""

    def layer(h, given):
        w, keep, k = given
        z = jnp.tanh(h @ w)
        if masks:
            return h + jnp.where(keep > 0.5, z, 0), h.sum()
        return h + jnp.where(jax.random.bernoulli(k, 0.9, z.shape), z, 0), None

    @functools.partial(jax.checkpoint, policy=policy)
    def loss(w):
        keys = jax.random.split(key, LAYERS)
        stack = jnp.ones((LAYERS, BATCH, WIDTH))
        h = jnp.zeros((BATCH, WIDTH)) + x
        for part, times in ((slice(3), 1), (slice(3, LAYERS), unroll)):
            given = w[part], stack[part], keys[part]
            h, _ = jax.lax.scan(layer, h, given, unroll=times)
        return (h**2).mean()

    value, g = jax.value_and_grad(loss)(w)
    return w - 0.1 * g, value


@pytest.mark.parametrize(
    ("masks", "unroll", "policy", "stages"),
    [
        (False, 2, jax.checkpoint_policies.dots_saveable, 2),
        (True, 2, None, 2),
    ],
)
def test_loops_beside_loops_are_cut(masks, unroll, policy, stages):
    arguments = (
        normal(0, LAYERS, WIDTH, WIDTH),
        jax.random.PRNGKey(1),
        normal(2, BATCH, WIDTH),
    )
    step = functools.partial(loops, masks, unroll, policy)
    config = {"num_micro_batch": 2, "num_task_graph": stages}
    assert_same(step, arguments, config, 4, 2)
