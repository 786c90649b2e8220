#!/usr/bin/env python
"""Runs a folder of StableHLO conformance cases and scores each operation.

    run.py [FOLDER|FILE.mlir...] [--filter PART] [--jobs N] [--json OUT.json]
           [--cluster N|C.json] [--target cpu|cuda-emulated]
           [--at-least PERCENT] [--failures] [--every N] [--together N]
           [--report]

Without a folder, the cases are those that generate.py writes, made afresh.
--report writes the scores to docs/conformance.md.
What a case is, says cases.py. Each is compiled and run in this process (a
worker of it: what crashes or hangs one is a failure of that case alone).
Numbers agree if they differ by less than the precision of their type allows;
integers must be equal. Exit status 1 if less than --at-least are right.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import multiprocessing
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "python"))

from cases import BadCase, Case, Tensor, read_cases  # noqa: E402
from join import join_texts  # noqa: E402

from whale import compiler, native  # noqa: E402
from whale.array import array_class  # noqa: E402
from whale.dtypes import element_name, numpy_dtype  # noqa: E402

# Relative to the number, and a hundredth of it to the largest of the tensor.
TOLERANCES = {
    "f64": 1e-10, "f32": 2e-5, "f16": 4e-3, "bf16": 2e-2,
    "complex<f64>": 1e-10, "complex<f32>": 2e-5,
}  # fmt: skip
COMMON = ("f32", "bf16", "f16", "i1", "i32", "i64", "ui32", "ui64")


@contextlib.contextmanager
def compiled(text: str, cluster: str, target: str = "cpu") -> Iterator[str]:
    """The program directory of a text. Raises what the compiler says."""
    folder = tempfile.mkdtemp(prefix="whale-case-")
    try:
        path = f"{folder}/case.whale"
        compiler.compile(text, cluster, path, target=target)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_step(
    program: Any, arguments: Sequence[np.ndarray], types: Sequence[Tensor]
) -> tuple[list[np.ndarray], Any]:
    """The results of a step of the extension's program, and the step."""

    def to_handle(_: int, value: np.ndarray) -> Any:
        return native.extension().Array.from_host(
            value.reshape(-1).view(np.uint8),
            element_name(value.dtype),
            list(value.shape),
        )

    # Nothing here asks the results for their kinds.
    results, step = program.submit(
        array_class(), list(arguments), to_handle, list(types), True
    )
    return [
        result.handle()
        .to_host(True)
        .view(numpy_dtype(type_.dtype))
        .reshape(type_.shape)
        for result, type_ in zip(results, types)
    ], step


