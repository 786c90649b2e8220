"""How long does the planner take for many devices?

The time of ``whale-compile --target=none`` for a GPT of 24 layers on 512 mixed
devices, under strategies from plain data parallelism to nests of pipelines.

``benchmarks/plan.py [--only NAME] [--keep FOLDER]`` prints a table in Markdown,
and fails where one takes more than ten seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import optax

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "gpt"))
import model  # noqa: E402

CONFIG = model.Config(
    vocabulary=32000, layers=24, width=1024, heads=16, context=128
)
BATCH = 2048


def make_kind(tflops: float, gibibytes: int, bandwidth: float) -> Any:
    return {
        "flops": {"f32": tflops * 1e12},
        "memory_bytes": gibibytes << 30,
        "memory_bandwidth": bandwidth,
    }


def make_cluster() -> Any:
    """Nodes of eight: 256 V100, 128 P100 and 128 A100."""

    def nodes(kind: str, count: int) -> Any:
        devices = [{"kind": kind, "count": 8}]
        link = {"bandwidth": 1.5e11, "latency": 3e-6}
        return {"count": count, "devices": devices, "link": link}

    return {
        "kinds": {
            "V100-SXM2-32GB": make_kind(15.7, 32, 9e11),
            "P100-PCIe-16GB": make_kind(9.3, 16, 7.3e11),
            "A100-SXM4-80GB": make_kind(19.5, 80, 2e12),
        },
        "nodes": [
            nodes("V100-SXM2-32GB", 32),
            nodes("P100-PCIe-16GB", 16),
            nodes("A100-SXM4-80GB", 16),
        ],
        "network": {"bandwidth": 6.25e9, "latency": 1e-5},
    }


@dataclasses.dataclass(frozen=True)
class Case:
    """A strategy: the scope of each group of layers, or a default one."""

    name: str
    config: dict[str, Any]
    scopes: tuple[Callable[[], Any], ...] = ()


CASES = (
    Case("replicate(512)", {"num_micro_batch": 8}),
    Case("num_task_graph = 8", {"num_micro_batch": 32, "num_task_graph": 8}),
    Case(
        "1F1B of 8 stages",
        {"num_micro_batch": 32, "pipeline.strategy": "PreferBackward"},
        (functools.partial(wh.replicate, 8),) * 8,
    ),
    Case(
        "replicate(8) and split(8) by turns",
        {"num_micro_batch": 8},
        (functools.partial(wh.replicate, 8), functools.partial(wh.split, 8))
        * 4,
    ),
    Case(
        "split(64) twice",
        {"num_micro_batch": 8},
        (functools.partial(wh.split, 64),) * 2,
    ),
    Case(
        "1F1B of 16 stages",
        {"num_micro_batch": 64, "pipeline.strategy": "PreferBackward"},
        (functools.partial(wh.replicate, 8),) * 16,
    ),
)


def lower(case: Case) -> str:
    """The annotated step as text."""
    wh.init(wh.Config(case.config))
    if not case.scopes:
        wh.set_default_strategy(wh.replicate())

    def loss(params: Any, tokens: Any) -> Any:
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        groups = max(1, len(case.scopes))
        ends = [CONFIG.layers * g // groups for g in range(groups + 1)]
        for group in range(groups):
            scope = (
                case.scopes[group](name=f"layers{group}")
                if case.scopes
                else contextlib.nullcontext()
            )
            with scope:
                if group == 0:
                    x = params["tokens"][inputs] + params["positions"]
                for block in params["blocks"][ends[group] : ends[group + 1]]:
                    x = model._block(block, x)
                if group == groups - 1:
                    x = model._norm(params["norm"], x)
                    logits = x @ params["head"]
                    value = (
                        optax.softmax_cross_entropy_with_integer_labels(
                            logits, targets
                        )
                    ).mean()
        return value

    optimizer = optax.adam(1e-3)

    def train_step(params: Any, state: Any, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.eval_shape(
        functools.partial(model.init_params, CONFIG), jax.random.key(0)
    )
    state = jax.eval_shape(optimizer.init, params)
    tokens = jax.ShapeDtypeStruct((BATCH, CONFIG.context + 1), jnp.int32)
    step = wh.jit(
        train_step,
        cluster=make_cluster(),
        batch_argnums=2,
        donate_argnums=(0, 1),
    )
    return step.lower(params, state, tokens).as_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="where to leave what is compiled")
    parser.add_argument("--limit", type=float, default=10, help="in seconds")
    options = parser.parse_args()
    late = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        cluster = folder / "cluster.json"
        cluster.write_text(json.dumps(make_cluster()))
        print("| strategy | micro-batches | seconds |\n|---|---|---|")
        for number, case in enumerate(CASES):
            if options.only not in case.name:
                continue
            text = folder / f"{number}.mlir"
            text.write_text(lower(case))
            begin = time.perf_counter()
            subprocess.run(
                [
                    ROOT / "build" / "bin" / "whale-compile",
                    text,
                    f"--cluster={cluster}",
                    "--target=none",
                    "-o",
                    folder / f"{number}.whale",
                ],
                check=True,
            )
            seconds = time.perf_counter() - begin
            if seconds > options.limit:
                late.append(case.name)
            micro_batches = case.config["num_micro_batch"]
            print(
                f"| {case.name} | {micro_batches} | {seconds:.1f} |", flush=True
            )
    if late:
        sys.exit(f"more than {options.limit:g} s: {', '.join(late)}")


if __name__ == "__main__":
    main()
