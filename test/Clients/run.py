#!/usr/bin/env python
"""Runs steps as users of other libraries write them, beside `jax.jit`.

    run.py [--full] [--library NAME...] [--filter PART] [--run NAME...]
           [--jobs N] [--verbose]

Cases are in the tables `CASES` of LIBRARY_cases.py. Each runs on one rank, on
three uneven ones and on four, under each of its strategies; state and results
of two steps must be those of `jax.jit`. An error that the case expects is as
good. Prints what else there is, and a count of cases by library and outcome;
exit status 1 if any is wrong, or has crashed: ended in any other error. Without
--full (or WHALE_TEST_FULL) it runs a sample, of libraries that all tests use.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import faulthandler
import importlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_BACKEND", "jax")
# What equinox finds wrong becomes no number, instead of a call of Python.
os.environ.setdefault("EQX_ON_ERROR", "nan")
# The verifier runs after every pass.
os.environ.setdefault("WHALE_VERIFY_EACH", "1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import jax  # noqa: E402
import numpy as np  # noqa: E402
from client import Client, Program, parts  # noqa: E402

import whale as wh  # noqa: E402

# The package of each library.
LIBRARIES = {
    "optax": "optax",
    "equinox": "equinox",
    "linen": "flax",
    "nnx": "flax",
    "haiku": "haiku",
    "keras": "keras",
    "keras_hub": "keras_hub",
    "distrax": "distrax",
    "numpyro": "numpyro",
    "blackjax": "blackjax",
    "diffrax": "diffrax",
    "optimistix": "optimistix",
    "jraph": "jraph",
}
SAMPLE = {
    "optax": (
        *("accumulated", "adafactor", "assignment", "clipped_globally"),
        *("loss_ctc", "muon", "partitioned"),
    ),
    "equinox": (
        *("adaptive_pool", "attention", "custom_vjp", "lstm"),
        *("spectral_norm", "stack"),
    ),
    "linen": ("bidirectional", "conv_lstm", "decode", "fp8"),
    "nnx": ("lora", "metrics", "scan_remat"),
}
SAMPLE_RUNS = ["split", "stages"]
OUTCOMES = ("skipped", "right", "refused", "wrong", "crashed")
FAILURES = OUTCOMES[3:]
# Of leaves in half precision, which XLA rounds at other places.
HALF_TOLERANCE = 2e-2
# Of one case, under all its strategies.
SECONDS = 900

UNEVEN = {
    "nodes": [{"devices": [{"kind": "cpu", "slowdown": s} for s in (1, 2, 3)]}]
}


def strategies(run: str, ranks: int) -> tuple[Any, dict[str, Any]]:
    """The default strategy of a run, and those of parts."""
    if run == "split":
        return wh.split(), {}
    if run == "mixed":
        return wh.replicate(), {"head": wh.split()}
    if run == "stages":
        return None, {
            "body": wh.replicate(2 if ranks == 3 else 1, "body"),
            "head": wh.replicate(1, "head"),
        }
    return wh.replicate(), {}


def host(value: Any) -> np.ndarray:
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def difference(ours: Any, theirs: Any, tolerance: float) -> str:
    """Where two trees differ, in magnitudes of the leaf; nothing if nowhere."""
    structure: Any = jax.tree.structure(ours)
    if structure != jax.tree.structure(theirs):
        return "the trees differ"
    pairs = zip(jax.tree.leaves_with_path(ours), jax.tree.leaves(theirs))
    for (path, ours), theirs in pairs:
        a, b = host(ours), host(theirs)
        name = jax.tree_util.keystr(path)
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{name}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        if not jax.numpy.issubdtype(b.dtype, jax.numpy.inexact):
            if not np.array_equal(a, b):
                return f"{name}: {np.sum(a != b)} of {a.size} differ"
            continue
        is_half = b.dtype.itemsize < 4
        wide = np.complex128 if np.iscomplexobj(b) else np.float64
        a, b = a.astype(wide), b.astype(wide)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return f"{name}: not finite in other places"
        scale = max(1e-3, np.abs(b[finite]).max(initial=0))
        apart = np.abs(a[finite] - b[finite]).max(initial=0) / scale
        if apart > max(tolerance, HALF_TOLERANCE if is_half else 0):
            return f"{name}: {apart:.2g} of its magnitude apart"
    return ""


def steps(step: Any, program: Program) -> Iterator[Any]:
    """What two steps give."""
    state = program.state
    for _ in range(2):
        results = step(*state, *program.batch)
        yield jax.block_until_ready(results)
        state = results[: len(state)]


def judge(
    client: Client, program: Program, expected: list[Any], run: str, odd: bool
) -> tuple[str, str]:
    """The outcome of a case under a strategy, and what there is to say."""
    ranks = 1 if run == "one" else 3 if odd else 4
    wh.init({"num_micro_batch": 2 if run == "stages" else 1, "warnings": False})
    default, scopes = strategies(run, ranks)
    if default:
        wh.set_default_strategy(default)
    state, batch = len(program.state), len(program.batch)
    step = wh.jit(
        program.step,
        cluster=UNEVEN if ranks == 3 else ranks,
        donate_argnums=tuple(range(state)),
        batch_argnums=tuple(range(state, state + batch)),
    )
    refusal = client.refused.get(run)
    try:
        with parts(scopes):
            for ours, theirs in zip(steps(step, program), expected):
                if wrong := difference(ours, theirs, client.tolerance):
                    return "wrong", wrong
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if refusal and re.search(refusal, text):
            return "refused", text
        return "crashed", text
    # What has become possible is no failure.
    return "right", "though an error is expected" if refusal else ""


def run_case(
    index: int, client: Client, runs: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Each run of a case, its outcome, and what there is to say."""
    try:
        program = client.build()
        with parts({}):
            expected = list(steps(jax.jit(program.step), program))
    except Exception as error:
        yield "jax", "crashed", f"{type(error).__name__}: {error}"
        return
    for place, run in enumerate(client.runs):
        if not runs or run in runs:
            # Half of the cases have a strategy on each cluster.
            odd = (index + place) % 2 == 1
            yield run, *judge(client, program, expected, run, odd)


