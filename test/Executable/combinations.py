#!/usr/bin/env python
"""Random combinations of strategies, devices and micro-batches against
`jax.jit`.

    combinations.py [--count N] [--seed S] [--filter PART] [--only INDEX]

Each combination is a model of `staged_models.py`, with its sections in scopes,
on a cluster of 1 to 8 ranks. Loss, parameters and optimizer state after one
step and after two must be those of `jax.jit`, the bits of the first step the
same when it is run again. What the rules of devices, micro-batches and
schedules forbid must be an error with a location, and nothing else may be one.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import itertools
import os
import random
import re
import subprocess
import sys
import threading
import traceback
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import late_devices
import numpy as np
import optax
import relaunch
import staged_models

import whale as wh

TOLERANCE = 1e-4
OPTIMIZERS = {
    "adam": lambda: optax.adam(1e-2, eps=1e-5),
    "sgd": lambda: optax.sgd(0.1, momentum=0.9),
}
SCHEDULES = (
    "gpipe",
    "1f1b",
    "backward-optimizer",
    "interleaved",
    "zero-bubble",
    "PreferForward",
    "PreferBackward",
    "PreferBackwardOptimizer",
)
# A scope: its kind, number of devices (None: all) and name.
ScopeSpec = tuple[str, int | None, str | None]


@dataclasses.dataclass
class Combination:
    """One case, in plain values."""

    model: str
    batch: int
    optimizer: str
    ranks: int
    # One of 1 for each rank, and whether the ranks are in nodes of two.
    slowdowns: list[int]
    nodes: bool
    config: dict[str, Any]
    default: ScopeSpec | None
    # For each section the scopes around it, outermost first.
    sections: list[list[ScopeSpec]]
    # The old primitives: virtual devices, micro-batches.
    cluster: list[list[int]] | None = None
    pipeline: int | None = None

    @property
    def micro_batches(self) -> int:
        return self.pipeline or self.config.get("num_micro_batch", 1)

    def __str__(self) -> str:
        scopes = [
            ">".join(f"{k}({'' if n is None else n}){m or ''}" for k, n, m in s)
            for s in self.sections
        ]
        speeds = "" if set(self.slowdowns) == {1} else f" {self.slowdowns}"
        own = f" cluster {self.cluster}" if self.cluster else ""
        default = "" if not self.default else f" default {self.default}"
        return (
            f"{self.model}/{self.optimizer} batch {self.batch} on {self.ranks}"
            f"{speeds}{' in pairs' if self.nodes else ''}{own} M="
            f"{self.micro_batches} {self.config}{default} [{', '.join(scopes)}]"
        )


# --------------------------------------------------------------------------- #
# What a combination may be
# --------------------------------------------------------------------------- #


def cut(rng: random.Random, sections: int, pieces: int) -> list[int]:
    """The piece of each section: `pieces` contiguous ones."""
    ends = sorted(rng.sample(range(1, sections), pieces - 1))
    return [sum(i >= end for end in ends) for i in range(sections)]


def nest_in(section: list[ScopeSpec], scope: ScopeSpec) -> None:
    """Adds a scope to those around a section; in a split there can be none."""
    if all(kind != "split" for kind, _, _ in section):
        section.append(scope)


def pipeline(rng: random.Random, case: Combination, sections: int) -> None:
    """Stages of one kind or of several, perhaps with another scope inside."""
    count = rng.randint(2, min(4, sections))
    piece = cut(rng, sections, count)
    if rng.random() < 0.4:
        stages = [("replicate", 1)] * count
    else:
        kinds = ["replicate", "replicate", "split"]
        stages = [
            (rng.choice(kinds), rng.choice([1, 1, 2, 2, 3]))
            for _ in range(count)
        ]
    scopes = [(*stage, f"stage{i}") for i, stage in enumerate(stages)]
    case.sections = [[scopes[i]] for i in piece]
    if rng.random() < 0.2:
        inner = rng.randrange(sections)
        nest_in(
            case.sections[inner],
            (rng.choice(["replicate", "split"]), rng.choice([1, 2]), "inner"),
        )
    size = sum(n or 1 for _, n, _ in requests(case))
    if rng.random() < 0.8 and size <= 8:
        case.ranks = size * rng.randint(1, 8 // size)
        if rng.random() < 0.15:
            case.ranks = rng.randint(size, 8)
            case.config["cluster.uneven_replicas"] = True


def nest(rng: random.Random, case: Combination, sections: int) -> None:
    """A default strategy, and some sections in scopes."""
    most = case.ranks

    def strategy(name: str | None) -> ScopeSpec:
        count = rng.choice([None, None, most, 1, max(most // 2, 1), 2])
        return rng.choice(["replicate", "split"]), count, name

    if rng.random() < 0.8:
        case.default = strategy(None)
    named = [strategy(name) for name in "ab"]
    for section in case.sections:
        for chance in (0.5, 0.15):
            if rng.random() < chance:
                nest_in(
                    section,
                    rng.choice(named) if rng.random() < 0.4 else strategy(None),
                )


def automatic(rng: random.Random, case: Combination, sections: int) -> None:
    """Stages that the compiler cuts."""
    count = rng.randint(1, 4)
    case.config["num_task_graph"] = count
    if rng.random() < 0.5:
        kind = rng.choice(["replicate", "replicate", "split"])
        case.default = (kind, rng.choice([1, 1, 2]), None)
        size = count * (case.default[1] or 1)
        if rng.random() < 0.8 and size <= 8:
            case.ranks = size * rng.randint(1, 8 // size)


def primitives(rng: random.Random, case: Combination, sections: int) -> None:
    """Whale's first interface: own virtual devices, stages and pipelines."""
    count = rng.randint(1, min(4, sections))
    piece = cut(rng, sections, count) if count > 1 else [0] * sections
    kinds = [rng.choice(["stage", "stage", "replica", "split"]) for _ in piece]
    scopes = [(kinds[i], None, f"stage{i}") for i in range(count)]
    case.sections = [[scopes[i]] for i in piece]
    case.pipeline = case.config.pop("num_micro_batch", 1)
    devices = list(range(case.ranks))
    rng.shuffle(devices)
    lists = count * rng.choice([1, 1, 2]) + (rng.random() < 0.1)
    if lists <= case.ranks and rng.random() < 0.9:
        ends = sorted(rng.sample(range(1, case.ranks), lists - 1))
        case.cluster = [
            sorted(devices[a:b]) for a, b in zip([0, *ends], [*ends, None])
        ]


