"""Runs shard_map programs under jax on 4 host devices, and compiled by Whale
from their texts on 1, 3 and 4 ranks, and compares.

Under test: collectives, loops, branches, nested and partly manual maps, pmap
and their gradients. Results must be within 2e-5 of those of jax, and have the
same bits on late devices; arguments have fixed seeds. A failure means that a
collective has other groups or another order than written. Each of the ten
programs is compiled for 1, 3 and 4 ranks.
"""

import os
import pathlib
import sys
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "Conformance"), str(ROOT / "python")]

import late_devices  # noqa: E402
from cases import Tensor  # noqa: E402

P = PartitionSpec
MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))


def shard_map(function, in_specs, out_specs):
    return jax.shard_map(
        function, mesh=MESH, in_specs=in_specs, out_specs=out_specs,
        check_vma=False,
    )  # fmt: skip


def collectives(x):
    total = jax.lax.psum(x, "x")
    largest = jax.lax.pmax(x, ("x", "y"))
    gathered = jax.lax.all_gather(x, "y", axis=1, tiled=True)
    scattered = jax.lax.psum_scatter(
        gathered, "x", scatter_dimension=0, tiled=True
    )
    moved = jax.lax.ppermute(x, "x", [(0, 1), (1, 0)])
    swapped = jax.lax.all_to_all(
        x, "y", split_axis=0, concat_axis=1, tiled=True
    )
    rank = jax.lax.axis_index("x") * 10 + jax.lax.axis_index("y")
    return (
        total + moved * rank, largest, scattered, swapped,
        jnp.full((1, 1), rank, jnp.float32),
    )  # fmt: skip


def ring(x):
    """A collective inside of a loop, and a loop that differs by device."""

    def step(i, carry):
        total, moving = carry
        moving = jax.lax.ppermute(moving, "x", [(0, 1), (1, 0)])
        return total + moving * (i + 1), moving

    total, _ = jax.lax.fori_loop(0, 3, step, (jnp.zeros_like(x), x))
    turns = jax.lax.axis_index("y") + 1
    return jax.lax.fori_loop(0, turns, lambda _, v: v * 2 + 1, total)


def gradient(w, x):
    def loss(w):
        y = jnp.tanh(x @ w)
        return jax.lax.psum(jnp.sum(y * y), ("x", "y"))

    return jax.lax.psum(jax.grad(loss)(w), ("x", "y"))


def stacked(x):
    """Collectives that add or take away a dimension, and those over pairs."""
    rows = jax.lax.all_gather(x, "x")
    part = jax.lax.psum_scatter(rows, "x", scatter_dimension=0)
    turned = jax.lax.all_to_all(
        rows, "y", split_axis=0, concat_axis=1, tiled=False
    )
    least = jax.lax.pmin(x, "y")
    mean = jax.lax.pmean(x, ("x", "y"))
    middle = jax.lax.pcast(least.sum() + mean.sum(), "y", to="varying")
    half = jax.lax.ppermute(x, ("x", "y"), [(0, 3), (3, 1)])
    size = jax.lax.axis_size("x")
    return (
        rows[0] * 2 + part, turned.sum(0)[0], least - mean, half * size,
        jax.lax.psum(middle, "y").reshape(1, 1),
    )  # fmt: skip


def branches(x):
    """Devices that take different branches, and a collective in a branch."""
    here = jax.lax.axis_index("x")
    y = jax.lax.cond(here == 0, jnp.sin, lambda v: v * 2, x)
    z = jax.lax.psum(y, "x")
    return y + jax.lax.cond(
        z.shape[0] > 2, lambda v: jax.lax.psum(v, "y"), lambda v: v, z
    )


def inner(x):
    """A map over one axis in a map over the other."""

    def rows(x):
        scaled = x * (1 + jax.lax.axis_index("x"))

        def columns(x):
            return jnp.tanh(x) + jax.lax.psum(x, "y") / 8

        return jax.lax.psum(
            jax.shard_map(
                columns, in_specs=P(None, "y"), out_specs=P(None, "y"),
                axis_names={"y"},
            )(scaled), "x",
        )  # fmt: skip

    mapped = jax.shard_map(
        rows, mesh=MESH, in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )
    return mapped(x)


