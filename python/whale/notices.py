"""Warnings, as Python's `warnings` module has them, at the user's line.

In: what costs more than it need, and what to write instead. Out: a
`WhaleWarning`, unless the configuration says ``warnings: False``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings

import jax

from whale.errors import WhaleWarning

# Frames of these are no place where anything can be written.
_INNER = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (__file__, jax.__file__)
)
_LIBRARY = (contextlib.__file__, functools.__file__)


def warn(text: str) -> None:
    """Warns at the innermost line that is neither Whale's nor JAX's."""
    from whale import config, distributed

    # Of several processes, which all do the same, one says it.
    is_first = distributed.process_index() == 0
    if is_first and config.current().get("warnings", True):
        warnings.warn(text, WhaleWarning, stacklevel=_level())


def _level() -> int:
    """How many frames `warn` is away from the user's code."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_INNER)
        or frame.f_code.co_filename in _LIBRARY
    ):
        frame = frame.f_back
        level += 1
    return level