def draw(seed: int) -> Combination:
    """The combination of a seed."""
    rng = random.Random(seed)
    model = rng.choice(list(staged_models.MODELS))
    sections = staged_models.MODELS[model][2]
    case = Combination(
        model=model,
        batch=rng.choice([4, 6, 8, 8, 12]),
        optimizer=rng.choice(list(OPTIMIZERS)),
        ranks=rng.randint(1, 8),
        slowdowns=[],
        nodes=rng.random() < 0.2,
        config={},
        default=None,
        sections=[[] for _ in range(sections)],
    )
    if rng.random() < 0.75:
        case.config["num_micro_batch"] = rng.randint(1, 8)
    style = rng.choice([pipeline, pipeline, nest, automatic, primitives])
    style(rng, case, sections)
    if rng.random() < 0.4 and style is not nest:
        case.config["pipeline.strategy"] = rng.choice(SCHEDULES)
    slow = rng.random() < 0.4
    case.slowdowns = [
        rng.choice([1, 1, 2, 3]) if slow else 1 for _ in range(case.ranks)
    ]
    return case


# --------------------------------------------------------------------------- #
# Which combinations are errors
# --------------------------------------------------------------------------- #


def task_graphs(case: Combination) -> list[tuple[Any, ScopeSpec]]:
    """The TaskGraph of each section that has one, with its scope."""
    result: list[tuple[Any, ScopeSpec]] = []
    for i, scopes in enumerate(case.sections):
        if scopes:
            result.append((scopes[-1][2] or i, scopes[-1]))
        elif case.default:
            result.append(("default", case.default))
    return result


