"""Times training steps in four processes beside the same in one.

Both sides run the same program on as many ranks, each with as many threads, and
work in turn, as in run.py. Then an all-reduce of 64 MiB between the processes
beside what the same library moves when pairs of them send to each other and
back.

Prints a row each, with what it may be at most.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
from typing import Any

import cases

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROCESSES = 4
# How many times as long as in one process a step may take. Of 200 small
# parameters it is mostly what a process does for a step, which four do each.
FACTORS = {"small-4": 2.0, "small-none-4": 2.0}
FACTOR = 1.25
# The same for an all-reduce, beside its bytes at the rate of plain messages.
REDUCTION = 1.5
# Seconds that a round takes at least: its first step is slower, as the
# processes do not begin together.
ROUND = 0.2


class Side:
    """A step of a case in one process or several, spoken to through pipes."""

    def __init__(self, case: cases.Case, processes: int) -> None:
        launch = ["-m", "whale.launch", f"--nprocs={processes}"]
        self.process = subprocess.Popen(
            [
                *(sys.executable, *(launch if processes > 1 else [])),
                *(str(HERE / "process.py"), case.name),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def steps(self, count: int) -> dict[str, Any]:
        """Runs so many; the seconds of each, and the last loss."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the processes."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def measure(case: cases.Case, options: argparse.Namespace) -> tuple[float, ...]:
    """Median seconds of a step, in one process and in several."""
    sides = [Side(case, 1), Side(case, PROCESSES)]
    # The first steps of a program are slower.
    first = [side.steps(3) for side in sides]
    losses = [answer["loss"] for answer in first]
    if losses[0] != losses[1]:
        raise RuntimeError(f"{case.name}: the losses are {losses}")
    count = max(options.steps, math.ceil(ROUND / min(first[0]["seconds"])))
    seconds: list[list[float]] = [[], []]
    for _ in range(options.rounds):
        for side, times in zip(sides, seconds, strict=True):
            times += side.steps(count)["seconds"]
    for side in sides:
        side.close()
    return tuple(map(statistics.median, seconds))


def reduction(transport: str) -> dict[str, float]:
    """What ProcessesRate says of a transport."""
    done = subprocess.run(
        [
            *("mpirun", "--allow-run-as-root", "--oversubscribe"),
            *("-n", str(PROCESSES)),
            *(ROOT / "build" / "unittests" / "ProcessesRate", transport),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    rates: dict[str, float] = json.loads(done.stdout)
    return rates


def main() -> None:
    """Measures the named cases, or all with as many ranks as processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    named = {case.name: case for case in cases.CASES if case.ranks == PROCESSES}
    parser.add_argument("names", nargs="*", metavar="NAME", help=str([*named]))
    parser.add_argument("--steps", type=int, default=3, help="a round or more")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    wanted = options.names or [*named, "all-reduce"]
    for name in wanted:
        if name == "all-reduce":
            continue
        if name not in named:
            parser.error(f"no case '{name}'; there are {[*named]}")
        one, many = measure(named[name], options)
        print(
            f"{name:16} {one * 1e3:8.2f} ms in one process, {many * 1e3:8.2f} "
            f"in {PROCESSES}: {many / one:.2f} x, at most "
            f"{FACTORS.get(name, FACTOR)}",
            flush=True,
        )
    if "all-reduce" in wanted:
        rates = reduction("ucx")
        least = rates["bytes"] / rates["bytes_per_s"]
        print(
            f"{'all-reduce':16} {rates['seconds'] * 1e3:8.2f} ms, messages "
            f"take {least * 1e3:.2f} ({rates['bytes_per_s'] / 1e9:.2f} GB/s): "
            f"{rates['seconds'] / least:.2f} x, at most {REDUCTION}"
        )


if __name__ == "__main__":
    main()
