"""A step of equal layers with any optimizer, for tests of its state."""

import jax
import jax.numpy as jnp
import optax

WIDTH, ROWS = 32, 24
OPTIMIZERS = {
    "momentum": lambda: optax.sgd(0.1, momentum=0.9),
    "adam": lambda: optax.adam(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "clipped": lambda: optax.chain(
        optax.clip_by_global_norm(0.1), optax.adamw(1e-2)
    ),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=8),
}


def size_of(tree):
    """Bytes of all leaves."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def make_step(optimizer):
    """Takes what `arguments` gives; returns the next, and the loss."""

    def step(params, state, x):
        def loss(params):
            y = x
            for w, b in params:
                y = jnp.tanh(y @ w + b)
            return jnp.mean(y**2)

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def arguments(optimizer, layers):
    """Parameters, the optimizer's state, and a batch."""
    keys = jax.random.split(jax.random.key(0), layers + 1)
    params = [
        (jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH**0.5, jnp.zeros(WIDTH))
        for k in keys[:-1]
    ]
    batch = jax.random.normal(keys[-1], (ROWS, WIDTH))
    return params, optimizer.init(params), batch


def one_node(devices, memory):
    """The cluster of a node with these entries for devices of a kind 'k', which
    have so much memory, and with a host."""
    kind = {
        "flops": {"f32": 1e9},
        "memory_bytes": memory,
        "memory_bandwidth": 1e10,
    }
    host = {"memory_bytes": 1 << 30, "bandwidth": 1e9}
    return {
        "kinds": {"k": kind},
        "nodes": [{"devices": devices, "host": host}],
    }
