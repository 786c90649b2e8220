"""Several processes: each runs this script, and a part of the ranks.

In: where process 0 listens, and how many processes there are. Out: a job that
runs steps together, and programs that are the same in all processes. The first
process compiles; the others compare a digest of their text and receive the
packed program. Sharing and gathering are collective: all processes call them in
one order. Sharing costs a pass over the text, and memory for the packed program
in each process. One process alone pays nothing.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import math
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from whale import native, nesting, steps
from whale.errors import CompileError, RuntimeError
from whale.tracebacks import api_boundary

_job: Any = None
# What is to be completed together before a process leaves the others.
_last: list[Callable[[], None]] = []
# What ended this process, if an exception did.
_failure: str | None = None


@api_boundary
def init_distributed(
    coordinator: str | None = None,
    process_index: int | None = None,
    process_count: int | None = None,
    progress_limit: float | None = None,
) -> None:
    """Joins the other processes; each of them calls this once, at the start.

    What is left out comes from the variables of mpirun, srun, torchrun or
    ``whale-run``. Without a launcher and without arguments this process is the
    only one.

    Processes of several hosts need a secret: ``WHALE_SECRET``, or the file that
    ``WHALE_SECRET_FILE`` names.

    Args:
        coordinator: where process 0 listens: ``"host:port"``.
        process_index: the number of this process, from 0.
        process_count: how many processes there are.
        progress_limit: seconds without progress in a step that end all
            processes; 0 for none. By default 20 times the slowest step, at
            least 10.

    Raises:
        RuntimeError: where the others are not reached, or were called before.
        ValueError: where `coordinator` is no ``"host:port"``, or
            `progress_limit` no number of seconds.
    """
    global _job
    if _job is not None:
        raise RuntimeError("init_distributed was called before")
    if progress_limit is not None and not 0 <= progress_limit < math.inf:
        raise ValueError(
            f"progress_limit: {progress_limit!r} is no number of seconds"
        )
    host, port = "", 0
    if coordinator is not None:
        host, port = address(coordinator)
    _job = native.guarded(
        native.extension().join,
        *(host, port, process_index, process_count, progress_limit),
    )
    if process_count_() > 1:
        previous = sys.excepthook
        sys.excepthook = _remember(previous)
        atexit.register(_leave)


def address(coordinator: str) -> tuple[str, int]:
    """The host and the port of ``"host:port"``.

    Raises:
        ValueError: where it is none.
    """
    parse = native.extension().parse_address
    found: tuple[str, int] | None = parse(coordinator)
    if found is None:
        raise ValueError(f"coordinator: {coordinator!r} is no 'host:port'")
    return found


def process_index() -> int:
    """The number of this process, from 0; 0 without `init_distributed`."""
    return 0 if _job is None else _job.process


def process_count() -> int:
    """How many processes there are; 1 without `init_distributed`."""
    return 1 if _job is None else _job.processes


# The name of an argument above.
process_count_ = process_count


def job() -> Any:
    """What the extension calls the processes; None where there is one."""
    return _job if process_count() > 1 else None


def share_program(
    path: str,
    text: str,
    options: tuple[str, ...],
    write: Callable[[], None],
    what: str,
) -> None:
    """Has the first process write a program directory, and all receive it.

    Args:
        path: where the program goes, a directory that does not exist.
        text: the step, annotated StableHLO with its locations.
        options: what else the program depends on.
        write: writes it.
        what: what the step is called in an error.

    Raises:
        RuntimeError: where the processes have different steps.
        CompileError: in all processes, where `write` raises it.
    """
    if job() is None:
        write()
        return
    digest = hashlib.sha256()
    for part in (_without_lines(text), *options):
        digest.update(f"{len(part)} ".encode() + part.encode())
    size = digest.digest_size
    given = all_gather("the step", digest.digest() + what.encode())
    named = [f"{g[size:].decode()} ({g[:8].hex()})" for g in given]
    for index, other in enumerate(given):
        if other[:size] != given[0][:size]:
            raise RuntimeError(
                f"the step differs: process 0 compiles {named[0]}, process "
                f"{index} {named[index]}"
            )
    mine = b""
    failure: CompileError | None = None
    if process_index() == 0:
        try:
            write()
            mine = b"+" + native.guarded(native.extension().pack_program, path)
        except CompileError as error:
            failure = error
            mine = b"-" + str(error).encode()
    program = all_gather("the program", mine)[0]
    if failure is not None:
        raise failure
    if program[:1] == b"-":
        raise CompileError(program[1:].decode())
    if process_index() != 0:
        native.guarded(native.extension().unpack_program, program[1:], path)


# A location that has a name, any location, and where one is used.
_NAMED = re.compile(r'^(#loc\d*) = loc\(("(?:[^"\\]|\\.)*")\(', re.MULTILINE)
_LOCATION = re.compile(r"^#loc\d* = .*\n", re.MULTILINE)
_USE = re.compile(r"loc\((#loc\d*)\)")


def _without_lines(text: str) -> str:
    """A step's text in which an operation has the name that JAX gives it.

    The name says which scopes of strategies it is in. Files and lines go: they
    may be in other directories in another process.
    """
    names = dict(_NAMED.findall(text))
    return _USE.sub(lambda use: names.get(use[1], ""), _LOCATION.sub("", text))


def receive_program(path: str, is_here: bool, place: str) -> str:
    """Sends a program directory to the processes that lack it; collective.

    Args:
        path: of the program in this process.
        is_here: whether it is there.
        place: where it goes if not, an empty directory.

    Returns:
        where it is in this process.

    Raises:
        RuntimeError: in all processes where the first one lacks it.
    """
    there = all_gather("who has the saved program", b"+" if is_here else b"-")
    if there[0] == b"-":
        raise RuntimeError(f"{path}: process 0 has no such program")
    if b"-" not in there:
        return path
    mine = b""
    if process_index() == 0:
        mine = native.guarded(native.extension().pack_program, path)
    program = all_gather("the saved program", mine)[0]
    if is_here:
        return path
    native.guarded(native.extension().unpack_program, program, place)
    return place


def all_gather(name: str, mine: bytes) -> list[bytes]:
    """The bytes of each process; collective, in one order in all of them."""
    nesting.check_together(f"an exchange ({name})")
    return native.guarded(_job.all_gather, name, mine)


def fail_together(name: str, error: Exception | None) -> None:
    """Raises what is wrong in one process in all of them; collective."""
    if _job is not None:
        mine = ""
        if error is not None:
            mine = f"process {process_index()}: {error}"
        for other in all_gather(name, mine.encode()):
            if other and error is None:
                raise RuntimeError(other.decode())
    if error is not None:
        raise error


def complete_at_exit(call: Callable[[], None]) -> None:
    """Has `call`, which may be collective, be called when a process ends."""
    _last.append(call)


@atexit.register
def _complete() -> None:
    while _last:
        _last.pop()()


def _remember(
    previous: Callable[..., Any],
) -> Callable[..., None]:
    def hook(
        kind: type[BaseException],
        error: BaseException,
        trace: types.TracebackType | None,
    ) -> None:
        global _failure
        _failure = f"{_job.name}: {kind.__name__}: {error}"
        previous(kind, error, trace)

    return hook


def forget() -> None:
    """Has a child of a process take no part in what the processes do."""
    _last.clear()
    if job() is not None:
        atexit.unregister(_leave)
        # Destroyed, it would wait for its threads.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_job))
        _job.forget()


def _leave() -> None:
    """Waits for the others, or has them end with this process's exception."""
    try:
        if _failure is not None:
            _last.clear()
            _job.fail(_failure)
        else:
            # Others may wait for what this process computes in them.
            steps.finish()
            _complete()
            _job.leave()
    except native.extension().RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.stderr.flush()
        native.extension().end_as_failed()
