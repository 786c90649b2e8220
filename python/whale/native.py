"""The runtime, behind one module: loaded when it is first needed."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

from whale import notices
from whale.errors import RuntimeError, WhaleError


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """What an OpenMP runtime that is loaded meanwhile is told of waiting.

    GNU's would have a thread turn round for some ten milliseconds before it
    sleeps, and take the core from what it waits for where there are more
    threads than cores, other programs' included: beside one of them a step took
    seven times as long, and with some 0.1 ms it takes three times. That is more
    than there is between the parallel parts of a step. whale-run does the same.
    """
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    if any(name in os.environ for name in names):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "4000"
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


@functools.cache
def extension() -> Any:
    """The module ``whale._whale``.

    Raises:
        WhaleError: where it was not built or cannot be loaded.
    """
    try:
        with _patience():
            from whale import _whale  # type: ignore[attr-defined]
    except ImportError as error:
        raise WhaleError(
            f"the runtime of Whale cannot be loaded ({error}); build it "
            "with scripts/setup.sh, or pip install ."
        ) from error
    return _whale


def load(
    path: str, job: Any, python: Any = None, own_ranks: bool = False
) -> Any:
    """Loads a program directory, for all processes of the job together.

    `python` makes its calls of Python functions (`callbacks.caller_of`);
    `own_ranks` is as in `wh.jit`.

    What costs time in each step on this machine is a `WhaleWarning`; what else
    there is to say of it goes to the logger ``whale``.
    """
    program = waited(extension().Program, path, job, python, own_ranks)
    for is_warning, text in program.notes:
        if is_warning:
            notices.warn(text)
        else:
            logging.getLogger("whale").info(text)
    return program


def check_plan(path: str) -> None:
    """Checks the directory of a program without code."""
    guarded(extension().check_plan, path)


def read_tables(path: str) -> str:
    """The tables of a program directory, which is checked, as JSON."""
    return guarded(extension().read_tables, path)


def guarded(call: Any, *arguments: Any) -> Any:
    """Calls into the runtime; its failures become `whale.RuntimeError`."""
    try:
        return call(*arguments)
    except extension().RuntimeError as error:
        raise RuntimeError(str(error)) from None


def waited(call: Any, *arguments: Any) -> Any:
    """Calls what waits for a step; Ctrl-C ends that in the main thread."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    # As `guarded`, which each step would call in vain.
    try:
        return call(*arguments, in_main_thread)
    except extension().RuntimeError as error:
        raise RuntimeError(str(error)) from None
