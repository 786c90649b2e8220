"""Scopes reach every operation, forward and backward, through JAX and flax.

Under test: the scope and phase of each operation under grad, vmap, remat, scan,
custom rules and the modules of flax. The name paths are read from the lowered
text, as the compiler does, and compared exactly. A failure means that an
operation would get the strategy of another scope, or none. Nothing is compiled
or run.
"""

import concurrent.futures

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from name_paths import operations

import whale as wh

W = jnp.ones((4, 4))
X = jnp.ones((8, 4))


def paths(function, *args):
    return operations(wh.jit(function).lower(*args).as_text())


def layer(w, x, name="layer"):
    with wh.split(2, name=name):
        return jax.nn.gelu(x @ w)


def mean(x, name="loss"):
    with wh.replicate(2, name=name):
        return jnp.mean(x**2)


def nested(w, x):
    with wh.replicate(2, name="outer"):
        return mean(layer(w, x) + x)


def remat(w, x):
    with wh.replicate(2, name="outer"):
        return mean(jax.checkpoint(layer)(w, x))


def remat_around(w, x):
    policy = jax.checkpoint_policies.dots_saveable
    with wh.split(2, name="layer"):
        y = jax.checkpoint(lambda w, x: jnp.tanh(x @ w), policy=policy)(w, x)
    return mean(y)


def scanned(w, x):
    def body(carry, _):
        return layer(w, carry), None

    with wh.replicate(2, name="stack"):
        return mean(jax.lax.scan(body, x, None, length=3)[0])


def scanned_remat(w, x):
    def body(carry, _):
        return jax.checkpoint(layer)(w, carry), None

    with wh.replicate(2, name="stack"):
        return mean(jax.lax.scan(body, x, None, length=3)[0])


def inner_jit(w, x):
    step = jax.jit(layer)
    with wh.replicate(2, name="outer"):
        return mean(step(w, step(w, x)))


def branches(w, x):
    with wh.replicate(2, name="outer"):
        y = jax.lax.cond(x[0, 0] > 0, lambda: layer(w, x), lambda: x)
    return mean(y)


def mapped(w, x):
    return mean(jax.vmap(layer, in_axes=(None, 0))(w, x))


def cross_entropy(w, x):
    logits = layer(w, x)
    with wh.replicate(2, name="loss"):
        labels = jnp.arange(8) % 4
        return optax.softmax_cross_entropy_with_integer_labels(
            logits, labels
        ).mean()


@pytest.mark.parametrize(
    "loss",
    [
        nested,
        remat,
        remat_around,
        scanned,
        scanned_remat,
        inner_jit,
        branches,
        mapped,
        cross_entropy,
    ],
)
@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad])
def test_every_operation_has_its_scope(loss, transform):
    ops = paths(transform(loss), W, X)
    assert [op for op in ops if op.scope is None] == []
    assert {(op.scope, op.backward) for op in ops} >= {
        ("layer", False),
        ("layer", True),
        ("loss", True),
    }
    products = [op for op in ops if op.name == "stablehlo.dot_general"]
    assert {op.scope for op in products} == {"layer"}
    assert {op.backward for op in products} == {False, True}


def test_vmap_outside_grad():
    ops = paths(jax.vmap(jax.grad(nested), (None, 0)), W, X[:, None])
    assert {"layer", "loss"} <= {op.scope for op in ops}
    assert None not in {op.scope for op in ops}


def test_custom_vjp_rules():
    # The backward rule is called where the function was, so it is in the
    # scopes around the call and in those that it opens itself.
    @jax.custom_vjp
    def function(w, x):
        return jnp.tanh(x @ w)

    def forward(w, x):
        with wh.split(2, name="forward"):
            return jnp.tanh(x @ w), (w, x)

    def backward(kept, g):
        w, x = kept
        with wh.split(2, name="backward"):
            dw = x.T @ g
        return dw, g @ w.T

    function.defvjp(forward, backward)

    def loss(w, x):
        with wh.replicate(2, name="around"):
            return mean(function(w, x))

    ops = paths(jax.grad(loss, argnums=(0, 1)), W, X)
    products = {
        (op.scope, op.backward)
        for op in ops
        if op.name == "stablehlo.dot_general"
    }
    assert products == {
        ("forward", False),
        ("backward", True),
        ("around", True),
    }


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        with wh.replicate(2, name="stem"):
            x = nn.Dense(8)(x)
        with wh.split(2, name="middle"):
            x = nn.Conv(8, (3,))(x[:, None, :])
            x = nn.gelu(nn.LayerNorm()(x))
            x = nn.MultiHeadDotProductAttention(2)(x)[:, 0]
        with wh.split(2, name="head"):
            return nn.Dense(4)(x)


