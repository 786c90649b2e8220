"""The steps that this process runs, which end with it."""

from __future__ import annotations

import atexit
import contextlib
from typing import Any

from whale import native
from whale.errors import RuntimeError

# Each until nothing runs for it any more.
_steps: set[Any] = set()


def add(step: Any) -> None:
    """Remembers a step, and forgets those that have left."""
    _forget_left()
    _steps.add(step)


def _forget_left() -> None:
    for step in list(_steps):
        if step.has_left:
            _steps.discard(step)


def finish() -> None:
    """Waits until all steps have ended, well or not."""
    for step in list(_steps):
        with contextlib.suppress(RuntimeError):
            native.waited(step.stats)


def forget() -> None:
    """Forgets all steps: a child has no threads that run its parent's."""
    _steps.clear()


@atexit.register
def _stop() -> None:
    """Ends all steps: what they use goes with the process."""
    _forget_left()
    if _steps:
        native.extension().stop_steps(list(_steps))
