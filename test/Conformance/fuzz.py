#!/usr/bin/env python
"""Runs random programs through XLA and through Whale, and compares.

    fuzz.py [--count N] [--seed S] [--ranks 1,2,3] [--keep FOLDER]
            [--attention | --stages] [--target cpu|cuda-emulated]
            [--full-count N] [--plan-only]

Program number i of a seed is always the same: element types, shapes,
operations and control flow are drawn from it, and so are the number of ranks,
the strategy and the arguments that carry the mini-batch. One in three is a
training step (fuzz_steps.py); with --attention, all are attention
(fuzz_attention.py), and with --stages steps on stages (fuzz_stages.py), of
which the compiler may refuse what would be another result. The ranks `uneven`
are three of different speeds. What a difference in the last bit would turn into
another result (comparisons, sorting, rounding to integers) is only done with
numbers that have been computed exactly. Exit status 1 if a program fails or
differs; its text is kept in FOLDER, and the outcomes are counted. With
WHALE_TEST_FULL in the environment, --full-count is the number of programs.
With --plan-only, each is planned and partitioned, and nothing runs: many more
of them take the same time.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
# Each program runs once: XLA takes longer to optimize one than to run it.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from cases import Tensor  # noqa: E402
from fuzz_attention import Attention  # noqa: E402
from fuzz_programs import Program  # noqa: E402
from fuzz_stages import ALLOWED, Staged  # noqa: E402
from fuzz_steps import Step  # noqa: E402
from run import compiled, run_program  # noqa: E402

from whale.dtypes import element_name  # noqa: E402

# Devices of speeds 1, 1/2, 1/3.
UNEVEN = json.dumps({
    "nodes": [{"devices": [{"kind": "cpu", "slowdown": s} for s in (1, 2, 3)]}]
})  # fmt: skip


def with_strategy(rng, text: str, program) -> str:
    """The text with a strategy and arguments that carry the mini-batch: those
    that the program names, or such as have the same number of rows."""
    arguments, numbers = program.arguments, program.batch_arguments
    strategy = ("replicate", "split", None)[int(rng.integers(3))]
    if strategy is None:
        return text
    attributes = f"whale.default_strategy = #whale.{strategy}, "
    if (count := getattr(program, "micro_batches", 1)) > 1:
        attributes += f"whale.config = {{num_micro_batch = {count} : i64}}, "
    text = text.replace("attributes {", "attributes {" + attributes, 1)
    if not numbers:
        extents = [a.shape[0] for a in arguments if a.ndim and a.shape[0]]
        if not extents:
            return text
        batch = extents[int(rng.integers(len(extents)))]
        numbers = [
            number for number, argument in enumerate(arguments)
            if argument.ndim and argument.shape[0] == batch
        ]  # fmt: skip
    for number in numbers:
        text = re.sub(
            rf"(%arg{number}: tensor<[^>]*>)(?! \{{)",
            r"\1 {whale.batch_dim = 0 : i64}",
            text,
            count=1,
        )
    return text


def compare(expected: np.ndarray, actual: np.ndarray, coarse: bool) -> str:
    """What differs; nothing if the results agree."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{actual.dtype}{actual.shape}"
    if expected.dtype.kind != "f":
        wrong = expected != actual
    else:
        tolerance = 3e-4 if expected.dtype == np.float32 else 1e-9
        if coarse:
            tolerance = 5e-2
        finite = np.abs(expected[np.isfinite(expected)])
        scale = max(1.0, float(finite.max()) if finite.size else 1.0)
        with np.errstate(all="ignore"):
            near = np.abs(expected - actual) <= tolerance * scale
        both = np.isnan(expected) & np.isnan(actual)
        wrong = ~(near | both | (expected == actual))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"at {list(at)} {actual[at]} instead of {expected[at]}"


def draw(number: int, args):
    """A program, and what draws how it is spread."""
    rng = np.random.default_rng([args.seed, number, 1])
    seed = int(np.random.default_rng([args.seed, number]).integers(2**62))
    form: type = Step if rng.random() < 1 / 3 else Program
    if args.attention:
        form = Attention
    if args.stages:
        form = Staged
    return form(seed, int(rng.integers(2, args.size + 1))), rng


def check(number: int, args) -> tuple[str, str, str]:
    """(the outcome, what is wrong with a program, its text). The outcome is
    right, planned, refused, failed or wrong."""
    program, rng = draw(number, args)
    Program.coarse = False
    function = jax.jit(program, keep_unused=True)
    lowered = function.lower(*program.arguments)
    expected = [] if args.plan_only else [
        np.asarray(array) for array in lowered.compile()(*program.arguments)
    ]  # fmt: skip
    types = [
        Tensor(element_name(array.dtype), array.shape) for array in expected
    ]
    ranks = args.ranks.split(",")
    cluster = ranks[int(rng.integers(len(ranks)))]
    where = UNEVEN if cluster == "uneven" else cluster
    if args.stages:
        text = program.text(json.loads(where))
    else:
        text = lowered.as_text()
        if cluster != "1":
            text = with_strategy(rng, text, program)
    if args.keep:
        # Left behind by a crash.
        args.keep.mkdir(parents=True, exist_ok=True)
        (args.keep / f"{args.seed}-running.mlir").write_text(
            f"// program {number} on {cluster}\n{text}"
        )
    try:
        if args.plan_only:
            with compiled(text, where, "none"):
                return "planned", "", text
        results = run_program(
            text, program.arguments, types, where, args.target
        )
    except Exception as error:
        message = str(error)
        allowed = args.stages and any(
            re.search(pattern, message, re.DOTALL) for pattern in ALLOWED
        )
        message = f"on {cluster} ranks: {message[:300]}"
        return "refused" if allowed else "failed", message, text
    for index, (a, b) in enumerate(zip(expected, results)):
        if wrong := compare(a, b, program.coarse):
            message = f"on {cluster} ranks: result {index} {wrong}"
            return "wrong", message, text
    return "right", "", text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--full-count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=14, help="operations")
    parser.add_argument("--ranks", default="1,2,3,uneven")
    parser.add_argument("--attention", action="store_true")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--plan-only", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    if args.stages:  # As users' steps are.
        jax.config.update("jax_enable_x64", False)
    if args.full_count and "WHALE_TEST_FULL" in os.environ:
        args.count = args.full_count
    begin = time.monotonic()
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(args.first, args.first + args.count):
        outcome, message, text = check(number, args)
        outcomes[outcome] += 1
        if (number + 1) % 100 == 0:
            print(f"{number + 1 - args.first} programs", flush=True)
        if outcome in ("right", "planned", "refused"):
            continue
        print(f"program {number}: {outcome} {message}", flush=True)
        if args.keep:
            (args.keep / f"{args.seed}-{number}.mlir").write_text(text)
    seconds = time.monotonic() - begin
    counts = ", ".join(f"{n} {what}" for what, n in outcomes.items())
    print(f"{args.count} programs: {counts}; {seconds:.0f} s")
    return 1 if outcomes["wrong"] + outcomes["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
