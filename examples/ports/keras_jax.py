"""Trains a classifier in keras: loader, evaluation, checkpoints."""

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
import jax
import jax.numpy as jnp
import keras
import numpy as np


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


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((32,)),
        keras.layers.Dense(64, activation="relu", name="body"),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(10, name="head"),
    ]
)
optimizer = keras.optimizers.AdamW(1e-2)
optimizer.build(model.trainable_variables)
criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def loss_fn(weights, fixed, x, y):
    logits, fixed = model.stateless_call(weights, fixed, x, training=True)
    return criterion(y, logits), fixed


@jax.jit
def train_step(weights, fixed, opt_state, x, y):
    (loss, fixed), grads = jax.value_and_grad(loss_fn, has_aux=True)(
        weights, fixed, x, y
    )
    weights, opt_state = optimizer.stateless_apply(opt_state, grads, weights)
    return weights, fixed, opt_state, loss


@jax.jit
def accuracy(weights, fixed, x, y):
    logits, _ = model.stateless_call(weights, fixed, x)
    return jnp.mean(logits.argmax(-1) == y)


def variables():
    groups = (model.trainable_variables, model.non_trainable_variables)
    return (*groups, optimizer.variables)


file = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "run") / "state.npz"
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
file.parent.mkdir(exist_ok=True)
x, y = load(0, 1024)
done, state = 0, [[v.value for v in group] for group in variables()]
if file.exists():
    saved = np.load(file)
    leaves = [saved[f"v{i}"] for i in range(len(saved) - 1)]
    done = int(saved["done"])
    state = jax.tree.unflatten(jax.tree.structure(state), leaves)
for epoch in range(done, epochs):
    for batch in batches(x, y, 128, epoch):
        *state, loss = train_step(*state, *batch)
    share = accuracy(*state[:2], *load(1, 512))
    print(f"epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}")
    leaves = {f"v{i}": leaf for i, leaf in enumerate(jax.tree.leaves(state))}
    np.savez(file, done=epoch + 1, **leaves)
