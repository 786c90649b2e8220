"""The C++ side, behind one module: loaded when it is first needed."""

from __future__ import annotations

import sys
from typing import Any

from whale.errors import CompileError, RuntimeError, WhaleError


def extension() -> Any:
    """The module ``whale._whale``.

    Raises:
        WhaleError: where it was not built or cannot be loaded.
    """
    try:
        from whale import _whale  # type: ignore[attr-defined]
    except ImportError as error:
        raise WhaleError(
            f"the compiled part of Whale cannot be loaded ({error}); build it "
            "with scripts/setup.sh, or pip install ."
        ) from error
    return _whale


def compile(text: str, cluster: str, path: str, **options: Any) -> None:
    """Compiles annotated StableHLO into the program directory `path`."""
    module = extension()
    try:
        notes = module.compile(text, cluster, path, **options)
    except module.CompileError as error:
        raise CompileError(str(error)) from None
    for note in notes:
        print(note, file=sys.stderr)


def load(path: str) -> Any:
    """Loads a program directory."""
    return guarded(extension().Program, path)


def guarded(call: Any, *arguments: Any) -> Any:
    """Calls into the runtime; its failures become `whale.RuntimeError`."""
    try:
        return call(*arguments)
    except extension().RuntimeError as error:
        raise RuntimeError(str(error)) from None
