"""How long does the planner take for many devices, and how large is a program?

The time of ``whale-compile --target=none``, the size of what it writes, and the
memory that the plan expects of the device that needs most over what it needs,
and the seconds of a step that it expects over those that ``whale-sim`` finds,
for the models of ``plan_models.py`` on hundreds of devices, under strategies
from plain data parallelism to nests of pipelines; and for more and more
micro-batches.

``benchmarks/plan.py [--only NAME] [--keep FOLDER]`` prints a table in Markdown,
and fails where one misses its limits.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import plan_models

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEGABYTE = 1e6
# The largest program, and the largest file of one: what a process reads.
PROGRAM_LIMIT, FILE_LIMIT = 8 * MEGABYTE, 1.5 * MEGABYTE
# By how much the plan may be wrong about a device's memory.
MEMORY_TOLERANCE = 0.1
# And about the seconds of a step.
TIME_TOLERANCE = 0.1


def make_kind(tflops: float, gibibytes: int, bandwidth: float) -> Any:
    return {
        "flops": {"f32": tflops * 1e12},
        "memory_bytes": gibibytes << 30,
        "memory_bandwidth": bandwidth,
    }


KINDS = {
    "V100-SXM2-32GB": make_kind(15.7, 32, 9e11),
    "P100-PCIe-16GB": make_kind(9.3, 16, 7.3e11),
    "A100-SXM4-80GB": make_kind(19.5, 80, 2e12),
}


def make_cluster(**nodes: int) -> Any:
    """Nodes of eight devices: how many of each kind, by its first word."""

    def name(word: str) -> str:
        return next(kind for kind in KINDS if kind.startswith(word))

    link = {"bandwidth": 1.5e11, "latency": 3e-6}
    return {
        "kinds": KINDS,
        "nodes": [
            {
                "count": count,
                "devices": [{"kind": name(word), "count": 8}],
                "link": link,
            }
            for word, count in nodes.items()
        ],
        "network": {"bandwidth": 6.25e9, "latency": 1e-5},
    }


MIXED = make_cluster(V100=32, P100=16, A100=16)


@dataclasses.dataclass(frozen=True)
class Case:
    """A model under a strategy on a cluster.

    `limit` is how many seconds it may take, `own` names another case and how
    many times as long as that one.
    """

    name: str
    config: dict[str, Any]
    model: Callable[..., plan_models.Step] = plan_models.gpt
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    cluster: Any = dataclasses.field(default_factory=lambda: MIXED)
    default: Any = None
    limit: float = 4.0
    own: tuple[str, float] | None = None


def stages(count: int, devices: int) -> dict[str, Any]:
    """As many scopes of `replicate`."""
    return {"scopes": (functools.partial(wh.replicate, devices),) * count}


def splits(count: int, devices: int) -> dict[str, Any]:
    """The same of `split`."""
    return {"scopes": (functools.partial(wh.split, devices),) * count}


ONE_F_ONE_B = {"pipeline.strategy": "PreferBackward"}

CASES = (
    Case("replicate(512)", {"num_micro_batch": 8}, default=wh.replicate()),
    Case(
        "rotating shares",
        {"num_micro_batch": 4},
        default=wh.replicate(),
    ),
    Case(
        "num_task_graph = 8",
        {"num_micro_batch": 32, "num_task_graph": 8},
        default=wh.replicate(),
    ),
    Case(
        "1F1B of 8 stages",
        {"num_micro_batch": 32} | ONE_F_ONE_B,
        options=stages(8, 8),
    ),
    Case(
        "zero bubble of 8 stages",
        {"num_micro_batch": 32, "pipeline.strategy": "zero-bubble"},
        options=stages(8, 8),
    ),
    Case(
        "1F1B of 16 stages",
        {"num_micro_batch": 64} | ONE_F_ONE_B,
        options=stages(16, 8),
    ),
    Case(
        "replicate(8) and split(8) by turns",
        {"num_micro_batch": 8},
        options={
            "scopes": (
                functools.partial(wh.replicate, 8),
                functools.partial(wh.split, 8),
            )
            * 4
        },
    ),
    Case("split(64) twice", {"num_micro_batch": 8}, options=splits(2, 64)),
    Case(
        "split(256) twice",
        {"num_micro_batch": 8},
        options=splits(2, 256),
        limit=8.0,
    ),
    Case(
        "split(512)",
        {"num_micro_batch": 8},
        options=splits(1, 512),
        limit=8.0,
    ),
    Case(
        "decoder of 48 layers, num_task_graph = 8",
        {"num_micro_batch": 35, "num_task_graph": 8},
        plan_models.decoder,
        cluster=make_cluster(V100=32),
        default=wh.replicate(),
        limit=6.0,
    ),
    Case(
        "experts in split(512)",
        {},
        plan_models.experts,
        cluster=make_cluster(V100=64),
        default=wh.replicate(512),
    ),
) + tuple(
    Case(
        f"1F1B of 8 stages, {count} micro-batches",
        {"num_micro_batch": count} | ONE_F_ONE_B,
        options=stages(8, 8),
        own=("1F1B of 8 stages, 8 micro-batches", 1.3) if count > 8 else None,
    )
    for count in (8, 64, 512)
)


def lower(case: Case) -> str:
    """The annotated step as text."""
    wh.init(wh.Config(case.config))
    if case.default:
        wh.set_default_strategy(case.default)
    step = case.model(**case.options)
    return (
        wh.jit(
            step.function,
            cluster=case.cluster,
            batch_argnums=2,
            donate_argnums=(0, 1),
        )
        .lower(*step.arguments)
        .as_text()
    )


@dataclasses.dataclass(frozen=True)
class Measured:
    """What compiling a case took, and gave."""

    seconds: float
    sizes: list[int]
    expected: int
    needed: int
    # Of a step, as planned and as simulated.
    planned: float
    simulated: float


def measure(case: Case, folder: pathlib.Path, number: int) -> Measured:
    """Compiles a case; its files stay in the folder."""
    text, cluster, program = (
        folder / f"{number}.{suffix}" for suffix in ("mlir", "json", "whale")
    )
    text.write_text(lower(case))
    cluster.write_text(json.dumps(case.cluster))
    begin = time.perf_counter()
    result = subprocess.run(
        [
            ROOT / "build" / "bin" / "whale-compile",
            text,
            f"--cluster={cluster}",
            "--target=none",
            "--explain",
            "-o",
            program,
        ],
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - begin
    if result.returncode != 0:
        sys.exit(result.stderr)
    memory = re.search(
        r"memory: device \d+ needs most, (\d+) bytes, (\d+) were expected",
        result.stdout + result.stderr,
    )
    assert memory, "whale-compile --explain tells of memory in another way"
    sizes = [path.stat().st_size for path in program.rglob("*")]
    simulation = subprocess.run(
        [ROOT / "build" / "bin" / "whale-sim", program, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    manifest = json.loads((program / "manifest.json").read_text())
    return Measured(
        seconds,
        sizes,
        int(memory[2]),
        int(memory[1]),
        manifest["plan"]["step_time_s"],
        json.loads(simulation.stdout)["step_time_s"],
    )


def row_of(case: Case, found: Measured, limit: float) -> tuple[str, bool]:
    """The row of the table, and whether all limits are kept."""
    ratio = found.expected / found.needed
    time_ratio = found.planned / found.simulated
    kept = (
        found.seconds <= limit
        and sum(found.sizes) <= PROGRAM_LIMIT
        and max(found.sizes) <= FILE_LIMIT
        and abs(ratio - 1) <= MEMORY_TOLERANCE
        and abs(time_ratio - 1) <= TIME_TOLERANCE
    )
    cells = (
        case.name,
        case.config.get("num_micro_batch", 1),
        f"{found.seconds:.1f}",
        f"{limit:.1f}",
        f"{sum(found.sizes) / MEGABYTE:.1f}",
        f"{max(found.sizes) / MEGABYTE:.1f}",
        f"{ratio:.3f}",
        f"{time_ratio:.3f}",
        "yes" if kept else "no",
    )
    return "| " + " | ".join(map(str, cells)) + " |", kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="where to leave what is compiled")
    options = parser.parse_args()
    missed = []
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(
            "| strategy | micro-batches | seconds | at most | MB | largest "
            "file, MB | memory, expected / needed | seconds, planned / "
            "simulated | met |\n"
            "|---|---|---|---|---|---|---|---|---|"
        )
        for number, case in enumerate(CASES):
            if options.only not in case.name:
                continue
            found = measure(case, folder, number)
            seconds[case.name] = found.seconds
            limit = case.limit
            if case.own and case.own[0] in seconds:
                limit = min(limit, case.own[1] * seconds[case.own[0]])
            row, kept = row_of(case, found, limit)
            print(row, flush=True)
            if not kept:
                missed.append(case.name)
    if missed:
        sys.exit(f"limits are missed by {', '.join(missed)}")


if __name__ == "__main__":
    main()
