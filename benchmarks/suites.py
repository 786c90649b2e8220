"""Suites: many small things that are timed beside JAX, and what is said of
them.

A suite is a script that times each of its items in one process (beside.py).
In: its rows, one for each item. Out: Markdown that gives of hundreds of rows
the median, the worst, how many are slower than JAX, and the worst few; and
which goals are missed. Nothing is measured here.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any, ClassVar

# Below this ratio an item counts as slower than JAX.
SLOWER = 0.9


@dataclasses.dataclass(frozen=True)
class Suite:
    """A script, and what its ratios (JAX's time over Whale's) shall be."""

    name: str
    what: str
    script: str
    median: float
    worst: float
    # Of scripts/bench, which it takes, too.
    options: ClassVar[tuple[str, ...]] = ("rounds", "seconds")


SUITES = (
    Suite("small", "small steps", "small.py", median=1.2, worst=0.9),
    Suite(
        "convolutions",
        "convolutions",
        "convolutions.py",
        median=1.5,
        worst=0.8,
    ),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """An item: its name and kind, seconds of both sides, whether their results
    differ by more than rounding. What is not `is_tuned` is for measuring alone:
    whoever makes a kind faster does not try it."""

    name: str
    kind: str
    is_tuned: bool
    jax: float
    whale: float
    differs: bool = False

    @property
    def ratio(self) -> float:
        """JAX's time over Whale's."""
        return self.jax / self.whale


def read(result: dict[str, Any]) -> list[Row]:
    """The rows of a suite's result as scripts/bench keeps it."""
    return [Row(**row) for row in result["rows"]]


def write(rows: Sequence[Row]) -> dict[str, Any]:
    """The way back."""
    return {"rows": [dataclasses.asdict(row) for row in rows]}


def median(rows: Sequence[Row]) -> float:
    """Of the ratios."""
    return statistics.median(row.ratio for row in rows)


def worst(rows: Sequence[Row], count: int) -> list[Row]:
    """The rows with the lowest ratios, in order."""
    return sorted(rows, key=lambda row: row.ratio)[:count]


def summary(rows: Sequence[Row], by_kind: bool = False) -> str:
    """A table: all rows, those that are tuned and those that are not, and, if
    so wanted, each kind."""
    parts = {
        "all": list(rows),
        "tried while tuning": [row for row in rows if row.is_tuned],
        "only measured": [row for row in rows if not row.is_tuned],
    }
    for row in rows if by_kind else ():
        parts.setdefault(f"`{row.kind}`", []).append(row)
    lines = [
        f"| which | count | median | worst | below {SLOWER} |",
        "|---|---|---|---|---|",
    ]
    for name, part in parts.items():
        if not part:
            continue
        (slowest,) = worst(part, 1)
        slower = sum(row.ratio < SLOWER for row in part)
        lines.append(
            f"| {name} | {len(part)} | {median(part):.2f} x "
            f"| {slowest.ratio:.2f} x | {slower} |"
        )
    return "\n".join(lines)


def slowest(rows: Sequence[Row], count: int = 5) -> str:
    """A table of the worst rows."""
    lines = [
        f"| the worst {min(count, len(rows))} | JAX, ms | Whale, ms | ratio |",
        "|---|---|---|---|",
    ]
    for row in worst(rows, count):
        lines.append(
            f"| `{row.name}` | {row.jax * 1e3:.3f} | {row.whale * 1e3:.3f} "
            f"| {row.ratio:.2f} x |"
        )
    return "\n".join(lines)


def missed(suite: Suite, rows: Sequence[Row]) -> str | None:
    """What is wrong with the rows, if anything is."""
    wrong = [row.name for row in rows if row.differs]
    if wrong:
        return f"results differ from JAX's: {', '.join(wrong)}"
    if median(rows) < suite.median or worst(rows, 1)[0].ratio < suite.worst:
        return (
            f"the goal is {suite.median} in the median, {suite.worst} for each"
        )
    return None


def section(suite: Suite, rows: Sequence[Row]) -> str:
    """What docs/performance.md says of a suite."""
    title = f"## {suite.what.capitalize()}"
    how = (
        f"`benchmarks/{suite.script}`, one rank; a ratio is JAX's least time "
        "of a call over Whale's."
    )
    wrong = [row.name for row in rows if row.differs]
    if wrong:
        how += f" Results differ from JAX's: {', '.join(wrong)}."
    return "\n\n".join([title, how, summary(rows), slowest(rows)])
