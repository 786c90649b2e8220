"""Batch norm with the statistics of each micro-batch, where that is asked for.

Under test: Config({"batch_norm": "micro"}) with both formulas of a variance,
in dense layers and convolutions, with jax.checkpoint, before a contrastive loss
and in stages; and losses that reach statistics past the layers behind them. The
reference is the model whose statistics are written down for each group of
samples, under jax.jit. Values must be within 2e-5 of its magnitude. A failure
means that statistics, their gradients or running ones are of other samples than
documented, or those of the backward pass of others than of the forward pass.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")

IS_FULL = "WHALE_TEST_FULL" in os.environ
SAMPLES, WIDTH, LAYERS = 12, 4, 2


def normalise(h, groups, is_fast):
    """With statistics of each group, and the mean of these."""
    if groups > 1:
        h = h.reshape(groups, -1, *h.shape[1:])
        parts = [normalise(part, 1, is_fast) for part in h]
        out, statistics = jax.tree.map(lambda *a: jnp.stack(a), *parts)
        means = jax.tree.map(lambda a: a.mean(0), statistics)
        return out.reshape(-1, *out.shape[2:]), means
    axes = tuple(range(h.ndim - 1))
    mean = h.mean(axes)
    variance = (h * h).mean(axes) - mean**2 if is_fast else h.var(axes)
    return (h - mean) * lax.rsqrt(variance + 1e-2), (mean, variance)


def make_step(groups, is_fast, is_image, is_remat, is_contrastive):
    def layer(h, weights):
        if is_image:
            dims = ("NHWC", "HWIO", "NHWC")
            h = lax.conv_general_dilated(
                h, weights["w"], (1, 1), "SAME", dimension_numbers=dims
            )
        else:
            h = h @ weights["w"]
        h, statistics = normalise(h, groups, is_fast)
        return jax.nn.gelu(h * weights["scale"] + weights["bias"]), statistics

    def loss(params, running, x, y):
        h, new = x, []
        for weights, old in zip(params["layers"], running):
            run = jax.checkpoint(layer) if is_remat else layer
            h, statistics = run(h, weights)
            new.append(
                jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, old, statistics)
            )
        if is_image:
            h = h.mean((1, 2))
        logits = h @ params["out"]
        if is_contrastive:
            alike = y[:, None] == y
            pairs = jax.nn.log_softmax(logits @ logits.T) * alike
            return -pairs.mean() + logits.std(), new
        losses = jax.nn.log_softmax(logits) * jax.nn.one_hot(y, 3)
        return -losses.sum(1).mean(), new

    def step(params, running, x, y):
        (value, running), gradients = jax.value_and_grad(loss, has_aux=True)(
            params, running, x, y
        )
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return new, running, value

    return step


def inputs(is_image):
    rng = np.random.default_rng(0)

    def array(*shape):
        return rng.standard_normal(shape, np.float32) / 2

    kernel = (3, 3, WIDTH, WIDTH) if is_image else (WIDTH, WIDTH)
    layers = [
        {"w": array(*kernel), "scale": 1 + array(WIDTH), "bias": array(WIDTH)}
        for _ in range(LAYERS)
    ]
    running = [(array(WIDTH), abs(array(WIDTH))) for _ in range(LAYERS)]
    x = array(SAMPLES, 3, 3, WIDTH) if is_image else array(SAMPLES, WIDTH)
    params = {"layers": layers, "out": array(WIDTH, 3)}
    return params, running, x, rng.integers(0, 3, SAMPLES).astype(np.int32)


# How the variance is written, what the layers and the loss are; micro-batches,
# devices, stages.
CASES = [
    ("fast", "", 2, 1, 1),
    ("exact image", "image", 4, 2, 1),
    ("fast contrastive remat", "contrastive remat", 4, 2, 1),
    ("exact stages", "", 4, 2, 2),
    ("fast image", "image remat", 2, 1, 1),
    ("exact contrastive", "contrastive", 2, 1, 1),
    ("fast stages", "", 2, 2, 2),
]


@pytest.mark.parametrize(
    ("name", "what", "moments", "devices", "stages"),
    CASES if IS_FULL else CASES[1:4],
)
def test_statistics_of_each(name, what, moments, devices, stages):
    flags = (name.startswith("fast"), "image" in what, "remat" in what)
    flags += ("contrastive" in what,)
    args = inputs("image" in what)
    expected = jax.jit(make_step(moments, *flags))(*args)
    config = {"num_micro_batch": moments, "batch_norm": "micro"}
    wh.init(wh.Config(config | {"num_task_graph": stages}))
    if stages == 1:
        wh.set_default_strategy(wh.replicate(devices))
    step = wh.jit(make_step(1, *flags), cluster=devices, batch_argnums=(2, 3))
    close(step(*args), expected)


def test_it_is_asked_for():
    wh.init(wh.Config({"num_micro_batch": 2}))
    wh.set_default_strategy(wh.replicate(1))
    step = wh.jit(
        make_step(1, True, False, False, False),
        cluster=1,
        batch_argnums=(2, 3),
    )
    with pytest.raises(wh.CompileError, match='{"batch_norm": "micro"}'):
        step(*inputs(is_image=False))


def normalise_each(h, groups):
    return normalise(h, groups, is_fast=False)[0]


def probe(params, x, y, groups):
    """A layer follows, but no gradient comes from it."""
    z = normalise_each(x @ params["w"], groups)
    logits = lax.stop_gradient(z) @ params["out"]
    return ((logits - y) ** 2).mean() + ((z - y) ** 4).mean()


def two_ways(params, x, y, groups):
    """Gradients from a layer, and past it in a sum of their own."""
    h = x @ params["w"]
    mean = h.mean(0)
    if groups > 1:
        means = h.reshape(groups, -1, WIDTH).mean(1)
        mean = jnp.repeat(means, len(h) // groups, 0)
    z = jnp.tanh(h - mean) @ params["out"]
    return ((z - y) ** 2).mean() + ((h - mean) ** 4).mean()


def linear(params, x, y, groups):
    """The sum of a gradient is one of targets alone."""
    h = x @ params["w"]
    z = h - h.mean(0)
    logits = lax.stop_gradient(z) @ params["out"]
    return ((logits - y) ** 2).mean() + (z * y).mean()


def deviation(params, x, y, groups):
    """A statistic of all samples too, past the layer."""
    z = normalise_each(x @ params["w"], groups)
    return ((z @ params["out"] - y) ** 2).mean() + (z * y + z**3).std()


def both_means(params, x, y, groups):
    """The gradients of both statistics have the same factors."""
    z = normalise_each(x @ params["w"], groups)
    return ((z @ params["out"] - y) ** 2).mean() + (z - z.mean(0) / 2).std()


def embedding(params, x, y, groups):
    """No product comes before what jax.checkpoint computes again."""

    @jax.checkpoint
    def model(params):
        h = params["table"][abs(x[:, :3] * 8).astype(int)]
        return jnp.tanh(normalise_each(h, groups)).mean(1) @ params["out"]

    return ((model(params) - y) ** 2).mean()


def again(params, x, y, groups):
    """Statistics of micro-batches and of all samples are computed again."""

    @jax.checkpoint
    def model(params):
        z = jnp.tanh(normalise_each(x @ params["w"], groups)) @ params["out"]
        return (z / jnp.sqrt((z * z).mean(0) + 0.1) - y) ** 4

    return model(params).mean()


def run_loss(loss, moments, groups, has_value=True):
    rng = np.random.default_rng(0)
    params = {
        name: rng.standard_normal(shape, np.float32)
        for name, shape in (
            ("w", (WIDTH, WIDTH)),
            ("out", (WIDTH, WIDTH)),
            ("table", (32, WIDTH)),
        )
    }
    x, y = rng.standard_normal((2, 8, WIDTH), np.float32)

    def step(params, x, y):
        value, gradients = jax.value_and_grad(
            lambda *args: loss(*args, groups), has_aux=loss is metric
        )(params, x, y)
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return (new, value) if has_value else new

    if moments == 1:
        return jax.jit(step)(params, x, y)
    wh.init(wh.Config({"num_micro_batch": moments, "batch_norm": "micro"}))
    wh.set_default_strategy(wh.replicate(1))
    return wh.jit(step, cluster=1, batch_argnums=(1, 2))(params, x, y)


@pytest.mark.parametrize(
    "loss",
    [
        probe,
        again,
        pytest.param(deviation, marks=pytest.mark.long),
        pytest.param(two_ways, marks=pytest.mark.long),
        pytest.param(embedding, marks=pytest.mark.long),
    ],
)
def test_backward_is_as_forward(loss):
    close(run_loss(loss, 2, 1), run_loss(loss, 1, 2))


def metric(params, x, y, groups):
    h = x @ params["w"]
    mean = h.mean(0)
    z = (h - mean) @ params["out"]
    return ((z - y) ** 2).mean(), (mean > 0).sum()


def flat(params, x, y, groups):
    h = jnp.repeat(x, 3, 0).reshape(len(x), 3, WIDTH).reshape(-1, WIDTH)
    z = normalise_each(h @ params["w"], groups) @ params["out"]
    return ((z.reshape(len(x), 3, WIDTH) - y[:, None]) ** 2).mean()


@pytest.mark.parametrize(
    ("loss", "moments", "has_value", "message"),
    [
        (both_means, 2, True, "can't tell whether this belongs"),
        (again, 2, False, "return the loss, as jax.value_and_grad does"),
        (linear, 2, True, "can't compute this gradient"),
        (metric, 2, True, "their mean is no integer or boolean"),
        (flat, 3, True, "3 of them don't divide 8 samples"),
    ],
)
def test_what_is_refused(loss, moments, has_value, message):
    with pytest.raises(wh.CompileError, match=message):
        run_loss(loss, moments, 1, has_value)
