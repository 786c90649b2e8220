"""The names that a step gives values with ``checkpoint_name``.

In: a step that JAX has traced. Out: what makes JAX write the names down as it
lowers the step, where `gradient_checkpoint.type` is ``"collection"``: each
value goes through an ``optimization_barrier`` that has the name as attribute
``whale.checkpoint_name``. JAX by itself drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax._src.ad_checkpoint import name_p
from jax._src.interpreters.mlir import LoweringParameters
from jax._src.lib.mlir.dialects import hlo
from jax.interpreters import mlir

from whale import config

ir = mlir.ir


def _lower_name(
    context: mlir.LoweringRuleContext, value: Any, *, name: str
) -> Sequence[ir.Value]:
    barrier = hlo.OptimizationBarrierOp([value])
    barrier.operation.attributes["whale.checkpoint_name"] = ir.StringAttr.get(
        name
    )
    return barrier.results


def lower(traced: Any) -> Any:
    """What ``traced.lower`` gives, with the names where they matter."""
    kind = config.current().get("gradient_checkpoint.type", "")
    if str(kind).lower() != "collection":
        return traced.lower(lowering_platforms=("cpu",))
    rules = ((name_p, _lower_name),)
    return traced.lower(
        lowering_platforms=("cpu",),
        _private_parameters=LoweringParameters(override_lowering_rules=rules),
    )
