"""Writes a program whose operations a GPU's libraries do, as StableHLO.

usage: gpu_libraries.py FILE

Of factorizations that are not unique, as vectors may be reversed, the results
are what they are the factors of.
"""

import functools
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


# Of images and filters: shapes, order of dimensions, strides, padding, the
# dilation of windows, groups.
CONVOLUTIONS = [
    ((4, 17, 17, 8), (3, 3, 8, 16), "NHWC HWIO", (2, 2), "SAME", (1, 1), 1),
    ((4, 18, 18, 8), (3, 3, 8, 16), "NHWC HWIO", (2, 2), "SAME", (1, 1), 1),
    ((2, 28, 28, 3), (7, 7, 3, 16), "NHWC HWIO", (2, 2), "SAME", (1, 1), 1),
    ((4, 9, 9, 16), (1, 1, 16, 32), "NHWC HWIO", (1, 1), "SAME", (1, 1), 1),
    ((4, 16, 9, 9), (32, 16, 1, 1), "NCHW OIHW", (1, 1), "SAME", (1, 1), 1),
    ((4, 6, 5, 8), (6, 1, 8, 16), "NHWC HWIO", (1, 1), "VALID", (1, 1), 1),
    ((4, 9, 9, 16), (1, 1, 16, 32), "NHWC HWIO", (2, 2), "SAME", (1, 1), 1),
    ((4, 12, 10, 8), (3, 3, 8, 8), "NHWC HWIO", (1, 1), "VALID", (2, 2), 1),
    ((4, 12, 10, 16), (3, 3, 4, 16), "NHWC HWIO", (1, 1), "SAME", (1, 1), 4),
    ((4, 8, 12, 10), (16, 8, 3, 3), "NCHW OIHW", (1, 1), "SAME", (1, 1), 1),
    ((4, 20, 8), (5, 8, 16), "NWC WIO", (1,), "SAME", (1,), 1),
    ((2, 8, 9, 7, 8), (3, 3, 3, 8, 16), "NDHWC DHWIO", (1,) * 3, "SAME",
     (1,) * 3, 1),
]  # fmt: skip


def convolve(image, window, parameters):
    _, _, order, strides, padding, dilation, groups = parameters
    image_order, filter_order = order.split()
    return jax.lax.conv_general_dilated(
        image,
        window,
        strides,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=(image_order, filter_order, image_order),
        feature_group_count=groups,
    )


def convolutions(dtype, images, filters):
    for image, window, parameters in zip(images, filters, CONVOLUTIONS):
        result, back = jax.vjp(
            functools.partial(convolve, parameters=parameters),
            image.astype(dtype),
            window.astype(dtype),
        )
        yield result
        yield back(result)


def layer(x, up, bias, down):
    return jax.nn.gelu(x @ up + bias) @ down


def layers(dtype, matrix):
    """Products that take GELU and its gradients; once it is computed again."""
    # Smaller ones are loops of a kernel.
    x = jnp.tile(matrix, (2, 2)).astype(dtype)
    for function in (layer, jax.checkpoint(layer)):
        result, back = jax.vjp(function, x, x, x[0], x)
        yield result
        yield back(result)


def bytes_of(matrix):
    """Products of 8-bit elements: of integers exact, of floats in half
    precision, as tensor cores add them with fewer bits than f32 has."""
    wide = jnp.tile(matrix, (2, 2))
    integers = (wide * 1000).astype(jnp.int8)
    floats = wide.astype(jnp.float8_e4m3fn)
    wider = wide.astype(jnp.float8_e5m2)
    for left, right, dtype in (
        (integers, integers, jnp.int32),
        (floats, floats, jnp.bfloat16),
        (floats, wider, jnp.bfloat16),
        (wider, floats, jnp.float16),
    ):
        yield jax.lax.dot(left, right.T, preferred_element_type=dtype)
        yield jax.lax.dot(left, right, preferred_element_type=dtype)


def program(matrix, images, filters):
    return (
        list(bytes_of(matrix)),
        list(layers(jnp.float32, matrix)),
        list(layers(jnp.bfloat16, matrix)),
        list(transforms(matrix)),
        list(factorizations(matrix)),
        list(convolutions(jnp.float32, images, filters)),
        list(convolutions(jnp.bfloat16, images, filters)),
    )


def main():
    def of(shape):
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    images = [of(image) for image, *_ in CONVOLUTIONS]
    filters = [of(window) for _, window, *_ in CONVOLUTIONS]
    text = jax.jit(program).lower(of((24, 24)), images, filters).as_text()
    with open(sys.argv[1], "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
