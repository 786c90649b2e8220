"""A pipeline that the compiler cuts by itself: the model has no annotation."""

import jax.numpy as jnp
import training

import whale as wh


def loss(params, x, y):
    for weight in params:
        x = jnp.tanh(x @ weight)
    return jnp.mean((x - y) ** 2)


wh.init(wh.Config({"num_task_graph": 2, "num_micro_batch": 4}))
training.train(loss, training.layers(6), cluster=2)