def requests(case: Combination) -> list[ScopeSpec]:
    """The TaskGraphs in the order of their first use."""
    return list(dict(reversed(task_graphs(case)[::-1])).values())


def wanted(case: Combination) -> list[int]:
    """The number of devices that each TaskGraph asks for."""
    if count := case.config.get("num_task_graph"):
        if case.default and case.default[1]:
            return [case.default[1]] * count
        even = [
            case.ranks // count + (i < case.ranks % count) for i in range(count)
        ]
        return [max(n, 1) for n in even]
    return [
        (1 if kind == "stage" else case.ranks) if n is None else n
        for kind, n, _ in requests(case)
    ]


def device_lists(case: Combination) -> list[set[int]]:
    """The devices of each TaskGraph, in the first replica."""
    wants = wanted(case)
    if case.cluster:
        own = case.cluster
        return [set(own[i % len(own)]) for i in range(len(wants))]
    size = group_size(case)
    ends = list(itertools.accumulate(wants))
    return [
        {device % size for device in range(end - want, end)}
        for want, end in zip(wants, ends)
    ]


def stages(case: Combination) -> list[int]:
    """The stage of each TaskGraph: those with a common device are one, in the
    first replica."""
    lists = device_lists(case)
    numbers = list(range(len(lists)))
    for i, j in itertools.combinations(range(len(lists)), 2):
        if lists[i] & lists[j]:
            numbers = [numbers[i] if n == numbers[j] else n for n in numbers]
    return numbers


def group_size(case: Combination) -> int:
    wants = wanted(case)
    if sum(wants) <= case.ranks:
        return sum(wants)
    interleaved = case.config.get("pipeline.strategy") == "interleaved"
    whole = interleaved or "num_task_graph" in case.config
    return case.ranks if whole else max(wants)


def expected_errors(case: Combination) -> list[str]:
    """What the error of a combination may say; nothing if it isn't one."""
    wants = wanted(case)
    errors = []
    if case.micro_batches > case.batch:
        errors.append("are more than")
    own = case.cluster
    if own:
        # Fewer lists than TaskGraphs are shared.
        if len(own) > len(wants) and len(own) % len(wants):
            errors.append("virtual devices don't fit")
    elif wants and max(wants) > case.ranks:
        errors.append("the cluster has")
    elif wants and case.ranks % group_size(case):
        if not case.config.get("cluster.uneven_replicas"):
            errors.append("doesn't divide")
    # There are no stages where there are no devices for them.
    if not errors and shares_a_loop(case):
        errors.append("a loop or branch is on the devices of")
    if case.micro_batches == 1 and case.config.get("pipeline.strategy"):
        errors.append("orders micro-batches, and there is only one")
    return errors or expected_schedule_errors(case)


def shares_a_loop(case: Combination) -> bool:
    """Whether scopes on different devices meet in the body of one loop."""
    loop = staged_models.LOOPS.get(case.model)
    if not loop or "num_task_graph" in case.config:
        return False
    lists = device_lists(case)
    names = list(dict(task_graphs(case)))
    inside = [
        lists[names.index(scopes[-1][2] or i)]
        for i, scopes in enumerate(case.sections)
        if i in loop and scopes
    ]
    return any(devices != inside[0] for devices in inside)


def expected_schedule_errors(case: Combination) -> list[str]:
    """A cycle between stages, or a schedule that doesn't fit the pipeline."""
    schedule = case.config.get("pipeline.strategy")
    if case.micro_batches == 1:
        return []
    line = line_of_stages(case)
    count = len(set(line))
    if count < 2:
        return ["orders the stages of a pipeline"] if schedule else []
    if comes_back(case):
        return ["come back to TaskGraph"]
    if schedule != "interleaved":
        return []
    if len(line) % count or any(n != i % count for i, n in enumerate(line)):
        return ["the same number of task graphs on each stage"]
    if len(line) == count:
        return ["at least 2 task graphs"]
    if case.micro_batches % count:
        return ["stages divide"]
    return []


