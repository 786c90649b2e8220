"""Pipelines of two stages, repeated over the devices (nested data parallel)."""

import jax.numpy as jnp
import training

import whale as wh


def loss(params, x, y):
    with wh.replicate(1, name="front"):
        x = jnp.tanh(jnp.tanh(x @ params[0]) @ params[1])
    with wh.replicate(1, name="back"):
        x = jnp.tanh(jnp.tanh(x @ params[2]) @ params[3])
        return jnp.mean((x - y) ** 2)


wh.init(wh.Config({"num_micro_batch": 2}))
training.train(loss, training.layers(4), cluster=8)  # four pipelines
