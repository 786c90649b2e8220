"""Micro-batches and pipelines compute what the whole mini-batch does.

Under test: schedules, stages of all kinds, loops and solvers in micro-batches
whose sizes may differ. Results must be within 1e-4 of those of jax.jit, in many
cases after two steps of a four-layer network; seeds are fixed. A failure means
that samples are lost, counted twice or combined in the wrong place. A program's
size is checked, too: at most 200 bytes for each further call.
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import whale as wh
from whale.program import read_tables

WIDTH, SAMPLES, LAYERS = 8, 12, 4


def make_step(
    scope: Callable[[int], Any], masked: bool = False, samples: int = SAMPLES
) -> Any:
    """A step of a deep network, layer i in scope(i)."""
    optimizer = optax.adam(1e-2)

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for i, (weight, bias) in enumerate(params):
            with scope(i):
                x = jnp.tanh(x @ weight + bias)
                if i + 1 < len(params):
                    continue
                error = jnp.sum((x - y) ** 2, axis=-1)
                if not masked:
                    return jnp.mean(error)
                mask = (y[:, 0] > 0).astype(x.dtype)
                return jnp.sum(error * mask) / jnp.sum(mask)
        raise AssertionError("there is a last layer")

    def step(params: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    keys = jax.random.split(jax.random.key(0), LAYERS + 2)
    params = [
        (0.3 * jax.random.normal(key, (WIDTH, WIDTH)), jnp.zeros(WIDTH))
        for key in keys[:LAYERS]
    ]
    batch = [jax.random.normal(key, (samples, WIDTH)) for key in keys[LAYERS:]]
    return step, (params, optimizer.init(params)), batch


@functools.cache
def two_steps(masked: bool, samples: int) -> Any:
    """What `jax.jit` gives, the same for all scopes and settings."""
    step, state, batch = make_step(nowhere, masked, samples)
    for _ in range(2):
        *state, loss = jax.jit(step)(*state, *batch)
    return state, loss


def check(
    config: dict[str, Any],
    scope: Callable[[int], Any],
    cluster: Any,
    masked: bool = False,
    samples: int = SAMPLES,
) -> Any:
    """Two steps under these settings against `jax.jit`."""
    wh.init(wh.Config(config))
    step, start, batch = make_step(scope, masked, samples)
    program = wh.jit(step, cluster=cluster, batch_argnums=(2, 3))
    actual = start
    for _ in range(2):
        *actual, loss = program(*actual, *batch)
    for one, other in zip(
        jax.tree.leaves(two_steps(masked, samples)),
        jax.tree.leaves((actual, loss)),
        strict=True,
    ):
        one = np.asarray(one)
        scale = max(float(np.abs(one).max()), 1e-6)
        assert np.abs(one - np.asarray(other)).max() <= 1e-4 * scale
    return program


def assert_close(ours: Any, expected: Any) -> None:
    for one, other in zip(
        jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def halves(i: int) -> Any:
    return wh.replicate(1, name=f"stage{i // 2}")


def each(i: int) -> Any:
    return wh.replicate(1, name=f"stage{i}")


def nowhere(i: int) -> Any:
    return contextlib.nullcontext()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("count", [1, 5, 12])
def test_accumulates_over_micro_batches(count: int, masked: bool) -> None:
    check({"num_micro_batch": count}, nowhere, 1, masked)


def test_replicas_accumulate_and_reduce_once() -> None:
    wh.set_default_strategy(wh.replicate())
    check({"num_micro_batch": 3}, lambda i: wh.replicate(2, name="all"), 2)


@pytest.mark.parametrize(
    "schedule",
    ["gpipe", "1f1b", "PreferBackwardOptimizer", "zero-bubble", None],
)
def test_pipelines_of_two_stages(schedule: str | None) -> None:
    config: dict[str, Any] = {"num_micro_batch": 4}
    if schedule:
        config["pipeline"] = {"strategy": schedule}
    check(config, halves, 2)


@pytest.mark.parametrize(
    ("schedule", "scopes"),
    [("1f1b", halves), ("gpipe", halves), ("interleaved", each)],
)
def test_micro_batches_add_calls_alone(
    schedule: str, scopes: Callable[[int], Any], tmp_path: pathlib.Path
) -> None:
    """Of one size they have the same functions and kernels, whatever their
    number; a call, with the transfers around it, takes at most 200 bytes."""
    functions, kernels, runs, sizes = [], [], [], []
    for count in (8, 64):
        wh.init(
            wh.Config({"num_micro_batch": count, "pipeline.strategy": schedule})
        )
        step, start, batch = make_step(scopes, samples=2 * count)
        path = tmp_path / str(count)
        wh.jit(step, cluster=2, batch_argnums=(2, 3)).lower(
            *start, *batch
        ).compile().save(path)
        sizes.append(sum(table.stat().st_size for table in path.glob("*.json")))
        manifest = json.loads((path / "manifest.json").read_text())
        read_tables(str(path), manifest)
        functions.append(len(manifest["functions"]))
        kernels.append(len(manifest["kernel_signatures"]))
        runs.append(
            sum(
                "run" in instruction
                for rank_class in manifest["classes"]
                for instruction in rank_class["instructions"]
            )
        )
    assert functions[0] == functions[1] > 0
    assert kernels[0] == kernels[1] > 0
    assert runs[1] == 8 * runs[0] > 0
    assert sizes[1] - sizes[0] <= 200 * (runs[1] - runs[0])


def test_an_uneven_pipeline_of_four_stages() -> None:
    check({"num_micro_batch": 5}, each, 4, masked=True)


def test_an_interleaved_pipeline() -> None:
    config = {"num_micro_batch": 4, "pipeline.strategy": "interleaved"}
    check(config, each, 2)


def test_a_pipeline_repeated_over_the_devices() -> None:
    check({"num_micro_batch": 3}, halves, 4)


def test_stages_of_other_kinds_and_degrees() -> None:
    def scope(i: int) -> Any:
        return (
            wh.replicate(1, name="body") if i < 2 else wh.split(2, name="head")
        )

    check({"num_micro_batch": 2}, scope, 3)


def test_a_stage_computes_again_from_what_it_has_received() -> None:
    """The last micro-batch has one sample, which one device computes."""
    wh.init(wh.Config({"num_micro_batch": 4}))

    @jax.checkpoint
    def layer(x: jax.Array, weight: jax.Array) -> jax.Array:
        return jnp.tanh(x @ weight)

    def loss(params: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        with wh.split(2):
            x = jnp.sin(x @ params[0]) @ params[1]
        with wh.replicate(2):
            x = layer(layer(x, params[0]), params[1]) @ params[2]
            return jnp.mean((x - y) ** 2)

    shapes = (5, 6), (6, 5), (5, 3), (7, 5), (7, 3)
    keys = jax.random.split(jax.random.key(0), len(shapes))
    *params, x, y = map(jax.random.normal, keys, shapes)
    step = jax.value_and_grad(loss)
    program = wh.jit(step, cluster=4, batch_argnums=(1, 2))
    assert_close(program(params, x, y), jax.jit(step)(params, x, y))


def test_samples_are_numbered_behind_a_receive() -> None:
    """The first part of the second stage receives and leaves the numbers of
    its samples to the next; devices take micro-batches in turn."""

    def step(x: jax.Array, y: jax.Array, weight: jax.Array) -> jax.Array:
        with wh.replicate(2):
            a, b = jnp.tanh(x), jnp.tanh(y)
        with wh.replicate(2):
            number = jnp.arange(len(x), dtype=x.dtype)[:, None]
            return jnp.sum((b + 3 * y + number) @ weight * a)

    keys = jax.random.split(jax.random.key(0), 3)
    x, y = (jax.random.normal(key, (6, 4)) for key in keys[:2])
    weight = jax.random.normal(keys[2], (4, 4))
    wh.init(wh.Config({"num_micro_batch": 6}))
    ours = wh.jit(step, cluster=4, batch_argnums=(0, 1))(x, y, weight)
    expected = jax.jit(step)(x, y, weight)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_devices_without_samples_of_a_loop() -> None:
    """Of the second micro-batch's two samples two of four devices have none."""

    def step(weight: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, h: jnp.tanh(h @ weight), x)

    keys = jax.random.split(jax.random.key(0), 2)
    weight = jax.random.normal(keys[0], (4, 4))
    x = jax.random.normal(keys[1], (5, 4))
    wh.init(wh.Config({"num_micro_batch": 2}))
    wh.set_default_strategy(wh.replicate(4))
    ours = wh.jit(step, cluster=4, batch_argnums=1)(weight, x)
    expected = jax.jit(step)(weight, x)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_each_device_cuts_a_constant() -> None:
    anchors = jnp.asarray(np.arange(12, dtype=np.float32) % 5)

    def step(weight: jax.Array, x: jax.Array) -> jax.Array:
        with wh.split(2):
            return jnp.mean((x @ weight - anchors) ** 2)

    keys = jax.random.split(jax.random.key(0), 2)
    weight = jax.random.normal(keys[0], (4, 12))
    x = jax.random.normal(keys[1], (6, 4))
    wh.init(wh.Config({"num_micro_batch": 2}))
    ours = wh.jit(step, cluster=2, batch_argnums=1)(weight, x)
    np.testing.assert_allclose(ours, jax.jit(step)(weight, x), rtol=1e-5)


