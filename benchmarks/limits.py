"""Times that have a limit: so many times what the least of the work takes.

In: rows of a script that measures (state.py). Out: Markdown of them, and which
miss their limit. Nothing is measured here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Row:
    """What was measured, what it is compared with, in one `unit` (ms or MiB),
    and how many times that it may be at most."""

    what: str
    against: str
    unit: str
    value: float
    least: float
    limit: float

    @property
    def ratio(self) -> float:
        """How many times what it is compared with."""
        return self.value / self.least

    @property
    def is_met(self) -> bool:
        """Whether it is within the limit."""
        return self.ratio <= self.limit


def read(result: dict[str, Any]) -> list[Row]:
    """The rows as scripts/bench keeps them."""
    return [Row(**row) for row in result["rows"]]


def write(rows: Sequence[Row]) -> dict[str, Any]:
    """The way back."""
    return {"rows": [dataclasses.asdict(row) for row in rows]}


def table(rows: Sequence[Row]) -> str:
    """A row of Markdown for each."""
    lines = [
        "| what | measured | against | ratio | at most | met |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.what} | {row.value:.1f} {row.unit} "
            f"| {row.against}: {row.least:.1f} {row.unit} "
            f"| {row.ratio:.2f} x | {row.limit:g} "
            f"| {'yes' if row.is_met else 'no'} |"
        )
    return "\n".join(lines)


def missed(rows: Sequence[Row]) -> str | None:
    """What is wrong with the rows, if anything is."""
    wrong = [row.what for row in rows if not row.is_met]
    return f"above the limit: {'; '.join(wrong)}" if wrong else None
