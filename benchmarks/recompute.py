"""Is what the compiler computes again better than what users would choose?

For models of twelve blocks on one device: each way to write `jax.checkpoint`
by hand is planned with plenty of memory, and then, in as much as it takes, the
step without it under ``gradient_checkpoint.type: auto``. Seconds and bytes are
those that ``whale-sim`` finds.

``benchmarks/recompute.py [MODEL...]`` prints tables in Markdown, and fails
where a step takes more than 1% longer than by hand, or does not fit.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCKS, WIDTH, TOKENS, BATCH, HEADS = 12, 512, 256, 16, 8
PLENTY = 10**12
# Of what a device holds besides arguments without recomputation.
SHARES = (0.8, 0.65, 0.5, 0.3)
MOST_TIMES = 1.01

# A function of the parameters and the input of a block, which computes its core
# (attention, or what is element-wise) by what `wrap` makes of it.
Wrap = Callable[[Any], Any]
Block = Callable[[Wrap, Any, jax.Array], jax.Array]


@dataclasses.dataclass(frozen=True)
class Model:
    """Blocks with parameters of these shapes, one behind the other."""

    block: Block
    params: tuple[tuple[int, ...], ...]
    batch: tuple[int, ...]


def norm(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5)


def by_heads(core: Callable[..., Any], qkv: jax.Array) -> jax.Array:
    def split(x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:-1], HEADS, -1).swapaxes(-2, -3)

    y = core(*map(split, jnp.split(qkv, 3, -1))).swapaxes(-2, -3)
    return y.reshape(*y.shape[:-2], -1)


def masked(q: jax.Array, k: jax.Array) -> jax.Array:
    causal = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    return jnp.where(causal, q @ k.mT * q.shape[-1] ** -0.5, -1e9)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.softmax(masked(q, k)) @ v


def sigmoid_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """One that is not formed: its scores are values of the step."""
    p = jax.nn.sigmoid(30 * jnp.tanh(masked(q, k) / 30)) ** 2
    return p / (1 + p.sum(-1, keepdims=True)) @ v


def gpt(core: Callable[..., Any], wrap: Wrap, p: Any, x: Any) -> jax.Array:
    x = x + by_heads(wrap(core), norm(x) @ p[0]) @ p[1]
    return x + jax.nn.gelu(norm(x) @ p[2]) @ p[3]


def llama(wrap: Wrap, p: Any, x: jax.Array) -> jax.Array:
    x = x + by_heads(wrap(attention), norm(x) @ p[0]) @ p[1]
    gate, up = jnp.split(norm(x) @ p[2], 2, -1)
    return x + (jax.nn.silu(gate) * up) @ p[3]


def mlp(wrap: Wrap, p: Any, x: jax.Array) -> jax.Array:
    core = wrap(lambda h: jax.nn.gelu(jnp.sin(h)))
    return x + core(norm(x) @ p[0]) @ p[1]


def mixer(wrap: Wrap, p: Any, x: jax.Array) -> jax.Array:
    x = x + (jax.nn.gelu(norm(x).mT @ p[0]) @ p[1]).mT
    return x + jax.nn.gelu(norm(x) @ p[2]) @ p[3]


def resnet(wrap: Wrap, p: Any, x: jax.Array) -> jax.Array:
    def convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=numbers
        )

    h = jax.nn.relu(norm(convolve(x, p[0])))
    return jax.nn.relu(x + norm(convolve(h, p[1])))


def pair(width: int, factor: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (width, factor * width), (factor * width, width)


TEXT = (BATCH, TOKENS, WIDTH)
ATTENTION = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH))
MODELS = {
    "gpt": Model(
        functools.partial(gpt, attention), (*ATTENTION, *pair(WIDTH, 4)), TEXT
    ),
    "gpt, scores kept": Model(
        functools.partial(gpt, sigmoid_attention),
        (*ATTENTION, *pair(WIDTH, 4)),
        TEXT,
    ),
    "llama": Model(
        llama, (*ATTENTION, (WIDTH, 6 * WIDTH), (3 * WIDTH, WIDTH)), TEXT
    ),
    "mlp": Model(mlp, pair(WIDTH, 4), (BATCH * TOKENS, WIDTH)),
    "mixer": Model(mixer, (*pair(TOKENS, 2), *pair(WIDTH, 4)), TEXT),
    "resnet": Model(resnet, ((3, 3, 64, 64),) * 2, (32, 56, 56, 64)),
}


def whole(function: Any) -> Any:
    return function


def run_blocks(block: Block, wrap: Wrap, params: Any, x: Any) -> jax.Array:
    for p in params:
        x = block(wrap, p, x)
    return x


def run_none(block: Block, params: Any, x: jax.Array) -> jax.Array:
    return run_blocks(block, whole, params, x)


def run_core(block: Block, params: Any, x: jax.Array) -> jax.Array:
    return run_blocks(block, jax.checkpoint, params, x)


def run_products(block: Block, params: Any, x: jax.Array) -> jax.Array:
    """Keeps products, and so computes again what is element-wise."""
    policy = jax.checkpoint_policies.dots_saveable
    one = jax.checkpoint(functools.partial(block, whole), policy=policy)
    for p in params:
        x = one(p, x)
    return x


def run_runs(length: int, block: Block, params: Any, x: Any) -> jax.Array:
    """Keeps what stands between runs of so many blocks."""
    for first in range(0, len(params), length):
        run = jax.checkpoint(functools.partial(run_blocks, block, whole))
        x = run(params[first : first + length], x)
    return x


BY_HAND: dict[str, Callable[..., jax.Array]] = {
    "all but products": run_products,
    "the core": run_core,
    "all of each block": functools.partial(run_runs, 1),
    "all of runs of √n": functools.partial(run_runs, math.isqrt(BLOCKS)),
}


@dataclasses.dataclass(frozen=True)
class Found:
    """What a step takes; no seconds where it does not fit."""

    seconds: float | None
    bytes: int = 0


def plan(model: Model, run: Any, memory: int, automatic: bool) -> Found:
    """Plans the step of a model on a device of so many bytes."""
    names = {"gradient_checkpoint.type": "auto"} if automatic else {}
    wh.init(wh.Config(names))
    wh.set_default_strategy(wh.replicate())

    def step(params: Any, x: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            return jnp.mean(run(model.block, params, x) ** 2)

        grads = jax.grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    kind = {"flops": {"f32": 19.5e12}, "memory_bytes": memory}
    kind["memory_bandwidth"] = 2e12
    node = {"devices": [{"kind": "device", "count": 1}]}
    cluster = {"kinds": {"device": kind}, "nodes": [node]}
    made = wh.jit(step, cluster=cluster, batch_argnums=1, donate_argnums=0)
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in model.params]
    text = made.lower(
        [shapes] * BLOCKS, jax.ShapeDtypeStruct(model.batch, jnp.float32)
    ).as_text()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "step.mlir").write_text(text)
        (folder / "cluster.json").write_text(json.dumps(cluster))
        compiler: list[str | pathlib.Path] = [
            ROOT / "build/bin/whale-compile",
            folder / "step.mlir",
        ]
        compiler += ["--target=none", f"--cluster={folder / 'cluster.json'}"]
        compiler += ["-o", folder / "step.whale"]
        made_program = subprocess.run(compiler, capture_output=True, text=True)
        if made_program.returncode:
            assert "memory: device 0" in made_program.stderr, (
                made_program.stderr
            )
            return Found(None)
        simulator = [ROOT / "build/bin/whale-sim", folder / "step.whale"]
        report = json.loads(
            subprocess.check_output([*simulator, "--json"], text=True)
        )
    return Found(
        report["step_time_s"], report["devices"][0]["peak_memory_bytes"]
    )


def compare(name: str) -> list[str]:
    """Prints the tables of a model; returns where it is slower than by hand."""
    model, slower = MODELS[name], []
    plenty = plan(model, run_none, PLENTY, False)
    assert plenty.seconds
    arguments = 4 * BLOCKS * sum(map(math.prod, model.params))
    arguments += 4 * math.prod(model.batch)
    print(f"\n## {name}\n\n| computed again by hand | MB | ", end="")
    print("seconds | automatically |\n|---|---|---|---|")
    print(f"| nothing | {plenty.bytes / 1e6:.0f} | 1 | |")
    for policy, run in BY_HAND.items():
        hand = plan(model, run, PLENTY, False)
        own = plan(model, run_none, int(hand.bytes * 1.0005), True)
        assert hand.seconds
        text = "does not fit"
        if own.seconds:
            text = f"{own.seconds / plenty.seconds:.3f}"
        if not own.seconds or own.seconds > MOST_TIMES * hand.seconds:
            slower.append(f"{name}: {policy}")
        hands = f"{hand.seconds / plenty.seconds:.3f}"
        print(f"| {policy} | {hand.bytes / 1e6:.0f} | {hands} | {text} |")
    print("\n| besides arguments | MB | seconds |\n|---|---|---|")
    for share in SHARES:
        limit = arguments + int((plenty.bytes - arguments) * share)
        own = plan(model, run_none, limit, True)
        took = f"{own.seconds / plenty.seconds:.3f}" if own.seconds else "-"
        print(f"| {share:.0%} | {own.bytes / 1e6:.0f} | {took} |", flush=True)
    return slower


def main() -> str | None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    options = parser.parse_args()
    slower: list[str] = []
    for name in options.models or MODELS:
        slower += compare(name)
    return "slower than by hand: " + ", ".join(slower) if slower else None


if __name__ == "__main__":
    sys.exit(main())
