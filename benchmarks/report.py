"""The table of results, and docs/performance.md.

In: the results of run.py by case: seconds, processor seconds and bytes of both
sides; and by suite or script: its rows. Out: a row for each target with its
ratio and whether it is met, as a Markdown table or the whole page, which has a
section for each suite and script. What has no results is left out. Nothing is
measured here.
"""

from __future__ import annotations

from typing import Any

import cases
import limits
import suites

COLUMNS = (
    "work",
    "ranks",
    "measured",
    "Whale",
    "against",
    "ratio",
    "processor",
    "target",
    "met",
)

PAGE = """# Performance

Measured by `scripts/bench`, written by `scripts/bench --report`; the numbers
are medians of steps that Whale and JAX run in turn on the same machine, and
a speed-up is JAX's time over Whale's; `processor` is the same of the processor
time that a step takes on all cores, which other work on the machine disturbs
less. Memory is the peak of a rank (arguments,
results, arena, constants, scratch) against XLA's arguments and temporaries on
one device.

{tables}

## Where and how

Machine: {processor}, {cores} cores, {memory:.0f} GB of memory. JAX {jax},
jaxlib {jaxlib}, Python {python}. Its load average was {load:.1f} at the end of
the measurement: above the number of cores, other work took part of them, which
matters most on ranks with several threads that wait for each other.

What is right, operation by operation, is in
[conformance.md](conformance.md).

What the models are is in `benchmarks/models`, what is measured of them
in `benchmarks/cases.py`. Where ranks are more than cores, they share them, as
JAX's host devices do, whose arguments are sharded as Whale's are.

How long it takes to plan for 512 mixed devices, from data parallelism to
pipelines of 16 stages, is printed by `benchmarks/plan.py`; and how much shares
in proportion to the devices' speeds win, by `benchmarks/uneven.py`. How much
communication computation hides, and what several processes cost, print
`benchmarks/overlap.py` and `benchmarks/processes.py`. How long moves, saves and
restores of a training state take, beside the least that they do:
`benchmarks/state.py`; and steps of two programs that share ranks, beside each
alone: `benchmarks/sharing.py`. Whether a change makes steps slower says
`scripts/bench --before CHECKOUT`.
"""


def rows(results: dict[str, Any]) -> list[dict[str, str]]:
    """A row for each thing that was measured and has a target."""
    found = []
    for case in cases.CASES:
        result = results.get(case.name)
        if result is None:
            continue
        seconds = result["seconds"]
        metric = "plan" if case.plan_only else "compile"
        metric = metric if case.compile_only else "step"
        if case.target is not None:
            wanted = f"at least {case.target:g}"
            found.append(beside_jax(case, metric, result, case.target, wanted))
        if case.own is not None and case.own[0] in results:
            name, limit = case.own
            other = results[name]["seconds"]["whale"]
            ratio = seconds["whale"] / other
            found.append(
                row(
                    case,
                    metric,
                    time(seconds["whale"]),
                    f"{name} {time(other)}",
                    f"{ratio:.2f} x as long",
                    "",
                    f"at most {limit:g}"
                    + (f" + {time(case.own_extra)}" if case.own_extra else ""),
                    seconds["whale"] <= limit * other + case.own_extra,
                )
            )
        if case.idle is not None and case.idle in results:
            idle = results[case.idle]["seconds"]
            limit = idle["jax"] / idle["whale"] / 1.25
            wanted = f"at least {limit:.2f}, idle / 1.25"
            found.append(beside_jax(case, metric, result, limit, wanted))
        if "bytes" in result and case.target is not None and not case.cores:
            size = result["bytes"]
            ratio = size["whale"] / size["jax"]
            found.append(
                row(
                    case,
                    "memory",
                    memory(size["whale"]),
                    "JAX " + memory(size["jax"]),
                    f"{ratio:.2f} x as much",
                    "",
                    "at most 1",
                    ratio <= 1,
                )
            )
    for suite in suites.SUITES:
        if suite.name in results:
            found += rows_of(suite, suites.read(results[suite.name]))
    return found


def rows_of(
    suite: suites.Suite, measured: list[suites.Row]
) -> list[dict[str, str]]:
    """A row for the median of a suite, and one for its worst ratio."""
    median = suites.median(measured)
    (worst,) = suites.worst(measured, 1)
    found = []
    for what, ratio, goal, times in (
        ("the median", median, suite.median, ("", "JAX")),
        (
            "the worst",
            worst.ratio,
            suite.worst,
            (time(worst.whale), "JAX " + time(worst.jax)),
        ),
    ):
        cells = [
            *(f"{len(measured)} {suite.what}, {what}", "1", "step", *times),
            *(f"{ratio:.2f} x as fast", "", f"at least {goal:g}"),
            "yes" if ratio >= goal else "no",
        ]
        found.append(dict(zip(COLUMNS, cells, strict=True)))
    return found


def row(case: cases.Case, *cells: Any) -> dict[str, str]:
    """The cells by column."""
    *texts, met = cells
    texts = [case.what, str(case.ranks), *texts, "yes" if met else "no"]
    return dict(zip(COLUMNS, texts, strict=True))


def beside_jax(
    case: cases.Case,
    metric: str,
    result: dict[str, Any],
    limit: float,
    wanted: str,
) -> dict[str, str]:
    """The row of a case that is to be so many times as fast as JAX."""
    seconds = result["seconds"]
    ratio = seconds["jax"] / seconds["whale"]
    return row(
        case,
        metric,
        time(seconds["whale"]),
        "JAX " + time(seconds["jax"]),
        f"{ratio:.2f} x as fast",
        processor(result),
        wanted,
        ratio >= limit,
    )


def processor(result: dict[str, Any]) -> str:
    """JAX's processor time over Whale's, where it was measured."""
    times = result.get("processor_s")
    return f"{times['jax'] / times['whale']:.2f} x" if times else ""


def time(seconds: float) -> str:
    """Seconds or milliseconds, some digits of them."""
    if seconds >= 2:
        return f"{seconds:.1f} s"
    digits = 0 if seconds >= 10e-3 else 2
    return f"{seconds * 1e3:.{digits}f} ms"


def memory(count: int) -> str:
    """Megabytes."""
    return f"{count / 1e6:.1f} MB"


def table(found: list[dict[str, str]]) -> str:
    """A table that is Markdown and lines up."""
    lines = [dict(zip(COLUMNS, COLUMNS))] + found
    widths = [max(len(line[name]) for line in lines) for name in COLUMNS]
    texts = [
        "| "
        + " | ".join(line[n].ljust(w) for n, w in zip(COLUMNS, widths))
        + " |"
        for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)


def page(machine: dict[str, Any], results: dict[str, Any]) -> str:
    """The text of docs/performance.md."""
    fields = dict(machine, memory=machine["memory_bytes"] / 1e9)
    tables = [table(rows(results))]
    for suite in suites.SUITES:
        if suite.name in results:
            measured = suites.read(results[suite.name])
            tables.append(suites.section(suite, measured))
    for script in limits.SCRIPTS:
        if script.name in results:
            found = limits.read(results[script.name])
            tables.append(limits.section(script, found))
    return PAGE.format(tables="\n\n".join(tables), **fields)
