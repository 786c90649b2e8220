"""Strategies by names, for models of flax, equinox and jax.named_scope.

Under test: `wh.scopes` puts the operations of modules on the devices of their
patterns, and the step computes what `jax.jit` computes. Judged by the plan, by
results on ranks beside those of `jax.jit`, and by the texts of errors.
"""

import os
import threading

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import whale as wh
from whale import module_names

X = jax.random.normal(jax.random.key(1), (8, 16))
Y = jnp.ones((8, 4))


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        for i in range(4):
            x = nn.gelu(nn.Dense(16, name=f"layer_{i}")(x))
        return nn.Dense(4, name="head")(x)


class Nnx(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List(
            [nnx.Linear(16, 16, rngs=rngs) for _ in range(4)]
        )
        self.head = nnx.Linear(16, 4, rngs=rngs)

    def __call__(self, x):
        for layer in self.layers:
            x = nnx.gelu(layer(x))
        return self.head(x)


def linen():
    model = Linen()
    return model.init(jax.random.key(0), X), model.apply


def of_nnx():
    graph, state = nnx.split(Nnx(nnx.Rngs(0)))
    return state, lambda state, x: nnx.merge(graph, state)(x)


def equinox():
    model = eqx.nn.MLP(16, 4, 16, 4, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_array)
    return params, lambda p, x: jax.vmap(eqx.combine(p, static))(x)


def haiku():
    hk = pytest.importorskip("haiku")

    def apply(x):
        for i in range(4):
            x = jax.nn.gelu(hk.Linear(16, name=f"layer_{i}")(x))
        return hk.Linear(4, name="head")(x)

    model = hk.without_apply_rng(hk.transform(apply))
    return model.init(jax.random.key(0), X), model.apply


def keras():
    os.environ.setdefault("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras")
    model = keras.Sequential(
        [
            keras.Input((16,)),
            *(
                keras.layers.Dense(16, name=f"layer_{i}", activation="gelu")
                for i in range(4)
            ),
            keras.layers.Dense(4, name="head"),
        ]
    )
    values = [variable.value for variable in model.trainable_variables]
    return values, lambda p, x: model.stateless_call(p, [], x)[0]


def step_of(apply):
    def step(params, x, y):
        def loss(params):
            return jnp.mean((apply(params, x) - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(params)
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
        return new, value

    return step


def devices_of(step):
    """By TaskGraph, its devices."""
    return {g["name"]: g["devices"] for g in step.plan["task_graphs"]}


FRONT, BACK = wh.replicate(1, "front"), wh.replicate(1, "back")


@pytest.mark.parametrize(
    "make, patterns",
    [
        (linen, {"layer_[01]": FRONT, "Linen/layer_[23]": BACK, "head": BACK}),
        (of_nnx, {"layers/[01]": FRONT, "Nnx/**/[23]": BACK, "head": BACK}),
        (equinox, {"layers/[01]": FRONT, "layers/{2,3,4}": BACK}),
        (haiku, {"layer_[01]": FRONT, "layer_[23]": BACK, "head": BACK}),
        (keras, {"layer_[01]": FRONT, "layer_[23]": BACK, "head": BACK}),
    ],
)
def test_stages(make, patterns):
    wh.init({"num_micro_batch": 2})
    params, apply = make()
    step = step_of(apply)
    ours = wh.jit(wh.scopes(patterns, step), cluster=2, batch_argnums=(1, 2))
    expected, given = jax.jit(step)(params, X, Y), ours(params, X, Y)
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(given)):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
    assert devices_of(ours) == {"front": [[0]], "back": [[1]]}


def test_each_module_is_its_own():
    params, apply = linen()
    step = wh.jit(step_of(apply), cluster=5, target="none", batch_argnums=1)
    # What wh.jit has made is taken, too.
    named = wh.scopes({"*_[0-3]": wh.replicate(1), "head": BACK}, step)
    program = named.lower(params, X, Y).compile()
    names = {g["name"]: g["devices"] for g in program.plan["task_graphs"]}
    assert names == {f"Linen/layer_{i}": [[i]] for i in range(4)} | {
        "back": [[4]]
    }
    assert named.lower(params, X, Y).matched_names() == {
        "*_[0-3]": [f"Linen/layer_{i}" for i in range(4)],
        "head": ["Linen/head"],
    }
    assert (
        wh.jit(step_of(apply), cluster=1).lower(params, X, Y).matched_names()
        == {}
    )


def test_scopes_of_the_model_are_inside():
    def step(x):
        with jax.named_scope("outer"):
            x = jnp.sin(x)
            with wh.replicate(1, "own"):
                x = jnp.cos(x)
            with jax.named_scope("inner"):
                return jnp.tanh(x)

    with wh.scopes({"outer": FRONT, "outer/inner": BACK}):
        lowered = wh.jit(step, cluster=3, target="none").lower(X)
    graphs = lowered.compile().plan["task_graphs"]
    assert [g["name"] for g in graphs] == ["front", "own", "back"]


def test_a_pattern_that_matches_nothing():
    params, apply = linen()
    step = wh.scopes({"layers_0": FRONT}, step_of(apply))
    lowered = wh.jit(step, cluster=2, target="none").lower(params, X, Y)
    with pytest.raises(
        wh.CompileError,
        match=r"no name in the step matches 'layers_0'; the names are "
        r"Linen, Linen/layer_0, .*Linen/head",
    ):
        lowered.compile()


def test_two_strategies():
    params, apply = linen()
    step = wh.scopes({"layer_0": FRONT, "*_0": BACK}, step_of(apply))
    lowered = wh.jit(step, cluster=2, target="none").lower(params, X, Y)
    with pytest.raises(wh.CompileError, match="'Linen/layer_0' has two"):
        lowered.compile()


@pytest.mark.parametrize(
    "patterns, error",
    [
        ({}, "takes a dictionary"),
        ([], "takes a dictionary"),
        ({"a//b": FRONT}, "names with slashes between"),
        ({"": FRONT}, "names with slashes between"),
        ({3: FRONT}, "names with slashes between"),
        ({"a": 4}, "'a' needs wh.replicate"),
    ],
)
def test_wrong_patterns(patterns, error):
    with pytest.raises((TypeError, ValueError), match=error):
        wh.scopes(patterns, lambda x: x)


def test_one_set_of_patterns():
    def step(x):
        with wh.scopes({"b": BACK}):
            return x

    with pytest.raises(ValueError, match="wh.scopes is in a wh.scopes"):
        wh.jit(wh.scopes({"a": FRONT}, step)).lower(X)
    with pytest.raises(TypeError, match="takes a function"):
        wh.scopes({"a": FRONT}, 3)


def test_classes_are_as_before():
    calls = {kind: kind.__call__ for kind in (nnx.Linear, eqx.nn.Linear, Nnx)}
    with module_names.named():
        assert nnx.Linear.__call__ is not calls[nnx.Linear]
        with module_names.named():
            pass
        assert nnx.Linear.__call__ is not calls[nnx.Linear]
    for kind, call in calls.items():
        assert kind.__call__ is call


def test_other_threads_have_no_names():
    model = Nnx(nnx.Rngs(0))
    texts = []

    def lower():
        text = jax.jit(lambda x: model(x)).lower(X).as_text(debug_info=True)
        texts.append(text)

    with module_names.named():
        thread = threading.Thread(target=lower)
        thread.start()
        thread.join()
        # JAX has cached the trace: this is another function.
        lower()
    assert ["Nnx/head" in text for text in texts] == [False, True]
