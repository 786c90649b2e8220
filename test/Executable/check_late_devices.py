"""Tests of late_devices.py: what it demands of late devices."""

from __future__ import annotations

from typing import Any

import late_devices
import numpy as np

START, WAIT, KERNEL = {"start": 0}, {"wait": 0}, {"kernel": "k0"}
RESULTS = [np.ones(2, np.float32)]


def failure(
    instructions: list[Any], moved: int, results: list[Any] | None = None
) -> str:
    """What is said of two ranks with these instructions."""
    manifest = {"ranks": [{}, {}], "classes": [{"instructions": instructions}]}
    stats = {"ranks": [{"moved_transfers": moved}, {"moved_transfers": 0}]}
    try:
        count = late_devices.check(
            manifest, RESULTS, lambda seed: (results or RESULTS, stats)
        )
    except late_devices.Failure as failure:
        return str(failure)
    assert count == moved * len(late_devices.SEEDS)
    return ""


NONE = "late devices moved no transfer"
assert failure([START, KERNEL, WAIT], 0) == NONE
assert failure([START, KERNEL, WAIT], 1) == ""
loop = {"while": 0, "cond": [], "body": [START, KERNEL, WAIT]}
assert failure([loop], 0) == NONE
case = {"case": 0, "branches": [[], [START, KERNEL, WAIT]]}
assert failure([case], 0) == NONE
# There is nothing to move them behind.
assert failure([KERNEL, START, WAIT, KERNEL], 0) == ""
assert failure([START, START, WAIT, WAIT], 0) == ""
# A transfer that is waited for later, behind one that was started after it.
late = [START, START, {"wait": 1}, KERNEL, WAIT]
assert failure(late, 0) == ""
assert failure([START, START, WAIT, KERNEL, {"wait": 1}], 0) == NONE
inside = {"while": 0, "cond": [], "body": [START, {"wait": 0}]}
assert failure([inside, START, {"wait": 1}, KERNEL], 0) == ""
bits = "result0 has other bits on late devices of seed 0"
assert failure([START, WAIT], 0, [-RESULTS[0]]) == bits
