"""Batch norm with the statistics of each micro-batch, where that is asked for.

Under test: Config({"batch_norm": "micro"}) with both formulas of a variance,
in dense layers and convolutions, with jax.checkpoint, before a contrastive loss
and in stages. The reference is the model whose statistics are written down for
each group of samples, under jax.jit. Values must be within 2e-5 of its
magnitude. A failure means that statistics, their gradients or running ones are
of other samples than documented.
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
