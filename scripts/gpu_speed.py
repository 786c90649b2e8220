"""The section of gpu-check that times steps, beside JAX where it is found.

In: a case of a bundle. Out: lines of its report. JAX keeps its process, its
compiled step and its state; Whale's is started for each measurement. They take
turns, so that all meet the same clocks. Most of the time goes to compilation by
JAX, and to reading the state from a file.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import gpu_cases

HERE = pathlib.Path(__file__).resolve().parent
# Names the file of algorithms that are chosen by time.
CHOICES = "WHALE_CUDA_CHOICES"
# Steps that are timed; those before fill caches and record graphs.
FIRST, TIMED = 5, 20
# How far the loss may be from JAX's, of its magnitude.
LOSS = {"f32": 1e-4, "bf16": 2e-2}
# Dense bf16 products a second, two operations each, from NVIDIA's data sheets.
# The first that a GPU's name contains counts.
PEAKS = {
    **{"H100 PCIe": 756e12, "H100 NVL": 835e12},
    **{"H100": 989e12, "H200": 989e12, "A100": 312e12},
}


class Jax:
    """A process that runs steps by JAX when it is asked. An answer that does
    not come is an OSError."""

    def __init__(
        self, case: dict[str, Any], inputs: pathlib.Path, how: str
    ) -> None:
        self.how = how
        self.times: list[float] = []
        self.bytes: float | None = None
        self.errors = tempfile.TemporaryFile("w+")
        script = HERE / "source/scripts/gpu_jax.py"
        self.process = subprocess.Popen(
            [sys.executable, script, case["name"], inputs, how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=os.environ | {"JAX_TRACEBACK_FILTERING": "off"},
        )

    def answer(self, patience: float) -> dict[str, Any]:
        """What it says next."""
        assert self.process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(max(patience, 0)):
                raise OSError(f"no answer after {patience:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines()
            said = [line for line in lines if re.match(r"[\w.]+: ", line)]
            raise OSError((said or lines or ["it ended"])[-1])
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, steps: int, patience: float) -> None:
        """Adds the seconds of a step, the mean of so many."""
        assert self.process.stdin
        self.process.stdin.write(f"{steps}\n".encode())
        self.process.stdin.flush()
        answer = self.answer(patience)
        self.times.append(answer["seconds"] / steps)
        self.bytes = answer["bytes"]

    def end(self) -> None:
        """Gives back its memory."""
        self.process.kill()
        self.process.communicate()
        self.errors.close()


def peak(gpu: str) -> float | None:
    """Dense bf16 operations a second of a GPU, if its name is known."""
    return next((PEAKS[name] for name in PEAKS if name in gpu), None)


class Race:
    """One case, timed by Whale and by JAX.

    Args:
        check: runs programs and has the report.
    """

    def __init__(self, check: Any, case: dict[str, Any]) -> None:
        self.check = check
        self.case = case
        self.times: list[float] = []
        self.bytes = 0.0
        self.others: list[Jax] = []
        self.environment = check.environment
        self.choices = pathlib.Path(check.folder, f"{case['name']}.choices")

    def patience(self) -> float:
        """Seconds that are left."""
        return float(self.check.end - time.monotonic())

    def give_up(self, jax: Jax, error: Exception) -> None:
        """Goes on without a way to run JAX."""
        name = self.case["name"]
        self.check.report.say(f"{name}: no JAX ({jax.how}): {error}")
        self.others.remove(jax)
        jax.end()

    def start(self) -> bool:
        """Compiles everything, and compares the losses of the first step;
        whether Whale can be timed."""
        inputs = self.check.inputs(self.case)
        found = self.check.run(self.case)
        if not found:
            return False
        last = found[f"result{self.case['loss']}"]
        loss = gpu_cases.numbers(last[0], last[2])[0]
        # One after the other: they try what is quickest on the GPU.
        for how in ("default", *self.case["others"]):
            jax = Jax(self.case, inputs, how)
            self.others.append(jax)
            try:
                said = jax.answer(self.patience())
            except OSError as error:
                self.give_up(jax, error)
                continue
            self.check.report.data["jax"] = said["version"]
            self.check.report.say(
                f"{self.case['name']}: JAX {said['version']} ({jax.how}) on "
                f"{said['device']}, ready after {said['seconds']:.1f} s; "
                f"loss {loss:.5g}, JAX's {said['loss']:.5g}"
            )
            most = LOSS[self.case["products"]] * abs(said["loss"])
            if not abs(loss - said["loss"]) <= most:
                self.check.report.fail(f"{self.case['name']}: another loss")
        return True

    def time(self) -> float | None:
        """The seconds of a step by Whale; nothing if it fails."""
        stats = self.check.folder / "stats.json"
        options = f"--steps={FIRST + TIMED}", f"--stats={stats}"
        if not self.check.execute(self.case, "/dev/null", *options):
            return None
        costs = json.loads(stats.read_text())
        self.bytes = costs["ranks"][0]["peak_bytes"]
        ends = costs["step_ends_s"]
        return float(ends[-1] - ends[FIRST - 1]) / TIMED

    def time_heuristics(self) -> None:
        """Reports a step without algorithms that are chosen by time, where
        there are some."""
        if not self.choices.exists():
            return
        self.check.environment = self.environment
        seconds = self.time()
        if seconds:
            self.check.report.say(
                f"{self.case['name']}: Whale {seconds * 1e3:.2f} ms a step by "
                "the algorithms of cuDNN's heuristics"
            )

    def run(self) -> bool:
        """One measurement of everyone; whether Whale's went well."""
        seconds = self.time()
        if seconds is None:
            return False
        self.times.append(seconds)
        for jax in list(self.others):
            try:
                jax.run(TIMED, self.patience())
            except OSError as error:
                self.give_up(jax, error)
        return True

    def say(self, who: str, timed: Race | Jax) -> None:
        """A line with a median, its range, its memory, and its share of the
        GPU's peak."""
        times = timed.times
        seconds = statistics.median(times)
        line = f"{self.case['name']}: {who} {seconds * 1e3:.2f} ms a step"
        line += f" ({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f})"
        if timed.bytes:
            line += f", {timed.bytes / 1e9:.2f} GB"
        most = peak(self.check.gpu())
        if most:
            share, useful = (
                self.case[what] / seconds / most
                for what in ("flops", "useful_flops")
            )
            line += f", {share:.1%} of {most / 1e12:.0f} TFLOP/s"
            if self.case["useful_flops"] < self.case["flops"]:
                line += f" ({useful:.1%} without what is masked or empty)"
        if timed is not self:
            line += f", {seconds / statistics.median(self.times):.2f} x Whale's"
        self.check.report.say(line)

    def record(self) -> None:
        """Keeps the medians for the report's data (docs/measured)."""

        def median(timed: Race | Jax) -> float:
            return round(statistics.median(timed.times) * 1e3, 3)

        self.check.report.data.setdefault("timed", {})[self.case["name"]] = {
            "flops": self.case["flops"],
            "useful_flops": self.case["useful_flops"],
            "whale_ms": median(self),
            "whale_bytes": self.bytes,
            "jax_ms": {jax.how: median(jax) for jax in self.others},
        }

    def hold(self, rounds: int) -> None:
        """Times everything so often and reports it."""
        # As JAX does it.
        self.check.environment = self.environment | {CHOICES: str(self.choices)}
        try:
            if not self.start():
                return
            for _ in range(rounds):
                # What was measured counts if time is short.
                if self.times and self.patience() < 30 or not self.run():
                    break
            self.time_heuristics()
        finally:
            self.check.environment = self.environment
            for jax in self.others:
                jax.end()
        if not self.times:
            return
        self.check.report.say(
            f"{self.case['name']}: products of {self.case['products']} on both "
            f"sides, {self.case['flops'] / 1e12:.3g} TFLOP a step"
        )
        self.say("Whale", self)
        for jax in self.others:
            self.say(f"JAX ({jax.how})", jax)
        self.record()
        if not self.others:
            self.check.report.say("not compared with JAX: absolute times")
