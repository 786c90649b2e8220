"""Trains a classifier in equinox: loader, evaluation, checkpoints."""

import pathlib
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Classifier(eqx.Module):
    body: eqx.nn.Linear
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, key):
        body, head = jax.random.split(key)
        self.body = eqx.nn.Linear(32, 64, key=body)
        self.norm = eqx.nn.LayerNorm(64)
        self.head = eqx.nn.Linear(64, 10, key=head)

    def __call__(self, x):
        return self.head(self.norm(jax.nn.relu(self.body(x))))


def load(split, count):
    """Points around ten centres, with the centre's number as label."""
    rng = np.random.default_rng(split)
    centres = np.random.default_rng(7).normal(size=(10, 32))
    labels = rng.integers(10, size=count)
    points = centres[labels] + 0.8 * rng.normal(size=(count, 32))
    return points.astype(np.float32), labels.astype(np.int32)


def batches(x, y, size, epoch):
    order = np.random.default_rng(epoch).permutation(len(x))
    for first in range(0, len(x) - size + 1, size):
        rows = order[first : first + size]
        yield x[rows], y[rows]


optimizer = optax.adamw(1e-2)


def loss_fn(params, static, x, y):
    logits = jax.vmap(eqx.combine(params, static))(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


params, static = eqx.partition(Classifier(jax.random.key(0)), eqx.is_array)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, static, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return eqx.apply_updates(params, updates), opt_state, loss


@jax.jit
def accuracy(params, x, y):
    logits = jax.vmap(eqx.combine(params, static))(x)
    return jnp.mean(logits.argmax(-1) == y)


file = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "run") / "state.eqx"
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
file.parent.mkdir(exist_ok=True)
x, y = load(0, 1024)
state = (jnp.zeros((), int), params, optimizer.init(params))
if file.exists():
    state = eqx.tree_deserialise_leaves(file, state)
done, *state = state
for epoch in range(int(done), epochs):
    for batch in batches(x, y, 128, epoch):
        *state, loss = train_step(*state, *batch)
    share = accuracy(state[0], *load(1, 512))
    print(f"epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}")
    eqx.tree_serialise_leaves(file, (jnp.array(epoch + 1), *state))
