"""Times what is done with a training state, beside the least that it takes.

Eight processes, a rank each, bring a state from one plan to another, save it
and restore it. A move is compared with what the process that sends or receives
most takes for as many bytes while all exchange by UCX alone; a save with a
copy; a restore with reading the needed bytes from files that are in nobody's
memory. Each number is the median of rounds in which both sides work in turn.

Prints a row each, with what it may be at most.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import limits
from worker_process import Spoken

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MIB = 1 << 20
# In none of them a piece has several owners, so it is known who sends it.
PAIRS = (
    ("pipeline", "split"),
    ("split", "replicate"),
    ("uneven", "pipeline"),
)
SWITCH, SMALL, MEMORY = 1.5, 3.0, 1.1
SAVE, BESIDE_SAVE, RESTORE = 1.5, 1.2, 1.5
# What a process may give or take at once.
ROUND_BYTES = 64 * MIB
# Of each of many small leaves.
SMALL_WIDTH = 32


class Bench:
    """Both sides, and what was measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        count = str(options.processes)
        self.whale = Spoken(
            *(sys.executable, "-m", "whale.launch", f"--nprocs={count}"),
            HERE / "state_process.py",
        )
        self.plain = Spoken(
            *("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", count),
            ROOT / "build" / "unittests" / "ExchangeRate",
        )
        self.rows: list[limits.Row] = []

    def do(self, what: str, **options: Any) -> dict[str, float]:
        """Has all processes carry out a command."""
        answer: dict[str, float] = self.whale.ask(
            json.dumps({"do": what, **options})
        )
        return answer

    def add(self, row: limits.Row) -> None:
        """Keeps a row, and shows it."""
        self.rows.append(row)
        print(f"{row.what}: {row.ratio:.2f}", file=sys.stderr, flush=True)

    def in_turn(self, *sides: Callable[[], float]) -> list[float]:
        """The medians of rounds, after a first one that is not counted."""
        rounds = [
            [side() for side in sides] for _ in range(self.options.rounds + 1)
        ]
        return [statistics.median(times) for times in zip(*rounds[1:])]

    def small(self) -> None:
        """Many small leaves beside one of as many bytes."""
        leaves = self.options.leaves
        width = round((leaves * SMALL_WIDTH**2) ** 0.5)
        shapes = {"many": (leaves, SMALL_WIDTH), "one": (1, width)}
        for name, (count, side) in shapes.items():
            self.do(
                "pair",
                name=name,
                first="split",
                second="replicate",
                leaves=count,
                width=side,
            )
        many, one = self.in_turn(
            lambda: self.do("move", name="many")["seconds"],
            lambda: self.do("move", name="one")["seconds"],
        )
        for name in shapes:
            self.do("drop", name=name)
        self.add(
            limits.Row(
                f"switch of {leaves} leaves of {SMALL_WIDTH**2 * 4 >> 10} KiB",
                "of one leaf",
                *("ms", many * 1e3, one * 1e3, SMALL),
            )
        )

    def large(self, first: str, second: str) -> None:
        """A large state goes from one plan to another."""
        width = self.options.width
        leaves = self.options.bytes // (4 * width**2)
        made = self.do(
            "pair",
            name="state",
            first=first,
            second=second,
            leaves=leaves,
            width=width,
        )
        moved = int(made["bytes"])
        # Its own memory stays small where many bytes go.
        asked = min(moved, ROUND_BYTES)
        peak = held = 0.0

        def switch() -> float:
            nonlocal peak, held
            answer = self.do("move", name="state")
            peak, held = max(peak, answer["peak"]), answer["held"]
            return answer["seconds"]

        seconds, plain = self.in_turn(
            switch, lambda: self.plain.ask(str(asked)) * moved / asked
        )
        name = f"{first} to {second}"
        size = f"{leaves * 4 * width**2 // MIB} MiB"
        self.add(
            limits.Row(
                f"switch of {size}, {name}",
                f"{moved / MIB:.0f} MiB by UCX",
                *("ms", seconds * 1e3, plain * 1e3, SWITCH),
            )
        )
        self.add(
            limits.Row(
                f"memory of a process meanwhile, {name}",
                f"{MEMORY:g} x {held / MIB:.0f} MiB and two rounds",
                *("MiB", peak / MIB),
                *((MEMORY * held + 2 * ROUND_BYTES) / MIB, 1.0),
            )
        )
        self.checkpoints(name)
        self.do("drop", name="state")

    def checkpoints(self, name: str) -> None:
        """The state is saved under the first plan, and restored under the
        second."""
        with tempfile.TemporaryDirectory(dir=self.options.directory) as folder:
            self.do("save to", name="state", directory=folder)

            def side(what: str, **options: Any) -> Callable[[], float]:
                return lambda: self.do(what, **options)["seconds"]

            def save() -> float:
                seconds = self.do("save")["seconds"]
                self.do("wait")
                return seconds

            saved, copied = self.in_turn(save, side("copy"))
            self.add(
                limits.Row(
                    f"a save blocks, {name.split()[0]}",
                    "a copy",
                    *("ms", saved * 1e3, copied * 1e3, SAVE),
                )
            )
            alone, beside = self.in_turn(
                side("steps", count=self.options.steps), side("steps_meanwhile")
            )
            self.add(
                limits.Row(
                    f"a step while a save is written, {name.split()[0]}",
                    "without",
                    *("ms", beside * 1e3, alone * 1e3, BESIDE_SAVE),
                )
            )
            restored, read = self.in_turn(side("restore"), side("read"))
            self.add(
                limits.Row(
                    f"restore, {name}",
                    "reading",
                    *("ms", restored * 1e3, read * 1e3, RESTORE),
                )
            )

    def close(self) -> None:
        """Ends all processes."""
        for side in self.whale, self.plain:
            if side.close():
                raise RuntimeError(f"{side.process.args!r} failed")


def main() -> str | None:
    """Measures all; what misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--bytes", type=int, default=512 * MIB)
    parser.add_argument("--width", type=int, default=2048, help="of a leaf")
    parser.add_argument("--leaves", type=int, default=450, help="small ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="a round")
    parser.add_argument(
        "--directory", type=pathlib.Path, default=ROOT / "build"
    )
    parser.add_argument(
        "--output", type=pathlib.Path, help="where rows are kept, as JSON"
    )
    options = parser.parse_args()
    bench = Bench(options)
    bench.small()
    for first, second in PAIRS:
        bench.large(first, second)
    bench.close()
    return limits.report(bench.rows, options.output)


if __name__ == "__main__":
    sys.exit(main())
