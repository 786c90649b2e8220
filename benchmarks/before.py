"""Are steps as fast as before a change? (``scripts/bench --before CHECKOUT``)

Three processes work in turn, a few steps each: two with the other checkout's
package and one with this one's, whose processor time may be at most

    before + 3% + |before - before again|

for each case, and 1% more in the geometric mean: what two equal processes
differ by is the machine's doing.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import statistics

import cases
from worker_process import Worker

PYTHON = pathlib.Path(__file__).resolve().parents[1] / "python"
FEWEST_ROUNDS = 20
CASE_TOLERANCE, MEAN_TOLERANCE = 0.03, 0.01


def measure(
    case: cases.Case, before: pathlib.Path, options: argparse.Namespace
) -> list[float]:
    """Median processor seconds of a step: before, before, and now."""
    workers = [
        Worker("whale", case, python=python)
        for python in (before, before, PYTHON)
    ]
    for worker in workers:
        worker.ask("compile")
        worker.ask("steps 2")
    seconds: list[list[float]] = [[] for _ in workers]
    for _ in range(options.rounds or FEWEST_ROUNDS):
        for times, worker in zip(seconds, workers, strict=True):
            times += worker.ask(f"steps {options.steps}")["processor"]
    for worker in workers:
        worker.close()
    return [statistics.median(times) for times in seconds]


def main(options: argparse.Namespace) -> str | None:
    """Prints the table; says what is slower, if anything is."""
    before = options.before.resolve() / "python"
    if not (before / "whale" / "whale-compile").exists():
        return f"{options.before} is not a checkout that is built"
    print(
        "| work | before, ms | before again, ms | now, ms | ratio | met |\n"
        "|---|---|---|---|---|---|"
    )
    ratios, slower = [], []
    for case in cases.CASES:
        is_named = case.name in (options.names or [case.name])
        if case.compile_only or case.idle or not is_named:
            continue
        first, second, now = measure(case, before, options)
        ratios.append(now / first)
        limit = first * (1 + CASE_TOLERANCE) + abs(first - second)
        if now > limit:
            slower.append(case.name)
        times = " | ".join(f"{1e3 * x:.3f}" for x in (first, second, now))
        met = "yes" if now <= limit else "no"
        print(
            f"| {case.name} | {times} | {ratios[-1]:.3f} | {met} |", flush=True
        )
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 1.0
    print(f"geometric mean of the ratios: {mean:.3f}")
    if mean > 1 + MEAN_TOLERANCE:
        slower.append("the mean")
    return f"slower than before: {', '.join(slower)}" if slower else None
