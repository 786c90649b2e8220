"""How much of the communication does computation hide?

Two ranks of one thread each run a step without a network, and with an emulated
one (``whale-run --network``) that is as slow as the step's own time asks for:

- data-parallel: the gradients, in buckets of an eighth of their bytes, take 60%
  of the time of the backward pass. Shown is the part of the communication by
  which the step takes longer, at most 30%, and the number of all-reduces, at
  most that of the buckets and two.
- pipeline: two stages, eight micro-batches; what a stage sends takes 20% of its
  forward's time. The program is compiled for such a network and ranks of that
  speed. Shown is the step's time over that without a network, at most 1.05.

Shown of both is also the step's time over that which the model of a step has
for it (``whale-run --profile``), given the measured times of instructions and
those of the network's links: from 0.85 to 1.15.

``benchmarks/overlap.py [--repeats N]`` prints a table in Markdown, and fails
where a limit is missed. Nothing else should run beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import perceptron
from perceptron import WIDTH

import whale as wh

LAYERS, BATCH, MICRO_BATCHES, BUCKETS = 32, 2048, 8, 8
GRADIENT_BYTES = LAYERS * WIDTH * WIDTH * 4
# The first layer needs no gradient of its input.
BACKWARD_SHARE = (2 * LAYERS - 1) / (3 * LAYERS - 1)


def cluster_of(bandwidth: float, flops: float = 1e11) -> dict[str, Any]:
    """Two ranks, by the operations and the bytes of their link in a second."""
    core = {
        "flops": {"f32": flops},
        "memory_bytes": 8e9,
        "memory_bandwidth": 1e10,
    }
    link = {"bandwidth": bandwidth, "latency": 0.0}
    devices = [{"kind": "core", "count": 2}]
    return {
        "kinds": {"core": core},
        "nodes": [{"devices": devices, "link": link}],
    }


class Measurement:
    """One program, with and without a network, compiled for a cluster."""

    def __init__(
        self, folder: str, config: dict[str, Any], cluster: Any = 2
    ) -> None:
        self.folder = folder
        args = perceptron.write_arguments(folder, LAYERS, BATCH)
        wh.init(wh.Config(config))
        if "num_task_graph" not in config:
            wh.set_default_strategy(wh.replicate())
        step = wh.jit(
            perceptron.train_step,
            cluster=cluster,
            batch_argnums=(1, 2),
            donate_argnums=0,
        )
        step.lower(*args).compile().save(f"{folder}/step.whale")

    def network(self, bandwidth: float | None) -> list[str]:
        """The options for a network, if any."""
        if bandwidth is None:
            return []
        network = pathlib.Path(self.folder, "network.json")
        network.write_text(json.dumps(cluster_of(bandwidth)))
        return [f"--network={network}"]

    def run(self, bandwidth: float | None = None) -> dict[str, Any]:
        """What is known of the last of some steps."""
        return perceptron.run(
            self.folder,
            f"{self.folder}/step.whale",
            "--steps=4",
            *self.network(bandwidth),
        )

    def over_model(self, repeats: int, bandwidth: float) -> float:
        """A step's time with the network over that of the model."""
        return statistics.median(
            measured / model
            for measured, model in (
                perceptron.profile(
                    self.folder,
                    f"{self.folder}/step.whale",
                    "--steps=4",
                    *self.network(bandwidth),
                )
                for _ in range(repeats)
            )
        )

    def compare(self, repeats: int, bandwidth: float) -> tuple[float, float]:
        """Seconds of a step without and with the network, run in turn."""
        runs = [(self.run(), self.run(bandwidth)) for _ in range(repeats)]
        free, slow = (
            statistics.median(stats["step_time_s"] for stats in side)
            for side in zip(*runs, strict=True)
        )
        return free, slow

    def time(self, repeats: int) -> float:
        """Seconds of a step without a network."""
        return statistics.median(
            self.run()["step_time_s"] for _ in range(repeats)
        )


def is_near(over_model: float) -> bool:
    """Whether a step's time is within 15% of the model's."""
    return abs(over_model - 1) <= 0.15


def gradients(folder: str, repeats: int) -> bool:
    """Prints the row of the data-parallel step; whether limits are kept."""
    step = Measurement(
        folder, {"communication.bucket_bytes": GRADIENT_BYTES // BUCKETS}
    )
    communication = 0.6 * BACKWARD_SHARE * step.time(repeats)
    # An all-reduce of two ranks moves half of the bytes twice.
    free, slow = step.compare(repeats, GRADIENT_BYTES / communication)
    rank = step.run()["ranks"][0]
    count = rank["collectives"]["all_reduce"]["count"]
    exposed = (slow - free) / communication
    over_model = step.over_model(repeats, GRADIENT_BYTES / communication)
    print(
        f"| data-parallel | {free * 1e3:.1f} ms | {slow * 1e3:.1f} ms "
        f"| {communication * 1e3:.1f} ms "
        f"| {exposed:.0%} of it, {count} all-reduces | {over_model:.3f} x |",
        flush=True,
    )
    return exposed <= 0.3 and count <= BUCKETS + 2 and is_near(over_model)


def pipeline(folder: str, repeats: int) -> bool:
    """The same of the pipeline."""
    config = {"num_task_graph": 2, "num_micro_batch": MICRO_BATCHES}
    step = Measurement(folder, config)
    # A backward takes twice as long as a forward. Each stage is busy for all
    # micro-batches, and waits for one.
    forward = step.time(repeats) / (3 * (MICRO_BATCHES + 1))
    sent = BATCH // MICRO_BATCHES * WIDTH * 4
    bandwidth = sent / (0.2 * forward)
    flops = 2 * BATCH // MICRO_BATCHES * WIDTH**2 * (LAYERS // 2) / forward
    step = Measurement(folder, config, cluster_of(bandwidth, flops))
    free, slow = step.compare(repeats, bandwidth)
    communication = 2 * MICRO_BATCHES * 0.2 * forward
    over_model = step.over_model(repeats, bandwidth)
    print(
        f"| pipeline | {free * 1e3:.1f} ms | {slow * 1e3:.1f} ms "
        f"| {communication * 1e3:.1f} ms | {slow / free:.3f} x "
        f"| {over_model:.3f} x |",
        flush=True,
    )
    return slow <= 1.05 * free and is_near(over_model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    print("| step | no network | network | communication | cost | over model |")
    print("|---|---|---|---|---|---|")
    missed = []
    for measure in (gradients, pipeline):
        with tempfile.TemporaryDirectory() as folder:
            if not measure(folder, repeats):
                missed.append(measure.__name__)
    if missed:
        sys.exit(f"limits are missed by {', '.join(missed)}")


if __name__ == "__main__":
    main()