def comes_back(case: Combination) -> bool:
    """Whether the samples go from a scope over other stages to it again."""
    if "num_task_graph" in case.config:
        return False
    stage = stages(case)
    names = list(dict.fromkeys(name for name, _ in task_graphs(case)))
    line = [(name, stage[names.index(name)]) for name, _ in task_graphs(case)]
    return any(
        name != "default" and any(s != own for _, s in line[line.index(at) : i])
        for i, at in enumerate(line)
        for name, own in [at]
    )


def line_of_stages(case: Combination) -> list[int]:
    """The stages in the order in which micro-batches pass them, numbered in
    that order."""
    if not wanted(case):
        return []
    stage = stages(case)
    if "num_task_graph" in case.config:
        line = stage
    else:
        names = list(dict.fromkeys(name for name, _ in task_graphs(case)))
        line = [stage[names.index(name)] for name, _ in task_graphs(case)]
    line = [number for number, _ in itertools.groupby(line)]
    order = list(dict.fromkeys(line))
    return [order.index(number) for number in line]


# --------------------------------------------------------------------------- #
# Running one
# --------------------------------------------------------------------------- #


def enter(spec: ScopeSpec) -> Any:
    kind, count, name = spec
    if kind == "replica":
        return wh.replica(name)
    make = {"replicate": wh.replicate, "split": wh.split, "stage": wh.stage}
    return make[kind](count, name)


@contextlib.contextmanager
def entered(specs: list[ScopeSpec]) -> Any:
    with contextlib.ExitStack() as stack:
        for spec in specs:
            stack.enter_context(enter(spec))
        yield


def make_step(case: Combination, scope: Any) -> Any:
    """The training step and what it begins with."""
    make, options, _ = staged_models.MODELS[case.model]
    model = make(scope, case.batch, **options)
    optimizer = OPTIMIZERS[case.optimizer]()

    def step(params: Any, state: Any, *inputs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            if scope is not staged_models.nowhere and case.pipeline:
                stack.enter_context(wh.cluster(case.cluster))
                stack.enter_context(wh.pipeline(case.pipeline))
            value, grads = jax.value_and_grad(model.loss)(params, *inputs)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, (model.params, optimizer.init(model.params)), model.inputs


@functools.cache
def reference(model: str, batch: int, optimizer: str) -> list[Any]:
    """What `jax.jit` makes of two steps."""
    case = Combination(model, batch, optimizer, 1, [1], False, {}, None, [])
    step, state, inputs = make_step(case, staged_models.nowhere)
    compiled = jax.jit(step)
    results = [compiled(*state, *inputs)]
    results.append(compiled(*results[0][:2], *inputs))
    return [jax.tree.map(np.asarray, result) for result in results]


def cluster_of(case: Combination) -> Any:
    devices = [{"kind": "cpu", "slowdown": s} for s in case.slowdowns]
    if not case.nodes:
        return {"nodes": [{"devices": devices}]}
    pairs = [devices[i : i + 2] for i in range(0, len(devices), 2)]
    return {
        "nodes": [
            {"devices": pair, "link": {"bandwidth": 1e10, "latency": 1e-6}}
            for pair in pairs
        ],
        "network": {"bandwidth": 1e9, "latency": 1e-5},
    }


def difference(expected: Any, actual: Any) -> str | None:
    """Where two trees differ by more than the tolerance."""
    pairs = zip(
        jax.tree_util.tree_leaves_with_path(expected),
        jax.tree.leaves(actual),
        strict=True,
    )
    for (path, a), b in pairs:
        b = np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{jax.tree_util.keystr(path)} is {b.dtype}{b.shape}"
        scale = max(float(np.abs(a).max()), 1e-6)
        apart = float(np.abs(a.astype(float) - b.astype(float)).max()) / scale
        if not apart <= TOLERANCE:
            return f"{jax.tree_util.keystr(path)} is {apart:.3g} apart"
    return None


def run(case: Combination) -> tuple[str, str]:
    """How a combination went: ok, error or FAILED, and a note."""
    wanted_errors = expected_errors(case)
    wh.init(wh.Config(case.config))
    if case.default:
        wh.set_default_strategy(enter(case.default))
    step, state, inputs = make_step(
        case, lambda section: entered(case.sections[section])
    )
    try:
        whale = wh.jit(
            step,
            cluster=cluster_of(case),
            batch_argnums=tuple(range(2, 2 + len(inputs))),
        )
        program = whale.lower(*state, *inputs).compile()
        first = program(*state, *inputs)
    except wh.WhaleError as error:
        lines = [line for line in str(error).splitlines() if "error: " in line]
        message = (lines or [str(error)])[0]
        if not wanted_errors:
            return "FAILED", f"unexpected: {message}"
        if not any(text in message for text in wanted_errors):
            return "FAILED", f"not {wanted_errors}: {message}"
        if not re.match(r"\S+: error: ", message):
            return "FAILED", f"without a location: {message}"
        return "error", message
    if wanted_errors:
        return "FAILED", f"no error: {wanted_errors}"
    expected = reference(case.model, case.batch, case.optimizer)
    again = program(*state, *inputs)
    second = program(*first[:2], *inputs)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again)):
        if np.asarray(a).tobytes() != np.asarray(b).tobytes():
            return "FAILED", "other bits in another run"
    for name, one, other in zip(
        ("first", "second"), expected, (first, second), strict=True
    ):
        if where := difference(one, other):
            return "FAILED", f"{name} step: {where}"
    arguments = (*state, *inputs)
    moved = late_devices.check_step(program, arguments, first)
    relaunch.check_step(program, jax.tree.leaves(arguments), first)
    return "ok", f"{moved} transfers moved"


