"""Numbers as `jax.jit` gives them, to the bit or the sign.

Under test: bf16, which kernels compute in f32 and round after each step, and
complex numbers with infinite parts.
"""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import whale as wh

BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.float32


def check(ours, theirs):
    """Equal bits, except of NaNs."""
    ours = np.asarray(ours)
    assert ours.dtype == theirs.dtype
    nan = np.isnan(theirs)
    np.testing.assert_array_equal(np.isnan(ours), nan)
    bits = np.where(nan, 0, ours.view(np.uint16))
    np.testing.assert_array_equal(bits, np.where(nan, 0, theirs.view("u2")))


def test_each_step_of_each_number_is_rounded_once():
    # All numbers, and all of them in another order.
    x = np.arange(1 << 16, dtype=np.uint16).view(BF16)
    y = np.random.default_rng(0).permutation(x)

    def step(x, y):
        half = jnp.asarray(0.5, jnp.bfloat16)
        return x * y + x, (x - y) * half, x / y, -(x + y)

    def narrow(x):
        return x.astype(BF16)

    a, b = x.astype(F32), y.astype(F32)
    with np.errstate(all="ignore"):
        expected = (
            narrow(narrow(a * b).astype(F32) + a),
            narrow(narrow(a - b).astype(F32) * F32(0.5)),
            narrow(a / b),
            -narrow(a + b),
        )
    for ours, theirs in zip(wh.jit(step, cluster=1)(x, y), expected):
        check(ours, theirs)


def test_functions_of_one_number_and_of_many():
    x = np.random.default_rng(1).standard_normal(40).astype(F32)
    functions = jnp.tanh, jax.scipy.special.erf, jnp.sin, jnp.log1p, jnp.arctan

    def step(x):
        return [f(x) for f in functions] + [jnp.abs(x) ** 1.7]

    whole = [np.asarray(y) for y in wh.jit(step, cluster=1)(x)]
    for count in range(1, 40, 3):
        for ours, all_of_it in zip(wh.jit(step, cluster=1)(x[:count]), whole):
            np.testing.assert_array_equal(ours, all_of_it[:count])


def test_nans_of_f32_stay_nans():
    # In the lower bits of some of them is all that tells them from infinity.
    patterns = [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF80FFFF, 0x7FFF8000]
    x = np.resize(np.array(patterns, np.uint32), 100).view(F32)

    def step(x):
        y = x[::-1]
        return x.astype(jnp.bfloat16), (x * y + x).astype(jnp.bfloat16)

    for result in wh.jit(step, cluster=1)(x):
        assert np.isnan(np.asarray(result).astype(F32)).all()


@pytest.mark.parametrize(("ranks", "micro_batches"), [(1, 2), (2, 1), (2, 2)])
def test_sums_of_parts_are_rounded_before_they_become_wider(
    ranks, micro_batches
):
    # Of 40,000 and 40,000, which f16 has, it has no sum; of 128 and 129 bf16
    # has no sum either, but 256.
    f16 = np.full((4, 8), 20000, np.float16)
    bf16 = np.array([[64] * 8, [64] * 8, [64] * 8, [65] * 8]).astype(BF16)

    def loss(params, scaled, x):
        wide, narrow, other = params
        product = wide.astype(jnp.float16) * scaled + narrow * scaled
        rounded = other.astype(jnp.bfloat16) * x
        return jnp.sum(product.astype(F32)) + jnp.sum(rounded.astype(F32))

    def step(params, scaled, x):
        wide, narrow, other = jax.grad(loss)(params, scaled, x)
        # As a dynamic scale of the loss is found to be too large.
        unscaled = narrow.astype(F32) / 8
        finite = jnp.isfinite(wide).all() & jnp.isfinite(unscaled).all()
        return wide, narrow, unscaled, other, finite

    ones = np.ones(8, F32)
    arguments = (ones, ones.astype(np.float16), ones), f16, bf16
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(wh.replicate(ranks))
    ours = wh.jit(step, cluster=ranks, batch_argnums=(1, 2))(*arguments)
    theirs = jax.jit(step)(*arguments)
    assert not theirs[-1] and theirs[3][0] == 256
    for one, other in zip(ours, theirs):
        np.testing.assert_array_equal(np.asarray(one), other)


@jax.custom_vjp
def scaled(w):
    return w.astype(jnp.float16)


scaled.defvjp(
    lambda w: (scaled(w), None), lambda _, g: (g.astype(F32) / 8 - 1,)
)


@pytest.mark.parametrize(("ranks", "micro_batches"), [(1, 2), (2, 1), (2, 2)])
def test_sums_of_parts_are_rounded_behind_loops(ranks, micro_batches):
    # In each of the layers a gradient of 80,000: of a stack of weights, of one
    # that all layers share, and of one that is scaled while it is widened.
    x = np.full((4, 8), 20000, np.float16)

    def loss(params, x):
        stacked, shared, unscaled, bounded = params

        def layer(total, w):
            product = w[0].astype(jnp.float16) * x
            product += shared.astype(jnp.float16) * x
            product += scaled(w[1]) * x + scaled(unscaled) * x
            # One of the two branches makes no gradient.
            chosen = lax.cond(
                w[2][0] > 0.5,
                lambda b: b.astype(jnp.float16) * 2,
                lambda b: b.astype(jnp.float16),
                bounded,
            )
            product += chosen * x
            return total + jnp.sum(product.astype(F32)), None

        return lax.scan(layer, F32(0), stacked)[0]

    def step(params, x):
        gradients = jax.grad(loss)(params, x)
        return *gradients, jnp.isfinite(gradients[0][0]).all()

    ones = np.ones(8, F32)
    stack = np.ones((3, 8), F32)
    arguments = ((stack, stack, stack), ones, ones, ones), x
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(wh.replicate(ranks))
    ours = wh.jit(step, cluster=ranks, batch_argnums=1)(*arguments)
    theirs = jax.jit(step)(*arguments)
    assert not theirs[-1] and np.isinf(theirs[1]).all()
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize("divisor", [2, -3])
def test_infinite_complex_numbers_are_divided_by_real_ones(divisor):
    parts = np.array([1, 0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    x = (parts[:, None] + 0j).astype(np.complex64).repeat(len(parts), 1)
    x.imag = parts

    def step(x):
        return x / divisor

    ours = np.asarray(wh.jit(step, cluster=1)(x))
    theirs = np.asarray(jax.jit(step)(x))
    for one, other in [(ours.real, theirs.real), (ours.imag, theirs.imag)]:
        np.testing.assert_allclose(one, other, rtol=1e-6)
        zeros = other == 0
        assert (np.signbit(one) == np.signbit(other))[zeros].all()
