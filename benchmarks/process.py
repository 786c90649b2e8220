"""One of the processes that processes.py times: ``process.py CASE``.

The first one reads numbers of steps from standard input, and answers each with
a line of JSON, as worker.py does, for the process that took longest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import cases
import worker

import whale as wh
from whale import distributed


def slowest(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the process says that took longest for all steps together.

    A process may be late in one step and others in the next, which costs the
    job no more than one delay.
    """
    return max(answers, key=lambda answer: sum(answer["seconds"]))


def main() -> None:
    """Runs steps until the input ends."""
    wh.init_distributed()
    case = next(case for case in cases.CASES if case.name == sys.argv[1])
    side = worker.Whale(case)
    side.compile()
    is_first = wh.process_index() == 0
    while True:
        line = sys.stdin.readline() if is_first else ""
        if distributed.job() is not None:
            line = distributed.all_gather("steps", line.encode())[0].decode()
        if not line:
            return
        answer = worker.steps(side, int(line))
        if distributed.job() is not None:
            mine = json.dumps(answer).encode()
            everyones = distributed.all_gather("the seconds of steps", mine)
            answer = slowest([json.loads(one) for one in everyones])
        if is_first:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
