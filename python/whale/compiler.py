"""The compiler, in a process of its own: what ends it does not end Python.

In: annotated StableHLO, a cluster, a target. Out: a program directory, or a
`CompileError` with the compiler's diagnostics or what ended it. Text and
options travel in a scratch directory, messages come back as lines of JSON; an
exception here, Ctrl-C too, ends the compiler and what it started. Each call
costs the start of a process and a copy of the text on disk. Threads may compile
at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import threading
import types
from collections.abc import Callable, Iterator, Mapping
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
# And one that says what a step needs, or would need with an option.
_FIT = b'{"fit":'
# A byte of a name that is no UTF-8, as os.fsdecode has it.
_BYTE = re.compile("[\udc80-\udcff]")
# Of a stack that is printed without symbols.
_FRAME = re.compile(r" *#?\d+ +\S+ +0x|Stack dump without symbol names")


PlanLike = Mapping[str, Any] | str | os.PathLike[str]
"""A plan, or the path of a file that has it as JSON."""

EXPLANATIONS = ("summary", "memory", "all")
"""What `compile` may be asked to explain."""


def compile(
    text: str,
    cluster: str,
    path: str,
    *,
    target: str,
    plan: PlanLike | None = None,
    dump_phases_to: str = "",
    explain: str = "",
    on_pass: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Compiles annotated StableHLO into the program directory `path`.

    `cluster` is a cluster file's path, its text, or a number of CPU ranks;
    `plan` is what is carried out, else all is decided; `on_pass` is called with
    the name of each pass that begins. Returns the lines of warnings, and of
    what `explain` asks for.

    Raises:
        CompileError: with the compiler's diagnostics, or what ended it.
        WhaleError: where it cannot be started.
    """
    options = [f"-o={os.path.abspath(path)}", f"--target={target}"]
    if dump_phases_to:
        options.append(f"--dump-phases-to={os.path.abspath(dump_phases_to)}")
    if explain:
        options.append(f"--explain={explain}")

    def on_line(line: bytes) -> None:
        if line.startswith(_PASS):
            on_pass(line[len(_PASS) :].decode().rstrip('"}\n'))

    said = _compile(text, cluster, options, on_line, plan)
    # Where this process ignores the ends of its children, none has a status.
    if not os.path.exists(os.path.join(path, "manifest.json")):
        raise CompileError(_describe_end(said))
    return said.notes


def plan(
    text: str, cluster: str, target: str, given: PlanLike | None = None
) -> dict[str, Any]:
    """What `compile` would decide, or carry out of the plan that is `given`;
    no code is generated, and nothing written.

    Raises: as `compile`.
    """
    options = [f"--target={target}", "--explain=json"]
    said = _compile(text, cluster, options, lambda line: None, given)
    if said.plan is None:
        raise CompileError(_describe_end(said))
    return said.plan


