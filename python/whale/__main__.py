"""Whale's commands.

python -m whale info                      what is installed, and found here
python -m whale explain FILE.mlir ...     what the compiler would decide
python -m whale launch --nprocs=4 ...     a script in several processes
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence

from whale import launch


def main(words: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m whale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "command", choices=("info", "explain", "launch"), nargs="?"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if options.command is None:
        parser.print_help()
        return 2
    if options.command == "launch":
        return launch.main(options.arguments)
    if options.command == "explain":
        return explain(options.arguments)
    if options.arguments:
        parser.error(f"info takes no {options.arguments[0]!r}")
    print(info(), end="")
    return 0


def explain(words: Sequence[str]) -> int:
    """Runs the compiler without generating code, and prints its decisions."""
    from whale import compiler

    def is_given(option: str) -> bool:
        return any(word.split("=")[0].lstrip("-") == option for word in words)

    more = [] if is_given("target") else ["--target=none"]
    more += [] if is_given("explain") else ["--explain"]
    try:
        done = subprocess.run([compiler.PATH, *words, *more], check=False)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return done.returncode


def info() -> str:
    """What a report of a problem should say."""
    rows = [*_versions(), *_machine(), *_cache()]
    libraries = _libraries()
    width = max(len(row[0]) for row in [*rows, *libraries])
    text = "".join(f"{name:{width}}  {value}\n" for name, value in rows)
    text += "\nlibraries, opened where a program needs them\n"
    for name, use, place in libraries:
        text += f"  {name:{width}}  {place or 'not found'} ({use})\n"
    return text


def _versions() -> list[tuple[str, str]]:
    import jax
    import jaxlib
    import numpy

    from whale import compiler, native, versions
    from whale.errors import WhaleError

    try:
        said = subprocess.run(
            [compiler.PATH, "--version"], capture_output=True, text=True
        ).stdout.split("\n")
        text = ", ".join(line.strip() for line in said if line.strip())
    except OSError as error:
        text = f"cannot be started ({error})"
    try:
        runtime = native.extension().__file__
    except WhaleError as error:
        runtime = str(error)
    return [
        ("whale", f"{versions.VERSION} in {os.path.dirname(__file__)}"),
        ("compiler", text),
        ("runtime", runtime),
        ("python", f"{platform.python_version()} in {sys.executable}"),
        ("jax", f"{jax.__version__} (Whale works with {versions.RANGE})"),
        ("jaxlib", jaxlib.__version__),
        ("numpy", numpy.__version__),
    ]


def _machine() -> list[tuple[str, str]]:
    from whale import machine, native
    from whale.errors import WhaleError

    try:
        memory = native.extension().machine_memory()
        text = f"{memory / 2**30:.1f} GiB for this process"
    except WhaleError:
        text = "unknown without the runtime"
    return [
        ("processor", machine.processor()),
        ("memory", text),
        ("GPUs", ", ".join(gpu.name for gpu in machine.gpus()) or "none"),
        ("system", f"{platform.system()} {platform.release()}"),
    ]


def _cache() -> list[tuple[str, str]]:
    from whale import cache

    place = cache.directory()
    if place is None:
        return [("cache", "none")]
    count, size = cache.usage()
    return [
        (
            "cache",
            f"{place}: {count} programs, {size / 2**20:.1f} of "
            f"{cache.most_bytes() / 2**20:.0f} MiB",
        )
    ]


def _libraries() -> list[tuple[str, str, str]]:
    """The name of each, what it is for, and where it is found."""
    from whale import native
    from whale.errors import WhaleError

    try:
        return native.extension().late_libraries()
    except WhaleError:
        return []


if __name__ == "__main__":
    sys.exit(main())
