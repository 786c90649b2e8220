"""Writes a program whose operations a GPU's libraries do, as StableHLO.

usage: gpu_libraries.py FILE

Of factorizations that are not unique, as vectors may be reversed, the results
are what they are the factors of.
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular


def transforms(x):
    y = jnp.fft.rfft(x)
    yield jnp.abs(y)
    yield jnp.fft.irfft(y * 2)
    z = jnp.fft.fft2(x + 1j * x.T)
    yield z.real
    yield jnp.fft.ifft2(z).imag


def factorizations(x):
    symmetric = x @ x.T + jnp.eye(x.shape[0])
    lower = jnp.linalg.cholesky(symmetric)
    yield lower
    yield solve_triangular(lower, x, lower=True)
    yield jnp.linalg.solve(symmetric, x)
    q, r = jnp.linalg.qr(x)
    yield q @ r
    values, vectors = jnp.linalg.eigh(symmetric)
    yield values
    yield (vectors * values) @ vectors.T
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    yield s
    yield (u * s) @ v


def convolutions(image, kernel):
    def convolve(image, kernel):
        return jax.lax.conv_general_dilated(
            image,
            kernel,
            (2, 2),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )

    result, back = jax.vjp(convolve, image, kernel)
    yield result
    yield back(result)


def program(matrix, image, kernel):
    half = jnp.bfloat16
    return (
        list(transforms(matrix)),
        list(factorizations(matrix)),
        list(convolutions(image, kernel)),
        list(convolutions(image.astype(half), kernel.astype(half))),
    )


def main():
    shapes = [(24, 24), (4, 17, 17, 8), (3, 3, 8, 16)]
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    text = jax.jit(program).lower(*arguments).as_text()
    with open(sys.argv[1], "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
