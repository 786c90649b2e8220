"""Small gradients are reduced together, side by side in memory."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import whale as wh
from whale.program import read_tables

RANKS, BATCH, WIDTH = 4, 24, 16
# Shapes with and without alignment, and a scalar.
SHAPES = {
    "bias": (WIDTH,),
    "gain": (),
    "odd": (5,),
    "out": (WIDTH, 5),
    "up": (WIDTH, WIDTH),
}


def predict(params: Any, x: jax.Array) -> jax.Array:
    hidden = jnp.tanh(x @ params["up"] + params["bias"]) * params["gain"]
    return hidden @ params["out"] + params["odd"]


def step(params: Any, speed: Any, x: jax.Array) -> Any:
    """Momentum; one gradient is a result, too."""
    value, grads = jax.value_and_grad(lambda p: jnp.mean(predict(p, x) ** 2))(
        params
    )
    speed = jax.tree.map(lambda v, g: 0.9 * v + g, speed, grads)
    params = jax.tree.map(lambda p, v: p - 0.1 * v, params, speed)
    return params, speed, value, grads["bias"]


def make_arguments() -> tuple[Any, Any, np.ndarray]:
    random = np.random.default_rng(7)
    params = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in SHAPES.items()
    }
    speed = jax.tree.map(np.zeros_like, params)
    return params, speed, random.standard_normal((BATCH, WIDTH)).astype("f4")


def compile_step(bucket_bytes: int, micro_batches: int) -> wh.Program:
    wh.init(
        wh.Config(
            {
                "num_micro_batch": micro_batches,
                "communication.bucket_bytes": bucket_bytes,
            }
        )
    )
    wh.set_default_strategy(wh.replicate(RANKS))
    return (
        wh.jit(step, cluster=RANKS, donate_argnums=(0, 1), batch_argnums=2)
        .lower(*make_arguments())
        .compile()
    )


def count_bytes(buffer: dict[str, Any]) -> int:
    extents = re.findall(r"\d+", buffer["type"].partition("[")[2])
    return 4 * int(np.prod([int(extent) for extent in extents]))


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_same_bits_for_every_size_of_buckets(micro_batches: int) -> None:
    arguments = make_arguments()
    expected = jax.tree.leaves(jax.jit(step)(*arguments))
    first: list[bytes] | None = None
    for bucket_bytes in (0, 8, 64, 700, 2048, 1 << 18):
        program = compile_step(bucket_bytes, micro_batches)
        state: Any = arguments
        results = [
            np.asarray(leaf) for leaf in jax.tree.leaves(program(*state))
        ]
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
        bits = [result.tobytes() for result in results]
        first = first or bits
        assert bits == first, bucket_bytes


def test_nothing_is_copied_that_has_a_place_in_the_bucket(
    tmp_path: pathlib.Path,
) -> None:
    counts = {}
    for bucket_bytes in (0, 1 << 18):
        path = tmp_path / str(bucket_bytes)
        compile_step(bucket_bytes, 1).save(path)
        manifest = json.loads((path / "manifest.json").read_text())
        read_tables(str(path), manifest)
        (rank_class,) = manifest["classes"]
        instructions, buffers = (
            rank_class[name] for name in ("instructions", "buffers")
        )
        counts[bucket_bytes] = [
            sum(kind in instruction for instruction in instructions)
            for kind in ("start", "kernel", "copy")
        ]
    # All gradients and the loss in one exchange. The gradient that is a result
    # is copied from there, the scalar, the loss and `odd` both ways at most.
    (starts, kernels, copies), (before, kernels_before, copies_before) = (
        counts[1 << 18],
        counts[0],
    )
    assert (before, starts) == (6, 1)
    assert kernels <= kernels_before
    assert copies <= copies_before + 7
    (whole,) = (
        buffers[instruction["src"][0]]
        for instruction in instructions
        if "start" in instruction
    )
    # The aligned gradients are ranges of what is reduced.
    missing = [1024, 320, 64]
    begin = whole["arena"]
    while missing:
        here = [
            count_bytes(buffer)
            for buffer in buffers
            if buffer.get("arena") == begin
        ]
        found = [size for size in missing if size in here]
        assert found, begin
        missing.remove(found[0])
        begin += found[0]


def on_nodes(nodes: int, devices: int) -> dict[str, Any]:
    """A cluster whose network is slower than the links inside its nodes."""
    return {
        "nodes": [
            {
                "count": nodes,
                "devices": [{"kind": "cpu", "count": devices}],
                "link": {"bandwidth": 1e10, "latency": 1e-6},
            }
        ],
        "network": {"bandwidth": 1e7, "latency": 1e-5},
    }


def small_parameters(params: list[jax.Array], x: jax.Array) -> Any:
    def loss(params: list[jax.Array]) -> jax.Array:
        h = x
        for w in params:
            h = jnp.tanh(h @ w)
        return jnp.mean(h**2)

    value, grads = jax.value_and_grad(loss)(params)
    return [p - 0.1 * g for p, g in zip(params, grads)], value


@pytest.mark.parametrize("nodes, devices", [(2, 2), (4, 8)])
def test_reductions_over_nodes_are_joined(nodes: int, devices: int) -> None:
    """All gradients and the loss, the same bits on each run."""
    random = np.random.default_rng(3)
    arguments = (
        [random.standard_normal((4, 4)).astype("f4") for _ in range(200)],
        random.standard_normal((nodes * devices, 4)).astype("f4"),
    )
    wh.init()
    wh.set_default_strategy(wh.replicate(nodes * devices))
    program = (
        wh.jit(
            small_parameters, cluster=on_nodes(nodes, devices), batch_argnums=1
        )
        .lower(*arguments)
        .compile()
    )
    counts = {
        kind: entry["count"]
        for kind, entry in program.plan["collectives"].items()
    }
    assert counts == {"all_gather": 1, "all_reduce": 1, "reduce_scatter": 1}
    if devices > 2:
        return
    first, second = (
        [np.asarray(leaf) for leaf in jax.tree.leaves(program(*arguments))]
        for _ in range(2)
    )
    expected = jax.tree.leaves(jax.jit(small_parameters)(*arguments))
    for ours, again, theirs in zip(first, second, expected, strict=True):
        assert ours.tobytes() == again.tobytes()
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("width, kinds", [
    (401, {"all_reduce"}), (400, {"all_reduce", "reduce_scatter", "all_gather"})
])  # fmt: skip
def test_reductions_in_loops_and_branches(width: int, kinds: set[str]) -> None:
    """What doesn't divide evenly stays one, as nothing can be filled up there;
    the values are those of jax.jit either way."""
    random = np.random.default_rng(4)
    w = random.standard_normal(width).astype("f4")
    x = random.standard_normal((8, width)).astype("f4")

    def step(w: jax.Array, x: jax.Array) -> Any:
        def mean(c: jax.Array) -> jax.Array:
            return jnp.tanh((x * c).mean(0))

        def body(c: jax.Array, _: None) -> Any:
            return c + 0.1 * mean(c), mean(jnp.sin(c))

        c, means = lax.scan(body, w, None, length=3)
        return lax.cond(c[0] > 0, mean, lambda c: 2 * mean(c + 1), c), means

    wh.init()
    wh.set_default_strategy(wh.replicate(4))
    program = (
        wh.jit(step, cluster=on_nodes(2, 2), batch_argnums=1)
        .lower(w, x)
        .compile()
    )
    assert set(program.plan["collectives"]) == kinds
    ours = [np.asarray(leaf) for leaf in jax.tree.leaves(program(w, x))]
    theirs = jax.tree.leaves(jax.jit(step)(w, x))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_gradients_of_half_parameters_are_joined() -> None:
    """Each is rounded where it is used, behind the sum of all."""

    def train_step(params: list[jax.Array], x: jax.Array) -> Any:
        def loss(params: list[jax.Array]) -> jax.Array:
            terms = [(x @ p.astype(jnp.float32)) ** 2 for p in params]
            return sum((term.mean() for term in terms), jnp.float32(0))

        grads = jax.grad(loss)(params)
        return [(p - 0.125 * g).astype(p.dtype) for p, g in zip(params, grads)]

    types = (jnp.bfloat16, jnp.float32) * 4
    random = np.random.default_rng(0)
    params = [jnp.asarray(random.normal(size=(4, 4)), type) for type in types]
    x = np.ones((6, 4), np.float32)
    wh.init()
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(train_step, cluster=3, batch_argnums=1)
    program = step.lower(params, x).compile()
    assert program.plan["collectives"]["all_reduce"]["count"] == 1
    for ours, theirs in zip(program(params, x), jax.jit(train_step)(params, x)):
        np.testing.assert_allclose(
            np.asarray(ours, np.float32), np.asarray(theirs, np.float32), 1e-2
        )


@pytest.mark.parametrize("nodes, devices", [(2, 2), (3, 2), (2, 3)])
def test_gathers_are_divided_by_node(
    nodes: int, devices: int, tmp_path: pathlib.Path
) -> None:
    """What is gathered or scattered over several nodes goes to one device of
    each node, and from there to the others of its own."""
    count, width = nodes * devices, 48

    def loss(params: Any, x: jax.Array) -> jax.Array:
        for up, down in params:
            x = x + jnp.tanh(x @ up) @ down
            x = x - x.mean(-1, keepdims=True)
        return (x**2).mean()

    def step(params: Any, x: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    random = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return random.standard_normal(shape).astype("f4") / 8

    params = [
        (draw(width, 4 * width), draw(4 * width, width)) for _ in range(4)
    ]
    x = draw(12 * count, width)
    cluster = on_nodes(nodes, devices)
    cluster["network"]["bandwidth"] = 1e7
    wh.set_default_strategy(wh.split(count))
    program = wh.jit(step, cluster=cluster).lower(params, x).compile()
    for ours, expected in zip(
        jax.tree.leaves(program(params, x)),
        jax.tree.leaves(jax.jit(step)(params, x)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
    kinds = ("all_gather", "reduce_scatter")
    program.save(tmp_path / "step.whale")
    manifest = json.loads((tmp_path / "step.whale/manifest.json").read_text())
    read_tables(str(tmp_path / "step.whale"), manifest)
    sizes = {
        len(manifest["communicators"][number])
        for channel in manifest["channels"].values()
        if channel.get("kind") in kinds
        for number in channel["communicators"]
    }
    assert sizes == {nodes, devices}


def test_exchanges_of_branches_are_joined() -> None:
    """Of parallel towers, whose layers are split, and of what an optimizer does
    with each gradient: one of each depth."""

    def train_step(layers: list[jax.Array], x: jax.Array) -> Any:
        def loss(layers: list[jax.Array]) -> Any:
            towers = [
                jnp.tanh(x @ w @ v) for w, v in zip(layers[::2], layers[1::2])
            ]
            penalties = [jnp.abs(w @ w.T).mean() for w in layers[::2]]
            return sum(t.mean() for t in towers) + sum(penalties)

        value, grads = jax.value_and_grad(loss)(layers)
        for _ in range(2):
            grads = [1.5 * g - 0.5 * g @ g.T @ g for g in grads]
        return [w - 0.1 * g for w, g in zip(layers, grads)], value

    random = np.random.default_rng(5)
    layers = [random.standard_normal((12, 8)).astype("f4") for _ in range(24)]
    for index in range(1, 24, 2):
        layers[index] = layers[index].T.copy()
    x = random.standard_normal((8, 12)).astype("f4")
    wh.init()
    wh.set_default_strategy(wh.split(4))
    program = wh.jit(train_step, cluster=4).lower(layers, x).compile()
    counts = {
        kind: entry["count"]
        for kind, entry in program.plan["collectives"].items()
    }
    assert counts == {"all_gather": 2, "all_reduce": 3, "reduce_scatter": 1}
    ours = jax.tree.leaves(program(layers, x))
    theirs = jax.tree.leaves(jax.jit(train_step)(layers, x))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_ranks_meet_once_for_all_micro_batches() -> None:
    """Also where a term of a gradient is a layer of a stack, a column, or what
    a norm or a product of factors makes of it."""
    random = np.random.default_rng(3)
    params = {
        name: 0.3 * random.standard_normal(shape).astype(np.float32)
        for name, shape in {
            "stack": (4, 8, 8),
            "scanned": (4, 8, 8),
            "columns": (8, 8, 2),
            "normed": (8, 8),
            "factors": (2, 8, 3),
            "outer": (8,),
        }.items()
    }
    x = random.standard_normal((16, 8)).astype(np.float32)

    def loss(p: Any, h: jax.Array) -> jax.Array:
        for layer in range(4):
            h = jnp.tanh(h @ p["stack"][layer])
        h, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), h, p["scanned"])
        h = jnp.tanh(h @ p["columns"][:, :, 0])
        h = jnp.tanh(h @ (p["normed"] / jnp.linalg.norm(p["normed"])))
        h = jnp.tanh(h @ (p["factors"][0] @ p["factors"][1].T))
        h = h @ (p["outer"][:, None] * p["outer"])
        return jnp.mean(h**2)

    def train(p: Any, x: jax.Array) -> Any:
        grads = jax.grad(loss)(p, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, grads)

    wh.init(wh.Config({"num_micro_batch": 4}))
    wh.set_default_strategy(wh.replicate(2))
    program = (
        wh.jit(train, cluster=2, batch_argnums=1).lower(params, x).compile()
    )
    expected = jax.jit(train)(params, x)
    for name, found in program(params, x).items():
        np.testing.assert_allclose(
            found, expected[name], rtol=2e-5, atol=2e-6, err_msg=name
        )
    for rank in program.stats["ranks"]:
        assert list(rank["collectives"]) == ["all_reduce"]
        assert rank["collectives"]["all_reduce"]["count"] == 1