def needs(
    text: str,
    cluster: str,
    target: str,
    given: PlanLike | None = None,
    *,
    prices_options: bool,
    on_part: Callable[[dict[str, Any]], None] = lambda part: None,
    on_start: Callable[[Callable[[], None]], None] = lambda end: None,
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The plan of a step, and what it needs, also where it does not fit.

    The plan is None where it does not fit and the planner has given it up. What
    it needs is followed, if `prices_options`, by what it would need with
    options (``docs/memory.md``); `on_part` is called with each of these as it
    comes, `on_start` with what ends the compiler.

    Raises: as `compile`, but for a step that does not fit.
    """
    what = "fit" if prices_options else "peak"
    options = [f"--target={target}", f"--explain={what}"]

    def on_line(line: bytes) -> None:
        if line.startswith(_FIT):
            on_part(json.loads(line)["fit"])

    said = _compile(text, cluster, options, on_line, given, on_start)
    if not said.fit:
        raise CompileError(_describe_end(said))
    return said.plan, said.fit


def plan_text(plan: PlanLike) -> str:
    """The JSON of a plan, a value in a line, so that messages can name it.

    Raises:
        ValueError: where the file cannot be read.
    """
    if isinstance(plan, Mapping):
        text = json.dumps(plan, ensure_ascii=False, indent=1)
        return _BYTE.sub(lambda m: f"\\\\x{ord(m[0]) - 0xDC00:02X}", text)
    try:
        with open(plan, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"plan: cannot read {plan}: {error}") from None


@dataclasses.dataclass
class _Said:
    """What the compiler said, and how it ended."""

    status: int
    errors: list[str]
    # All other messages.
    notes: list[str]
    # What it wrote to standard error.
    tail: str
    last_pass: str = ""
    plan: dict[str, Any] | None = None
    fit: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def _compile(
    text: str,
    cluster: str,
    options: list[str],
    on_line: Callable[[bytes], None],
    plan: PlanLike | None,
    on_start: Callable[[Callable[[], None]], None] = lambda end: None,
) -> _Said:
    """Runs the compiler, and raises what it says is wrong."""
    options = [
        "step.mlir",
        f"--cluster={cluster}",
        "--messages=json",
        f"--parent={os.getpid()}",
        "--callbacks",
        *options,
    ]
    # A file is named in messages.
    if isinstance(plan, (str, os.PathLike)):
        options.append(f"--plan={os.path.abspath(plan)}")
    elif plan is not None:
        options.append("--plan=plan.json")
    with files.ScratchDirectory() as place:
        if isinstance(plan, Mapping):
            _write(place, "plan.json", plan_text(plan))
        # A cluster may be longer than an argument of a command.
        _write(place, "options", "\n".join(map(_quoted, options)))
        _write(place, "step.mlir", text)
        with open(os.path.join(place, "stderr"), "w+b") as stderr:
            output, status = _run(
                [PATH, "@options"], place, stderr, on_line, on_start
            )
            stderr.seek(0)
            tail = stderr.read().decode(errors="replace")
    said = _Said(status, [], [], tail)
    _read(output, said)
    said.notes += tail.splitlines()
    if said.errors:
        raise CompileError("\n".join(said.errors))
    if status != 0:
        raise CompileError(_describe_end(said))
    return said


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
    on_line: Callable[[bytes], None],
    on_start: Callable[[Callable[[], None]], None],
) -> tuple[bytes, int]:
    """The standard output and the exit status of a command."""
    with contextlib.ExitStack() as stack:
        with _interrupts_held():
            process = stack.enter_context(_start(command, place, stderr))
            stack.push(functools.partial(_end_after_errors, process))
        assert process.stdout is not None
        on_start(functools.partial(_end, process))
        lines = []
        for line in process.stdout:
            lines.append(line)
            on_line(line)
        return b"".join(lines), process.wait()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Lets Ctrl-C act behind the block: it could hide a process just begun."""
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not (main and callable(handler)):
        yield
        return
    held: list[tuple[int, types.FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *arguments: held.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])


def _start(
    command: list[str], place: str, stderr: Any
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
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


def _end_after_errors(
    process: subprocess.Popen[bytes], error: type[BaseException] | None, *_: Any
) -> None:
    if error is not None:
        _end(process)


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


def _read(output: bytes, said: _Said) -> None:
    """Takes in the lines that the compiler wrote."""
    for line in output.decode(errors="replace").splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue  # Cut off where the compiler was ended.
        if "pass" in message:
            said.last_pass = message["pass"]
            continue
        if "table" in message:
            # Of an error, or of a program.
            lines = message["table"].splitlines()
            (said.errors or said.notes).extend(lines)
            continue
        if "plan" in message:
            said.plan = message["plan"]
            continue
        if "fit" in message:
            said.fit.append(message["fit"])
            continue
        where = f"{message['location']}: " if message["location"] else ""
        text = f"{where}{message['severity']}: {message['text']}"
        is_error = message["severity"] == "error"
        (said.errors if is_error else said.notes).append(text)


def _describe_end(said: _Said) -> str:
    """A diagnostic for a compiler that has ended without one."""
    status = said.status
    if status >= 0:
        how = f"the compiler ended with status {status}"
    else:
        known = {number.value: number.name for number in signal.Signals}
        how = f"the compiler was ended by {known.get(-status, -status)}"
        if status == -signal.SIGKILL:
            how += " (as the system does where memory is short)"
    if said.last_pass:
        how += f"; the last pass that it began is {said.last_pass}"
    lines = [line for line in said.tail.splitlines() if not _FRAME.match(line)]
    tail = lines[-_TAIL_LINES:]
    return "\n".join([f"error: {how}", *tail])
