"""What a function that a step calls may not do itself: it would wait for ever.

In: around each such call, the functions of its step. Out: a RuntimeError of
what waits for that step, and of what all processes do together, for only the
first one makes the call.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from whale.errors import RuntimeError

_REMEDY = (
    "return what it needs from the step, and do it when the step has ended"
)


class _Thread(threading.local):
    # The functions of the steps that call one, the inner step last.
    steps: tuple[Any, ...] = ()
    is_alone = True


_thread = _Thread()


@contextlib.contextmanager
def inside(functions: Any, is_alone: bool) -> Iterator[None]:
    """Around a call.

    Args:
        functions: of the step that waits for it; None where it has ended.
        is_alone: whether there is one process.
    """
    outer = _thread.steps
    _thread.steps = (*outer, functions)
    _thread.is_alone = is_alone
    try:
        yield
    finally:
        _thread.steps = outer


def check_together(what: str) -> None:
    """Raises RuntimeError in a call where all processes do `what` together."""
    if _thread.steps and not _thread.is_alone:
        raise RuntimeError(
            f"{what} in a function that a step calls: the first process alone "
            f"calls it, and the others would have to take part; {_REMEDY}"
        )


def check_step(functions: Any) -> None:
    """Raises RuntimeError where a step with these functions cannot run."""
    # Each step asks, and mostly no step makes a call.
    if not _thread.steps:
        return
    check_together("a step")
    if any(running is functions for running in _thread.steps):
        raise RuntimeError(
            "a function that a step calls runs that step, which waits for it; "
            f"{_REMEDY}"
        )
