#!/usr/bin/env python
"""Gives Whale's tools damaged inputs.

    fuzz.py SCRATCH [--count N] [--seed S] [--kind KIND] [--only NUMBER]
            [--texts FOLDER...] [--jobs J]

Mutant number i of a seed is always the same: a text, a cluster file, a program
directory or a safetensors file, changed (mutations.py), with random options; or
a single call (calls.py) or operation (operations.py) that is damaged. Each runs
through `whale-compile`, and `whale-run` where it compiles; texts of all levels
also through `whale-opt` with any one pass. A tool
must end by itself within 20 s of processor time and 4 GiB with status 0, or
with status 1 and one line that contains `error: `; no remark prints inf or nan;
a text that compiles gives what XLA gives, so does a program of the arguments
that were changed, and a program that was changed gives what it gave before,
unless it says now that something else is computed (judge.py). What fails is
made smaller, kept in SCRATCH, and printed with its command. Exit status 1 if
any fails.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import multiprocessing
import os
import pathlib
import shlex
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test" / "Inputs")]

import tools  # noqa: E402
from judge import GOOD, judge, write_arguments  # noqa: E402
from mutants import KINDS, OWN, Corpus, Mutant, make  # noqa: E402


def make_bases(scratch: pathlib.Path, corpus: Corpus) -> None:
    """Programs without loops: a changed one may rightly never end."""
    texts = [text for text in corpus.own if "stablehlo.while" not in text]
    for number, text in enumerate(texts):
        folder = scratch / "base" / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "text.mlir").write_text(text)
        levels = f"--dump-phases-to={folder / 'levels'}"
        # What is in the memory of hosts needs some that say how much they have.
        cluster = OWN / "host.json" if "offload" in text else 2
        given = (f"--cluster={cluster}", levels)
        mutant = Mutant("text", 0, folder, text, given)
        result = tools.run(mutant.compile)
        if result.status != 0:
            sys.exit(f"a text of the corpus is refused: {result.err}")
        write_arguments(folder, number)
        result = tools.run(mutant.run)
        if result.status != 0:
            sys.exit(f"a program of the corpus fails: {result.err}")


def shrink(mutant: Mutant, outcome: str, reference: tools.Reference) -> None:
    """Leaves out lines of the text as long as it ends in the same way."""
    budget, size = 80, len(mutant.text.split("\n")) // 2
    while size >= 1 and budget > 0:
        lines, at = mutant.text.split("\n"), 0
        while at < len(lines) and budget > 0:
            fewer = lines[:at] + lines[at + size :]
            smaller = dataclasses.replace(mutant, text="\n".join(fewer))
            budget -= 1
            if judge(smaller, reference)[0] == outcome:
                lines, mutant.text = fewer, smaller.text
            else:
                at += size
        size //= 2
    judge(mutant, reference)


_reference = tools.Reference()


def check(number: int, kind: str, seed: int, corpus: Corpus,
          scratch: pathlib.Path) -> tuple[int, str, str, str]:  # fmt: skip
    """(number, kind, how it ended, what to print if that is a failure)."""
    mutant = make(kind, number, seed, corpus, scratch)
    outcome, why = judge(mutant, _reference)
    if outcome in GOOD:
        shutil.rmtree(mutant.folder)
        return number, mutant.kind, outcome, ""
    if mutant.text and mutant.kind != "cluster" and "takes more" not in why:
        shrink(mutant, outcome, _reference)
    commands = [mutant.run] if mutant.kind != "pass" else []
    if mutant.text:
        commands.insert(0, mutant.compile)
    shown = " && ".join(shlex.join(command) for command in commands)
    return number, mutant.kind, outcome, f"{why.strip()}\n    {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scratch", type=pathlib.Path)
    full = "WHALE_TEST_FULL" in os.environ
    parser.add_argument("--count", type=int, default=10000 if full else 300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="", choices=["", *sorted(set(KINDS))])
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--texts",
        type=pathlib.Path,
        nargs="*",
        default=[ROOT / "test/Dialect/StableHLO/Inputs"],
    )
    options = parser.parse_args()
    corpus = Corpus(options.texts)
    make_bases(options.scratch, corpus)
    numbers = range(options.count) if options.only is None else [options.only]
    one = functools.partial(
        check, kind=options.kind, seed=options.seed, corpus=corpus,
        scratch=options.scratch,
    )  # fmt: skip
    ends: collections.Counter[str] = collections.Counter()
    failed = 0
    with multiprocessing.Pool(options.jobs) as pool:
        for number, kind, outcome, message in pool.imap_unordered(one, numbers):
            ends[f"{kind}: {outcome}"] += 1
            if message:
                failed += 1
                print(
                    f"mutant {number} ({kind}): {outcome}: {message}",
                    flush=True,
                )
    for outcome, count in sorted(ends.items()):
        print(f"{count:6} {outcome}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
