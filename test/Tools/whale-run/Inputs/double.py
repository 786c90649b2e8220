"""double.py IN [OUT]: writes numbers, or checks that OUT has them doubled."""

import sys

import numpy as np
from safetensors.numpy import load_file, save_file

if len(sys.argv) == 2:
    save_file({"arg0": np.arange(4, dtype=np.float32)}, sys.argv[1])
else:
    given = load_file(sys.argv[1])["arg0"]
    found = load_file(sys.argv[2])["result0"]
    np.testing.assert_array_equal(found, 2 * given)
