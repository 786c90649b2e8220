"""Training steps of small models on the CUDA device of a test machine.

usage: cuda_steps.py [MODEL...]

The kernels are those of gpu_steps.py; here the device's own code runs them: its
streams, events, products, transfers and graphs. What a step gives must differ
from what it gives on the processor by at most 1e-4 of each tensor's magnitude
(2e-2 where the model computes in bf16), and have the same bits in each of
several steps of the same arguments, of which the later ones are graphs where
there is one rank. Several ranks on GPUs run in as many processes, too.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Any

import gpu_steps
import jax
import numpy as np
import safetensors.numpy
from cases import Tensor
from run import compiled, run_step

from whale import native
from whale.dtypes import element_name

models = gpu_steps.models

# Two GPUs of different architectures and a processor, for equal shares.
MIXED = json.dumps(
    {
        "kinds": {
            name: {
                "flops": {"f32": 1e11},
                "memory_bytes": 1e10,
                "memory_bandwidth": 1e10,
            }
            | ({"arch": name} if name != "cpu" else {})
            for name in ("sm_80", "sm_90", "cpu")
        },
        "nodes": [
            {"devices": [{"kind": name} for name in ("sm_80", "sm_90", "cpu")]}
        ],
    }
)
# Name of the model: the cluster or how many ranks run it, and the model; those
# with whale's annotations are sharded.
MODELS: dict[str, tuple[str, Any]] = {
    # As many keys as cuDNN has gradients for.
    "gpt-bf16": (
        "1",
        lambda: models.gpt(
            False, **(gpu_steps.GPT | {"context": 128}), dtype="bfloat16"
        ),
    ),
    "lstm": ("1", gpu_steps.MODELS["lstm"]),
    "convnet": ("1", gpu_steps.MODELS["convnet"]),
    "moe": ("1", gpu_steps.MODELS["moe"]),
    "resnet-bf16": ("1", gpu_steps.MODELS["resnet-bf16"]),
    "experts-bf16": ("1", gpu_steps.MODELS["experts-bf16"]),
    "moe-sharded": ("4", lambda: models.moe(True, 4, 16, 16, 4, 32)),
    "classifier-sharded": ("2", lambda: models.classifier(True, 4, 12, 1000)),
    "gpt-replicated": ("2", lambda: models.gpt(True, **gpu_steps.GPT)),
    "gpt-mixed": (
        MIXED,
        lambda: models.gpt(True, **(gpu_steps.GPT | {"batch": 6})),
    ),
    "lstm-replicated": ("2", lambda: models.lstm(True, 4, 6, 12, 16, 10)),
    "convnet-replicated": ("4", lambda: models.convnet(True, 4, 8)),
    "rope-replicated": (
        "2",
        lambda: models.rope_transformer(
            True, 1, 32, 4, 2, 48, 64, batch=2, context=16
        ),
    ),
}
# What they add is in others, too.
ONLY_FULL = {
    "convnet",
    "lstm",
    "resnet-bf16",
    "experts-bf16",
    "classifier-sharded",
    "gpt-replicated",
    "lstm-replicated",
    "convnet-replicated",
    "rope-replicated",
}
STEPS = 4
VARIABLE = "WHALE_TEST_CUDA"
# One of the machine's GPUs is what the mixed cluster names.
CAPABILITIES = "90,90,90,90,80,90,90,90"


def run(
    path: str, arguments: Sequence[np.ndarray], types: list[Tensor], steps: int
) -> list[list[np.ndarray]]:
    """The results of several steps, each of the same arguments."""
    program = native.extension().Program(path)
    return [run_step(program, arguments, types)[0] for _ in range(steps)]


def run_processes(
    path: str, arguments: Sequence[np.ndarray], count: int
) -> list[np.ndarray]:
    """The results of a step of ranks in so many processes."""
    folder = pathlib.Path(path).parent
    tensors = {f"arg{i}": value for i, value in enumerate(arguments)}
    safetensors.numpy.save_file(tensors, folder / "in.safetensors")
    subprocess.run(
        [
            *(gpu_steps.ROOT / "build/bin/whale-run", path),
            f"--inputs={folder}/in.safetensors",
            f"--outputs={folder}/out.safetensors",
            *(f"--nprocs={count}", "--transport=nccl"),
        ],
        check=True,
        env=os.environ | {f"{VARIABLE}_DIRECTORY": str(folder / "machine")},
    )
    found = safetensors.numpy.load_file(folder / "out.safetensors")
    return [found[f"result{i}"] for i in range(len(found))]


def check(name: str, seed: int) -> list[str]:
    """What is wrong with the steps of a model."""
    ranks, make = MODELS[name]
    lowered, arguments = gpu_steps.lower(make())
    text = lowered.as_text(debug_info=True)
    flat = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    types = [
        Tensor(element_name(np.dtype(leaf.dtype)), leaf.shape)
        for leaf in jax.tree.leaves(lowered.out_info)
    ]
    with compiled(text, ranks) as path:
        (expected,) = run(path, flat, types, 1)
    os.environ[VARIABLE] = str(seed)
    try:
        with compiled(text, ranks, "cuda-test") as path:
            found = run(path, flat, types, STEPS)
            processes = (
                [run_processes(path, flat, int(ranks))]
                if ranks.isdigit() and int(ranks) > 1
                else []
            )
    finally:
        del os.environ[VARIABLE]
    problems = gpu_steps.compare(name, expected, found, "differs between steps")
    for results in processes:
        problems += gpu_steps.compare(
            f"{name} in processes", expected, [results], ""
        )
    return problems


if __name__ == "__main__":
    os.environ[f"{VARIABLE}_CAPABILITIES"] = CAPABILITIES
    gpu_steps.run(MODELS, ONLY_FULL, check)
