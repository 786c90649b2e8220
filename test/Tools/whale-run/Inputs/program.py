"""Writes a program of two ranks without kernels, and tensors for it.

    result0 (f32 [4, 4]) = 2 * arg0 @ arg1: a product on both ranks, then an
                           all-reduce; arg0 is state that it feeds
    result1 (bf16 [3])   = arg2, result2 (i1 [2]) = arg3

Usage: program.py DIRECTORY
"""

import json
import os
import sys

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

directory = sys.argv[1]
os.makedirs(f"{directory}/p.whale", exist_ok=True)


def parameter(name, dtype, shape, **fields):
    whole = [[0] * len(shape), shape]
    return {
        "name": name,
        "label": "",
        "dtype": dtype,
        "shape": shape,
        "view": shape,
        "boxes": [whole, whole],
        "role": "input",
        "batch_dim": None,
        "fed_by": None,
        "donated": False,
        "alias": None,
        **fields,
    }


def buffer(space, where, type):
    return {space: where, "type": type}


manifest = {
    "format": "whale",
    "version": 11,
    "target": "cpu",
    "name": "by hand",
    "ranks": [{"device": i, "class": 0, "kind": "cpu"} for i in range(2)],
    "arguments": [
        parameter(
            "arg0",
            "f32",
            [4, 4],
            role="state",
            donated=True,
            fed_by=0,
            label="w",
        ),
        parameter("arg1", "f32", [4, 4], role="batch", batch_dim=0),
        parameter("arg2", "bf16", [3]),
        parameter("arg3", "i1", [2]),
    ],
    "results": [
        parameter("result0", "f32", [4, 4], alias=0),
        parameter("result1", "bf16", [3]),
        parameter("result2", "i1", [2]),
    ],
    "classes": [
        {
            "ranks": [0, 1],
            "arena_bytes": 64,
            "buffers": [
                buffer("argument", 0, "f32[4,4]"),
                buffer("argument", 1, "f32[4,4]"),
                buffer("argument", 2, "bf16[3]"),
                buffer("argument", 3, "i1[2]"),
                buffer("result", 0, "f32[4,4]"),
                buffer("result", 1, "bf16[3]"),
                buffer("result", 2, "i1[2]"),
                buffer("arena", 0, "f32[4,4]"),
            ],
            "instructions": [
                {
                    "matmul": [0, 1, 7],
                    "batch": [],
                    "m": [4, 4, 4],
                    "n": [4, 1, 1],
                    "k": [4, 1, 4],
                    "flops": 128,
                },
                {
                    "start": 0,
                    "src": [7],
                    "dst": [7],
                },
                {"wait": 0},
                {"copy": [7, 4]},
                {"copy": [2, 5]},
                {"copy": [3, 6]},
            ],
        }
    ],
    "communicators": [[0, 1]],
    "channels": {
        "0": {
            "kind": "all_reduce",
            "participants": [0, 1],
            "communicators": [0],
            "parts": [{"dtype": "f32", "reduction": "sum"}],
        }
    },
    "kernels": None,
    "constants": None,
}


def write(name, **changes):
    os.makedirs(f"{directory}/{name}.whale", exist_ok=True)
    with open(f"{directory}/{name}.whale/manifest.json", "w") as file:
        json.dump({**manifest, **changes}, file)


write("p")
write("newer", version=12)
unfed = json.loads(json.dumps(manifest["arguments"]))
unfed[0]["fed_by"] = None
write("unfed", arguments=unfed)

random = np.random.default_rng(0)
state = random.integers(-2, 3, (4, 4)).astype(np.float32)
batches = random.integers(-2, 3, (2, 4, 4)).astype(np.float32)
rest = {
    "arg2": np.array([1.5, -2, 3], ml_dtypes.bfloat16),
    "arg3": np.array([True, False]),
}
save_file(
    {"arg0": state, "arg1": batches[0], **rest}, f"{directory}/in.safetensors"
)
save_file({"arg0": state, **rest}, f"{directory}/state.safetensors")
save_file({"arg1": batches}, f"{directory}/data.safetensors")
save_file(
    {"arg0": state, "arg1": batches[0], "arg4": state, **rest},
    f"{directory}/surplus.safetensors",
)
save_file(
    {"arg0": state.astype(np.float16), "arg1": batches[0], **rest},
    f"{directory}/dtype.safetensors",
)
save_file(
    {"arg0": state[:2].copy(), "arg1": batches[0], **rest},
    f"{directory}/shape.safetensors",
)
expected = {"one": 2 * state @ batches[0]}
for step in range(3):
    state = 2 * state @ batches[step % 2]
expected["three"] = state
np.savez(f"{directory}/expected.npz", **expected)
