"""Times what comes before steps, and between them.

- The second start of a step: what compiling takes that finds the program in the
  cache, and the first call, in a process of its own. Tracing, which is JAX's,
  is not counted.
- Compiling a pipeline of four layers for four ranks, beside what it takes
  without kernels and, for one rank, with them.
- Calls of a step of 450 leaves of 4 elements on one rank, beside `jax.jit`.

Prints a row each, with what it may be at most.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import limits
import numpy as np

import whale as wh
from whale import compiler

LAYERS, WIDTH, TOKENS, WORDS, ROWS = 4, 64, 32, 256, 16
LEAVES = 450
CACHED_MS, PIPELINE, CALLS = 300.0, 2.0, 1.0


def layer(weights: Any, x: jax.Array) -> jax.Array:
    """Attention, and a network of two layers."""

    def normal(x: jax.Array) -> jax.Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    q, k, v = (normal(x) @ weights[name] for name in "qkv")
    scores = jnp.einsum("btd,bsd->bts", q, k) / WIDTH**0.5
    seen = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    x += jax.nn.softmax(jnp.where(seen, scores, -1e9)) @ v @ weights["out"]
    return x + jax.nn.gelu(normal(x) @ weights["up"]) @ weights["down"]


def pipeline(ranks: int) -> Any:
    """A lowered step that trains a transformer, a stage for each of ranks."""

    def loss(weights: Any, tokens: jax.Array) -> jax.Array:
        x = weights["words"][tokens[:, :-1]]
        for i in range(LAYERS):
            name = f"layer{i}" if ranks > 1 else None
            with wh.replicate(1, name):
                x = layer(weights[f"layer{i}"], x)
                if i == LAYERS - 1:
                    odds = jax.nn.log_softmax(x @ weights["words"].T)
        chosen = jnp.take_along_axis(odds, tokens[:, 1:, None], -1)
        return -jnp.mean(chosen)

    def step(weights: Any, velocity: Any, tokens: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(weights, tokens)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        weights = jax.tree.map(lambda w, v: w - 0.01 * v, weights, velocity)
        return weights, velocity, value

    random = np.random.default_rng(0)

    def matrix(*shape: int) -> np.ndarray:
        return random.normal(size=shape, scale=0.05).astype(np.float32)

    weights: dict[str, Any] = {"words": matrix(WORDS, WIDTH)}
    for i in range(LAYERS):
        weights[f"layer{i}"] = {
            **{name: matrix(WIDTH, WIDTH) for name in ("q", "k", "v", "out")},
            "up": matrix(WIDTH, 4 * WIDTH),
            "down": matrix(4 * WIDTH, WIDTH),
        }
    velocity = jax.tree.map(np.zeros_like, weights)
    tokens = np.zeros((ROWS, TOKENS + 1), np.int32)
    wh.init({"num_micro_batch": LAYERS})
    arguments = weights, velocity, tokens
    whale = wh.jit(step, cluster=ranks, batch_argnums=2, donate_argnums=(0, 1))
    return whale.lower(*arguments), arguments


def start() -> None:
    """Prints how long a start takes after tracing, in milliseconds."""
    lowered, arguments = pipeline(LAYERS)
    begin = time.perf_counter()
    *_, value = lowered.compile()(*arguments)
    float(value)
    print(json.dumps((time.perf_counter() - begin) * 1e3))


def second_start(rounds: int) -> float:
    """The same, where the program is in the cache."""

    def run(folder: str) -> float:
        done = subprocess.run(
            [sys.executable, __file__, "--start"],
            env={**os.environ, "WHALE_CACHE_DIR": folder},
            check=True,
            capture_output=True,
            text=True,
        )
        return float(json.loads(done.stdout))

    with tempfile.TemporaryDirectory() as folder:
        run(folder)
        return statistics.median(run(folder) for _ in range(rounds))


def compilation(ranks: int, target: str, rounds: int) -> float:
    """How long whale-compile takes for the pipeline, in milliseconds."""
    lowered, _ = pipeline(ranks)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder, "step.mlir")
        text.write_text(lowered.as_text())
        command = [compiler.PATH, str(text), f"--cluster={ranks}"]
        command += [f"--target={target}", "-o", f"{folder}/step.whale"]
        for _ in range(rounds):
            begin = time.perf_counter()
            subprocess.run(command, check=True)
            found.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(found)


def calls(rounds: int) -> tuple[float, float]:
    """Milliseconds of a call of a step of many leaves: Whale's, and JAX's."""

    def step(leaves: list[jax.Array], x: jax.Array) -> Any:
        return [leaf * 0.999 + x for leaf in leaves], x + 1

    def make(compiled: Callable[..., Any]) -> Callable[[], float]:
        state = [jnp.full(4, i, jnp.float32) for i in range(LEAVES)]
        number = jnp.float32(0)

        def run() -> float:
            nonlocal state, number
            begin = time.perf_counter()
            for _ in range(20):
                state, number = compiled(state, number)
            jax.block_until_ready((state, number))
            return (time.perf_counter() - begin) * 1e3 / 20

        return run

    wh.init()
    sides = [
        make(wh.jit(step, cluster=1, donate_argnums=0)),
        make(jax.jit(step, donate_argnums=0)),
    ]
    for side in sides:
        side()
    found = [[side() for side in sides] for _ in range(4 * rounds)]
    mine, jaxs = zip(*found)
    return statistics.median(mine), statistics.median(jaxs)


def measure(rounds: int) -> list[limits.Row]:
    """All rows."""
    whole = compilation(LAYERS, "cpu", rounds)
    plan = compilation(LAYERS, "none", rounds)
    kernels = compilation(1, "cpu", rounds) - compilation(1, "none", rounds)
    mine, jaxs = calls(rounds)
    return [
        limits.Row(
            "second start of a pipeline on 4 ranks, after tracing",
            "the limit",
            *("ms", second_start(rounds), CACHED_MS, 1.0),
        ),
        limits.Row(
            "compiling a pipeline of 4 layers for 4 ranks",
            "`--target=none`, and one rank's kernels",
            *("ms", whole, plan + kernels, PIPELINE),
        ),
        limits.Row(
            f"a call of a step of {LEAVES} leaves, on one rank",
            "`jax.jit`",
            *("ms", mine, jaxs, CALLS),
        ),
    ]


def main() -> str | None:
    """Measures all; what misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--start", action="store_true")
    options = parser.parse_args()
    if options.start:
        start()
        return None
    rows = measure(options.rounds)
    return limits.report(rows, options.output)


if __name__ == "__main__":
    sys.exit(main())
