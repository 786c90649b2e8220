"""``Program.trace``: some calls of a program recorded as a timeline."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

from whale import distributed, native


class Recorded:
    """What a recorded step cost, as the extension's `Step` says it."""

    has_left = True

    def __init__(self, stats: str, profile: Any) -> None:
        self._stats = stats
        self._profile = profile

    def stats(self, in_main_thread: bool) -> str:
        return self._stats

    def profile(self, in_main_thread: bool) -> Any:
        return self._profile


class Recording:
    """The next calls of a program, of which each is written to a file."""

    def __init__(self, program: Any, path: str, steps: int) -> None:
        """Collective, so that the timelines of all processes begin together.

        Args:
            program: the extension's.
            path: the file, written anew after each call.
            steps: how many calls are recorded.

        Raises:
            OSError: where there is no such folder.
        """
        if not os.path.isdir(os.path.dirname(path)):
            raise FileNotFoundError(f"{path}: there is no such folder")
        if distributed.job() is not None:
            distributed.all_gather("the beginning of traces", b"")
        self._program = program
        self._path = path
        self._trace = native.extension().Trace()
        self._left = steps

    @property
    def is_over(self) -> bool:
        return self._left == 0

    def run(self, rank_count: int, *arguments: Any) -> tuple[list[Any], Any]:
        """Runs a step as the extension's `submit`, and waits for it."""
        results, stats, profile = native.guarded(
            self._program.run_traced, *arguments, self._trace
        )
        self._left -= 1
        self._write(rank_count)
        return results, Recorded(stats, profile)

    def _write(self, rank_count: int) -> None:
        own = distributed.process_index()
        process_of = self._program.process_of
        text = self._trace.json(
            [rank for rank in range(rank_count) if process_of(rank) == own]
        )
        if distributed.job() is not None:
            parts = distributed.all_gather("traces", text.encode())
            if own != 0:
                return
            text = native.extension().Trace.join([p.decode() for p in parts])
        # Whoever reads it finds a whole one.
        folder, name = os.path.split(self._path)
        number, place = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(place, 0o644)
            os.replace(place, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(place)
            raise
