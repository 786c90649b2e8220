"""What `os.fork` needs beside what the runtime does."""

from __future__ import annotations

import ctypes
import os

from jax._src import xla_bridge


def register() -> None:
    """Has each child of this process call what it needs."""
    os.register_at_fork(after_in_child=_keep_backends)


def _keep_backends() -> None:
    """Has the backends of JAX outlive the child.

    Destroyed at the end of Python, they would wait for their threads, which a
    child doesn't have.
    """
    for backend in list(getattr(xla_bridge, "_backends", {}).values()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(backend))