@pytest.mark.parametrize("scope", [nowhere, halves])
@pytest.mark.parametrize(("count", "is_scaled"), [(2, True), (5, False)])
def test_two_updates_in_one_step(
    count: int, is_scaled: bool, scope: Callable[[int], Any]
) -> None:
    """The second gradient (sharpness-aware minimization) is taken where the
    first one, of all samples, leads; then another loss follows the update."""

    def loss(weights: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for i, weight in enumerate(weights):
            with scope(i):
                x = jnp.tanh(x @ weight)
        with scope(len(weights) - 1):
            return jnp.mean((x - y) ** 2)

    def step(weights: Any, x: jax.Array, y: jax.Array) -> Any:
        first = jax.grad(loss)(weights, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in first)) if is_scaled else 1
        moved = [w + 0.3 * g / norm for w, g in zip(weights, first)]
        value, grads = jax.value_and_grad(loss)(moved, x, y)
        weights = [w - 0.5 * g for w, g in zip(weights, grads)]
        return weights, value, loss(weights, x, y)

    keys = jax.random.split(jax.random.key(0), LAYERS + 2)
    weights = [
        0.5 * jax.random.normal(key, (WIDTH, WIDTH)) for key in keys[:LAYERS]
    ]
    x, y = (jax.random.normal(key, (SAMPLES, WIDTH)) for key in keys[LAYERS:])
    wh.init(wh.Config({"num_micro_batch": count}))
    program = wh.jit(step, cluster=2, batch_argnums=(1, 2))
    assert_close(program(weights, x, y), jax.jit(step)(weights, x, y))


