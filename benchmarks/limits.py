"""Times that have a limit: so many times what the least of the work takes.

In: rows of a script that measures (state.py). Out: Markdown of them, and which
miss their limit. Nothing is measured here.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True)
class Script:
    """A script that measures rows, what they are about, and how."""

    name: str
    what: str
    how: str
    script: str
    # Of scripts/bench, which it takes, too.
    options: ClassVar[tuple[str, ...]] = ("rounds",)


STATE = Script(
    "state",
    "training states",
    "eight processes with a rank each. A move is compared with the bytes of "
    "the process that sends or receives most, at the rate that it gets while "
    "all exchange as many by UCX alone; a save with a copy of what a process "
    "saves; a restore with reading from files that are not in memory what it "
    "needs.",
    "state.py",
)


SHARING = Script(
    "sharing",
    "steps that share ranks",
    "two steps on four ranks in turn, beside each alone; memory is what a "
    "process of its own takes for them.",
    "sharing.py",
)


START = Script(
    "start",
    "what comes before steps, and between them",
    "a start is what compiling and the first call take in a new process, "
    "without tracing; a call has 450 leaves of 4 elements.",
    "start.py",
)


SIMULATION = Script(
    "simulation",
    "steps on a cluster that isn't there",
    "lowering by JAX, `whale-compile --target=none` and `whale-sim` with its "
    "page, one after the other.",
    "simulation.py",
)


ACCURACY = Script(
    "accuracy",
    "simulated steps beside those of this machine",
    "twenty steps on one and two ranks of a thread, which the calibration of "
    "`whale-sim` does not know, in processes of their own.",
    "accuracy.py",
)
SCRIPTS = (STATE, SHARING, START, SIMULATION, ACCURACY)


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


def section(script: Script, rows: Sequence[Row]) -> str:
    """What docs/performance.md says of a script's rows."""
    title = f"## {script.what.capitalize()}"
    how = f"`benchmarks/{script.script}`: {script.how}"
    return "\n\n".join([title, how, table(rows)])


def missed(rows: Sequence[Row]) -> str | None:
    """What is wrong with the rows, if anything is."""
    wrong = [row.what for row in rows if not row.is_met]
    return f"above the limit: {'; '.join(wrong)}" if wrong else None


def report(rows: Sequence[Row], output: pathlib.Path | None) -> str | None:
    """Prints them, and keeps them in a file for scripts/bench; what is wrong
    with them, if anything is."""
    print(table(rows))
    if output:
        output.write_text(json.dumps(write(rows)))
    return missed(rows)
