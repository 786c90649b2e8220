"""Trains the GPT on the ranks of a cluster and compares with `jax.jit`."""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import shutil
import sys
import time
from typing import Any

import jax
import numpy as np
import optax
from tqdm import tqdm

import data
import model
import whale as wh

HERE = pathlib.Path(__file__).parent


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument(
        "--cluster",
        default=str(HERE / "cluster.json"),
        help="a cluster file, or a number of CPU ranks",
    )
    parser.add_argument("--save", help="write the program here")
    parser.add_argument(
        "--checkpoints",
        help="save the state here, and go on from it after an interruption",
    )
    return parser.parse_args()


def main() -> None:
    """Compiles, trains, and says what happened."""
    options = arguments()
    # The only process, unless a launcher has started several.
    wh.init_distributed()
    is_first = wh.process_index() == 0
    if not is_first:
        sys.stdout = open(os.devnull, "w")
    tokens, vocabulary = data.load()
    config = model.Config(
        vocabulary=len(vocabulary),
        layers=options.layers,
        width=options.width,
        heads=options.heads,
        context=options.context,
    )
    params = model.init_params(config, jax.random.key(0))
    optimizer = optax.adam(options.rate)
    state = optimizer.init(params)
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    print(
        f"GPT: {config.layers} layers of width {config.width}, {count:,} "
        f"parameters; {len(tokens):,} tokens, {len(vocabulary)} different"
    )

    wh.init()
    wh.set_default_strategy(wh.replicate())
    cluster = options.cluster
    step = wh.jit(
        model.make_train_step(optimizer),
        cluster=int(cluster) if cluster.isdecimal() else cluster,
        donate_argnums=(0, 1),
        batch_argnums=2,
    )
    stream = data.batches(tokens, options.batch, config.context)
    batches = list(itertools.islice(stream, options.steps))
    start = time.perf_counter()
    program = step.lower(params, state, batches[0]).compile()
    seconds = time.perf_counter() - start
    print(f"compiled for {program.rank_count} ranks in {seconds:.1f} s")
    if options.save:
        program.save(options.save)

    trained, losses = train(
        program, params, state, batches, options.checkpoints
    )
    trained = wh.gather(trained)
    if is_first:
        # Only an interrupted run is gone on with.
        if options.checkpoints:
            shutil.rmtree(options.checkpoints, ignore_errors=True)
        summarize(program)
        compare(optimizer, params, state, batches, trained, losses)


def train(
    program: wh.Program,
    params: Any,
    state: Any,
    batches: list[np.ndarray],
    checkpoints: str | None,
) -> tuple[Any, list[float]]:
    """One step for each batch; the parameters and the losses."""
    losses: list[float] = []
    checkpointer = None
    if checkpoints:
        checkpointer = wh.Checkpointer(checkpoints, keep=2, every=20)
        if checkpointer.latest() is not None:
            params, state = checkpointer.restore((params, state))
            losses = checkpointer.extra["losses"]
            print(f"going on after step {len(losses)}")
    done = len(losses)
    size = batches[0][:, 1:].size
    start = said = time.perf_counter()
    # On a terminal alone; elsewhere there is a line every 10 seconds.
    disable = None if wh.process_index() == 0 else True
    with tqdm(batches[done:], unit="step", disable=disable) as progress:
        for count, batch in enumerate(progress, 1):
            params, state, loss = program(params, state, batch)
            losses.append(float(loss))
            now = time.perf_counter()
            rate = count * size / (now - start)
            text = f"loss {losses[-1]:.3f}, {rate:,.0f} tokens/s"
            progress.set_postfix_str(text)
            if progress.disable and disable is None and now - said > 10:
                print(f"step {done + count} of {len(batches)}: {text}")
                said = now
            if checkpointer and checkpointer.is_due(done + count):
                extra = {"losses": losses}
                checkpointer.save(done + count, (params, state), extra)
    if checkpointer:
        checkpointer.wait()
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    return params, losses


def summarize(program: wh.Program) -> None:
    """Who held and did what, of the ranks of this process."""
    stats = program.stats
    assert stats is not None
    manifest = program.manifest
    batch = next(a for a in manifest["arguments"] if a["role"] == "batch")
    print("\nrank  device  slowdown  samples  memory MB  sent MB  received MB")
    for cost in stats["ranks"]:
        rank = manifest["ranks"][cost["rank"]]
        kinds = cost["collectives"].values()
        box = batch["boxes"][cost["rank"]]
        samples = box[1][batch["batch_dim"]] if box else 0
        print(
            f"{cost['rank']:4}  {rank['kind']:6}  {rank['slowdown']:8}  "
            f"{samples:7}  {cost['peak_bytes'] / 1e6:9.2f}  "
            f"{sum(k['bytes_sent'] for k in kinds) / 1e6:7.2f}  "
            f"{sum(k['bytes_received'] for k in kinds) / 1e6:11.2f}"
        )
    totals: dict[str, int] = {}
    for cost in stats["ranks"]:
        for kind, numbers in cost["collectives"].items():
            totals[kind] = totals.get(kind, 0) + numbers["bytes_sent"]
    print(
        "communicated in a step: "
        + ", ".join(f"{k} {v / 1e6:.2f} MB" for k, v in sorted(totals.items()))
    )
    print("\nTaskGraphs")
    graphs = {g["name"]: g for g in reversed(program.plan["task_graphs"])}
    for name, graph in reversed(graphs.items()):
        strategy = graph["strategy"].removeprefix("#whale.").split("<")[0]
        print(f"  {name}: {strategy} on devices {graph['devices']}")
    state = {a["label"] for a in manifest["arguments"] if a["role"] == "state"}
    placements = {
        a["label"]: a["placement"]
        for a in program.plan["arguments"]
        if a["label"] in state
    }
    sharded = {k: v for k, v in placements.items() if " split " in v}
    print(
        f"Training state: {len(placements) - len(sharded)} tensors are whole "
        f"on every rank, {len(sharded)} are sharded"
    )
    for label, placement in sharded.items():
        print(f"  {label}: {placement}")


def compare(
    optimizer: optax.GradientTransformation,
    params: Any,
    state: Any,
    batches: list[np.ndarray],
    trained: Any,
    losses: list[float],
) -> None:
    """The same steps on one device."""
    step = jax.jit(model.make_train_step(optimizer, annotate=False))
    worst = 0.0
    for batch, ours in zip(batches, losses, strict=True):
        params, state, loss = step(params, state, batch)
        worst = max(worst, abs(float(loss) - ours) / float(loss))
    furthest = max(
        float(np.abs(np.asarray(a) - np.asarray(b)).max())
        for a, b in zip(jax.tree.leaves(trained), jax.tree.leaves(params))
    )
    print(
        f"\nagainst jax.jit after {len(batches)} steps: losses differ by at "
        f"most {worst:.1e} of their value, parameters by at most {furthest:.1e}"
    )


if __name__ == "__main__":
    main()
