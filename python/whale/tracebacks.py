"""Tracebacks that end in the user's frame.

JAX knows the files whose frames it takes out of what is raised below its own
functions, unless ``JAX_TRACEBACK_FILTERING=off``; Whale's are among them, and
Whale takes the same ones out.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
from jax._src import traceback_util

_Function = TypeVar("_Function", bound=Callable[..., Any])

_FILTERING = "jax_traceback_filtering"

traceback_util.register_exclusion(os.path.dirname(os.path.abspath(__file__)))


def traceback_of_user(error: BaseException) -> types.TracebackType | None:
    """The frames of what was raised without those of Whale and JAX."""
    if error.__traceback__ is None:
        return None
    found: types.TracebackType | None = traceback_util.filter_traceback(
        error.__traceback__
    )
    return found


def api_boundary(function: _Function) -> _Function:
    """What is raised in `function` shows no frames of Whale and JAX."""

    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if getattr(jax.config, _FILTERING) != "off":
                error.with_traceback(traceback_of_user(error))
            raise

    return cast(_Function, bounded)
