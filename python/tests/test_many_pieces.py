"""Tensors that are made of many pieces: one loop copies them all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

PIECES = 70


def check(function, *args):
    """Compares with NumPy: what is only moved has the same bits.

    `function` takes the module first. XLA would need seconds for each.
    """
    step = wh.jit(lambda *args: function(jnp, *args), cluster=1)
    ours = jax.tree.map(np.asarray, step(*args))
    theirs = function(np, *jax.tree.map(np.asarray, args))
    for a, b in zip(
        jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True
    ):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def make_pieces(dim, dtype):
    """Arguments of unequal extents along `dim`, some of them empty."""
    random = np.random.default_rng(0)
    pieces = []
    for number in range(PIECES):
        shape = [3, 2, 4]
        shape[dim] = number * 7 % 5
        pieces.append(jnp.asarray(random.integers(-9, 9, shape)).astype(dtype))
    return pieces


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "dtype", [jnp.bool_, jnp.int8, jnp.bfloat16, jnp.float32, jnp.complex64]
)
def test_concatenated_arguments(dim, dtype):
    check(lambda m, pieces: m.concatenate(pieces, dim), make_pieces(dim, dtype))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_computed_and_given_pieces(dim):
    def step(module, pieces):
        return module.concatenate(
            [
                piece * number if number % 3 else piece
                for number, piece in enumerate(pieces)
            ],
            dim,
        )

    check(step, make_pieces(dim, jnp.float32))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stacked_pieces(axis):
    def step(module, x):
        rows = [x + number for number in range(PIECES)]
        return module.stack(rows, axis), module.sum(rows[3])

    check(step, jnp.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("dim", [0, pytest.param(1, marks=pytest.mark.long)])
def test_more_pieces_than_one_loop_chooses_from(dim):
    pieces = jnp.arange(600 * 3 * 2.0).reshape(600, 3, 2)
    check(lambda m, pieces: m.concatenate(list(pieces), dim), pieces)


def test_more_unequal_pieces_than_one_loop_chooses_from():
    pieces = np.arange(600 * 3 * 2, dtype=np.float32).reshape(600, 3, 2)
    unequal = [pieces[i, : 1 + i % 3, : 1 + i % 2] for i in range(600)]
    unequal = [np.reshape(piece, -1) for piece in unequal]
    check(lambda m, pieces: m.concatenate(pieces), unequal)


def test_pieces_of_nothing():
    check(
        lambda m, pieces: m.concatenate(pieces, 0),
        [jnp.zeros((0, 3)) for _ in range(PIECES)],
    )
