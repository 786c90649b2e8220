"""Cases of what JAX leaves to LAPACK, as JAX prints them.

Where a factorization is free in signs or phases, the case puts it together
again; what is not free (eigenvalues, pivots) is a result as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from values import COMPLEX, Item, Values


def adjoint(x: jax.Array) -> jax.Array:
    return jnp.swapaxes(x.conj(), -1, -2)


def hermitian(x: jax.Array) -> jax.Array:
    return x + adjoint(x)


def positive(x: jax.Array) -> jax.Array:
    return x @ adjoint(x) + jnp.eye(x.shape[-1], dtype=x.dtype)


def unit(q: jax.Array) -> jax.Array:
    """Shows that q is unitary; without zeros, which are never exact."""
    return adjoint(q) @ q + 1


def qr(x: jax.Array, full: bool) -> tuple:
    q, r = lax.linalg.qr(x, full_matrices=full)
    return q @ r, unit(q), jnp.abs(r)


def pivoted(x: jax.Array) -> tuple:
    q, r, order = lax.linalg.qr(x, pivoting=True, full_matrices=False)
    return q @ r, jnp.abs(r), order


def svd(x: jax.Array, full: bool) -> tuple:
    u, s, v = jnp.linalg.svd(x, full_matrices=full)
    rank = s.shape[-1]
    return s, (u[..., :rank] * s[..., None, :]) @ v[..., :rank, :]


def eigh(x: jax.Array) -> tuple:
    w, v = jnp.linalg.eigh(hermitian(x))
    return w, (v * w[..., None, :]) @ adjoint(v)


def eig(x: jax.Array) -> tuple:
    w, v = jnp.linalg.eig(x / 8 + jnp.diag(jnp.arange(4)))
    return w, (v * w[..., None, :]) @ jnp.linalg.inv(v)


def schur(x: jax.Array) -> tuple:
    t, q = lax.linalg.schur(x)
    return q @ t @ adjoint(q), unit(q)


def tridiagonal(x: jax.Array) -> tuple:
    _, d, e, _ = lax.linalg.tridiagonal(hermitian(x))
    return d, jnp.abs(e)


def banded(x: jax.Array) -> jax.Array:
    d = x[..., 0].real.astype(x.dtype) + 5
    return lax.linalg.tridiagonal_solve(x[..., 1], d, x[..., 2], x)


def lower(function: Callable, value: np.ndarray) -> str:
    """The text that JAX prints of a function."""
    return jax.jit(function).lower(value).as_text()


def reflect(x: jax.Array) -> tuple:
    """The product of a matrix and Householder reflectors, on either side."""
    scales = x[..., 0, : min(x.shape[-2:])] / 4
    right = adjoint(x[..., :2])
    return (
        lax.linalg.ormqr(x, scales, x[..., :2]),
        lax.linalg.ormqr(x, scales, x[..., :2], transpose=True),
        lax.linalg.ormqr(x, scales, right, left=False),
        lax.linalg.ormqr(x, scales, right, left=False, transpose=True),
    )


SQUARE: dict[str, Callable] = {
    "cholesky": lambda x: jnp.linalg.cholesky(positive(x)),
    "lu": lax.linalg.lu,
    "svd": lambda x: svd(x, True),
    "singular_values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "eigh": eigh,
    "eigvalsh": lambda x: jnp.linalg.eigvalsh(hermitian(x)),
    "eig": eig,
    "eigvals": jnp.linalg.eigvals,
    "hessenberg": lax.linalg.hessenberg,
    "schur": schur,
    "tridiagonal": tridiagonal,
    "tridiagonal_solve": banded,
    "solve": lambda x: jnp.linalg.solve(x, x[..., :2] + 1),
    "inverse": jnp.linalg.inv,
    "determinant": jnp.linalg.det,
    "triangular_solve": lambda x: lax.linalg.triangular_solve(
        positive(x), x, left_side=True, lower=True
    ),
}
ANY: dict[str, Callable] = {
    "qr": lambda x: qr(x, False),
    "qr_full": lambda x: qr(x, True),
    "qr_pivoted": pivoted,
    "lu": lax.linalg.lu,
    "svd": lambda x: svd(x, False),
    "householder": lambda x: lax.linalg.householder_product(
        x, x[..., 0, : min(x.shape[-2:])] / 4
    ),
    "reflect": reflect,
}


def factorizations(v: Values) -> Iterator[Item]:
    for dtype in ["f32", "f64", *COMPLEX]:
        for batch in ((), (2,)):
            for name, function, shape in (
                *((name, f, (4, 4)) for name, f in SQUARE.items()),
                *((name, f, (5, 3)) for name, f in ANY.items()),
                *((name, f, (3, 5)) for name, f in ANY.items()
                  if name not in ("householder", "qr_full")),
            ):  # fmt: skip
                value = v.make((*batch, *shape), dtype)
                size = "x".join(map(str, value.shape))
                yield (
                    f"lapack_{name}_{size}_{dtype}",
                    functools.partial(lower, function, value),
                    [value],
                )