def partly(x, w):
    """Only one axis is written out; the compiler may use the other."""

    def rows(x, w):
        y = jax.lax.with_sharding_constraint(
            jnp.tanh(x @ w), jax.sharding.NamedSharding(
                jax.sharding.get_abstract_mesh(), P(None, "y"))
        )  # fmt: skip
        return jax.lax.psum((y * y).sum(), "x")

    mapped = jax.shard_map(
        rows, mesh=MESH, in_specs=(P("x"), P()), out_specs=P(),
        axis_names={"x"},
    )  # fmt: skip
    return mapped(x, w)


def pipeline(w, x):
    """Two stages pass activations on; four turns of a scan."""

    def stage(w, x):
        def turn(moving, _):
            moving = jnp.tanh(moving @ w[0])
            moved = jax.lax.ppermute(moving, "x", [(0, 1), (1, 0)])
            return moved, moved.sum()

        x = jax.lax.pcast(x, "x", to="varying")
        moving, sums = jax.lax.scan(turn, x, None, length=4)
        gathered = jax.lax.all_gather(moving, "y", axis=0, tiled=True)
        spread = jax.lax.psum_scatter(
            gathered, "y", scatter_dimension=0, tiled=True
        )
        swapped = jax.lax.all_to_all(
            spread, "y", split_axis=1, concat_axis=0, tiled=True
        )
        total = (swapped**2).sum() + sums.sum()
        return jax.lax.psum(total, ("x", "y"))

    return jax.shard_map(
        stage, mesh=MESH, in_specs=(P("x"), P("y")), out_specs=P()
    )(w, x)


def parallel(w, x):
    """pmap of a step with its gradient averaged."""

    def step(w, x):
        value, grad = jax.value_and_grad(lambda w: ((x @ w) ** 2).mean())(w)
        return w - 0.1 * jax.lax.pmean(grad, "i"), jax.lax.pmax(value, "i")

    return jax.pmap(step, axis_name="i", in_axes=(None, 0))(w, x)


X = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
BOTH = P("x", "y")
CASES: dict[str, tuple[Any, list]] = {
    "collectives": (
        shard_map(
            collectives, BOTH,
            (BOTH, P(), P("x", None), P(("x", "y"), None), BOTH),
        ),
        [X],
    ),
    "ring": (shard_map(ring, BOTH, BOTH), [X]),
    "stacked": (
        shard_map(stacked, BOTH, (BOTH, P("x"), P("x"), BOTH, P())), [X],
    ),
    "branches": (shard_map(branches, BOTH, BOTH), [X]),
    "map in a map": (inner, [X]),
    "partly manual": (partly, [X, W]),
    "gradient of partly manual": (jax.grad(partly, (0, 1)), [X, W]),
    "gradient of a pipeline": (
        jax.value_and_grad(pipeline, (0, 1)),
        [np.stack([X[:, :8], X.T]) / 4, X],
    ),
    "pmap": (parallel, [W, X.reshape(4, 2, 8)]),
    "gradient": (shard_map(gradient, (P(), P(("x", "y"))), P()), [W, X]),
}  # fmt: skip

# The mesh has four devices; others have no place for it.
CLUSTERS = ("1", "3", "4")

for name, (function, arguments) in CASES.items():
    lowered = jax.jit(function).lower(*arguments)
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    types = [Tensor("f32", value.shape) for value in expected]
    for cluster in CLUSTERS:
        results, moved = late_devices.run_text(
            lowered.as_text(), arguments, types, cluster
        )
        for result, value in zip(results, expected):
            np.testing.assert_allclose(
                result, np.asarray(value), rtol=2e-5, atol=2e-5
            )
        print(f"ok {name} on {cluster}: {moved} transfers moved")
