"""What means nothing is one error that says where, and what would help.

Under test: plans, scopes and settings that contradict themselves or the
cluster. Each must be refused with one error whose text, given as a pattern,
names the remedy; errors of the compiler must name a place in this file. Two
cases that only look bad must give what jax.jit gives, within 1e-5. A failure
means that nonsense is accepted, or that a user is not told what to change.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import whale as wh

SAMPLES, WIDTH, LAYERS = 4, 4, 3
# Of each layer the scopes around it, outermost first.
Scopes = tuple[tuple[Callable[[], Any], ...], ...]


def make_step(scopes: Scopes) -> Any:
    def loss(params: Any, x: jax.Array) -> jax.Array:
        for weight, around in zip(params, scopes, strict=True):
            with contextlib.ExitStack() as stack:
                for scope in around:
                    stack.enter_context(scope())
                x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def step(params: Any, x: jax.Array) -> Any:
        grads = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - g, params, grads)

    return step


def arguments() -> tuple[Any, jax.Array]:
    keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    normal = [jax.random.normal(key, (WIDTH, WIDTH)) for key in keys]
    return normal[:LAYERS], normal[LAYERS]


def compile_step(
    config: dict[str, Any], scopes: Scopes, cluster: Any = 2
) -> wh.Program:
    wh.init(wh.Config(config))
    program = wh.jit(make_step(scopes), cluster=cluster, batch_argnums=1)
    return program.lower(*arguments()).compile()


def replicate(count: int, name: str | None = None) -> Callable[[], Any]:
    return lambda: wh.replicate(count, name=name)


def split(count: int, name: str | None = None) -> Callable[[], Any]:
    return lambda: wh.split(count, name=name)


NOWHERE: Scopes = ((),) * LAYERS
STAGES: Scopes = tuple((replicate(1, name),) for name in "abc")
AROUND = (replicate(2, "around"),)


@pytest.mark.parametrize(
    "config, scopes, cluster, message",
    [
        ({"num_task_graph": 5000}, NOWHERE, 2, "5000 is more than 1024 task"),
        ({"num_task_graph": 2}, STAGES, 2, "leave num_task_graph or the scop"),
        ({"num_micro_batch": 5}, NOWHERE, 2, "5 of them are more than 4 sam"),
        ({}, STAGES, 4, "group sizes that fit are 1, 2, 4"),
        ({}, ((replicate(3),), (), ()), 2, "asks for 3 devices, the cluster"),
        (
            {},
            ((replicate(1, "a"),), (split(1, "a"),), ()),
            2,
            "'a' is both replicate and split",
        ),
        (
            {},
            ((replicate(1, "a"),), (replicate(2, "a"),), ()),
            2,
            "'a' asks for 2 devices here and for 1 before",
        ),
        (
            {"pipeline.strategy": "1f1b"},
            STAGES,
            3,
            "orders micro-batches, and there is only one; set num_micro_batch",
        ),
        (
            {"pipeline.strategy": "1f1b", "num_micro_batch": 2},
            NOWHERE,
            2,
            "orders the stages of a pipeline.*give task graphs devices of",
        ),
        (
            {"pipeline.strategy": "interleaved", "num_micro_batch": 2},
            STAGES,
            3,
            "needs at least 2 task graphs on each stage's devices; raise",
        ),
        (
            {"pipeline.strategy": "interleaved", "num_micro_batch": 3},
            (STAGES[0], STAGES[1], STAGES[2]),
            2,
            "the same number of task graphs on each stage",
        ),
        # A cycle names the operations on it.
        (
            {"num_micro_batch": 2},
            (STAGES[0], STAGES[1], STAGES[0]),
            2,
            "come back to TaskGraph 'a'.*give these operations a TaskGraph of "
            "their own.*'stablehlo.dot_general' in TaskGraph 'b' uses what 'a' "
            "makes; 'stablehlo.dot_general' in TaskGraph 'a' uses what 'b' mak",
        ),
        (
            {"cluster.uneven_replicas": True},
            ((lambda: wh.cluster([[0]]), replicate(1)), (), ()),
            2,
            "uneven_replicas groups all devices, and wh.cluster says",
        ),
        (
            {},
            ((lambda: wh.cluster([[0], [7]]), replicate(1)), (), ()),
            2,
            "virtual device 1 names device 7, the cluster has 2",
        ),
    ],
)
def test_plans_that_cannot_be(
    config: dict[str, Any], scopes: Scopes, cluster: int, message: str
) -> None:
    with pytest.raises(wh.CompileError, match=message) as raised:
        compile_step(config, scopes, cluster)
    text = str(raised.value)
    assert text.count("error: ") == 1
    assert text.startswith((__file__, "x: ")), "no location"


@pytest.mark.parametrize(
    "scopes, message",
    [
        (
            (lambda: wh.pipeline(2), wh.stage, wh.stage),
            "wh.stage is in a wh.stage; stages follow one another",
        ),
        (
            (lambda: wh.pipeline(2), wh.stage, lambda: wh.pipeline(2)),
            "wh.pipeline is in a wh.stage; it goes around its stages",
        ),
        (
            (replicate(2, "a"), split(2, "a")),
            "is in .*replicate.* a scope of the same name; .* different",
        ),
        ((wh.stage,), "wh.stage is in no wh.pipeline"),
        (
            (split(2), replicate(2)),
            "^replicate.* is in split.*, which shards all that it holds; ",
        ),
        ((split(2, "a"), split(2, "b")), "'b'.* is in split.*'a'"),
        ((split(2), wh.replica), "is in split.*end that split before"),
    ],
)
def test_scopes_nested_without_meaning(
    scopes: tuple[Callable[[], Any], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compile_step({}, (scopes, (), ()))


def test_a_split_within_itself_is_one_task_graph() -> None:
    around = (split(2, "a"),)
    compile_step({}, ((*around, *around), around, ()))


@pytest.mark.parametrize("key", ["num_micro_batch", "num_task_graph"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True, 2**63, 10**30])
def test_counts_of_the_configuration(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{key}.*from 1 to 32768"):
        wh.Config({key: value})


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"pipeline.strategy": "2f2b"}, "one of 'gpipe', '1f1b'"),
        ({"pipeline.strategy": 3}, "one of 'gpipe', '1f1b'"),
        ({"pipeline": "1f1b"}, "takes a dictionary"),
        ({"cluster.uneven_replicas": 1}, "True or False"),
        ({"cluster.uneven_replicas": "yes"}, "True or False"),
        ({"num_stages": 2}, "unknown Config key.*the valid keys are"),
    ],
)
def test_values_of_the_configuration(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wh.Config(settings)


@pytest.mark.parametrize("count", [0, -2, 1.0, 2**63])
def test_numbers_of_devices(count: Any) -> None:
    with pytest.raises(ValueError, match="device_count must be a whole number"):
        wh.split(count)


@pytest.mark.parametrize(
    "scopes, cluster",
    [
        # Scopes in scopes, on devices of their own and on the same.
        (((replicate(2), split(2)), (), ()), 4),
        ((AROUND, (*AROUND, split(2)), AROUND), 2),
    ],
)
def test_what_looks_bad_but_means_something(
    scopes: Scopes, cluster: int
) -> None:
    program = compile_step({"num_micro_batch": 2}, scopes, cluster)
    expected = jax.jit(make_step(NOWHERE))(*arguments())
    for one, other in zip(expected, program(*arguments()), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), atol=1e-5)


def line_search(
    loss: Callable[..., Any], value_loss: Callable[..., Any], optimizer: Any
) -> Callable[..., Any]:
    """A step of an optimizer that evaluates `value_loss` in a loop."""

    def step(params: Any, state: Any, x: jax.Array) -> Any:
        value, grad = jax.value_and_grad(loss)(params, x)
        updates, state = optimizer.update(
            grad,
            state,
            params,
            value=value,
            grad=grad,
            value_fn=lambda params: value_loss(params, x),
        )
        return optax.apply_updates(params, updates), state

    return step


def plain_loss(params: Any, x: jax.Array) -> jax.Array:
    for weight in params:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x**2)


def staged_loss(params: Any, x: jax.Array) -> jax.Array:
    for name, weight in zip("abc", params):
        with wh.replicate(1, name):
            x = jnp.tanh(x @ weight)
    return jnp.mean(x**2)


def test_a_loop_in_a_library_that_calls_scopes() -> None:
    optimizer = optax.chain(
        optax.sgd(1.0), optax.scale_by_backtracking_linesearch(3)
    )
    params, x = arguments()
    args = (params, optimizer.init(params), x)
    step = line_search(staged_loss, staged_loss, optimizer)
    with pytest.raises(wh.CompileError) as raised:
        wh.jit(step, cluster=3, batch_argnums=2)(*args)
    assert re.search(
        r"give it a function without scopes, or set num_task_graph in their "
        r"place; \S+/optax/_src/linesearch.py:\d+:\d+: this is the loop",
        str(raised.value),
    )
    # The remedy.
    step = line_search(staged_loss, plain_loss, optimizer)
    ours = wh.jit(step, cluster=3, batch_argnums=2)(*args)
    expected = jax.jit(line_search(plain_loss, plain_loss, optimizer))(*args)
    np.testing.assert_allclose(ours[0][0], expected[0][0], atol=1e-5)


def test_equinox_errors_name_their_remedy() -> None:
    def step(x: jax.Array) -> jax.Array:
        def body(x: jax.Array) -> jax.Array:
            return eqx.error_if(x, x.sum() > 3, "too much") * 2

        return jax.lax.while_loop(lambda x: x.sum() < 9, body, x)

    message = (
        r"equinox/_errors.py:\d+:\d+: error: .*where equinox's error_if raises "
        "in a loop, start Python with EQX_ON_ERROR=nan in its environment"
    )
    wh.set_default_strategy(wh.replicate())
    with pytest.raises(wh.CompileError, match=message):
        wh.jit(step, cluster=2)(jnp.ones(2))
    # What that sets, here for one check.
    with_nan = wh.jit(
        lambda x: eqx.error_if(x, x.sum() > 3, "too much", on_error="nan"),
        cluster=1,
    )
    assert np.isnan(with_nan(jnp.full(2, 2.0))).all()
