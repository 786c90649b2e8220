"""Checks how long the transfers of a trace took from their start at least.

Usage: check_network.py TRACE SECONDS
"""

import json
import sys

path, seconds = sys.argv[1:]
with open(path) as file:
    events = json.load(file)["traceEvents"]
took = [
    event["args"]["since_start_us"]
    for event in events
    if event.get("cat") == "communication"
]
assert took and all(t >= float(seconds) * 1e6 for t in took), took
