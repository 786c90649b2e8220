"""A default strategy for everything, and experts split over the devices."""

import jax
import jax.numpy as jnp
import training

import whale as wh

EXPERTS = 4


def loss(params, x, y):
    gates = jax.nn.softmax(x @ params["gate"])
    with wh.split(4):
        h = jnp.einsum("bd,edf->ebf", x, params["experts"])
        x = jnp.einsum("ebf,be->bf", jnp.tanh(h), gates)
    return jnp.mean((x - y) ** 2)


wh.set_default_strategy(wh.replicate(4))
params = {
    "gate": jax.random.normal(jax.random.key(3), (training.WIDTH, EXPERTS)),
    "experts": jnp.stack(training.layers(EXPERTS)),
}
training.train(loss, params, cluster=4)
