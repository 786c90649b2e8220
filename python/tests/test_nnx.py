"""Steps that change modules of flax nnx in place, with `wh.nnx_jit`.

Judged beside `flax.nnx.jit` on equal modules: losses, parameters, statistics of
batch norm and random streams of several steps; and by the texts of errors.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import whale as wh

X = jax.random.normal(jax.random.key(1), (8, 16))
Y = jnp.ones((8, 4))


class Model(nnx.Module):
    def __init__(self, rngs):
        self.front = nnx.Linear(16, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.25, rngs=rngs)
        self.back = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, x):
        x = self.dropout(nnx.gelu(self.norm(self.front(x))))
        return self.back(x)


def make():
    model = Model(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)


def train(model, optimizer, x, *, y):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


def evaluate(model, x):
    return (model(x) ** 2).mean()


def values(*modules):
    leaves = jax.tree.leaves(nnx.state(modules))
    return [
        jax.random.key_data(leaf)
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        else leaf
        for leaf in leaves
    ]


@pytest.mark.parametrize("donated", [None, (0, 1)])
def test_as_nnx_jit(donated):
    wh.set_default_strategy(wh.replicate())
    theirs, ours = make(), make()
    plain = nnx.jit(train)
    step = wh.nnx_jit(
        train,
        cluster=2,
        donate_argnums=donated,
        batch_argnums=2,
        batch_argnames="y",
    )
    for _ in range(3):
        expected, given = plain(*theirs, X, y=Y), step(*ours, X, y=Y)
        np.testing.assert_allclose(expected, given, rtol=1e-5)
    for one, other in zip(values(*theirs), values(*ours), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    manifest = step.last_program().manifest
    donations = {entry["donated"] for entry in manifest["arguments"]}
    assert donations == ({False} if donated is None else {True, False})
    # The state is that of the next step.
    assert all(
        (entry["fed_by"] is None) == (entry["batch_dim"] is not None)
        for entry in manifest["arguments"]
    )


def test_with_scopes_by_names(fake):
    step = wh.scopes({"back": wh.replicate(1)}, wh.nnx_jit(train, cluster=2))
    model, optimizer = make()
    before = model.back.bias[...]
    step(model, optimizer, X, y=Y)
    assert not np.array_equal(before, model.back.bias[...])
    text = step.lower(model, optimizer, X, y=Y).as_text()
    assert "whale.scopes = {back = #whale.replicate<devices = 1>}" in text


def test_state_lies_where_the_step_has_it():
    """A step of modules is what others are like, module by module."""
    wh.init(wh.Config({"zero.level": "v2"}))
    wh.set_default_strategy(wh.replicate())
    step = wh.nnx_jit(train, cluster=2, batch_argnums=2, batch_argnames="y")
    ours, theirs = make(), make()
    with pytest.raises(ValueError, match="in_like: 'train' has no programs"):
        wh.nnx_jit(evaluate, in_like=step)(ours[0], X)
    step(*ours, X, y=Y)
    nnx.jit(train)(*theirs, X, y=Y)
    loss = wh.nnx_jit(evaluate, in_like=step, batch_argnums=1)
    found, expected = loss(ours[0], X), evaluate(theirs[0], X)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    entries = {
        entry["label"]: (entry["boxes"], entry["view"])
        for entry in step.last_program().manifest["arguments"]
    }
    for entry in loss.last_program().manifest["arguments"]:
        if entry["batch_dim"] is None and "back" in entry["label"]:
            assert (entry["boxes"], entry["view"]) in entries.values()

    start = wh.jit(lambda: nnx.split(make())[1], out_like=step)
    fresh = make()
    nnx.update(fresh, start())
    for one, other in zip(values(*fresh), values(*make()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_evaluation_changes_nothing(fake):
    @wh.nnx_jit(cluster=1)
    def evaluate(model, x):
        return model(x).sum()

    model, _ = make()
    model.eval()
    before = values(model)
    np.testing.assert_allclose(evaluate(model, X), model(X).sum(), rtol=1e-5)
    for one, other in zip(before, values(model), strict=True):
        np.testing.assert_array_equal(one, other)


def test_errors(fake):
    model, optimizer = make()
    with pytest.raises(TypeError, match="no argument holds a module"):
        wh.nnx_jit(lambda x: x, cluster=1)(X)
    with pytest.raises(TypeError, match="takes no feedback"):
        wh.nnx_jit(train, feedback={0: 0})
    with pytest.raises(TypeError, match="wh.jit takes a function"):
        wh.nnx_jit(3)

    def grow(model, x):
        model.extra = nnx.Param(x)

    with pytest.raises(ValueError, match="grow adds or removes variables"):
        wh.nnx_jit(grow, cluster=1)(model, X)
