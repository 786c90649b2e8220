"""Trains a classifier in flax linen: loader, evaluation, checkpoints."""

import pathlib
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp


class Classifier(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(64, name="body")(x))
        x = nn.LayerNorm()(x)
        return nn.Dense(10, name="head")(x)


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


model = Classifier()
optimizer = optax.adamw(1e-2)


def loss_fn(params, x, y):
    logits = model.apply(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


@jax.jit
def accuracy(params, x, y):
    return jnp.mean(model.apply(params, x).argmax(-1) == y)


folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "run").absolute()
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
x, y = load(0, 1024)
params = model.init(jax.random.key(0), x[:1])
state = (params, optimizer.init(params))
with ocp.CheckpointManager(folder) as manager:
    done = manager.latest_step()
    if done is not None:
        state = manager.restore(done, args=ocp.args.StandardRestore(state))
    for epoch in range(0 if done is None else done + 1, epochs):
        for batch in batches(x, y, 128, epoch):
            *state, loss = train_step(*state, *batch)
        share = accuracy(state[0], *load(1, 512))
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}")
        manager.save(epoch, args=ocp.args.StandardSave(tuple(state)))
