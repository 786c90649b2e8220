"""Compares the results of program.py's program: check.py DIRECTORY OUT KEY."""

import sys

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file

directory, out, key = sys.argv[1:]
results = load_file(out)
assert sorted(results) == ["result0", "result1", "result2"]
np.testing.assert_array_equal(
    results["result0"], np.load(f"{directory}/expected.npz")[key]
)
assert results["result1"].dtype == ml_dtypes.bfloat16
np.testing.assert_array_equal(
    results["result1"].astype(np.float32), [1.5, -2, 3]
)
np.testing.assert_array_equal(results["result2"], [True, False])
