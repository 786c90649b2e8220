"""Checks that whale-opt prints texts of JAX as it read them.

usage: roundtrip.py WHALE_OPT FOLDER... [--if-exists FOLDER...]

Every *.mlir of the folders is parsed and printed; the result has to be equal,
byte for byte, but for newlines at the end. Files named *.loc.mlir are printed
with locations. The generic form is checked too: printing it and reading it back
gives the same generic text, and the same pretty one.
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import subprocess
import sys


def run(tool, text, *flags):
    done = subprocess.run(
        [tool, *flags, "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(done.stderr.strip()[:2000])
    return done.stdout


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


def check(tool, path):
    text = path.read_text()
    flags = (
        ["--mlir-print-debuginfo"] if path.name.endswith(".loc.mlir") else []
    )
    try:
        expect_equal("pretty form", text, run(tool, text, *flags))
        generic = run(tool, text, "--mlir-print-op-generic", *flags)
        again = run(tool, generic, "--mlir-print-op-generic", *flags)
        expect_equal("generic form", generic, again)
        expect_equal(
            "pretty form of the generic", text, run(tool, generic, *flags)
        )
    except (ValueError, subprocess.TimeoutExpired) as error:
        return f"{path}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--if-exists", nargs="*", type=pathlib.Path, default=[])
    args = parser.parse_args()
    folders = args.folders + [f for f in args.if_exists if f.exists()]
    paths = sorted(p for folder in folders for p in folder.rglob("*.mlir"))
    tool = args.tool
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [f for f in pool.map(lambda p: check(tool, p), paths) if f]
    print("\n".join(failures))
    print(f"{len(paths) - len(failures)} of {len(paths)} texts round-trip")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
