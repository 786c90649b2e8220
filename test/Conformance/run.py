#!/usr/bin/env python
"""Runs a folder of StableHLO conformance cases and scores each operation.

    run.py FOLDER|FILE.mlir... [--filter PART] [--jobs N] [--json OUT.json]
           [--cluster N|C.json] [--at-least PERCENT] [--failures] [--every N]

What a case is, says cases.py. Each is compiled and run in this process (a
worker of it: what crashes or hangs one is a failure of that case alone).
Numbers agree if they differ by less than the precision of their type allows;
integers must be equal. Exit status 1 if less than --at-least are right.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import pathlib
import shutil
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from cases import BadCase, Case, Tensor, read_cases  # noqa: E402

from whale import native  # noqa: E402
from whale.dtypes import element_name, numpy_dtype  # noqa: E402

# Relative to the number, and a hundredth of it to the largest of the tensor.
TOLERANCES = {
    "f64": 1e-10, "f32": 2e-5, "f16": 4e-3, "bf16": 2e-2,
    "complex<f64>": 1e-10, "complex<f32>": 2e-5,
}  # fmt: skip
COMMON = ("f32", "bf16", "f16", "i1", "i32", "i64", "ui32", "ui64")


def run_program(
    text: str, arguments: list[np.ndarray], types: list[Tensor], cluster: str
) -> list[np.ndarray]:
    """The results of @main. Raises what the compiler or the runtime says."""
    extension = native.extension()
    folder = tempfile.mkdtemp(prefix="whale-case-")
    try:
        path = f"{folder}/case.whale"
        extension.compile(text, cluster, path, target="cpu")
        handles = [
            extension.Array.from_host(
                value.reshape(-1).view(np.uint8),
                element_name(value.dtype),
                list(value.shape),
            )
            for value in arguments
        ]
        results, _ = extension.Program(path).run(handles)
        return [
            result.to_host().view(numpy_dtype(type_.dtype)).reshape(type_.shape)
            for result, type_ in zip(results, types)
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def difference(actual: np.ndarray, expected: np.ndarray, dtype: str) -> str:
    """What is wrong with a result; nothing if it agrees."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if dtype.startswith("complex"):
        parts = (
            difference(
                getattr(actual, part), getattr(expected, part), dtype[8:11]
            )
            for part in ("real", "imag")
        )
        # A part is as precise as the whole number.
        with np.errstate(all="ignore"):
            apart = np.abs(actual - expected)
            close = apart <= TOLERANCES[dtype] * np.abs(expected)
        if np.all(close | (actual == expected)):
            return ""
        return next(filter(None, parts), "")
    if not np.issubdtype(expected.dtype, np.floating) and dtype[0] not in "fb":
        wrong = actual != expected
    else:
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = b[np.isfinite(b)]
            largest = np.abs(finite).max() if finite.size else 0.0
            tolerance = TOLERANCES.get(dtype, 0.13 if "E4" in dtype else 0.26)
            near = np.abs(a - b) <= tolerance * (np.abs(b) + 0.01 * largest)
            wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not np.any(wrong):
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{dtype}{list(first)}: {actual[first]} instead of {expected[first]}, "
        f"{int(wrong.sum())} of {wrong.size}"
    )


def run_case(case: Case, cluster: str) -> str:
    """What is wrong with a case; nothing if it is right."""
    results = run_program(case.text, case.arguments, case.results, cluster)
    for check in case.checks:
        expected = check.expected
        if isinstance(expected, int):
            expected = results[expected]
        dtype = case.results[check.actual].dtype
        wrong = difference(results[check.actual], expected, dtype)
        if wrong:
            return wrong
    return ""


def work(paths: list[str], cluster: str, queue: multiprocessing.Queue) -> None:
    """Runs the cases of the files and tells of each before and after."""
    for path in paths:
        try:
            cases = read_cases(pathlib.Path(path))
        except (BadCase, ValueError, IndexError, KeyError) as error:
            queue.put(("case", path, pathlib.Path(path).stem, "unread", [], ""))
            queue.put(("done", path, f"cannot be read: {error}"))
            continue
        for case in cases:
            queue.put(
                ("case", path, case.name, case.operation, sorted(case.dtypes))
            )
            try:
                wrong = run_case(case, cluster)
            except Exception as error:  # Each case is judged by itself.
                wrong = str(error).splitlines()[0] or repr(error)
            queue.put(("done", path, wrong))
        queue.put(("file", path))


