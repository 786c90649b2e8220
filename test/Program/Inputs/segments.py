"""Writes the inputs of segments.mlir, or checks its results."""

import sys

import numpy as np
import safetensors.numpy


def write(inputs):
    rng = np.random.default_rng(0)
    tensors = {
        "arg0": rng.standard_normal((4, 4), np.float32),
        "arg1": rng.standard_normal((6, 4), np.float32),
    }
    safetensors.numpy.save_file(tensors, inputs)


def check(inputs, outputs):
    given = safetensors.numpy.load_file(inputs)
    parts = np.split(given["arg1"], 3)
    halves = [np.tanh(x @ given["arg0"]) / 2 for x in parts]
    found = safetensors.numpy.load_file(outputs)
    np.testing.assert_allclose(
        found["result0"],
        sum(x.T @ half for x, half in zip(parts, halves)),
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        found["result1"], halves[0] + halves[2], rtol=1e-5, atol=1e-6
    )


{"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
