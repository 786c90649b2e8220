"""Starts a script in several processes of this host.

    python -m whale.launch --nprocs=4 script.py [arguments of the script]

The script calls `wh.init_distributed()`; `-m module` runs a module. On several
hosts each runs this, with where the first process listens and which host it is:

    python -m whale.launch --nprocs=4 --coordinator=HOST:PORT --node=0/2 run.py
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence

from whale import distributed, files, native


def main(words: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 if all processes have ended well."""
    parser = argparse.ArgumentParser(
        prog="python -m whale.launch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--nprocs", type=int, required=True, help="processes on this host"
    )
    parser.add_argument(
        "--coordinator", metavar="HOST:PORT", help="where process 0 listens"
    )
    parser.add_argument(
        "--node", default="0/1", metavar="I/K", help="host I, from 0, of K"
    )
    parser.add_argument(
        "--log-dir",
        default="",
        help="for what all but the first process of this host print",
    )
    parser.add_argument(
        "--restarts",
        type=int,
        default=0,
        metavar="R",
        help="how often all are started again after one has failed",
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="a module instead of a script, and its arguments",
    )
    parser.add_argument("script", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if options.module:
        # Each process would say it, and none by which option.
        package = options.module[0].partition(".")[0]
        if not package or importlib.util.find_spec(package) is None:
            parser.error(f"-m: there is no module {options.module[0]!r}")
        command = ["-m", *options.module]
    elif options.script:
        command = [options.script, *options.arguments]
    else:
        parser.error("give a script, or -m and a module")
    host, port = "127.0.0.1", 0
    node, slash, nodes = options.node.partition("/")
    if not (slash and node.isdecimal() and nodes.isdecimal()) or int(
        node
    ) >= int(nodes):
        parser.error(f"--node: {options.node!r} is no I/K")
    if options.nprocs < 1:
        parser.error("--nprocs: at least 1")
    if options.restarts < 0:
        parser.error("--restarts: at least 0")
    if options.coordinator:
        try:
            host, port = distributed.address(options.coordinator)
        except ValueError as error:
            parser.error(f"--{error}")
    elif int(nodes) > 1:
        parser.error("--node belongs with --coordinator")
    if options.log_dir:
        try:
            os.makedirs(options.log_dir, exist_ok=True)
        except OSError as error:
            parser.error(f"--log-dir: {options.log_dir}: {error.strerror}")
    sys.stdout.flush()
    status = native.guarded(
        native.extension().run_processes,
        *(int(node) * options.nprocs, options.nprocs),
        *(int(nodes) * options.nprocs, host, port),
        [sys.executable, *command],
        options.log_dir,
        options.restarts,
    )
    if status != 0:
        # Removes what a process that was killed has left.
        with files.ScratchDirectory():
            pass
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