@pytest.mark.parametrize("stages", [1, 2])
def test_samples_stop_a_loop_on_their_own(stages: int) -> None:
    """As many rounds as each sample needs, forward and backward."""

    def solve(function: Any, start: jax.Array) -> Any:
        def goes_on(carry: Any) -> jax.Array:
            error = jnp.abs(function(carry[0]) - carry[0]).max()
            return (error > 1e-6) & (carry[1] < 40)

        return jax.lax.while_loop(
            goes_on,
            lambda carry: (function(carry[0]), carry[1] + 1),
            (start, 0),
        )

    @jax.custom_vjp
    def equilibrium(weight: jax.Array, x: jax.Array) -> jax.Array:
        return solve(lambda z: jnp.tanh(z @ weight + x), x)[0]

    def forward(weight: jax.Array, x: jax.Array) -> Any:
        z = equilibrium(weight, x)
        return z, (weight, x, z)

    def backward(saved: Any, gradient: jax.Array) -> Any:
        weight, x, z = saved
        _, pull = jax.vjp(lambda w, x, z: jnp.tanh(z @ w + x), weight, x, z)
        u, _ = solve(lambda u: gradient + pull(u)[2], gradient)
        return pull(u)[:2]

    equilibrium.defvjp(forward, backward)

    def step(params: Any, x: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            with wh.replicate(1, name="stage0"):
                h = x @ params[0]
            with wh.replicate(1, name=f"stage{stages - 1}"):
                z = jax.vmap(equilibrium, (None, 0))(params[1], h)
                return jnp.mean(z**2)

        value, gradients = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    keys = jax.random.split(jax.random.key(0), 3)
    params = [0.4 * jax.random.normal(key, (4, 4)) for key in keys[:2]]
    x = jax.random.normal(keys[2], (7, 4))
    wh.init(wh.Config({"num_micro_batch": 3}))
    ours = wh.jit(step, cluster=stages, batch_argnums=1)(params, x)
    assert_close(ours, jax.jit(step)(params, x))


def test_solves_with_a_gradient_after_all_micro_batches() -> None:
    """A matrix exponential does, in a branch of its backward."""

    def step(weight: jax.Array, x: jax.Array) -> Any:
        def loss(weight: jax.Array) -> jax.Array:
            return jnp.mean(jnp.tanh(x @ jax.scipy.linalg.expm(weight)))

        value, gradient = jax.value_and_grad(loss)(weight)
        return weight - 0.1 * gradient, value

    keys = jax.random.split(jax.random.key(0), 2)
    weight = 0.4 * jax.random.normal(keys[0], (4, 4))
    x = jax.random.normal(keys[1], (7, 4))
    wh.init(wh.Config({"num_micro_batch": 3}))
    ours = wh.jit(step, cluster=1, batch_argnums=1)(weight, x)
    assert_close(ours, jax.jit(step)(weight, x))


def test_automatic_stages() -> None:
    check({"num_micro_batch": 4, "num_task_graph": 2}, nowhere, 2)


def test_batch_statistics_are_an_error_at_their_line() -> None:
    wh.init(wh.Config({"num_micro_batch": 2}))

    def loss(weight: jax.Array, x: jax.Array) -> jax.Array:
        h = x @ weight
        return jnp.sum(((h - h.mean(axis=0)) @ weight) ** 4)

    program = wh.jit(jax.grad(loss), cluster=1, batch_argnums=1)
    with pytest.raises(wh.CompileError) as error:
        program(jnp.ones((4, 4)), jnp.ones((8, 4)))
    assert "test_pipelines.py" in str(error.value)
    assert "whole mini-batch" in str(error.value)


def test_counts_of_samples_that_no_stage_uses() -> None:
    """Each device computes them for each micro-batch."""

    def step(
        weights: Any, seen: jax.Array, x: jax.Array, mask: jax.Array
    ) -> Any:
        def loss(weights: Any) -> jax.Array:
            with wh.replicate(1, "first"):
                h = jnp.tanh(x @ weights[0])
            with wh.replicate(1, "second"):
                return jnp.mean((h @ weights[1]) ** 2)

        value, gradients = jax.value_and_grad(loss)(weights)
        weights = [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]
        return weights, seen + jnp.sum(mask, axis=1), value

    keys = jax.random.split(jax.random.key(0), 4)
    weights = [jax.random.normal(key, (4, 4)) for key in keys[:2]]
    mask = jax.random.bernoulli(keys[2], 0.5, (6, 3))
    x = jax.random.normal(keys[3], (6, 4))
    arguments = weights, jnp.arange(6), x, mask
    wh.init(wh.Config({"num_micro_batch": 3}))
    program = wh.jit(step, cluster=2, batch_argnums=(1, 2, 3))
    assert_close(program(*arguments), jax.jit(step)(*arguments))


@pytest.mark.parametrize("ranks, count", [(1, 2), (3, 2), (8, 1)])
@pytest.mark.parametrize("strategy", ["replicate", "split"])
def test_systems_whose_right_hand_sides_are_samples(
    ranks: int, count: int, strategy: str
) -> None:
    def step(weights: jax.Array, x: jax.Array) -> Any:
        def loss(weights: jax.Array) -> Any:
            matrix = jnp.tril(weights, -1) + jnp.eye(4)
            h = jax.scipy.linalg.solve_triangular(
                matrix, (x @ weights).T, lower=True
            )
            rows = jnp.sum(h.T**2, axis=1) - jnp.sum(x @ weights, axis=1)
            return jnp.mean(rows), h

        value, gradients = jax.value_and_grad(loss, has_aux=True)(weights)
        return weights - 0.1 * gradients, value

    keys = jax.random.split(jax.random.key(0))
    arguments = (
        jax.random.normal(keys[0], (4, 4)),
        jax.random.normal(keys[1], (5, 4)),
    )
    wh.init(wh.Config({"num_micro_batch": count}))
    wh.set_default_strategy(getattr(wh, strategy)(ranks))
    program = wh.jit(step, cluster=ranks, batch_argnums=(1,))
    assert_close(program(*arguments), jax.jit(step)(*arguments))


@pytest.mark.parametrize("schedule", ["1f1b", "zero-bubble"])
def test_recomputed_layers_that_stages_cut(schedule: str) -> None:
    """No backward waits for what an earlier stage computes again: values go
    forward once, gradients backward once for each micro-batch."""
    width, count, stages = 16, 4, 2

    def layer(x: jax.Array, weights: Any) -> jax.Array:
        for number, weight in enumerate(weights):
            with wh.replicate(1, name=f"stage{number}"):
                x = x + jnp.tanh(x @ weight)
        return x

    def step(weights: Any, x: jax.Array) -> Any:
        def loss(weights: Any) -> jax.Array:
            return jnp.mean(jax.checkpoint(layer)(x, weights) ** 2)

        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    keys = jax.random.split(jax.random.key(0), stages + 1)
    weights = [jax.random.normal(key, (width, width)) for key in keys[:stages]]
    x = jax.random.normal(keys[-1], (2 * count, width))
    wh.init(
        wh.Config({"num_micro_batch": count, "pipeline.strategy": schedule})
    )
    program = wh.jit(step, cluster=stages, batch_argnums=1)
    assert_close(program(weights, x), jax.jit(step)(weights, x))
    sent = program.lower(weights, x).compile().manifest["plan"]["collectives"]
    assert sent["send_recv"]["count"] == 2 * count
