"""Times training steps by JAX, as gpu-check asks.

    gpu_jax.py NAME INPUTS ATTENTION

Compiles and runs a step of a model of gpu_models.py and says so; then, for each
number of steps that it reads, it says the seconds that so many take, and the
most memory so far. State is donated, and each step gets what the last one
gives. The state is that of the file INPUTS, as for Whale.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from typing import Any

# Whale needs memory beside it.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import gpu_cases
import gpu_models
import jax
import numpy as np


def say(**what: Any) -> None:
    """A line for gpu-check."""
    print(json.dumps(what), flush=True)


def arguments(path: pathlib.Path, model: gpu_models.models.Workload) -> Any:
    """The parameters, the optimizer's state and the mini-batch of a file."""
    types = (*gpu_models.abstract_state(model), model.batch)
    leaves, tree = jax.tree.flatten(types)
    tensors = gpu_cases.read(path)
    arrays = [
        jax.device_put(
            np.frombuffer(tensors[f"arg{number}"][2], leaf.dtype).reshape(
                leaf.shape
            )
        )
        for number, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(tree, arrays)


def main() -> None:
    """Answers until there is no more input."""
    name, path, attention = sys.argv[1:]
    timed = (gpu_models.TIMED | gpu_models.SMALL)[name]
    if timed.products == "f32":
        # No TF32, as in Whale.
        jax.config.update("jax_default_matmul_precision", "highest")
    model = gpu_models.workload(timed)
    if attention != "default":
        gpu_models.use_attention(attention)
    params, state, batch = arguments(pathlib.Path(path), model)
    step = jax.jit(model.train_step(), donate_argnums=(0, 1))
    begin = time.perf_counter()
    params, state, loss = step(params, state, batch)
    loss = float(loss)
    seconds = time.perf_counter() - begin
    device = jax.devices()[0].device_kind
    say(version=jax.__version__, device=device, loss=loss, seconds=seconds)
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            params, state, loss = step(params, state, batch)
        jax.block_until_ready((params, state, loss))
        seconds = time.perf_counter() - begin
        memory = jax.devices()[0].memory_stats() or {}
        say(seconds=seconds, bytes=memory.get("peak_bytes_in_use"))


if __name__ == "__main__":
    main()
