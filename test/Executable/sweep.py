#!/usr/bin/env python
"""Runs small models on clusters of many kinds against one CPU under XLA.

    sweep.py [--filter PART]

Even and uneven devices, batches and widths that don't divide, shares that are
empty, donated arguments, one step and several, the same bits in each run and on
late devices; and of `split` over four devices that each rank holds a quarter of
the parameters and their optimizer state, and computes a quarter of the
products.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import types

import compare
import models
import numpy as np
import relaunch

# Devices of speeds 1, 1/2, 1/3.
UNEVEN = {
    "nodes": [{"devices": [{"kind": "cpu", "slowdown": s} for s in (1, 2, 3)]}],
}

ODD = {
    "mlp": models.mlp(12, 5, 13, 7),
    "gpt": models.gpt(2, 5, 12, 3, 11),
    "cnn": models.cnn(5, 6, 3, 5),
    "lstm": models.lstm(12, 3, 3, 5),
    "moe": models.moe(12, 6, 3, 7),
}
EVEN = {
    "mlp": models.mlp(8, 8, 16, 4),
    "gpt": models.gpt(4, 4, 16, 4, 8),
    "cnn": models.cnn(4, 8, 1, 4),
    "lstm": models.lstm(4, 3, 4, 8),
    "moe": models.moe(8, 8, 4, 8),
}
TINY = {"mlp": models.mlp(2, 3, 3, 5)}
# Models, donated or not, cluster, strategy.
RUNS = [
    (ODD, "mlp lstm", True, 8, "replicate"),
    (ODD, "cnn", False, UNEVEN, "replicate"),
    (ODD, "mlp gpt moe", False, UNEVEN, "split"),
    (EVEN, "mlp gpt cnn", True, 4, "split"),
    (ODD, "lstm", True, 2, "none"),
    (TINY, "mlp", True, 8, "split"),
]
if relaunch.IS_FULL:
    RUNS += [
        (ODD, "gpt", True, 8, "replicate"),
        (ODD, "moe", False, UNEVEN, "replicate"),
        (ODD, "cnn lstm", False, UNEVEN, "split"),
        (EVEN, "lstm moe", True, 4, "split"),
    ]
# Results feed the state of a second step.
STEPS = 2


def is_state(label):
    return label.startswith(("params", "opt_state"))


def work(instructions, manifest, runs=()):
    """FLOPs in a list of instructions, loops counted once. Small products are
    kernels, as what is computed element by element."""
    flops = 0
    for instruction in instructions:
        flops += instruction.get("flops", 0)
        for part in ("cond", "body"):
            flops += work(instruction.get(part, []), manifest, runs)
        if "run" in instruction:
            run = runs[instruction["run"]]
            function = manifest["functions"][run["function"]]
            flops += work(function["instructions"], manifest)
    return flops


def class_work(rank_class, manifest):
    runs = rank_class.get("runs", ())
    return work(rank_class["instructions"], manifest, runs)


def check_shares(text, manifest, whole):
    """Each of four ranks has a quarter of the state, little more of work."""
    for label, argument in zip(text.labels, manifest["arguments"]):
        if len(argument["shape"]) < 2 or not is_state(label):
            continue
        size = np.prod(argument["shape"])
        for rank, box in enumerate(argument["boxes"]):
            share = np.prod(box[1])
            if share * 4 != size:
                raise compare.Failure(
                    f"rank {rank} holds {share} of {size} of {label}"
                )
    total = class_work(whole["classes"][0], whole)
    for ranks in manifest["classes"]:
        share = class_work(ranks, manifest) / total
        # What each rank computes of small parameters is whole.
        if not 0.2 < share < 0.4:
            raise compare.Failure(
                f"ranks {ranks['ranks']} do {share:.2f} of the work"
            )


def run(text, expected, args, folder):
    """Compares one run; a text for each difference, and how many transfers
    late devices moved."""
    feedback = compare.feedback_of(text, None)
    program = compare.compile_whale(text, args, feedback, folder)
    inputs, results = expected
    actual = compare.run_whale(program, text, inputs, args, folder)
    moved = compare.check_late(program, text, args, folder, actual)
    relaunch.check(
        *(program, f"{folder}/in.safetensors", actual, text.name),
        *(args.steps, args.timeout),
    )
    if args.cluster == 4 and args.strategy == "split":
        manifest = compare.read_manifest(program)
        args.cluster, args.compile_arg = 1, ["--target=none"]
        whole = compare.compile_whale(text, args, feedback, folder)
        check_shares(text, manifest, compare.read_manifest(whole))
    # The tolerance of one step.
    return compare.judge(text, results, actual, 1)[1], moved


def reference(text):
    """Inputs, and what XLA makes of them on one CPU."""
    rng = np.random.default_rng(0)
    inputs = [
        compare.make_input(rng, dtype, shape, label)
        for (dtype, shape), label in zip(text.arguments, text.labels)
    ]
    feedback = compare.feedback_of(text, None)
    return inputs, compare.run_xla(text, inputs, STEPS, feedback)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="part of a run's name")
    chosen = parser.parse_args().filter
    failed, references = False, {}
    for family, names, donate, cluster, strategy in RUNS:
        for name in names.split():
            devices = "uneven" if cluster is UNEVEN else cluster
            title = f"{name} {strategy} on {devices}"
            if chosen not in title:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/cluster.json"
                with open(path, "w") as file:
                    json.dump(UNEVEN, file)
                args = types.SimpleNamespace(
                    cluster=path if cluster is UNEVEN else cluster,
                    strategy=strategy,
                    batch_args="auto",
                    compile_arg=[],
                    timeout=120,
                    steps=STEPS,
                    repeat=2,
                )
                source = f"{folder}/{name}.mlir"
                with open(source, "w") as file:
                    file.write(models.lower(family[name], donate))
                text = compare.Text(source)
                key = id(family[name])
                if key not in references:
                    references[key] = reference(text)
                moved = 0
                try:
                    report, moved = run(text, references[key], args, folder)
                except compare.Failure as failure:
                    report = [str(failure)]
            failed |= bool(report)
            note = f"ok, {moved} transfers moved"
            print(f"{title:24} {'; '.join(report) or note}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
