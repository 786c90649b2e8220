"""Compiles a step for a cluster, and asks whale-sim what it takes.

In: a `Run`. Out: a `Result`. Programs and results are kept in build/paper, by
a hash of the step's text, the cluster and the tools, so that a figure that
several rows need, or that is made again, costs its tracing alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from plan_models import Step

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "bin"
FOLDER = ROOT / "build" / "paper"


@dataclasses.dataclass(frozen=True)
class Run:
    """A step under a strategy on a cluster.

    `simulated` is the cluster that it is timed on, if not that which it is
    compiled for: what a plan for other devices costs there. `make` is a partial
    of a function, which says all that the step depends on.
    """

    make: functools.partial[Step]
    cluster: dict[str, Any]
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    default: Callable[[], Any] | functools.partial[Any] | None = None
    virtual_devices: tuple[tuple[int, ...], ...] = ()
    simulated: dict[str, Any] | None = None


class CannotBeMade(Exception):
    """A step that lacks memory, or that a tool refuses."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a step takes; of one that lacks memory, the error."""

    error: str = ""
    simulated: dict[str, Any] = dataclasses.field(default_factory=dict)
    transfer_seconds: float = 0
    remarks: str = ""

    @property
    def fits(self) -> bool:
        return not self.error and not self.simulated["out_of_memory"]

    @property
    def samples(self) -> int:
        return int(self.simulated["samples"])

    def seconds(self, overlaps: bool) -> float:
        """Of a step. Where nothing overlaps, what is computed and what is
        exchanged follow one another; of a pipeline they always overlap."""
        if self.error:
            raise CannotBeMade(f"does not fit: {self.error}")
        if overlaps:
            return float(self.simulated["step_time_s"])
        return self.compute_seconds + self.transfer_seconds

    @property
    def compute_seconds(self) -> float:
        """Of the device that computes longest."""
        return max(d["compute_s"] for d in self.simulated["devices"])

    def rate(self, overlaps: bool) -> float:
        """Samples in a second."""
        seconds = self.seconds(overlaps)
        return self.samples / seconds

    @property
    def peak_bytes(self) -> int:
        return max(
            int(d["peak_memory_bytes"]) for d in self.simulated["devices"]
        )


def lower(run: Run) -> str:
    """The annotated step as text."""
    wh.init(wh.Config({"warnings": False} | run.config))
    if run.default:
        wh.set_default_strategy(run.default())
    step = run.make()
    around: Any = contextlib.nullcontext()
    if run.virtual_devices:
        around = wh.cluster(run.virtual_devices)
    with around:
        return (
            wh.jit(
                step.function,
                cluster=run.cluster,
                batch_argnums=2,
                donate_argnums=(0, 1),
            )
            .lower(*step.arguments)
            .as_text()
        )


def _stamp(name: str) -> str:
    status = (TOOLS / name).stat()
    return f"{name} {status.st_size} {status.st_mtime_ns}"


def _key_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _call(*words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True)


def _first_error(text: str) -> str:
    """Without the place."""
    found = re.search(r"error: (.*)", text)
    return found[1] if found else text[-400:]


def _compile(run: Run, text: str) -> tuple[pathlib.Path, str, str]:
    """The program's folder, the error if it lacks memory, and the remarks."""
    cluster = json.dumps(run.cluster)
    folder = FOLDER / _key_of(text, cluster, _stamp("whale-compile"))
    done = folder / "compiled.json"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        step, file = folder / "step.mlir", folder / "cluster.json"
        step.write_text(text)
        file.write_text(cluster)
        begin = time.perf_counter()
        result = _call(
            TOOLS / "whale-compile",
            step,
            f"--cluster={file}",
            "--target=none",
            "--explain",
            "-o",
            folder / "step.whale",
        )
        print(
            f"  compiled in {time.perf_counter() - begin:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        error = re.search(r"error: (.*)", result.stderr)
        if result.returncode and not (
            error and error[1].startswith("memory: ")
        ):
            raise CannotBeMade(_first_error(result.stderr))
        done.write_text(
            json.dumps(
                {
                    "error": error[1] if result.returncode and error else "",
                    "remarks": result.stdout + result.stderr,
                }
            )
        )
        step.unlink()
    known = json.loads(done.read_text())
    return folder, known["error"], known["remarks"]


def _transfer_seconds(trace: Any) -> float:
    """Of all transfers of the ranks that compute longest."""
    seconds: dict[int, list[float]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks = seconds.setdefault(event["pid"], [0, 0])
            tracks[event["tid"]] += float(event["dur"]) / 1e6
    return max(seconds.values())[1]


# By what a run is, what has been made of it in this process.
_compiled: dict[str, tuple[pathlib.Path, str, str]] = {}


def simulate(run: Run) -> Result:
    """Compiles and times a step, or takes what is known of it."""
    # A partial is printed with all its arguments.
    same = repr(dataclasses.replace(run, simulated=None))
    if same not in _compiled:
        _compiled[same] = _compile(run, lower(run))
    folder, error, remarks = _compiled[same]
    if error:
        return Result(error=error, remarks=remarks)
    cluster = json.dumps(run.simulated or run.cluster)
    name = _key_of(cluster, _stamp("whale-sim"))
    known = folder / f"{name}.simulated.json"
    if not known.exists():
        file = folder / f"{name}.cluster.json"
        file.write_text(cluster)
        trace = folder / "trace.json"
        result = _call(
            TOOLS / "whale-sim",
            folder / "step.whale",
            f"--cluster={file}",
            "--json",
            "--collectives=nccl",
            f"--trace={trace}",
        )
        if result.returncode:
            raise CannotBeMade(_first_error(result.stderr))
        simulated = json.loads(result.stdout)
        seconds = _transfer_seconds(json.loads(trace.read_text()))
        trace.unlink()
        known.write_text(
            json.dumps({"simulated": simulated, "transfers": seconds})
        )
    found = json.loads(known.read_text())
    return Result(
        simulated=found["simulated"],
        transfer_seconds=found["transfers"],
        remarks=remarks,
    )
