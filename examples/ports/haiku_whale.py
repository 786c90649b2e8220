"""Trains a classifier in haiku: loader, evaluation, checkpoints."""

import pathlib
import pickle
import sys

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

import whale as wh


def classify(x):
    x = jax.nn.relu(hk.Linear(64, name="body")(x))
    x = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
    return hk.Linear(10, name="head")(x)


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


model = hk.without_apply_rng(hk.transform(classify))
optimizer = optax.adamw(1e-2)
wh.set_default_strategy(wh.replicate())


def loss_fn(params, x, y):
    logits = model.apply(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@wh.jit(cluster=2, donate_argnums=(0, 1), batch_argnums=(2, 3))
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


@wh.jit(cluster=2, batch_argnums=(1, 2))
def accuracy(params, x, y):
    return jnp.mean(model.apply(params, x).argmax(-1) == y)


file = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "run") / "state.pkl"
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
file.parent.mkdir(exist_ok=True)
x, y = load(0, 1024)
params = model.init(jax.random.key(0), x[:1])
done, state = 0, (params, optimizer.init(params))
if file.exists():
    done, state = pickle.loads(file.read_bytes())
for epoch in range(done, epochs):
    for batch in batches(x, y, 128, epoch):
        *state, loss = train_step(*state, *batch)
    share = accuracy(state[0], *load(1, 512))
    print(f"epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}")
    host = jax.tree.map(np.asarray, tuple(state))
    file.write_bytes(pickle.dumps((epoch + 1, host)))
