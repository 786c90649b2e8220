"""Runs shard_map programs under jax on 4 host devices, and compiled by Whale
from their texts on 1 rank and on 3, and compares."""

import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "Conformance"), str(ROOT / "python")]

from cases import Tensor  # noqa: E402
from run import run_program  # noqa: E402

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


X = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
BOTH = P("x", "y")
CASES = {
    "collectives": (
        shard_map(
            collectives, BOTH,
            (BOTH, P(), P("x", None), P(("x", "y"), None), BOTH),
        ),
        [X],
    ),
    "ring": (shard_map(ring, BOTH, BOTH), [X]),
    "gradient": (shard_map(gradient, (P(), P(("x", "y"))), P()), [W, X]),
}  # fmt: skip

for name, (function, arguments) in CASES.items():
    lowered = jax.jit(function).lower(*arguments)
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    types = [Tensor("f32", value.shape) for value in expected]
    for cluster in ("1", "3"):
        results = run_program(lowered.as_text(), arguments, types, cluster)
        for result, value in zip(results, expected):
            np.testing.assert_allclose(
                result, np.asarray(value), rtol=2e-5, atol=2e-5
            )
    print("ok", name)
