"""Times a GPT training step on 1 and 4 ranks beside `jax.jit`.

Both sides run in the same session, in turn, each in a process of its own, on
the same model, data and number of devices; a ratio is Whale's median step over
JAX's. On a machine with fewer cores than ranks the ranks share the cores, for
JAX's host devices as for Whale's ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
RANKS = (1, 4)


def main() -> None:
    """Runs all measurements, or with --worker a single one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="bench.json")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--worker", nargs=2, metavar=("SIDE", "RANKS"))
    options = parser.parse_args()
    if options.worker:
        side, ranks = options.worker
        print(json.dumps(measure(side, int(ranks), options)))
        return
    results: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for _ in range(options.rounds):
        for ranks in RANKS:
            for side in ("jax", "whale"):
                result = worker(side, ranks, options)
                results.setdefault((side, ranks), []).append(result)
    rows = [row(ranks, results) for ranks in RANKS]
    print(
        f"{'model':12} {'ranks':>5} {'whale ms':>9} {'jax ms':>9} {'ratio':>6}"
    )
    for entry in rows:
        print(
            f"{entry['model']:12} {entry['ranks']:5} "
            f"{entry['whale_s'] * 1e3:9.1f} {entry['jax_s'] * 1e3:9.1f} "
            f"{entry['ratio']:6.2f}"
        )
    output = pathlib.Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "cores": len(os.sched_getaffinity(0)),
        "batch": options.batch,
        "results": rows,
    }
    output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def row(
    ranks: int, results: dict[tuple[str, int], list[dict[str, Any]]]
) -> dict[str, Any]:
    """The medians of both sides over all rounds, and their ratio."""
    median = {
        side: statistics.median(
            second for r in results[side, ranks] for second in r["seconds"]
        )
        for side in ("jax", "whale")
    }
    losses = {side: results[side, ranks][0]["loss"] for side in median}
    return {
        "model": "gpt-4x128",
        "ranks": ranks,
        "whale_s": median["whale"],
        "jax_s": median["jax"],
        "ratio": median["whale"] / median["jax"],
        "compile_s": {
            side: results[side, ranks][0]["compile_s"] for side in median
        },
        "loss": losses,
    }


def worker(side: str, ranks: int, options: argparse.Namespace) -> Any:
    """One measurement in a process of its own."""
    environment = dict(os.environ, JAX_PLATFORMS="cpu")
    if side == "jax":
        environment["XLA_FLAGS"] = (
            f"--xla_force_host_platform_device_count={ranks}"
        )
    command = [sys.executable, __file__, "--worker", side, str(ranks)]
    command += [f"--steps={options.steps}", f"--batch={options.batch}"]
    done = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure(side: str, ranks: int, options: argparse.Namespace) -> Any:
    """The seconds of each step, after two that are not counted."""
    sys.path.insert(0, str(HERE.parent / "examples" / "gpt"))
    import jax
    import optax

    import data
    import model
    import whale as wh

    tokens, vocabulary = data.load()
    config = model.Config(vocabulary=len(vocabulary))
    optimizer = optax.adam(1e-3)
    params = model.init_params(config, jax.random.key(0))
    state = optimizer.init(params)
    stream = data.batches(tokens, options.batch, config.context)
    batch = next(stream)
    start = time.perf_counter()
    if side == "whale":
        wh.set_default_strategy(wh.replicate())
        step: Any = (
            wh.jit(
                model.make_train_step(optimizer),
                cluster=ranks,
                donate_argnums=(0, 1),
                batch_argnums=2,
            )
            .lower(params, state, batch)
            .compile()
        )
        place: Any = lambda batch: batch  # noqa: E731
    else:
        mesh = jax.make_mesh((ranks,), ("data",), (jax.sharding.AxisType.Auto,))
        spec = jax.sharding.PartitionSpec
        everywhere = jax.sharding.NamedSharding(mesh, spec())
        shared = jax.sharding.NamedSharding(mesh, spec("data"))
        params, state = jax.device_put((params, state), everywhere)
        place = lambda batch: jax.device_put(batch, shared)  # noqa: E731
        step = (
            jax.jit(
                model.make_train_step(optimizer, annotate=False),
                donate_argnums=(0, 1),
                out_shardings=everywhere,
            )
            .lower(params, state, place(batch))
            .compile()
        )
    compiled = time.perf_counter() - start
    seconds = []
    for _ in range(options.steps + 2):
        start = time.perf_counter()
        params, state, loss = step(params, state, place(batch))
        loss = float(loss)
        seconds.append(time.perf_counter() - start)
        batch = next(stream)
    return {"seconds": seconds[2:], "compile_s": compiled, "loss": loss}


if __name__ == "__main__":
    main()