class Worker:
    """A process with a share of the files; started anew where it dies."""

    def __init__(self, paths: list[str], cluster: str):
        self.paths, self.cluster = list(paths), cluster
        self.current: tuple | None = None
        self.skipped: set[str] = set()
        self.start()

    def start(self) -> None:
        self.queue: multiprocessing.Queue = multiprocessing.Queue()
        self.process = multiprocessing.Process(
            target=work, args=(self.paths, self.cluster, self.queue)
        )
        self.since = time.monotonic()
        self.process.start()


def run_files(
    paths: list[str], cluster: str, jobs: int, timeout: float
) -> list[tuple]:
    """(name, operation, dtypes, what is wrong) of every case."""
    jobs = max(1, min(jobs, len(paths)))
    workers = [Worker(paths[i::jobs], cluster) for i in range(jobs)]
    results: list[tuple] = []
    while workers:
        for worker in list(workers):
            try:
                message = worker.queue.get(timeout=0.2)
            except Exception:
                message = None
            if message and message[0] == "case":
                worker.current = message[1:]
                worker.since = time.monotonic()
            elif message and message[0] == "done":
                results.append((*worker.current[1:4], message[2]))
                worker.current = None
            elif message:
                worker.paths.remove(message[1])
            if message:
                continue
            late = time.monotonic() - worker.since > timeout
            if worker.process.is_alive() and not late:
                continue
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()
            if worker.current:
                status = "hangs" if late else "crashes"
                results.append((*worker.current[1:4], status))
                worker.paths.remove(worker.current[0])
                worker.current = None
                if worker.paths:
                    worker.start()
                    continue
            workers.remove(worker)
    return results


def score(results: list[tuple], show: bool) -> tuple[dict, float]:
    """Prints the table; returns it, and the part of all that is right."""
    table: dict = collections.defaultdict(lambda: [0, 0, 0, 0])
    for _, operation, dtypes, wrong in results:
        common = all(dtype in COMMON for dtype in dtypes)
        row = table[operation]
        row[0] += not wrong
        row[1] += 1
        row[2] += common and not wrong
        row[3] += common
    if show:
        for name, _, _, wrong in sorted(results):
            if wrong:
                print(f"FAILED   {name}: {wrong[:300]}")
    print(f"{'operation':32} {'all types':>16} {'common types':>16}")
    total = [0, 0, 0, 0]
    for operation in sorted(table):
        total = [a + b for a, b in zip(total, table[operation])]
    for operation, row in [*sorted(table.items()), ("total", total)]:
        cells = [
            f"{right:5}/{count:<5}{100 * right / count:5.1f}%" if count else ""
            for right, count in (row[:2], row[2:])
        ]
        print(f"{operation:32} {cells[0]:>16} {cells[1]:>16}")
    return dict(table), total[0] / max(total[1], 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="part of the file names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cluster", default="1")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--json", help="writes the results there")
    parser.add_argument("--at-least", type=float, default=100)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="one file of N")
    args = parser.parse_args()
    files: list[str] = []
    for path in args.paths:
        found = sorted(path.rglob("*.mlir")) if path.is_dir() else [path]
        files += [str(file) for file in found if args.filter in file.name]
    begin = time.monotonic()
    files = files[:: args.every]
    results = run_files(files, args.cluster, args.jobs, args.timeout)
    table, part = score(results, args.failures)
    print(f"{len(results)} cases in {time.monotonic() - begin:.0f} s")
    if args.json:
        rows = [dict(zip(("case", "operation", "dtypes", "wrong"), row))
                for row in results]  # fmt: skip
        pathlib.Path(args.json).write_text(
            json.dumps({"operations": table, "cases": rows}, indent=1)
        )
    return 0 if results and 100 * part >= args.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
