"""Runs Whale's tools with limits, and says what is wrong with how they end."""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
import re
import resource
import select
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

# Of a tool: processor time, and time altogether, which other processes share.
SECONDS = 20
PATIENCE = 120
MEMORY = 4 << 30


@dataclasses.dataclass
class Run:
    """How a tool ended."""

    status: int | None
    out: str
    err: str

    @property
    def hangs(self) -> bool:
        """Whether it was ended because it took too long."""
        return self.status is None or self.status == -24  # SIGXCPU

    def fault(self, most_errors: int = 1) -> str:
        """What is wrong with that, whatever its input was; nothing if it is
        as the contract says."""
        if self.hangs:
            return f"takes more than {SECONDS} s"
        if self.status not in (0, 1):
            return f"exit status {self.status}: {self.err[:500]}"
        errors = sum("error: " in line for line in self.err.splitlines())
        if not self.status <= errors <= self.status * most_errors:
            return f"exit status {self.status}, {errors} errors: {self.err}"
        odd = re.search(r"(?<![\w.%@'\"/-])-?(inf|nan)(?![\w(])", self.out)
        if odd:
            line = self.out[: odd.end()].count("\n")
            return f"prints {odd[1]}: {self.out.splitlines()[line]}"
        return ""


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command: Sequence[str | pathlib.Path]) -> Run:
    try:
        result = subprocess.run(
            list(command),
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        return Run(None, "", "")
    return Run(
        result.returncode,
        result.stdout.decode("utf-8", "replace"),
        result.stderr.decode("utf-8", "replace"),
    )


class Reference:
    """XLA in another process, started anew where it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None

    def run(self, text: str, arguments: list[np.ndarray]) -> tuple:
        """("results", arrays, arrays of changed arguments), ("refused",
        message) or ("dies", why)."""
        if self.process is None:
            script = pathlib.Path(__file__).with_name("reference.py")
            self.process = subprocess.Popen(
                [sys.executable, script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self.process
        assert process.stdin and process.stdout
        try:
            pickle.dump((text, arguments), process.stdin)
            process.stdin.flush()
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                raise EOFError
            return pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            process.kill()
            status = process.wait()
            self.process = None
            return ("dies", f"exit status {status}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