def run_compiled(
    path: str, arguments: list[np.ndarray], types: list[Tensor]
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The results of @main, and statistics. Raises what the runtime says."""
    program = native.extension().Program(path)
    results, step = run_step(program, arguments, types)
    return results, json.loads(step.stats(True))


def run_program(
    text: str,
    arguments: list[np.ndarray],
    types: list[Tensor],
    cluster: str,
    target: str = "cpu",
) -> list[np.ndarray]:
    """The results of @main. Raises what the compiler or the runtime says."""
    with compiled(text, cluster, target) as path:
        return run_compiled(path, arguments, types)[0]


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


def judge(case: Case, results: Sequence[np.ndarray]) -> str:
    """What is wrong with a case that gives this; nothing if it is right."""
    for check in case.checks:
        expected = check.expected
        if isinstance(expected, int):
            expected = results[expected]
        dtype = case.results[check.actual].dtype
        wrong = difference(results[check.actual], expected, dtype)
        if wrong:
            return wrong
    return ""


def run_cases(cases: list[Case], cluster: str, target: str) -> list[str]:
    """What is wrong with each case. Raises what the compiler or the runtime
    says of them as one program."""
    text = cases[0].text
    if len(cases) > 1:
        text = join_texts([case.text for case in cases])
    results = run_program(
        text,
        [argument for case in cases for argument in case.arguments],
        [result for case in cases for result in case.results],
        cluster,
        target,
    )
    wrong = []
    for case in cases:
        wrong.append(judge(case, results[: len(case.results)]))
        results = results[len(case.results) :]
    return wrong


def work(
    paths: list[str], cluster: str, target: str, together: int, to: Connection
) -> None:
    """Runs the cases of the files and tells of each before and after; those of
    `together` files as one program, if that can be: what is wrong then is run
    again by itself, as the last bits of a library follow from addresses."""
    for start in range(0, len(paths), together):
        files: dict[str, list[Case]] = {}
        for path in paths[start : start + together]:
            try:
                files[path] = read_cases(pathlib.Path(path))
            except (BadCase, ValueError, IndexError, KeyError) as error:
                to.send(("case", path, pathlib.Path(path).stem, "unread", []))
                to.send(("done", f"cannot be read: {error}"))
                files[path] = []
        found: list[str] = []
        if together > 1:
            # Else each says what it has.
            with contextlib.suppress(Exception):
                found = run_cases(sum(files.values(), []), cluster, target)
        for path, cases in files.items():
            for case in cases:
                about = case.name, case.operation, sorted(case.dtypes)
                to.send(("case", path, *about))
                try:
                    wrong = found.pop(0) if found else "not run"
                    if wrong:
                        [wrong] = run_cases([case], cluster, target)
                except Exception as error:  # Each case is judged by itself.
                    wrong = str(error).splitlines()[0] or repr(error)
                to.send(("done", wrong))
            to.send(("file", path))
    to.close()


class Worker:
    """A process with a share of the files; started anew where it dies."""

    def __init__(
        self, paths: list[str], cluster: str, target: str, together: int
    ):
        self.paths, self.cluster = list(paths), cluster
        self.target, self.together = target, together
        self.current: tuple | None = None
        self.start()

    def start(self) -> None:
        # Unlike a queue's, what a pipe was given arrives after a crash too.
        self.pipe, end = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(
            target=work,
            args=(self.paths, self.cluster, self.target, self.together, end),
        )
        self.since = time.monotonic()
        self.process.start()
        end.close()

    def stop(self, status: str) -> list[tuple]:
        """Ends the process; what it was at has failed, the rest goes on."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        if not self.paths:
            return []
        if self.together > 1:
            # One of several; the next process runs each by itself.
            self.together = 1
            self.start()
            return []
        path = self.paths.pop(0)
        case = self.current or (path, pathlib.Path(path).stem, "unread", [])
        self.current = None
        if self.paths:
            self.start()
        return [(*case[1:], status)]


def run_files(
    paths: list[str],
    cluster: str,
    target: str,
    jobs: int,
    timeout: float,
    together: int,
) -> list[tuple]:
    """(name, operation, dtypes, what is wrong) of every case."""
    jobs = max(1, min(jobs, len(paths)))
    workers = [
        Worker(paths[i::jobs], cluster, target, together) for i in range(jobs)
    ]
    results: list[tuple] = []
    while workers:
        ready = wait([worker.pipe for worker in workers], timeout=1)
        for worker in workers:
            if worker.pipe not in ready:
                if time.monotonic() - worker.since > timeout:
                    results += worker.stop("hangs")
                continue
            try:
                kind, *rest = worker.pipe.recv()
            except EOFError:
                results += worker.stop("crashes")
                continue
            worker.since = time.monotonic()
            if kind == "case":
                worker.current = tuple(rest)
            elif kind == "done":
                assert worker.current
                results.append((*worker.current[1:], *rest))
                worker.current = None
            else:
                worker.paths.remove(*rest)
        workers = [worker for worker in workers if not worker.pipe.closed]
    return results


PAGE = """# Conformance

Small programs, each about one operation on one element type, run on one CPU
rank and compared with what XLA's CPU backend gives; `test/Conformance/run.py
--report` generates them, runs them and writes this page. A folder of other
cases (`.mlir`, inputs, expected results) is run by `test/Conformance/run.py
FOLDER`. Speed is in [performance.md](performance.md).

Integers must be equal, floats as close as their type is precise: {precision},
relative to the number or to a hundredth of the tensor's largest. Common types
are {common}.

batch_norm in half precision is compared with XLA's result in f32: in half
precision XLA rounds after each step. `test/Conformance/limits.py` compares
complex functions at zeros, infinities and NaN, and the bits of
reduce_precision.

{table}

{failures}

## Sums, products and windows

The largest error in units in the last place (ulp) of the exact result, under
Whale / under XLA, by element type and length of what is summed, as
`test/Conformance/accuracy.py --full --table` prints it. None is above 2 ulp and
twice XLA's.

The terms of products of f32 are positive here, so that the error is that
relative to the sum of |a b|. Whale forms products with vectors, and those of at
most 32 x 32 x 32 pairs of elements, in blocks of 16, as it does sums. oneDNN
computes the others, and adds terms one after the other: Whale gives it 256 of
them at a time, 512 for results of less than 32768 elements, 2048 where the
right operand is in memory along the sum, and more where a call would have
fewer than 131072 pairs of elements. Smaller blocks would cost 10 to 70 percent
of the time. The error of a block stays below the square root of its number of
terms times the type's precision; XLA's does too for most shapes, but for some
its order of addition is better: where results have a few dozen rows or columns,
or numbers of them that no vector divides, its error can be a fifth of Whale's,
as 4 and 15 ulp for 30 x 467 by 467 x 35. So it is with some convolutions, for
which oneDNN chooses the order: 7 and 20 ulp for a kernel of 7 x 7 x 16 that
moves by 2. Most are the other way round, 14 and 4 ulp for one of 3 x 3 x 64.

What has no wider type (running sums, windows and convolutions of f64, and
reductions whose body is not one operation) is formed in blocks of 16, whose
totals are added up in blocks of as many, and so on.

{accuracy}
"""


def tabulate(results: list[tuple]) -> dict[str, list[int]]:
    """[right, all, right of common types, all of common types] by operation,
    and of all as `total`."""
    table: dict = collections.defaultdict(lambda: [0, 0, 0, 0])
    for _, operation, dtypes, wrong in results:
        common = all(dtype in COMMON for dtype in dtypes)
        for row in (table[operation], table["total"]):
            row[0] += not wrong
            row[1] += 1
            row[2] += common and not wrong
            row[3] += common
    return {
        name: table[name]
        for name in sorted(table, key=lambda name: (name == "total", name))
    }


def cells(row: list[int]) -> list[str]:
    """What is right of all types and of the common ones, for reading."""
    return [
        f"{right:5}/{count:<5}{100 * right / count:5.1f}%" if count else ""
        for right, count in (row[:2], row[2:])
    ]


def show(results: list[tuple], failures: bool) -> None:
    """Prints the table, before it what failed."""
    if failures:
        for name, _, _, wrong in sorted(results):
            if wrong:
                print(f"FAILED   {name}: {wrong[:300]}")
    print(f"{'operation':32} {'all types':>17} {'common types':>17}")
    for name, row in tabulate(results).items():
        print(f"{name:32} " + " ".join(f"{cell:>17}" for cell in cells(row)))


def measure_accuracy() -> str:
    """The table that accuracy.py prints."""
    command = [sys.executable, str(HERE / "accuracy.py"), "--full", "--table"]
    lines = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def page(results: list[tuple]) -> str:
    """The text of docs/conformance.md."""
    lines = [f"| {'operation':22} | {'all types':17} | {'common types':17} |"]
    lines.append(f"|{'-' * 24}|{'-' * 19}|{'-' * 19}|")
    for name, row in tabulate(results).items():
        all_types, common = cells(row)
        lines.append(f"| {name:22} | {all_types:17} | {common:17} |")
    wrong = [f"- `{name}`: {what}" for name, _, _, what in sorted(results)
             if what]  # fmt: skip
    failures = "What differs:\n\n" + "\n".join(wrong) if wrong else (
        "Nothing differs."
    )  # fmt: skip
    precision = ", ".join(
        f"{dtype} {tolerance:g}"
        for dtype, tolerance in TOLERANCES.items()
        if "complex" not in dtype
    )
    return PAGE.format(
        table="\n".join(lines),
        failures=failures,
        precision=precision,
        common=", ".join(COMMON),
        accuracy=measure_accuracy(),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="part of the file names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cluster", default="1")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--json", help="writes the results there")
    parser.add_argument("--at-least", type=float, default=100)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument(
        "--together", type=int, default=1, help="files that are one program"
    )
    parser.add_argument("--every", type=int, default=1, help="one file of N")
    parser.add_argument(
        "--report", action="store_true", help="write docs/conformance.md"
    )
    args = parser.parse_args()
    generated = None
    if not args.paths:
        generated = tempfile.TemporaryDirectory(prefix="whale-cases-")
        args.paths = [pathlib.Path(generated.name)]
        command = [sys.executable, str(HERE / "generate.py"), generated.name]
        subprocess.run(command, check=True)
    files: list[str] = []
    for path in args.paths:
        found = sorted(path.rglob("*.mlir")) if path.is_dir() else [path]
        files += [str(file) for file in found if args.filter in file.name]
    begin = time.monotonic()
    files = files[:: args.every]
    results = run_files(
        files,
        args.cluster,
        args.target,
        args.jobs,
        args.timeout,
        args.together,
    )
    show(results, args.failures)
    print(f"{len(results)} cases in {time.monotonic() - begin:.0f} s")
    table = tabulate(results)
    if args.json:
        rows = [dict(zip(("case", "operation", "dtypes", "wrong"), row))
                for row in results]  # fmt: skip
        pathlib.Path(args.json).write_text(
            json.dumps({"operations": table, "cases": rows}, indent=1)
        )
    if args.report:
        (ROOT / "docs" / "conformance.md").write_text(page(results))
    if not results:
        return 1
    right, count = table["total"][:2]
    return 0 if 100 * right >= args.at_least * count else 1


if __name__ == "__main__":
    sys.exit(main())
