"""What Perfetto drops of a trace, by the rules of its importer of JSON.

`faults` reads the events as the importer does: in the order of their times, of
equal ones in the order of the file, with times in whole nanoseconds. Bars of a
track lie in or beside one another; arrows have numbers that it can read, and
begin before they end, each at a bar; counters are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]
# A track: process and thread.
Track = tuple[int, int]
ID = re.compile(r"[0-9a-f]{1,16}")


def nanoseconds(value: float) -> int:
    return round(value * 1000)


def faults(events: Sequence[Event]) -> Iterator[str]:
    """What it would drop, or show elsewhere."""
    open_bars: dict[Track, list[int]] = {}
    begun: set[tuple[str, ...]] = set()
    timed = [event for event in events if event["ph"] != "M"]
    for event in sorted(timed, key=lambda e: nanoseconds(e["ts"])):
        track, time = (event["pid"], event.get("tid", 0)), event["ts"]
        if not all(isinstance(n, int) and n >= 0 for n in track) or time < 0:
            yield f"no track or time: {event}"
        elif event["ph"] == "X":
            yield from _bar(event, open_bars.setdefault(track, []))
        elif event["ph"] in "sf":
            yield from _arrow(event, begun, bool(open_bars.get(track)))
        elif event["ph"] != "C":
            yield f"an unknown kind: {event}"
        elif not all(
            isinstance(value, (int, float)) for value in event["args"].values()
        ):
            yield f"a counter of no numbers: {event}"


def _bar(event: Event, ends: list[int]) -> Iterator[str]:
    """`ends`: of the bars around, which end in time or are over."""
    begin = nanoseconds(event["ts"])
    end = begin + nanoseconds(event["dur"])
    if end < begin or not event["name"]:
        yield f"no bar: {event}"
    while ends and ends[-1] <= begin:
        ends.pop()
    if ends and ends[-1] < end:
        yield f"reaches out of the bar that it begins in: {event}"
    ends.append(end)


def _arrow(
    event: Event, begun: set[tuple[str, ...]], is_at_bar: bool
) -> Iterator[str]:
    if not isinstance(event["id"], str) or not ID.fullmatch(event["id"]):
        yield f"not a hexadecimal number of 64 bits: {event}"
    key = (event["cat"], event["name"], event["id"])
    if event["ph"] == "s":
        if key in begun:
            yield f"an arrow begins twice: {event}"
        begun.add(key)
    elif key not in begun or event.get("bp") != "e":
        yield f"an arrow that has not begun, or to the next bar: {event}"
    if not is_at_bar:
        yield f"an arrow at no bar: {event}"


def check(events: Sequence[Event], *, arrows: bool) -> None:
    """Raises where there are faults, or no arrows though there are `arrows`."""
    found = list(faults(events))
    assert not found, found[:5]
    assert any(event["ph"] == "f" for event in events) == arrows
