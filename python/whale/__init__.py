"""Whale: train a JAX step on many devices, of like or unlike kinds.

A step is annotated with scopes, ``wh.replicate`` and ``wh.split``, lowered to
StableHLO by JAX, and compiled for a cluster by Whale.
"""

from whale import versions  # isort: skip
from whale import forks, interop
from whale.api import jit
from whale.array import Array, gather, to_jax
from whale.checkpoints import Checkpointer
from whale.config import Config, init
from whale.distributed import init_distributed, process_count, process_index
from whale.errors import (
    CompileError,
    RuntimeError,
    WhaleError,
    WhaleWarning,
)
from whale.fitting import Fit, fit
from whale.loops import loop
from whale.lowering import Lowered, from_local_data, move
from whale.machine import detect_cluster
from whale.nnx_steps import nnx_jit
from whale.patterns import scopes
from whale.placement import Placement
from whale.plan import Plan, explain
from whale.primitives import cluster, pipeline, replica, stage
from whale.program import Program, load
from whale.strategies import replicate, set_default_strategy, split
from whale.visualize import visualize

interop.register()
forks.register()

__version__ = versions.VERSION

__all__ = [
    "Array",
    "Checkpointer",
    "CompileError",
    "Config",
    "Fit",
    "Lowered",
    "Placement",
    "Plan",
    "Program",
    "RuntimeError",
    "WhaleError",
    "WhaleWarning",
    "cluster",
    "detect_cluster",
    "explain",
    "fit",
    "from_local_data",
    "gather",
    "init",
    "init_distributed",
    "jit",
    "load",
    "loop",
    "move",
    "nnx_jit",
    "pipeline",
    "process_count",
    "process_index",
    "replica",
    "replicate",
    "scopes",
    "set_default_strategy",
    "split",
    "stage",
    "to_jax",
    "visualize",
]