def cases(library: str) -> dict[str, Client]:
    return importlib.import_module(f"{library}_cases").CASES


def work(names: list[str], runs: list[str]) -> None:
    """Runs cases, and says what became of each in a line of JSON."""
    for name in names:
        library, _, case = name.partition("/")
        table = cases(library)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        index = list(table).index(case)
        for result in run_case(index, table[case], runs):
            print(json.dumps([name, *result]), flush=True)
        print(json.dumps([name, "", "", ""]), flush=True)
    faulthandler.cancel_dump_traceback_later()


def in_process(names: list[str], runs: list[str], verbose: bool) -> list[Any]:
    """What `work` says in processes of its own; what ends one has crashed."""
    found: list[list[str]] = []

    def add(result: list[str]) -> None:
        found.append(result)
        name, run, outcome, text = result
        if verbose or text and outcome != "refused":
            print(f"{outcome:8} {name} ({run}) {text}", flush=True)

    names = list(names)
    while names:
        command = [sys.executable, __file__, "--work", ",".join(names)]
        command += ["--run", *runs] if runs else []
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            assert process.stdout
            for line in process.stdout:
                if not line.startswith('["'):
                    continue
                result = json.loads(line)
                if result[1]:
                    add(result)
                else:
                    names = [name for name in names if name != result[0]]
            process.wait()
            if names:
                errors.seek(0)
                add([names.pop(0), "process", "crashed", errors.read()])
    return found


def show(found: list[list[str]], skipped: dict[str, int]) -> bool:
    """Prints the counts; whether all is as it should be."""
    by_case = collections.defaultdict(list)
    for result in found:
        by_case[result[0]].append(result)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for name, results in by_case.items():
        # The outcome of a case is the worst of its runs.
        worst = max((result[2] for result in results), key=OUTCOMES.index)
        counts[name.partition("/")[0]][worst] += 1
    for library, count in skipped.items():
        counts[library]["skipped"] += count
    total = sum(counts.values(), collections.Counter())
    print(f"{'library':12}" + "".join(f"{o:>9}" for o in OUTCOMES))
    for library, counter in [*counts.items(), ("all", total)]:
        print(f"{library:12}" + "".join(f"{counter[o]:9}" for o in OUTCOMES))
    return not any(total[outcome] for outcome in FAILURES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", nargs="+", default=list(LIBRARIES))
    parser.add_argument("--filter", default="", help="part of the names")
    parser.add_argument("--run", nargs="+", default=[], help="strategies")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work.split(","), arguments.run)
        return
    full = arguments.full or bool(os.environ.get("WHALE_TEST_FULL"))
    names, skipped = [], {}
    for library in arguments.library:
        chosen = None if full else SAMPLE.get(library, ())
        if chosen == ():
            continue
        if importlib.util.find_spec(LIBRARIES[library]) is None:
            print(f"{library} is not installed (scripts/requirements-full.txt)")
            skipped[library] = len(chosen or ["all"])
            continue
        names += [
            f"{library}/{name}"
            for name in chosen or cases(library)
            if arguments.filter in f"{library}/{name}"
        ]
    # A process has every jobs-th case, so that all are at work to the end.
    jobs = max(1, min(arguments.jobs, len(names)))
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        shares = pool.map(
            in_process,
            [names[i::jobs] for i in range(jobs)],
            [
                # Of a sample, each case has one of its runs.
                arguments.run or ([] if full else [SAMPLE_RUNS[i % 2]])
                for i in range(jobs)
            ],
            [arguments.verbose] * jobs,
        )
        found = sorted(sum(shares, []))
    good = show(found, skipped)
    print(f"{len(found)} runs in {time.monotonic() - start:.0f} s")
    sys.exit(not good)


if __name__ == "__main__":
    main()
