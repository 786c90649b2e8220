"""How far are simulated steps from those that this machine takes?

Twenty training steps on one and on two CPU ranks of a thread each, none of
which the calibration knows: the seconds that ``whale-sim --calibrate`` says
beside the median of those that a step takes. A process of its own runs each
step, on as many cores as it has ranks, and measures the machine right before.

Prints how far each is off, the median, and how far the order of the strategies
of a model is another (1 less Kendall's tau over all pairs of them), beside what
these may be at most.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

import limits

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEDIAN, WORST, ORDER = 0.15, 0.30, 0.8


@dataclasses.dataclass(frozen=True)
class Case:
    """A model under a strategy on one or two ranks."""

    model: str
    ranks: int
    strategy: str = "none"
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    config: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the model and its strategy."""
        dtype = self.options.get("dtype", "")
        return " ".join(filter(None, (self.model, dtype, self.strategy)))


PIPELINE = {"num_micro_batch": 4, "num_task_graph": 2}
SMALL = {"layers": 2}
CASES = (
    Case("gpt", 1, options=SMALL),
    Case("gpt", 1, options=SMALL | {"dtype": "bfloat16"}),
    Case("rope_transformer", 1, options=SMALL),
    Case("biased_transformer", 1, options=SMALL),
    Case("vision_transformer", 1, options=SMALL),
    Case("lstm", 1, options={"steps": 32}),
    Case("convnet", 1, options={"batch": 32}),
    Case("wavenet", 1, options={"layers": 5}),
    Case("moe", 1),
    Case("classifier", 1),
    Case("gpt", 2, "replicate", SMALL),
    Case("gpt", 2, "split", SMALL),
    Case("gpt", 2, "pipeline", {"layers": 4}, PIPELINE),
    Case("rope_transformer", 2, "replicate", SMALL),
    Case("rope_transformer", 2, "split", SMALL),
    Case("vision_transformer", 2, "replicate", SMALL),
    Case("vision_transformer", 2, "split", SMALL),
    Case("convnet", 2, "replicate", {"batch": 32}),
    Case("classifier", 2, "replicate"),
    Case("classifier", 2, "split"),
)


def run(case: Case, seconds: float) -> None:
    """Prints what is expected and what is measured of a case."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: case.ranks]))
    import jax
    import models

    import whale as wh

    calibrated = subprocess.run(
        [
            ROOT / "build" / "bin" / "whale-sim",
            "--calibrate",
            f"--ranks={case.ranks}",
            "--emit-cluster",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    wh.init(wh.Config(case.config))
    if case.strategy == "split":
        wh.set_default_strategy(wh.split())
    elif case.strategy != "none":
        wh.set_default_strategy(wh.replicate())
    workload = getattr(models, case.model)(False, **case.options)
    step = wh.jit(
        workload.train_step(),
        cluster=json.loads(calibrated.stdout),
        batch_argnums=2,
        donate_argnums=(0, 1),
    )
    params = workload.init(jax.random.key(0))
    state = workload.optimizer.init(params)
    times: list[float] = []
    params, state, loss = step(params, state, workload.batch)
    loss.block_until_ready()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        params, state, loss = step(params, state, workload.batch)
        loss.block_until_ready()
        times.append(time.perf_counter() - begin)
    expected = step.plan["step_time_s"]
    print(json.dumps([expected, statistics.median(times)]))


def order(found: dict[str, tuple[float, float]]) -> float:
    """Kendall's tau over all pairs of strategies of one model."""
    agreed = []
    for one, other in itertools.combinations(found, 2):
        if one.split()[0] != other.split()[0]:
            continue
        (a, b), (c, d) = found[one], found[other]
        agreed.append(1 if (a < c) == (b < d) else -1)
    return statistics.mean(agreed) if agreed else 1.0


def measure(number: int, seconds: float) -> tuple[float, float]:
    """What a case is expected to take, and takes."""
    script = (sys.executable, __file__, f"--case={number}")
    answer = subprocess.run(
        [*script, f"--seconds={seconds}"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    expected, measured = json.loads(answer.stdout.splitlines()[-1])
    return expected, measured


def error_row(what: str, error: float, limit: float) -> limits.Row:
    """An error beside the largest that there may be."""
    return limits.Row(what, "the limit", "%", error * 100, limit * 100, 1.0)


def main() -> str | None:
    """Measures all; what misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, help="each case is run once")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.case is not None:
        run(CASES[options.case], options.seconds)
        return None
    rows = []
    found = {}
    for number, case in enumerate(CASES):
        if options.only not in case.name:
            continue
        expected, measured = measure(number, options.seconds)
        found[case.name] = (expected, measured)
        rows.append(
            error_row(
                f"{case.name} on {case.ranks}: {expected * 1e3:.1f} ms "
                f"simulated, {measured * 1e3:.1f} ms measured",
                abs(expected / measured - 1),
                WORST,
            )
        )
        print(rows[-1].what, file=sys.stderr, flush=True)
    errors = [abs(expected / real - 1) for expected, real in found.values()]
    rows += [
        error_row("the median", statistics.median(errors), MEDIAN),
        error_row(
            "pairs of strategies in another order, twice their part",
            1 - order(found),
            1 - ORDER,
        ),
    ]
    return limits.report(rows, options.output)


if __name__ == "__main__":
    sys.exit(main())