def test_linen():
    model = Linen()
    params = model.init(jax.random.key(0), X)
    ops = paths(jax.grad(lambda p, x: mean(model.apply(p, x))), params, X)
    assert [op for op in ops if op.scope is None] == []
    kinds = {(op.scope, op.backward) for op in ops}
    for name in ("stem", "middle", "head", "loss"):
        assert {(name, False), (name, True)} <= kinds


def test_linen_scan_and_remat():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, carry, _):
            with wh.split(2, name="block"):
                return nn.tanh(nn.Dense(4)(carry)), None

    class Stack(nn.Module):
        @nn.compact
        def __call__(self, x):
            scan = nn.scan(
                nn.remat(Block),
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=3,
            )
            with wh.replicate(2, name="stack"):
                return scan()(x, None)[0]

    model = Stack()
    params = model.init(jax.random.key(0), X)
    ops = paths(jax.grad(lambda p, x: mean(model.apply(p, x))), params, X)
    assert [op for op in ops if op.scope is None] == []
    products = [op for op in ops if op.name == "stablehlo.dot_general"]
    assert {op.scope for op in products} == {"block"}
    assert {op.backward for op in products} == {False, True}


def test_nnx():
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.stem = nnx.Linear(4, 8, rngs=rngs)
            self.head = nnx.Linear(8, 4, rngs=rngs)

        def __call__(self, x):
            with wh.replicate(2, name="stem"):
                x = nnx.gelu(self.stem(x))
            with wh.split(2, name="head"):
                return self.head(x)

    graph, state = nnx.split(Model(nnx.Rngs(0)))

    def step(state, x):
        def loss(model):
            return mean(model(x))

        return nnx.value_and_grad(loss)(nnx.merge(graph, state))

    ops = paths(step, state, X)
    assert [op for op in ops if op.scope is None] == []
    kinds = {(op.scope, op.backward) for op in ops}
    for name in ("stem", "head", "loss"):
        assert {(name, False), (name, True)} <= kinds


def test_optimizer_stands_outside():
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def step(w, state, x):
        g = jax.grad(nested)(w, x)
        updates, state = optimizer.update(g, state, w)
        return optax.apply_updates(w, updates), state

    ops = paths(step, W, optimizer.init(W), X)
    assert {op.backward for op in ops if op.scope is None} == {False}
    assert any(op.name == "stablehlo.sqrt" for op in ops if op.scope is None)


def test_each_entry_is_its_own_scope():
    scope = wh.split(2)

    def step(x):
        with scope:
            x = x + 1
        with scope:
            return x * 2

    ops = paths(step, X)
    assert [op.scope for op in ops if op.name == "stablehlo.add"] == ["1"]
    assert [op.scope for op in ops if op.name == "stablehlo.multiply"] == ["2"]


def test_decorator_and_recursion():
    @wh.replicate(2, name="both")
    def double(x, depth):
        return double(x, depth - 1) * 2 if depth else x

    ops = paths(lambda x: double(x, 3), X)
    assert {op.scope for op in ops} == {"both"}


def test_scope_around_the_call():
    step = wh.jit(lambda x: x + 1)
    with wh.split(2, name="around"):
        text = step.lower(X).as_text()
    assert [op.scope for op in operations(text)].count("around") >= 1


def test_an_exception_closes_the_scope():
    with pytest.raises(ZeroDivisionError):
        with wh.split(2, name="lost"):
            raise ZeroDivisionError
    assert "lost" not in wh.jit(lambda x: x + 1).lower(X).as_text()


def test_plain_jax_text_has_the_scopes_too():
    text = jax.jit(nested).lower(W, X).as_text(debug_info=True)
    assert {"layer", "loss"} <= {op.scope for op in operations(text)}


@pytest.mark.parametrize("make", [wh.replicate, wh.cluster])
def test_a_scope_that_is_left_in_another_thread(make):
    scope = make()
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        other.submit(scope.__enter__).result()
        with pytest.raises(wh.WhaleError, match="left in another thread than"):
            scope.__exit__(None, None, None)
        other.submit(scope.__exit__, None, None, None).result()
