"""The import passes don't change what a program computes.

Each text runs on XLA as JAX wrote it and after whale-inline-calls,
whale-expand-chlo and whale-normalize. More texts: a folder in $WHALE_TEXTS.

Results must be within 2e-6 of the text as it was, within 2e-5 in the folder
(3e-2 in half precision), and functions of CHLO within a tolerance of each type
on thousands of points. Seeds are fixed. A failure means that a rewrite is
wrong, before anything is planned. Each text is compiled by XLA twice.
"""

import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xla
from jax import lax

PASSES = ("-whale-inline-calls", "-whale-expand-chlo", "-whale-normalize")
TASK_GRAPHS = (
    "-whale-inline-calls",
    "-whale-import-scopes=strategy=replicate",
    "-whale-expand-chlo",
    "-whale-normalize",
    "-whale-form-task-graphs",
)


def check(text: str, tolerance: float) -> None:
    arguments = xla.random_arguments(text)
    expected = xla.run(text, arguments)
    actual = xla.run(xla.whale_opt(text, *PASSES), arguments)
    xla.assert_close(expected, actual, tolerance)
    assert "whale.task_graph" in xla.whale_opt(text, *TASK_GRAPHS)


def lower(function, *arguments) -> str:
    return jax.jit(function).lower(*arguments).as_text(debug_info=True)


def sgd(loss):
    def step(params, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def mlp_loss(params, x, y):
    hidden = jax.nn.gelu(x @ params["in"], approximate=False)
    logits = jax.nn.log_softmax(hidden @ params["out"])
    picked = jnp.take_along_axis(logits, y[:, None], axis=1)
    return -picked.mean()


def scan_loss(params, x):
    @jax.checkpoint
    def layer(h, w):
        return jnp.tanh(h @ w) / jnp.sqrt(jnp.square(h).mean() + 1e-5), None

    return jnp.square(lax.scan(layer, x, params)[0]).sum()


def dropout_loss(params, x, seed):
    keep = jax.random.bernoulli(jax.random.key(seed), 0.8, x.shape)
    return jnp.where(keep, x @ params, 0).sum()


def embedding_loss(params, tokens):
    hidden = params[tokens]
    return jnp.cumsum(hidden, axis=0).std() + hidden.max()


def branch_loss(params, x):
    h = lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x @ params)
    top, where = lax.top_k(h, 2)
    return (top * where).sum()


