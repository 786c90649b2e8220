"""Trains a classifier in flax nnx: loader, evaluation, checkpoints."""

import pathlib
import sys

import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx


class Classifier(nnx.Module):
    def __init__(self, rngs):
        self.body = nnx.Linear(32, 64, rngs=rngs)
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.head = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        return self.head(self.norm(nnx.relu(self.body(x))))


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


def loss_fn(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def accuracy(model, x, y):
    return jnp.mean(model(x).argmax(-1) == y)


folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "run").absolute()
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
x, y = load(0, 1024)
model = Classifier(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)
with ocp.CheckpointManager(folder) as manager:
    done = manager.latest_step()
    if done is not None:
        like = nnx.state((model, optimizer))
        kept = manager.restore(done, args=ocp.args.StandardRestore(like))
        nnx.update((model, optimizer), kept)
    for epoch in range(0 if done is None else done + 1, epochs):
        for batch in batches(x, y, 128, epoch):
            loss = train_step(model, optimizer, *batch)
        share = accuracy(model, *load(1, 512))
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}")
        state = nnx.state((model, optimizer))
        manager.save(epoch, args=ocp.args.StandardSave(state))
