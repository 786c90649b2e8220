"""Results of a program in the libraries that people train with."""

from __future__ import annotations

import pathlib
from typing import Any

import equinox as eqx
import flax.serialization
import jax
import jax.numpy as jnp
import jaxtyping
import msgpack
import numpy as np
import orbax.checkpoint
import pytest
from flax import nnx

import whale as wh

pytestmark = pytest.mark.usefixtures("fake")

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 32


def results(tree: Any) -> Any:
    """The leaves of a tree as a program gives them."""
    return wh.jit(lambda tree: tree, cluster=1)(tree)


def test_equinox_keeps_the_weights_between_two_steps() -> None:
    model = eqx.nn.Linear(4, 1, key=jax.random.key(0))

    def train_step(weights: Any, rest: Any, x: jax.Array) -> Any:
        def loss(weights: Any) -> jax.Array:
            return jnp.mean(jax.vmap(eqx.combine(weights, rest))(x) ** 2)

        value, grads = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), value

    expected, static = eqx.partition(model, eqx.is_array)
    reference = jax.jit(lambda weights, x: train_step(weights, static, x))
    step = wh.jit(
        lambda weights, x: train_step(weights, static, x),
        cluster=1,
        donate_argnums=0,
    )
    for _ in range(2):
        weights, rest = eqx.partition(model, eqx.is_array)
        assert len(jax.tree.leaves(weights)) == 2
        assert not any(map(eqx.is_array, jax.tree.leaves(rest)))
        weights, value = step(weights, X)
        model = eqx.combine(weights, rest)
        expected, expected_value = reference(expected, X)
        np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    assert eqx.tree_equal(wh.to_jax(model), eqx.combine(expected, static))
    eqx.filter_jit(lambda model: jax.vmap(model)(X))(model)


def test_equinox_files(tmp_path: pathlib.Path) -> None:
    """It compares exact types with those in the file, which are JAX's."""
    model = results({"w": X})
    path = tmp_path / "model.eqx"
    eqx.tree_serialise_leaves(path, model)
    restored = eqx.tree_deserialise_leaves(path, wh.to_jax(model))
    np.testing.assert_array_equal(restored["w"], X)


def test_jaxtyping_checks_shapes_and_dtypes() -> None:
    array, key = results((X, jax.random.key(0)))
    # Type checkers know none of them as a class.
    kinds: list[Any] = [
        jaxtyping.Float[jax.Array, "8 4"],
        jaxtyping.Float[jax.Array, "n n"],
        jaxtyping.Int[jax.Array, "8 4"],
    ]
    assert [isinstance(array, kind) for kind in kinds] == [True, False, False]
    keys: Any = jaxtyping.Key[jax.Array, ""]
    assert isinstance(key, keys)


def test_flax_writes_what_it_writes_of_jax_arrays() -> None:
    tree = {"w": X, "half": X.astype(jnp.bfloat16), "count": np.int32(3)}
    ours = results(tree)
    theirs = jax.tree.map(jnp.asarray, tree)
    to_bytes = flax.serialization.to_bytes
    assert to_bytes(ours) == to_bytes(theirs)
    pack = flax.serialization.msgpack_serialize
    assert pack(ours) == pack(theirs)
    # What was written goes back in the place of ours.
    restored = flax.serialization.from_bytes(ours, to_bytes(theirs))
    np.testing.assert_array_equal(restored["w"], X)
    assert restored["half"].dtype == jnp.bfloat16


def test_msgpack_by_a_hook() -> None:
    def pack(value: Any) -> Any:
        assert isinstance(value, jax.Array)
        return np.asarray(value).tolist()

    packed = msgpack.packb(results({"w": X}), default=pack)
    assert msgpack.unpackb(packed) == {"w": X.tolist()}


def test_flax_nnx_holds_them() -> None:
    model: Any = nnx.Linear(4, 3, rngs=nnx.Rngs(0))
    graph, state = nnx.split(model)
    expected = model(X)
    merged: Any = nnx.merge(graph, results(state))
    np.testing.assert_allclose(merged(X), expected, rtol=1e-6)
    nnx.update(model, results(state))
    grads = nnx.grad(lambda model: model(X).sum())(model)
    assert grads["kernel"][...].shape == (4, 3)


def test_orbax_saves_and_restores(tmp_path: pathlib.Path) -> None:
    tree = results({"w": X, "n": np.arange(3), "key": jax.random.key(1)})
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "step", tree)
        checkpointer.wait_until_finished()
        for like in (tree, jax.tree.map(_abstract, tree)):
            restored = checkpointer.restore(tmp_path / "step", like)
            np.testing.assert_array_equal(restored["w"], X)
            np.testing.assert_array_equal(restored["n"], np.arange(3))
            np.testing.assert_array_equal(
                jax.random.key_data(restored["key"]),
                jax.random.key_data(jax.random.key(1)),
            )


def _abstract(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)


def test_keras_takes_them_for_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras")
    array = results(X)
    assert keras.ops.is_tensor(array)
    assert keras.ops.shape(array) == (8, 4)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(array), X)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    for variable in model.trainable_variables:
        variable.assign(results(variable.value))
    assert model(array).shape == (8, 3)
