"""The processes that do what is timed (worker.py)."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cases

HERE = pathlib.Path(__file__).resolve().parent


class Spoken:
    """A process that answers a line with one of JSON, through its pipes."""

    def __init__(self, *command: str | pathlib.Path, **options: Any) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )

    def ask(self, line: str) -> Any:
        """The answer to one line."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args!r} ended without an answer")
        return json.loads(answer)

    def close(self) -> int:
        """Ends the process; its exit status."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Worker(Spoken):
    """One side of a case, spoken to through pipes.

    `python` is where the package is, if not where PYTHONPATH says.
    """

    def __init__(
        self,
        side: str,
        case: cases.Case,
        *rest: str,
        python: pathlib.Path | None = None,
    ) -> None:
        environment = dict(os.environ, JAX_PLATFORMS="cpu")
        if python:
            environment["PYTHONPATH"] = str(python)
        if side == "jax":
            environment["XLA_FLAGS"] = (
                f"--xla_force_host_platform_device_count={case.ranks}"
            )
        cores = case.cores
        super().__init__(
            sys.executable,
            HERE / "worker.py",
            side,
            case.name,
            *rest,
            env=environment,
            preexec_fn=(lambda: keep_to(cores)) if cores else None,
        )


def keep_to(cores: int) -> None:
    """Leaves this process so many of its cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """Meanwhile another program has something to do on each core."""
    program = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(program) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
