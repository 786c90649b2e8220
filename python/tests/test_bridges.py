"""What is exchanged between TaskGraphs of every kind and degree.

Under test: two TaskGraphs that are replicated or split, on the same devices or
on others. Results must be those of jax.jit (rtol 1e-5), the kinds of
collectives exactly those expected, and the bytes received at most what the
formula in each case allows. A failure means that data is lost on its way, or
that more of it travels than has to.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh
from whale.program import read_tables

BATCH, WIDTH, HIDDEN = 12, 24, 48
# Bytes of a parameter, of the hidden layer and of the loss.
PARAMETER, LAYER, SCALAR = WIDTH * HIDDEN * 4, BATCH * HIDDEN * 4, 4

Scope = tuple[str, int]


def make_step(first: Scope, second: Scope) -> Callable[..., Any]:
    """A step of two products in two TaskGraphs."""

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        with getattr(wh, first[0])(first[1], name="first"):
            hidden = jnp.tanh(x @ params["up"])
        with getattr(wh, second[0])(second[1], name="second"):
            return jnp.mean((jnp.tanh(hidden @ params["down"]) - y) ** 2)

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def ring(count: int, size: int) -> int:
    """Bytes that `count` devices receive in an all-reduce."""
    return 2 * (count - 1) * size


# Devices, the scopes, the kinds of collectives that may occur, and the bytes
# that all devices receive at most. Gradients of replicated parameters are
# all-reduced; what else there is are the bridges, there and back.
CASES = [
    # Colocated, same layout: fused, no bridge.
    (
        4,
        ("replicate", 4),
        ("replicate", 4),
        {"all_reduce"},
        2 * ring(4, PARAMETER) + ring(4, SCALAR),
    ),
    # Column and row split: one sum of the results, no bridge.
    (
        4,
        ("split", 4),
        ("split", 4),
        {"all_reduce"},
        ring(4, BATCH * WIDTH * 4),
    ),
    # Samples to features and back: all-to-all, each time 3 / 4 of the layer.
    (
        4,
        ("replicate", 4),
        ("split", 4),
        {"all_reduce", "all_to_all"},
        ring(4, PARAMETER) + ring(4, BATCH * WIDTH * 4) + 2 * LAYER * 3 // 4,
    ),
    # Stages of equal degree: every sample is sent once each way.
    (
        4,
        ("replicate", 2),
        ("replicate", 2),
        {"all_reduce", "send_recv"},
        2 * ring(2, PARAMETER) + 2 * LAYER + 4 * SCALAR,
    ),
    # Shards of the hidden layer are sent as they are, to the row split.
    (
        4,
        ("split", 2),
        ("split", 2),
        {"all_reduce", "send_recv"},
        2 * LAYER + ring(2, BATCH * WIDTH * 4),
    ),
    # Different degrees: samples go where they are needed, each once.
    (
        5,
        ("replicate", 3),
        ("replicate", 2),
        {"all_reduce", "send_recv"},
        ring(3, PARAMETER) + ring(2, PARAMETER) + 2 * LAYER + 5 * SCALAR,
    ),
    (
        5,
        ("split", 3),
        ("split", 2),
        {"all_reduce", "send_recv"},
        2 * LAYER + ring(2, BATCH * WIDTH * 4),
    ),
    # Shared devices, wrapping round.
    (
        4,
        ("split", 4),
        ("replicate", 2),
        {"all_gather", "all_reduce", "send_recv"},
        None,
    ),
    (5, ("replicate", 5), ("split", 2), None, None),
    (5, ("split", 2), ("replicate", 5), None, None),
]


@pytest.mark.parametrize(
    ("devices", "first", "second", "kinds", "most_bytes"), CASES
)
def test_bridge(
    devices: int,
    first: Scope,
    second: Scope,
    kinds: set[str] | None,
    most_bytes: int | None,
) -> None:
    wh.init(wh.Config({}))
    key = jax.random.key(0)
    params = {
        "up": jax.random.normal(key, (WIDTH, HIDDEN)) / 5,
        "down": jax.random.normal(key, (HIDDEN, WIDTH)) / 5,
    }
    x = jax.random.normal(key, (BATCH, WIDTH))
    step = make_step(first, second)
    expected = jax.jit(step)(params, x, jnp.tanh(x))
    program = (
        wh.jit(step, cluster=devices, batch_argnums=(1, 2))
        .lower(params, x, jnp.tanh(x))
        .compile()
    )
    results = program(params, x, jnp.tanh(x))
    for result, wanted in zip(
        jax.tree.leaves(results), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    seen: set[str] = set()
    received = 0
    for rank in program.stats["ranks"]:
        seen |= set(rank["collectives"])
        received += sum(
            c["bytes_received"] for c in rank["collectives"].values()
        )
    if kinds is not None:
        assert seen == kinds
    if most_bytes is not None:
        assert received <= most_bytes


# Of which devices, with how many micro-batches: the shares of the stages fit,
# or their samples are cut anew; the last of three devices is slower.
SLOW = {
    "nodes": [
        {
            "devices": [
                {"kind": "cpu", "count": 2},
                {"kind": "cpu", "slowdown": 2.0},
                {"kind": "cpu", "count": 2},
            ]
        }
    ]
}


@pytest.mark.parametrize(
    ("cluster", "degrees", "moments"),
    [(4, (2, 2), 1), (SLOW, (3, 2), 1), (3, (1, 2), 3)],
)
def test_small_bridges_are_one_transfer(
    tmp_path: pathlib.Path,
    cluster: Any,
    degrees: tuple[int, int],
    moments: int,
) -> None:
    """What a stage sends at one moment, of several types, goes together."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with wh.replicate(degrees[0], name="first"):
            hidden = jnp.tanh(x @ w)
            gate = jnp.exp(-(x**2).mean(axis=1))
            flags = x[:, :3] > 0
            rounded = hidden[:, :2].astype(jnp.bfloat16)
        with wh.replicate(degrees[1], name="second"):
            signs = jnp.where(flags, 1.0, -0.5).sum(axis=1)
            rest = rounded.astype(jnp.float32).sum(axis=1)
            out = jnp.cos(hidden) * gate[:, None]
            return jnp.mean(out.sum(axis=1) * signs + rest)

    def step(w: jax.Array, x: jax.Array) -> Any:
        value, grad = jax.value_and_grad(loss)(w, x)
        return w - 0.1 * grad, value

    w = jax.random.normal(jax.random.key(0), (WIDTH, HIDDEN)) / 5
    x = jax.random.normal(jax.random.key(1), (BATCH, WIDTH))
    made = []
    for bucket_bytes in (1 << 18, 0):
        wh.init(
            wh.Config(
                {
                    "num_micro_batch": moments,
                    "communication.bucket_bytes": bucket_bytes,
                }
            )
        )
        lowered = wh.jit(step, cluster=cluster, batch_argnums=1).lower(w, x)
        program = lowered.compile()
        results = [np.asarray(each) for each in program(w, x)]
        path = tmp_path / str(bucket_bytes)
        program.save(path)
        manifest = json.loads((path / "manifest.json").read_text())
        read_tables(str(path), manifest)
        types = [
            {part["dtype"] for part in channel["parts"]}
            for channel in manifest["channels"].values()
            if "parts" in channel
        ]
        sends = sum(
            rank["collectives"].get("send_recv", {"count": 0})["count"]
            for rank in program.stats["ranks"]
        )
        made.append((results, types, sends, program.plan["collectives"]))
    (results, types, sends, planned), (apart, before, more, counted) = made
    assert {"f32", "i1", "bf16"} in types
    assert all(len(each) == 1 for each in before)
    assert sends < more
    assert planned["send_recv"]["bytes"] == counted["send_recv"]["bytes"]
    assert planned["send_recv"]["count"] < counted["send_recv"]["count"]
    for result, same, wanted in zip(
        results, apart, jax.jit(step)(w, x), strict=True
    ):
        np.testing.assert_array_equal(result, same)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("first", [("replicate", 2), ("split", 2)])
def test_a_sum_for_some_of_the_devices(first: Scope) -> None:
    """A statistic of all devices that only one of them goes on with."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with getattr(wh, first[0])(first[1]):
            mean = jnp.tanh(x @ w).mean()
        with wh.replicate(1):
            return mean * mean * jnp.exp(mean)

    def step(w: jax.Array, x: jax.Array) -> Any:
        value, grad = jax.value_and_grad(loss)(w, x)
        return w - 0.1 * grad, value

    wh.init(wh.Config({}))
    w = jax.random.normal(jax.random.key(0), (WIDTH, HIDDEN)) / 5
    x = jax.random.normal(jax.random.key(1), (BATCH, WIDTH))
    results = wh.jit(step, cluster=2, batch_argnums=1)(w, x)
    for result, wanted in zip(results, jax.jit(step)(w, x), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
