"""The compiler, in a process of its own: what ends it does not end Python.

In: annotated StableHLO, a cluster, a target. Out: a program directory, or a
`CompileError` with the compiler's diagnostics or what ended it. Text and
options travel in a scratch directory, messages come back as lines of JSON; an
exception here, Ctrl-C too, ends the compiler and what it started. Each call
costs the start of a process and a copy of the text on disk. Threads may compile
at once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from whale import files
from whale.errors import CompileError, WhaleError

# Built or installed beside this file.
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "whale-compile")
# How long an interrupted compiler may take to remove its files.
_GRACE_SECONDS = 0.5
_TAIL_LINES = 20
# How a line begins that says which pass does.
_PASS = b'{"pass":"'
# Of a stack that is printed without symbols.
_FRAME = re.compile(r" *#?\d+ +\S+ +0x|Stack dump without symbol names")


def compile(
    text: str,
    cluster: str,
    path: str,
    *,
    target: str,
    dump_phases_to: str = "",
    explain: bool = False,
    on_pass: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Compiles annotated StableHLO into the program directory `path`.

    `cluster` is a cluster file's path, its text, or a number of CPU ranks;
    `on_pass` is called with the name of each pass that begins. Returns the
    lines of warnings and remarks.

    Raises:
        CompileError: with the compiler's diagnostics, or what ended it.
        WhaleError: where it cannot be started.
    """
    options = [
        "step.mlir",
        f"-o={os.path.abspath(path)}",
        f"--cluster={cluster}",
        f"--target={target}",
        "--messages=json",
        f"--parent={os.getpid()}",
    ]
    if dump_phases_to:
        options.append(f"--dump-phases-to={os.path.abspath(dump_phases_to)}")
    if explain:
        options.append("--explain")
    with files.ScratchDirectory() as place:
        # A cluster may be longer than an argument of a command.
        _write(place, "options", "\n".join(map(_quoted, options)))
        _write(place, "step.mlir", text)
        with open(os.path.join(place, "stderr"), "w+b") as stderr:
            output, status = _run([PATH, "@options"], place, stderr, on_pass)
            stderr.seek(0)
            said = stderr.read().decode(errors="replace")
    errors, notes, last_pass = _read(output)
    if errors:
        raise CompileError("\n".join(errors))
    # Where this process ignores the ends of its children, none has a status.
    if status != 0 or not os.path.exists(os.path.join(path, "manifest.json")):
        raise CompileError(_describe_end(status, last_pass, said))
    return [*notes, *said.splitlines()]


def _write(place: str, name: str, text: str) -> None:
    path = os.path.join(place, name)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _quoted(option: str) -> str:
    """An option as it is in a response file of LLVM's tools."""
    return '"' + re.sub(r'["\\]', r"\\\g<0>", option) + '"'


def _run(
    command: list[str],
    place: str,
    stderr: Any,
    on_pass: Callable[[str], None],
) -> tuple[bytes, int]:
    """The standard output and the exit status of a command."""
    try:
        process = subprocess.Popen(
            command,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # What a killed compiler leaves goes with `place`, and looking up
            # the symbols of a crash would take seconds.
            env=os.environ
            | {"TMPDIR": place, "LLVM_DISABLE_SYMBOLIZATION": "1"},
            # Ctrl-C on a terminal is for Python, which ends the compiler.
            process_group=0,
        )
    except OSError as error:
        raise WhaleError(
            f"the compiler cannot be started ({error}); build it with "
            "scripts/setup.sh, or pip install ."
        ) from error
    with process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith(_PASS):
                    on_pass(line[len(_PASS) :].decode().rstrip('"}\n'))
            return b"".join(lines), process.wait()
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and those that it has started."""
    try:
        _signal(process, signal.SIGTERM)
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Its number is its own until it has been waited for.
    if process.returncode is None:
        os.killpg(process.pid, number)


def _read(output: bytes) -> tuple[list[str], list[str], str]:
    """The errors, the other messages, and the last pass that began."""
    errors: list[str] = []
    notes: list[str] = []
    last_pass = ""
    for line in output.decode(errors="replace").splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue  # Cut off where the compiler was ended.
        if "pass" in message:
            last_pass = message["pass"]
            continue
        if "table" in message:
            # Of an error, or of a program.
            (errors or notes).extend(message["table"].splitlines())
            continue
        where = f"{message['location']}: " if message["location"] else ""
        said = f"{where}{message['severity']}: {message['text']}"
        (errors if message["severity"] == "error" else notes).append(said)
    return errors, notes, last_pass


def _describe_end(status: int, last_pass: str, said: str) -> str:
    """A diagnostic for a compiler that has ended without one."""
    if status >= 0:
        how = f"the compiler ended with status {status}"
    else:
        known = {number.value: number.name for number in signal.Signals}
        how = f"the compiler was ended by {known.get(-status, -status)}"
        if status == -signal.SIGKILL:
            how += " (as the system does where memory is short)"
    if last_pass:
        how += f"; the last pass that it began is {last_pass}"
    lines = [line for line in said.splitlines() if not _FRAME.match(line)]
    tail = lines[-_TAIL_LINES:]
    return "\n".join([f"error: {how}", *tail])
