"""Checks that whale-opt prints texts of JAX as it read them.

usage: roundtrip.py WHALE_OPT FOLDER... [--if-exists FOLDER...]

Every *.mlir of the folders is parsed and printed; the result has to be equal,
byte for byte, but for newlines at the end. Files named *.loc.mlir are printed
with locations. The generic form is checked too: printing it and reading it back
gives the same generic text, and the same pretty one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import subprocess
import sys

# Into how many parts texts are divided: a process of the tool reads one.
PARTS = 4
# Between the texts of a part, which are read each by itself.
SEPARATOR = "\n// -----\n"


def run(tool, texts, *flags):
    """What the tool prints of each text."""
    done = subprocess.run(
        [tool, "--split-input-file", *flags, "-"],
        input=SEPARATOR.join(texts),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(done.stderr.strip()[:2000])
    printed = done.stdout.split(SEPARATOR)
    if len(printed) != len(texts):
        raise ValueError(f"{len(printed)} of {len(texts)} texts were printed")
    return printed


def expect_equal(what, expected, got):
    if expected.rstrip("\n") == got.rstrip("\n"):
        return
    diff = difflib.unified_diff(
        expected.splitlines(),
        got.splitlines(),
        "expected",
        "got",
        n=0,
        lineterm="",
    )
    lines = [line[:300] for line in list(diff)[:12]]
    raise ValueError("\n".join([f"{what} differs:", *lines]))


def has_locations(path):
    return path.name.endswith(".loc.mlir")


def failures_of(tool, paths):
    """One for each text that does not round-trip; all have locations or none
    has."""
    texts = [path.read_text() for path in paths]
    flags = ["--mlir-print-debuginfo"] if has_locations(paths[0]) else []
    try:
        pretty = run(tool, texts, *flags)
        generic = run(tool, texts, "--mlir-print-op-generic", *flags)
        again = run(tool, generic, "--mlir-print-op-generic", *flags)
        back = run(tool, generic, *flags)
    except (ValueError, subprocess.TimeoutExpired) as error:
        if len(paths) == 1:
            return [f"{paths[0]}: {error}"]
        # One by one says which.
        return [f for path in paths for f in failures_of(tool, [path])]
    failures = []
    for i, path in enumerate(paths):
        try:
            expect_equal("pretty form", texts[i], pretty[i])
            expect_equal("generic form", generic[i], again[i])
            expect_equal("pretty form of the generic", texts[i], back[i])
        except ValueError as error:
            failures.append(f"{path}: {error}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--if-exists", nargs="*", type=pathlib.Path, default=[])
    args = parser.parse_args()
    folders = args.folders + [f for f in args.if_exists if f.exists()]
    paths = sorted(p for folder in folders for p in folder.rglob("*.mlir"))
    # A process reads a part of them: starting one takes longer than a text.
    parts = [
        chosen[i::PARTS]
        for chosen in (
            [p for p in paths if has_locations(p)],
            [p for p in paths if not has_locations(p)],
        )
        for i in range(PARTS)
    ]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(
            lambda p: failures_of(args.tool, p), filter(None, parts)
        )
        failures = [failure for each in found for failure in each]
    print("\n".join(failures))
    print(f"{len(paths) - len(failures)} of {len(paths)} texts round-trip")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
