"""How far a compilation is, where it takes more than a moment.

In: the passes that begin. Out: on a terminal one line that is written over and
removed at the end; elsewhere a plain line now and then. A thread writes it, and
ends with the compilation.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

# Below this nothing is said; then a terminal is written to so often, and other
# files so often.
FIRST_SECONDS = 2.0
_TERMINAL_SECONDS = 0.5
_FILE_SECONDS = 10.0

# The first pass of each level of the IR, and what is done there.
_LEVELS = {
    "whale-inline-calls": "1 of 6, reading the step",
    "whale-form-task-graphs": "2 of 6, forming task graphs",
    "whale-assign-devices": "3 of 6, placing values on devices",
    "whale-schedule-micro-batches": "4 of 6, dividing the step among ranks",
    "whale-convolution-gradients": "5 of 6, forming kernels",
    "whale-order-instructions": "6 of 6, ordering instructions and buffers",
}


@contextlib.contextmanager
def shown(
    name: str, devices: str, file: TextIO | None = None
) -> Iterator[Callable[[str], None]]:
    """Shows the progress of what is done meanwhile.

    Args:
        name: of the step.
        devices: what it is compiled for.
        file: where to write, standard error if it is None.

    Yields:
        what each pass that begins is told to.
    """
    progress = _Progress(name, devices, sys.stderr if file is None else file)
    thread = threading.Thread(
        target=progress.write, name="whale-progress", daemon=True
    )
    thread.start()
    try:
        yield progress.begin_pass
    finally:
        progress.is_over.set()
        thread.join()


class _Progress:
    def __init__(self, name: str, devices: str, file: TextIO) -> None:
        self._what = f"compiling {name!r} for {devices}"
        self._file = file
        self._level = _LEVELS["whale-inline-calls"]
        self._begin = time.monotonic()
        self.is_over = threading.Event()

    def begin_pass(self, name: str) -> None:
        self._level = _LEVELS.get(name, self._level)

    def write(self) -> None:
        if self.is_over.wait(FIRST_SECONDS):
            return
        # A file that is closed, or a pipe that nobody reads, is no reason to
        # fail.
        with contextlib.suppress(OSError, ValueError):
            if self._file.isatty():
                while not self.is_over.is_set():
                    self._put(f"\r\x1b[K{self._text()}")
                    self.is_over.wait(_TERMINAL_SECONDS)
                self._put("\r\x1b[K")
                return
            while not self.is_over.wait(_FILE_SECONDS - FIRST_SECONDS):
                self._put(f"{self._text()}\n")
                if self.is_over.wait(FIRST_SECONDS):
                    return

    def _put(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()

    def _text(self) -> str:
        seconds = time.monotonic() - self._begin
        return f"whale: {self._what}: level {self._level}, {seconds:.0f} s"
