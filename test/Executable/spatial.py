"""Convolutional networks whose images are split over devices, rows at the edges
exchanged, against `jax.jit`: loss and parameters after one step and two.

    spatial.py [PART]

Shapes are such that the cost model splits the images: large, with few channels.

Each loss and parameter must be within 1e-4 of its largest magnitude, the bits
the same on late devices, and --explain must say that images were split, or not,
where channels are better. Seeds are fixed. A failure means that a halo is wrong
or missing, or that the planner chooses otherwise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import late_devices
import numpy as np
import relaunch
from jax import lax

import whale as wh


def nodes(*slowdowns):
    """A device a node, with a network that is slow next to memory."""
    return {
        "nodes": [
            {"devices": [{"kind": "cpu", "slowdown": slowdown}]}
            for slowdown in slowdowns
        ],
        "network": {"bandwidth": 5e8, "latency": 1e-6},
    }


CHEAP = {"nodes": [{"devices": [{"kind": "cpu", "count": 4}]}]}


def conv(x, kernel, stride=1, padding="SAME", groups=1, dilation=1):
    return lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        padding,
        rhs_dilation=(dilation, dilation),
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def pool(x, init, combine):
    window = (1, 2, 2, 1)
    return lax.reduce_window(x, init, combine, window, window, "VALID")


def plain(params, x):
    """Strides 1 and 2, kernels of 1, 3, 5 and 7 rows, groups, pooling."""
    x = jax.nn.relu(conv(x, params["a"]) + params["bias"])
    x = jnp.tanh(conv(x, params["b"], stride=2))
    x = pool(x, -jnp.inf, lax.max)
    skip = conv(x, params["skip"], stride=2)
    x = conv(jax.nn.relu(conv(x, params["c"], groups=2)), params["d"], stride=2)
    return jnp.mean(pool(x + skip, 0.0, lax.add) ** 2)


def wide(params, x):
    """Halos of more rows than a device has, and padding that isn't "SAME"."""
    x = jnp.tanh(conv(x, params["far"], dilation=5))
    x = jnp.tanh(conv(x, params["deep"]))
    x = jnp.tanh(conv(x, params["shrink"], padding="VALID"))
    return jnp.mean(x**2)


def normed(params, x):
    """Channels in groups, of which each device may have some of every one."""
    for name in "ab":
        x = conv(x, params[name])
        groups = x.reshape(*x.shape[:3], 2, -1)
        mean = groups.mean((1, 2, 4), keepdims=True)
        x = jnp.tanh((groups - mean).reshape(x.shape))
        x = pool(x, 0.0, lax.add)
    x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
    return jnp.mean(conv(x, params["c"]) ** 2)


def kernels(**shapes):
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(size=shape).astype(np.float32)
        / np.prod(shape[:-1]) ** 0.5
        for name, shape in shapes.items()
    }


PLAIN = kernels(
    a=(3, 3, 3, 4),
    bias=(4,),
    b=(7, 7, 4, 4),
    skip=(1, 1, 4, 4),
    c=(5, 5, 2, 8),
    d=(3, 3, 8, 4),
)
# Of one channel, so that nothing else can be split.
WIDE = kernels(far=(3, 3, 1, 1), deep=(5, 5, 1, 1), shrink=(3, 3, 1, 1))
NORMED = kernels(a=(3, 3, 1, 16), b=(3, 3, 16, 16), c=(3, 3, 16, 1))


@dataclasses.dataclass
class Case:
    name: str
    loss: Callable
    params: dict
    shape: tuple[int, ...]  # Of the images.
    cluster: dict
    devices: int | None = None
    micro_batches: int = 1
    is_spatial: bool = True


CASES = [
    Case("two", plain, PLAIN, (1, 128, 128, 3), nodes(1, 1)),
    Case("two unequal", plain, PLAIN, (2, 128, 96, 3), nodes(1, 2)),
    Case("three unequal", plain, PLAIN, (1, 176, 64, 3), nodes(3, 1, 1.5)),
    Case("four", plain, PLAIN, (1, 96, 128, 3), nodes(1, 1, 1, 1)),
    Case("moments", plain, PLAIN, (4, 128, 96, 3), nodes(1, 1), None, 2),
    Case("nested", plain, PLAIN, (2, 128, 128, 3), nodes(1, 1, 1, 2), 2),
    Case("channels", normed, NORMED, (6, 8, 8, 1), CHEAP, is_spatial=False),
    Case("narrow", wide, WIDE, (1, 16, 16, 1), nodes(1, 1, 1, 1)),
]


def train(case):
    def step(params, x):
        def scoped(params):
            with wh.split(case.devices):
                return case.loss(params, x)

        value, grads = jax.value_and_grad(scoped)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step


def check(case):
    wh.init(wh.Config({"num_micro_batch": case.micro_batches}))
    x = np.random.default_rng(1).normal(size=case.shape).astype(np.float32)
    step = train(case)
    whale = wh.jit(
        step, cluster=case.cluster, donate_argnums=0, batch_argnums=1
    )
    with contextlib.redirect_stderr(io.StringIO()) as said:
        program = whale.lower(case.params, x).compile(explain="all")
    lines = said.getvalue().splitlines()
    first = next(line for line in lines if "argument 0" in line)
    is_spatial = "(spatial:" in first.split(";")[0]
    assert is_spatial == case.is_spatial, f"{case.name}: {first}"
    want = got = case.params
    moved = 0
    for number in range(2):
        want, wanted = jax.jit(step)(want, x)
        got, value = program(got, x)
        if number == 0:
            result = got, value
            arguments = (case.params, x)
            moved = late_devices.check_step(program, arguments, result)
            relaunch.check_step(program, jax.tree.leaves(arguments), result)
        pairs = zip(
            jax.tree.leaves((want, wanted)), jax.tree.leaves((got, value))
        )
        for a, b in pairs:
            a, b = np.asarray(a), np.asarray(b)
            worst = np.abs(a - b).max() / np.abs(a).max()
            assert worst < 1e-4, f"{case.name}: {worst}"
    print(f"ok {case.name}: {moved} transfers moved")


for case in CASES:
    if all(part in case.name for part in sys.argv[1:]):
        check(case)
