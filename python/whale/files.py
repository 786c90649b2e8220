"""Directories of programs: replaced as a whole, and removed when unused."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

from whale import native


@contextlib.contextmanager
def staged_program(path: str) -> Iterator[str]:
    """Gives the place for a program, which replaces `path` at the end."""
    staging = native.extension().Staging(path)
    try:
        yield staging.place
        staging.commit()
    finally:
        staging.discard()


class ScratchDirectory:
    """An empty directory, removed when this object goes or its block ends.

    What a process that was killed leaves is removed by the next one.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="program-", dir=_workspace())
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: Any) -> None:
        self._remove()


def _remove(path: str, owner: int) -> None:
    # A forked child leaves its parent's directories alone.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


_staging: Any = None
_owner: int | None = None


def _workspace() -> str:
    """The directory for all scratch directories of this process."""
    global _staging, _owner
    # In long sessions, others may clean up the directory of temporary files.
    if _owner != os.getpid() or not os.path.isdir(_staging.place):
        name = os.path.join(tempfile.gettempdir(), f"whale-{os.getuid()}")
        _staging = native.extension().Staging(name)
        _owner = os.getpid()
        os.mkdir(_staging.place)
        atexit.register(_staging.discard)
    return _staging.place
