"""What `os.fork` needs beside what the runtime does."""

from __future__ import annotations

import ctypes
import os

from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

from whale import distributed, steps


def register() -> None:
    """Has each child of this process call what it needs."""
    os.register_at_fork(after_in_child=distributed.forget)
    os.register_at_fork(after_in_child=steps.forget)
    os.register_at_fork(after_in_child=_keep_backends)
    os.register_at_fork(after_in_child=_replace_thread_pool)


def _keep_backends() -> None:
    """Has the backends of JAX outlive the child.

    Destroyed at the end of Python, they would wait for their threads, which a
    child doesn't have.
    """
    for backend in list(getattr(xla_bridge, "_backends", {}).values()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(backend))


def _replace_thread_pool() -> None:
    """Gives JAX threads for lowering: those of its parent it doesn't have."""
    pool = getattr(mlir, "global_thread_pool", None)
    if pool is not None:
        # Destroyed, it would wait for its threads.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
        mlir.global_thread_pool = ir.ThreadPool()
