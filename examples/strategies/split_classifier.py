"""Data parallelism for the body, a classifier split over the same devices."""

import jax
import jax.numpy as jnp
import training

import whale as wh

CLASSES = 1000


def loss(params, x, y):
    with wh.replicate(4):
        x = jnp.tanh(x @ params["body"])
    with wh.split(4):
        scores = jax.nn.log_softmax(x @ params["head"])
        return -jnp.mean(jnp.sum(scores * jax.nn.softmax(y), axis=-1))


head = 0.2 * jax.random.normal(jax.random.key(2), (training.WIDTH, CLASSES))
params = {"body": training.layers(1)[0], "head": head}
training.train(loss, params, cluster=4, outputs=CLASSES)