def work(seeds: list[int]) -> None:
    """Runs combinations in this process, a line for the beginning and the end
    of each."""
    for seed in seeds:
        print(f"begin {seed}", flush=True)
        try:
            state, note = run(draw(seed))
        except Exception:
            state = "FAILED"
            note = traceback.format_exc().strip().splitlines()[-1]
        print(f"end {seed} {state} {note}", flush=True)


def supervise(seeds: list[int], timeout: float) -> dict[str, int]:
    """Runs combinations in a process of their own, and what is left in another
    where one crashes or hangs."""
    counts: dict[str, int] = {}
    left = list(seeds)

    def note(seed: int, state: str, what: str) -> None:
        left.remove(seed)
        counts[state] = counts.get(state, 0) + 1
        print(f"{state:7} {seed} {draw(seed)} {what}", flush=True)

    while left:
        # A few at a time, as JAX keeps what it has compiled.
        batch = left[:25]
        command = [sys.executable, __file__, "--work", *map(str, batch)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watch = threading.Timer(timeout * len(batch), worker.kill)
        watch.start()
        current = batch[0]
        for line in worker.stdout or ():
            word, seed, *rest = line.rstrip("\n").split(" ", 3)
            if word == "begin":
                current = int(seed)
            elif word == "end":
                note(int(seed), rest[0], rest[1])
        watch.cancel()
        if worker.wait() != 0 and current in left:
            note(current, "CRASHED", f"status {worker.returncode}")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--filter", default="", help="part of a description")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--seeds", type=int, nargs="+", help="these alone")
    parser.add_argument("--work", type=int, nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work)
        return
    seeds = args.seeds or range(args.seed, args.seed + args.count)
    chosen = [seed for seed in seeds if args.filter in str(draw(seed))]
    counts = supervise(chosen, args.timeout)
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    sys.exit(not set(counts) <= {"ok", "error"})


if __name__ == "__main__":
    main()