F32 = jnp.float32
STEPS = {
    "mlp": (
        sgd(mlp_loss),
        {"in": jnp.ones((8, 16)), "out": jnp.ones((16, 4))},
        jnp.ones((6, 8)),
        jnp.zeros(6, jnp.int32),
    ),
    "scan": (sgd(scan_loss), jnp.ones((3, 8, 8)), jnp.ones((4, 8))),
    "dropout": (sgd(dropout_loss), jnp.ones((8, 8)), jnp.ones((4, 8)), 3),
    "embedding": (
        sgd(embedding_loss),
        jnp.ones((16, 4)),
        jnp.zeros(6, jnp.int32),
    ),
    "branch": (sgd(branch_loss), jnp.ones((8, 8)), jnp.ones((4, 8))),
    "reduce_init": (
        lambda x, i: lax.reduce(x, i, lax.add, (0,)),
        jnp.ones((8, 4)),
        F32(2),
    ),
    "scatter": (
        lambda x, u: x.at[jnp.array([1, 3, 1])].add(u),
        jnp.ones((8, 4)),
        jnp.ones((3, 4)),
    ),
    "fori": (
        lambda x, n: lax.fori_loop(0, n, lambda i, v: v * x + i, x),
        jnp.ones((4,)),
        5,
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_step(name):
    step, *arguments = STEPS[name]
    check(lower(step, *arguments), 2e-6)


FOLDER = os.environ.get("WHALE_TEXTS")
TEXTS = sorted(pathlib.Path(FOLDER).glob("*.mlir")) if FOLDER else []
# What jaxlib's CPU client or one device can't run, or Whale refuses.
OTHER = ("mesh", "shard", "pmap", "init_params")


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.name)
def test_text(path):
    if any(word in path.name for word in OTHER):
        pytest.skip("not for one device")
    # Half-precision rounding depends on what XLA fuses.
    narrow = any(word in path.name for word in ("16", "fp8"))
    check(path.read_text(), 3e-2 if narrow else 2e-5)


GRIDS = {
    "any": np.concatenate(
        [
            np.linspace(-12, 12, 4001),
            np.logspace(-30, 30, 601),
            -np.logspace(-30, 30, 601),
            [0.0, -0.0, np.inf, -np.inf, np.nan],
        ]
    ),
    "unit": np.concatenate([np.linspace(-1, 1, 4001), [1.5, np.nan]]),
    "above_one": np.concatenate([np.linspace(1, 50, 4001), [1e30, np.inf]]),
    "moderate": np.linspace(-80, 80, 4001),
    "positive": np.linspace(0.05, 60, 4001),
}
UNARY = {
    "acos": "unit",
    "acosh": "above_one",
    "asin": "unit",
    "asinh": "any",
    "atan": "any",
    "atanh": "unit",
    "bessel_i1e": "moderate",
    "cosh": "moderate",
    "digamma": "positive",
    "erf": "any",
    "erf_inv": "unit",
    "erfc": "any",
    "is_inf": "any",
    "is_neg_inf": "any",
    "is_pos_inf": "any",
    "lgamma": "any",
    "sinh": "moderate",
    "square": "any",
    "tan": "unit",
}


def compare_elements(expected, actual, epsilon):
    """Relative to each element, or to 1 where it is smaller."""
    expected, actual = expected.astype(np.float64), actual.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(expected), np.isnan(actual))
    same = (expected == actual) | np.isnan(expected)
    with np.errstate(invalid="ignore"):
        error = np.abs(expected - actual) / np.maximum(np.abs(expected), 1e-3)
    assert (same | (error <= epsilon)).all(), error[~same].max()


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("name", UNARY)
def test_chlo_unary(name, dtype):
    grid = GRIDS[UNARY[name]].astype(xla._DTYPES[dtype])
    result = "i1" if name.startswith("is_") else dtype
    n = grid.size
    text = f"""func.func public @main(%x: tensor<{n}x{dtype}>)
        -> tensor<{n}x{result}> {{
      %0 = chlo.{name} %x : tensor<{n}x{dtype}> -> tensor<{n}x{result}>
      return %0 : tensor<{n}x{result}>
    }}"""
    (expected,) = xla.run(text, [grid])
    (actual,) = xla.run(xla.whale_opt(text, *PASSES), [grid])
    epsilon = {"f32": 1e-6, "f64": 1e-13, "bf16": 8e-3, "f16": 1e-3}[dtype]
    # XLA computes some functions of f64 by other formulas.
    compare_elements(expected, actual, 4 * epsilon)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["next_after", "zeta", "polygamma"])
def test_chlo_binary(name, dtype):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1.1, 9, (2, 2000))
    if name == "next_after":
        x, y = rng.normal(size=(2, 2000))
        x[:8] = y[:8] = 0.0
        y[4:12] = [1, -1, np.nan, -0.0, np.inf, -np.inf, 0.0, 1e-300]
        x[20:30] = y[20:30]
    if name == "polygamma":
        x = rng.integers(0, 5, 2000).astype(float)
    x, y = x.astype(xla._DTYPES[dtype]), y.astype(xla._DTYPES[dtype])
    t = f"tensor<2000x{dtype}>"
    text = f"""func.func public @main(%x: {t}, %y: {t}) -> {t} {{
      %0 = chlo.{name} %x, %y : {t}, {t} -> {t}
      return %0 : {t}
    }}"""
    (expected,) = xla.run(text, [x, y])
    (actual,) = xla.run(xla.whale_opt(text, *PASSES), [x, y])
    if name == "next_after":
        np.testing.assert_array_equal(
            expected.view(np.uint8), actual.view(np.uint8)
        )
    else:
        compare_elements(expected, actual, 1e-5 if dtype == "f32" else 1e-12)


def test_ragged_dot():
    x = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)
    sizes = np.array([2, 0, 4], np.int32)
    text = (
        jax.jit(lax.ragged_dot)
        .trace(x, w, sizes)
        .lower(lowering_platforms=("cuda",))
        .as_text()
    )
    assert "chlo.ragged_dot" in text
    (actual,) = xla.run(xla.whale_opt(text, *PASSES), [x, w, sizes])
    expected = np.asarray(lax.ragged_dot(x, w, sizes))
    np.testing.assert_allclose(expected, actual, rtol=1e-5, atol=1e-6)
