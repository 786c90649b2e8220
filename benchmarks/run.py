"""Times training steps and their compilation beside JAX.

Both sides live in processes of their own and work in turn, a few steps each,
so that whatever else the machine does meets both; a speed-up is JAX's median
over Whale's. On a machine with fewer cores than ranks the ranks share the
cores, as JAX's host devices do.

Results are kept in the output file: naming some cases replaces theirs alone.

Suites of many small things (suites.py), and what has limits of its own
(limits.py), run in processes of their own, and are named like cases.

With ``--before CHECKOUT`` the steps are timed beside those of another checkout
of this project, built, instead: see before.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import before
import cases
import limits
import report
import suites
from worker_process import Worker, busy_cores

HERE = pathlib.Path(__file__).resolve().parent
# XLA compiles 24 layers in minutes: once is enough.
LONG = 60.0
ROUNDS = 7


def measure(case: cases.Case, options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of one case, by side."""
    whale = Worker("whale", case)
    workers = {"whale": whale}
    first = {"whale": whale.ask("compile")}
    if not case.plan_only:
        shardings = json.dumps(first["whale"]["shardings"])
        workers["jax"] = Worker("jax", case, shardings)
        first["jax"] = workers["jax"].ask("compile")
    compiled = {side: [answer["seconds"]] for side, answer in first.items()}
    result: dict[str, Any] = {"compile_s": compiled}
    if case.compile_only:
        # The first time also loads the compiler; it is not counted.
        for _ in range(options.rounds or ROUNDS):
            for side, worker in workers.items():
                if sum(compiled[side]) < LONG:
                    compiled[side].append(worker.ask("compile")["seconds"])
    else:
        result["seconds"] = {side: [] for side in workers}
        result["processor_s"] = {side: [] for side in workers}
        result["loss"] = {
            side: worker.ask("steps 2")["loss"]
            for side, worker in workers.items()
        }
        with busy_cores() if case.idle else contextlib.nullcontext():
            for _ in range(options.rounds or ROUNDS):
                for side, worker in workers.items():
                    answer = worker.ask(f"steps {options.steps}")
                    result["seconds"][side] += answer["seconds"]
                    result["processor_s"][side] += answer["processor"]
        result["bytes"] = {
            side: worker.ask("memory")["bytes"]
            for side, worker in workers.items()
        }
    for worker in workers.values():
        worker.close()
    return {"case": case.name} | summarize(case, result)


def summarize(case: cases.Case, result: dict[str, Any]) -> dict[str, Any]:
    """Medians instead of lists."""
    compiled = {
        side: statistics.median(times[1:] or times)
        for side, times in result["compile_s"].items()
    }
    summary = {"compile_s": compiled}
    for name in ("seconds", "processor_s"):
        if name in result:
            summary[name] = {
                side: statistics.median(times)
                for side, times in result[name].items()
            }
    if case.compile_only:
        summary["seconds"] = compiled
    for name in ("loss", "bytes"):
        if name in result:
            summary[name] = result[name]
    return summary


def measure_rows(
    suite: suites.Suite | limits.Script, options: argparse.Namespace
) -> dict[str, Any]:
    """The rows that a script measures."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "rows.json")
        script = str(HERE / suite.script)
        command = [sys.executable, script, f"--output={output}"]
        for name in suite.options:
            if (value := getattr(options, name)) is not None:
                command.append(f"--{name}={value}")
        # What misses goals is for the report to say.
        subprocess.run(command, stdout=subprocess.DEVNULL)
        if not output.exists():
            raise RuntimeError(f"{suite.script} has measured nothing")
        result: dict[str, Any] = json.loads(output.read_text())
        return result


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = platform.processor()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE")
        * os.sysconf("SC_PHYS_PAGES"),
        # With these processes alone it is about the number of cores.
        "load": os.getloadavg()[1],
        "jax": importlib.metadata.version("jax"),
        "jaxlib": importlib.metadata.version("jaxlib"),
        "python": platform.python_version(),
    }


def main() -> None:
    """Measures what is asked for, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    scripts: list[suites.Suite | limits.Script] = [
        *suites.SUITES,
        *limits.SCRIPTS,
    ]
    every: list[cases.Case | suites.Suite | limits.Script] = [
        *cases.CASES,
        *scripts,
    ]
    names = [case.name for case in every]
    parser.add_argument("names", nargs="*", metavar="NAME", help=str(names))
    parser.add_argument("--output", default="build/bench.json")
    parser.add_argument("--steps", type=int, default=3, help="a round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument(
        "--seconds", type=float, help="for the calls of an item of a suite"
    )
    parser.add_argument("--before", type=pathlib.Path, metavar="CHECKOUT")
    parser.add_argument(
        "--report",
        action="store_true",
        help="write docs/performance.md; without names, measure nothing",
    )
    options = parser.parse_args()
    for name in options.names:
        if name not in names:
            parser.error(f"no case '{name}'; there are {', '.join(names)}")
    if options.before:
        for script in scripts:
            if script.name in options.names:
                parser.error(f"--before: '{script.name}' is no case, but many")
        sys.exit(before.main(options))
    output = pathlib.Path(options.output)
    results: dict[str, Any] = {}
    if output.exists() and (options.names or options.report):
        results = json.loads(output.read_text())["results"]
    wanted = options.names or ([] if options.report else names)
    for case in every:
        if case.name not in wanted:
            continue
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        results[case.name] = (
            measure(case, options)
            if isinstance(case, cases.Case)
            else measure_rows(case, options)
        )
        output.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": machine(), "results": results}
        output.write_text(json.dumps(content, indent=2) + "\n")
    print(report.table(report.rows(results)))
    for script in limits.SCRIPTS:
        if script.name in results:
            print("\n" + limits.table(limits.read(results[script.name])))
    if options.report:
        content = json.loads(output.read_text())
        path = HERE.parent / "docs" / "performance.md"
        path.write_text(report.page(content["machine"], results))


if __name__ == "__main__":
    main()
