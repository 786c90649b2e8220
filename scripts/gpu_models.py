"""The models whose steps are timed on a GPU, by Whale and by JAX.

Where a bundle is made and where it is checked; there `whale` may be missing.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import math
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import jax

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
if not importlib.util.find_spec("whale"):
    # The models ask it for strategies alone, and only where they have one.
    sys.modules["whale"] = types.ModuleType("whale")

import models  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Timed:
    """A training step of `model`, a function of models.py.

    `products` says of which precision products are; f32 ones are exact on both
    sides. JAX is timed with its own attention and with the `others`, of
    `jax.nn.dot_product_attention`.
    """

    model: str
    options: dict[str, Any]
    products: str
    others: tuple[str, ...] = ()


_GPT = {"dtype": "bfloat16"}
_LARGE = {"layers": 12, "width": 1024, "heads": 16, "batch": 8, "context": 1024}
TIMED = {
    "gpt-large-bf16": Timed("gpt", _GPT | _LARGE, "bf16", ("cudnn",)),
    "resnet50-bf16": Timed("resnet", {"dtype": "bfloat16"}, "bf16"),
    "resnet50-f32": Timed("resnet", {"batch": 64}, "f32"),
    "moe-large-bf16": Timed(
        "moe_transformer", {"dtype": "bfloat16"}, "bf16", ("cudnn",)
    ),
}
# Tests time them, on machines without a GPU.
SMALL = {
    "gpt-small-bf16": Timed(
        "gpt",
        _GPT | {"layers": 1, "width": 32, "heads": 2, "batch": 2, "context": 8},
        "bf16",
        ("xla", "cudnn"),
    ),
}


def workload(timed: Timed) -> models.Workload:
    """The model and its mini-batch."""
    made: models.Workload = getattr(models, timed.model)(False, **timed.options)
    return made


def abstract_state(model: models.Workload) -> tuple[Any, Any]:
    """The types of the parameters and of the optimizer's state."""
    params = jax.eval_shape(model.init, jax.random.key(0))
    return params, jax.eval_shape(model.optimizer.init, params)


def use_attention(implementation: str) -> None:
    """Gives the GPT JAX's fused attention in the place of einsums."""
    fused: Any = jax.nn.dot_product_attention

    def attention(params: Any, x: jax.Array) -> jax.Array:
        query, key, value = jax.numpy.einsum(
            "btd,dnhk->nbthk", x, params["qkv"]
        )
        mixed = fused(
            query, key, value, is_causal=True, implementation=implementation
        )
        return jax.numpy.einsum("bthk,hkd->btd", mixed, params["out"])

    models.gpt_model.attention = attention


def flops(model: models.Workload) -> float:
    """What a step's products and convolutions take as they are written, two a
    product of numbers: three times those of the forward pass."""
    params, _ = abstract_state(model)
    forward = jax.make_jaxpr(model.loss)(params, model.batch)
    return 3.0 * _flops(forward.jaxpr)


def useful_flops(timed: Timed) -> float:
    """Of these, what the results depend on: a causal mask hides the scores of
    keys behind a row's own; experts have places that no token takes, and tokens
    go there and back by products with zeros and ones."""
    make = getattr(models, timed.model)
    given = inspect.signature(make).bind(False, **timed.options)
    given.apply_defaults()
    options = given.arguments
    forward = 0
    if timed.model in ("gpt", "moe_transformer"):
        context, width = options["context"], options["width"]
        layers = options["batch"] * options["layers"]
        # Of the products of rows and keys, and of keys and values.
        forward += 2 * layers * width * context * (context - 1)
    if timed.model == "moe_transformer":
        experts, hidden = options["experts"], options["hidden"]
        places = experts * models.capacity_of(context, experts)
        forward += 4 * layers * context * places * width
        forward += 4 * layers * (places - 2 * context) * width * hidden
    return flops(workload(timed)) - 3.0 * forward


def _flops(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        shapes = [value.aval.shape for value in equation.invars]
        size = math.prod(equation.outvars[0].aval.shape)
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            size *= math.prod(shapes[0][at] for at in contracted)
            total += 2 * size
        elif equation.primitive.name == "conv_general_dilated":
            features = equation.params["dimension_numbers"].rhs_spec[0]
            total += 2 * size * math.prod(shapes[1]) // shapes[1][features]
        times = equation.params.get("length", 1)
        total += times * sum(map(_flops, _inner(equation.params)))
    return total


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for one in value if isinstance(value, tuple | list) else [value]:
            one = getattr(one, "jaxpr", one)
            if hasattr(one, "eqns"):
                yield one
