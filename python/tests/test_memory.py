"""What a plan expects devices to need, against what they are given."""

import functools
import re

import jax
import jax.numpy as jnp
import pytest

import whale as wh


def dense(widths, dtype=jnp.float32):
    params = [jnp.zeros(shape, dtype) for shape in zip(widths, widths[1:])]

    def loss(params, x):
        for weight in params:
            x = jax.nn.gelu(x @ weight)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    return loss, params, jnp.zeros((128, widths[0]), dtype)


def convolutions():
    params = [jnp.zeros((5, 5, *shape)) for shape in [(3, 16), (16, 32)]]

    def loss(params, x):
        for kernel in params:
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(
                    x,
                    kernel,
                    (1, 1),
                    "SAME",
                    dimension_numbers=("NHWC", "HWIO", "NHWC"),
                )
            )
        return jnp.mean(x**2)

    return loss, params, jnp.zeros((32, 24, 24, 3))


def blocks(*scopes):
    """Blocks of a transformer without attention, one in each scope."""
    width = 128
    shapes = [(width, 4 * width), (4 * width, width)]
    params = [[jnp.zeros(shape) for shape in shapes] for _ in scopes]

    def loss(params, x):
        for scope, (up, down) in zip(scopes, params):
            with scope():
                y = x - jnp.mean(x, -1, keepdims=True)
                y = y * jax.lax.rsqrt(jnp.mean(y**2, -1, keepdims=True) + 1e-5)
                x = x + jax.nn.gelu(y @ up) @ down
        return jnp.mean(x**2)

    return loss, params, jnp.zeros((2048, width))


def small_parameters():
    params = [(jnp.ones(16), jnp.ones(16)) for _ in range(60)]

    def loss(params, x):
        # No kernel computes the cotangents of all layers at once.
        for scale, bias in params:
            x = jnp.tanh(x * scale + bias)
        return jnp.mean(x**2)

    return loss, params, jnp.zeros((8, 16))


@pytest.mark.parametrize(
    "model, cluster, config",
    [
        (dense([256, 512, 256, 512, 64]), 1, {}),
        (dense([256, 512, 256, 512, 64], jnp.bfloat16), 1, {}),
        (dense([256, 512, 256, 512, 64]), 4, {}),
        (convolutions(), 1, {}),
        (convolutions(), 2, {}),
        (small_parameters(), 1, {}),
        (dense([64, 256] * 4), 2, {"num_micro_batch": 8, "num_task_graph": 2}),
        # Sums of gradients begin when all micro-batches are in flight.
        (dense([256] * 9), 2, {"num_micro_batch": 2, "num_task_graph": 2}),
        # Of what forwards keep, gradients of weights don't read all.
        (
            dense([256] * 9),
            2,
            {
                "num_micro_batch": 8,
                "num_task_graph": 2,
                "pipeline.strategy": "zero-bubble",
            },
        ),
        # What groups gather is kept for the backward.
        (blocks(*[functools.partial(wh.split, 4)] * 4), 4, {}),
        (
            blocks(*[functools.partial(wh.split, 2)] * 2),
            4,
            {"num_micro_batch": 4},
        ),
    ],
    ids=[
        "f32",
        "bf16",
        "replicas",
        "convolutions",
        "shared",
        "small",
        "stages",
        "in_flight",
        "zero_bubble",
        "split",
        "split_stages",
    ],
)
def test_expected_memory(model, cluster, config, capfd):
    """Within 10% of what buffers and scratch take."""
    loss, params, x = model
    wh.init(wh.Config(config))

    def train_step(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - g, params, grads), value

    step = wh.jit(
        train_step, cluster=cluster, donate_argnums=0, batch_argnums=1
    )
    step.lower(params, x).compile(explain=True)
    needed, expected = re.search(
        r"needs most, (\d+) bytes, (\d+) were expected", capfd.readouterr().err
    ).groups()
    assert 0.9 < int(expected) / int(needed) < 1.1
