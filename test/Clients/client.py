"""What a case is: a step as a user of a library writes it, and its parts."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

BATCH = 12
# Strategies under which a case runs; run.py says what each is.
ALL = ("one", "replicate", "split", "mixed", "stages")
# Of a step that is in no parts, as a sampler's.
WHOLE = ("one", "replicate", "split")
# Micro-batches don't change what is computed of all samples together.
JOINS_SAMPLES = (
    r"micro-batches: '.*' needs operand #\d+ of the whole mini-batch"
)


class Program(NamedTuple):
    """``step(*state, *batch)`` gives the next state, then other results."""

    step: Callable[..., tuple[Any, ...]]
    state: tuple[Any, ...]
    # All leaves carry the mini-batch in dimension 0.
    batch: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Client:
    """A case. `refused` has for strategies that cannot be honoured what the
    error says, as a regular expression."""

    build: Callable[[], Program]
    runs: tuple[str, ...] = ALL
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tolerance: float = 1e-4


# The strategies of the parts of the step that is being traced.
_parts: dict[str, Any] = {}


def part(name: str) -> contextlib.AbstractContextManager[Any]:
    """The scope of a part of a model, "body" or "head", if it has one."""
    return _parts.get(name) or contextlib.nullcontext()


@contextlib.contextmanager
def parts(strategies: Mapping[str, Any]) -> Iterator[None]:
    """Gives parts of the steps that are traced inside their strategies."""
    before = dict(_parts)
    _parts.clear()
    _parts.update(strategies)
    try:
        yield
    finally:
        _parts.clear()
        _parts.update(before)


def normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def weights(seed: int, *shape: int) -> jax.Array:
    """Of the size that keeps sums over all but one dimension near 1."""
    return normal(seed, *shape) / math.sqrt(math.prod(shape[:-1]))


def numbers(seed: int, bound: int, *shape: int) -> jax.Array:
    return jax.random.randint(jax.random.key(seed), shape, 0, bound)


def trained(
    loss: Callable[..., Any],
    params: Any,
    *batch: Any,
    optimizer: Any = None,
    extra: Any = None,
    takes: Sequence[str] = ("value", "grad", "value_fn"),
) -> Program:
    """A step of ``loss(params, *batch)``; with `extra`, of ``loss(params,
    extra, *batch)``, which also gives the next `extra`. `takes` names what the
    optimizer's update takes of the loss besides gradients."""
    optimizer = optimizer or optax.sgd(0.1, momentum=0.9)
    optimizer = optax.with_extra_args_support(optimizer)

    def step(params: Any, opt_state: Any, extra: Any, *batch: Any) -> Any:
        def value(params: Any) -> Any:
            if extra is None:
                return loss(params, *batch), None
            return loss(params, extra, *batch)

        def value_alone(params: Any) -> Any:
            # A line search evaluates it again, outside of all stages.
            with parts({}):
                return value(params)[0]

        (result, after), grads = jax.value_and_grad(value, has_aux=True)(params)
        given = {
            "value": result,
            "grad": grads,
            "value_fn": value_alone,
            "obj_fn": value_alone,
        }
        updates, opt_state = optimizer.update(
            grads, opt_state, params, **{name: given[name] for name in takes}
        )
        params = optax.apply_updates(params, updates)
        return params, opt_state, after, result

    return Program(step, (params, optimizer.init(params), extra), batch)


def mlp(
    optimizer: Any = None,
    loss: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """A net of two layers, and ``loss(outputs, x)`` of 12 x 4 outputs, trained
    with these options of `trained`."""
    params = {"in": weights(0, 6, 8), "bias": normal(1, 8) / 4}
    params |= {"out": weights(2, 8, 4)}
    loss = loss or (lambda y, x: jnp.mean((y - x[:, :4]) ** 2))

    def total(params: Any, x: jax.Array) -> jax.Array:
        with part("body"):
            h = jnp.tanh(x @ params["in"] + params["bias"])
        with part("head"):
            return loss(h @ params["out"], x)

    batch = normal(3, BATCH, 6)
    return trained(total, params, batch, optimizer=optimizer, **options)


def layer(
    apply: Callable[..., Any],
    params: Any,
    *x: Any,
    extra: Any = None,
    optimizer: Any = None,
) -> Program:
    """A layer, ``apply(params, *x)``, before a linear head; with `extra`,
    ``apply(params, extra, *x)`` also gives the next `extra`."""
    given = (params, *x) if extra is None else (params, extra, *x)
    shape = jax.eval_shape(apply, *given)
    if extra is not None:
        shape = shape[0]
    leaves = jax.tree.leaves(shape)
    size = sum(math.prod(leaf.shape[1:]) for leaf in leaves)
    both = {"layer": params, "head": weights(97, size, 5)}

    def loss(params: Any, *given: Any) -> Any:
        *x, target = given
        with part("body"):
            y = apply(params["layer"], *x)
            after = None
            if extra is not None:
                y, after = y
        with part("head"):
            rows = [
                leaf.reshape(len(target), -1) for leaf in jax.tree.leaves(y)
            ]
            y = jnp.concatenate(rows, 1).real @ params["head"]
            value = jnp.mean((y - target) ** 2)
        return value if extra is None else (value, after)

    target = normal(98, BATCH, 5)
    return trained(loss, both, *x, target, optimizer=optimizer, extra=extra)
