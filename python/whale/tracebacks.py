"""Tracebacks that end in the user's frame.

JAX takes frames of registered files out of what is raised below a boundary,
unless ``JAX_TRACEBACK_FILTERING=off``; Whale's are registered too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from jax._src import traceback_util

_Function = TypeVar("_Function", bound=Callable[..., Any])

traceback_util.register_exclusion(os.path.dirname(os.path.abspath(__file__)))


def api_boundary(function: _Function) -> _Function:
    """What is raised in `function` shows no frames of Whale and JAX."""
    return traceback_util.api_boundary(function)
