"""One of the processes that processes.py times: ``process.py CASE``.

The first one reads numbers of steps from standard input, and answers each with
a line of JSON, as worker.py does.
"""

from __future__ import annotations

import json
import sys

import cases
import worker

import whale as wh
from whale import distributed


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
        if is_first:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
