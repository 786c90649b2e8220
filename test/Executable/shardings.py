"""Compiles texts that jax.jit prints with shardings of its own, and compares
what each rank holds of the arguments and the results with jax on as many host
devices.

Under test: meshes of up to three axes, constraints, and shardings of arguments
and results. Results must be within 2e-5 of those of jax, on the mesh, on 1 rank
and on 5; the elements of each argument that a rank holds must be exactly those
that jax gives it. A failure means that Whale reads a sharding otherwise. Each
case is compiled four times, but for two that are compiled three times.
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "Conformance"), str(ROOT / "python")]

import late_devices  # noqa: E402
from cases import Tensor  # noqa: E402

from whale import compiler  # noqa: E402

P = PartitionSpec


def mesh(*sizes, order=None):
    devices = np.array(jax.devices()[: int(np.prod(sizes))])
    if order:
        devices = devices[list(order)]
    return Mesh(devices.reshape(sizes), ("a", "b", "c")[: len(sizes)])


def normal(*shape):
    size = int(np.prod(shape))
    values = np.random.default_rng(size).normal(size=shape)
    return values.astype(np.float32)


def mlp(w1, w2, x, y):
    """A training step of two layers."""

    def loss(w1, w2):
        h = jnp.tanh(x @ w1)
        return jnp.mean((h @ w2 - y) ** 2)

    value, (d1, d2) = jax.value_and_grad(loss, (0, 1))(w1, w2)
    return w1 - 0.1 * d1, w2 - 0.1 * d2, value


MLP = [normal(8, 12), normal(12, 4), normal(6, 8), normal(6, 4)]


def constrained(on):
    """Constraints, one of six rows over four devices and one in a loop."""
    both = NamedSharding(on, P(("a", "b"), None))
    last = NamedSharding(on, P(None, "b"))

    def function(x):
        y = lax.with_sharding_constraint(jnp.sin(x), last)
        y = lax.with_sharding_constraint(y @ y.T, both)

        def body(carry, row):
            carry = lax.with_sharding_constraint(carry * 0.5 + row, last)
            return carry, carry.sum()

        return lax.scan(body, x, jnp.stack([x, y[:, :4], x + 1])), y.max(0)

    return function


def attention(q, k, v):
    """Heads in a reshape: their number, not the width, is what can be cut."""
    q, k, v = (t.reshape(4, 6, 2, 3) for t in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    scores = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(4, 6, 6)


def lookup(table, ids, x):
    rows = table[ids]
    spread = jnp.zeros_like(table).at[ids].add(rows * x)
    return rows, spread, jnp.sort(spread, 0), jnp.cumsum(rows, 0)


IDS = np.random.default_rng(0).integers(0, 8, 8).astype(np.int32)
WIDE = [normal(4, 6, 6) + i for i in range(3)]
# Of these jax cuts across pieces that the program uses, and Whale doesn't.
IN_PIECES = ("constraints", "half a head")
# Function, arguments, mesh, shardings of arguments, and of results.
CASES = {
    "data": (mlp, MLP, mesh(2), (P(), P(), P("a"), P("a")), None),
    "model": (mlp, MLP, mesh(4), (P(None, "a"), P("a"), P(), P()), None),
    "data and model": (
        mlp, MLP, mesh(2, 2),
        (P(None, "b"), P("b"), P("a"), P("a")),
        (P(None, "b"), P("b"), P()),
    ),
    "all sharded": (
        mlp, MLP, mesh(2, 2),
        (P("b", "a"), P("a", "b"), P("a"), P("a")),
        (P("b", "a"), P("a", "b"), P()),
    ),
    "two axes, one dimension": (
        mlp, MLP, mesh(2, 2, 2),
        (P(None, ("a", "b")), P(("a", "b")), P("c"), P("c")), None,
    ),
    "the other way round": (
        mlp, MLP, mesh(2, 2),
        (P(None, ("b", "a")), P(("b", "a")), P(), P()), None,
    ),
    "devices in another order": (
        mlp, MLP, mesh(2, 2, order=(2, 0, 3, 1)),
        (P(None, "b"), P("b"), P("a"), P("a")), None,
    ),
    "results move": (
        mlp, MLP, mesh(3), (P(), P("a"), P("a"), P("a")), (P(), P("a"), P()),
    ),
    "constraints": (
        constrained(mesh(2, 2)), [normal(6, 4)], mesh(2, 2),
        (P("a", "b"),), None,
    ),
    "attention": (
        attention, WIDE, mesh(2, 2), (P("a", None, "b"),) * 3, None,
    ),
    "half a head": (
        attention, WIDE, mesh(6), (P(None, None, "a"),) * 3,
        (P(None, "a"),),
    ),
    "lookup": (
        lookup, [normal(8, 4), IDS, normal(8, 4)], mesh(2, 2),
        (P("a", "b"), P("a"), P("b")), None,
    ),
}  # fmt: skip


def held_by_jax(sharding, array):
    """The elements, by number, that each device holds; the text numbers
    devices as they are in the mesh."""
    numbers = np.arange(array.size).reshape(array.shape)
    slices = sharding.devices_indices_map(array.shape)
    return [
        numbers[slices[device]].ravel() for device in sharding.mesh.devices.flat
    ]


def held_by_ranks(argument):
    """The same of a manifest's argument, whose boxes are those of a view."""
    numbers = np.arange(np.prod(argument["shape"], dtype=int))
    numbers = numbers.reshape(argument["view"])
    return [
        numbers[tuple(slice(o, o + n) for o, n in zip(*box))].ravel()
        for box in argument["boxes"]
    ]


def check(name, function, arguments, on, given, wanted):
    def sharding(spec):
        return NamedSharding(on, spec)

    out = wanted and tuple(sharding(spec) for spec in wanted)
    options = {"out_shardings": out[0] if len(out) == 1 else out} if out else {}
    jitted = jax.jit(
        function, in_shardings=tuple(sharding(spec) for spec in given),
        **options,
    )  # fmt: skip
    text = jitted.lower(*arguments).as_text()
    expected = jax.tree.leaves(jitted(*arguments))
    types = [Tensor("f32", value.shape) for value in expected]
    # On the mesh, and where there is no mesh for so many ranks.
    for cluster in (str(on.devices.size), "1", "5"):
        results, moved = late_devices.run_text(text, arguments, types, cluster)
        for result, value in zip(results, expected):
            np.testing.assert_allclose(
                result, np.asarray(value), rtol=2e-5, atol=2e-5
            )
        print(f"{name} on {cluster}: {moved} transfers moved")
    if name in IN_PIECES:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/step.whale"
        compiler.compile(text, str(on.devices.size), path, target="cpu")
        manifest = json.loads(pathlib.Path(path, "manifest.json").read_text())
    for spec, array, entry in zip(given, arguments, manifest["arguments"]):
        held = held_by_ranks(entry)
        for rank, wanted in enumerate(held_by_jax(sharding(spec), array)):
            assert np.array_equal(held[rank], wanted), (spec, rank, held[rank])


for name, case in CASES.items():
    check(name, *case)
    print("ok", name)
