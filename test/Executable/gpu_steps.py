"""A training step of each family of models on an emulated GPU.

usage: gpu_steps.py [MODEL...]

The models are the small ones of the benchmarks; without WHALE_TEST_FULL in the
environment one of each family. What a step gives must differ
from what it gives on the processor by at most 1e-4 of each tensor's magnitude
(2e-2 where the model computes in bf16), and must have the same bits in whatever
order the threads of a block run.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
import time
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
import optax

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("python", "benchmarks", "test/Conformance"):
    sys.path.insert(0, str(ROOT / folder))

import models as models_of_benchmarks  # noqa: E402
from orders import run_orders  # noqa: E402

# This folder has a module of that name, too.
models: Any = models_of_benchmarks
GPT = {"layers": 1, "width": 32, "heads": 2, "batch": 2, "context": 16}
MODELS: dict[str, Any] = {
    "gpt": lambda: models.gpt(False, **GPT),
    "gpt-bf16": lambda: models.gpt(False, **GPT, dtype="bfloat16"),
    "lstm": lambda: models.lstm(False, 4, 6, 12, 16, 10),
    "convnet": lambda: models.convnet(False, 4, 8),
    "moe": lambda: models.moe(False, 2, 16, 16, 4, 32),
    "rope": lambda: models.rope_transformer(
        False, 1, 32, 4, 2, 48, 64, batch=2, context=16
    ),
    "resnet-bf16": lambda: models.resnet(
        False, (1, 1), 4, batch=2, image=16, classes=10, dtype="bfloat16"
    ),
    "experts-bf16": lambda: models.moe_transformer(
        *(False, 1, 32, 2, 4, 32, 50),
        batch=2,
        context=16,
        dtype="bfloat16",
    ),
    "classifier": lambda: models.classifier(False, 4, 12, 1000),
}
# Their families have another model that has all that they have.
ONLY_FULL = {"gpt", "rope", "convnet", "moe", "classifier"}
Results = Sequence[np.ndarray]


def lower(
    workload: Any, is_abstract: bool = False
) -> tuple[jax.stages.Lowered, tuple[Any, ...]]:
    """The step of a model, and its arguments: if they are abstract, of the
    parameters and the optimizer's state only their types."""
    # Where a gradient is all rounding, Adam makes a step of its sign.
    optimizer = optax.sgd(0.1, momentum=0.9)
    workload = dataclasses.replace(workload, optimizer=optimizer)

    # Their own initial numbers would have to be computed by compiled programs.
    random = np.random.default_rng(0)

    def make(function: Callable[..., Any], argument: Any) -> Any:
        types = jax.eval_shape(function, argument)
        if is_abstract:
            return types
        return jax.tree.map(
            lambda leaf: random.normal(0, 0.1, leaf.shape).astype(leaf.dtype),
            types,
        )

    params = make(workload.init, jax.random.key(0))
    arguments = (params, make(optimizer.init, params), workload.batch)
    step = jax.jit(workload.train_step(), keep_unused=True)
    return step.lower(*arguments), arguments


def compare(
    name: str, expected: Results, runs: Sequence[Results], fault: str
) -> list[str]:
    """What is wrong with the results of several runs of a model's step.

    Args:
        expected: those of the processor.
        fault: what is wrong with a result whose bits differ between runs.
    """
    problems = []
    tolerance = 2e-2 if name.endswith("bf16") else 1e-4
    for number, (wanted, *found) in enumerate(zip(expected, *runs)):
        if len({array.tobytes() for array in found}) > 1:
            problems.append(f"{name}: result {number} {fault}")
        a = np.asarray(wanted, np.float64)
        b = np.asarray(found[0], np.float64)
        apart = np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)
        if not apart <= tolerance:
            problems.append(f"{name}: result {number} is {apart:.2g} apart")
    return problems


def check(name: str, number: int) -> list[str]:
    """What is wrong with the step of a model."""
    del number
    lowered, arguments = lower(MODELS[name]())
    expected, runs = run_orders(lowered, arguments)
    return compare(name, expected, runs, "depends on the order")


def run(
    models: Iterable[str],
    only_full: Container[str],
    check: Callable[[str, int], list[str]],
) -> None:
    """Checks the models of the command line, else the usual ones or all; ends
    the program.

    Args:
        check: gets a model and its number, and says what is wrong.
    """
    is_full = "WHALE_TEST_FULL" in os.environ
    usual = [name for name in models if is_full or name not in only_full]
    problems = []
    for number, name in enumerate(sys.argv[1:] or usual):
        begin = time.monotonic()
        found = check(name, number)
        problems += found
        seconds = time.monotonic() - begin
        print(f"{name}: {len(found)} wrong, {seconds:.1f} s", flush=True)
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    run(MODELS, ONLY_FULL, check)
