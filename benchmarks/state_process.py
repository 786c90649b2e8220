"""One of the processes that state.py times.

The first one reads commands from standard input, a line of JSON each, that all
processes carry out together, and answers each with a line of JSON: what the
process says that took longest or has most.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import whale as wh
from whale import distributed

Box = tuple[Sequence[int], Sequence[int]]


def meet(text: str = "") -> list[str]:
    """Waits for all processes; what each of them says."""
    if distributed.job() is None:
        return [text]
    answers = distributed.all_gather("a benchmark", text.encode())
    return [answer.decode() for answer in answers]


def timed(run: Callable[[], Any]) -> float:
    """Seconds of what all begin together."""
    meet()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def memory(field: str) -> int:
    """Bytes that this process has, or had at most."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def give_memory_back() -> None:
    """To the system, what this process has freed."""
    ctypes.CDLL(None).malloc_trim(0)


def step_of(plan: str, leaves: int, ranks: int) -> Any:
    """A step whose state lies as a plan has it: products, one after another."""
    cluster: Any = ranks
    if plan == "uneven":
        slow = {"kind": "cpu", "count": ranks // 2, "slowdown": 2.0}
        fast = {"kind": "cpu", "count": ranks - ranks // 2}
        cluster = {"nodes": [{"devices": [fast, slow]}]}

    def scope(leaf: int) -> contextlib.AbstractContextManager[Any]:
        if plan == "replicate":
            return wh.replicate(name="all")
        if plan == "pipeline":
            stage = leaf * ranks // leaves
            return wh.replicate(device_count=1, name=f"stage {stage}")
        return wh.split(name="all")

    def step(state: list[Any], x: Any) -> tuple[list[Any], Any]:
        after = []
        for leaf, w in enumerate(state):
            with scope(leaf):
                x = jnp.tanh(x @ w)
                after.append(w + 1)
        return after, x.sum()

    return wh.jit(step, cluster=cluster, donate_argnums=0, batch_argnums=1)


def overlap(one: Box | None, other: Box | None) -> int:
    """Elements that two boxes have in common."""
    if one is None or other is None:
        return 0
    count = 1
    for a, m, b, n in zip(*one, *other, strict=True):
        count *= max(0, min(a + m, b + n) - max(a, b))
    return count


class Plan:
    """A step, compiled for a state of some leaves, each `width` x `width`."""

    def __init__(self, name: str, leaves: int, width: int, rows: int) -> None:
        leaf = jax.ShapeDtypeStruct((width, width), jnp.float32)
        self.x = np.ones((rows, width), np.float32)
        self.step = step_of(name, leaves, wh.process_count())
        self.lowered = self.step.lower([leaf] * leaves, self.x)
        program = self.lowered.compile()
        arguments = program.manifest["arguments"][:leaves]
        for argument in arguments:
            if argument["view"] != argument["shape"]:
                raise RuntimeError(f"{name}: a leaf has another view")
        # Of each leaf, by rank: where its part begins, and its extents.
        self.boxes: list[list[Box | None]] = [a["boxes"] for a in arguments]

    def held(self) -> int:
        """Bytes of this process's part of the state."""
        mine = wh.process_index()
        return 4 * sum(overlap(b[mine], b[mine]) for b in self.boxes)


class Pair:
    """A state that goes from one plan to another and back."""

    def __init__(
        self, first: str, second: str, leaves: int, width: int, rows: int = 8
    ) -> None:
        self.plans = [
            Plan(name, leaves, width, rows) for name in (first, second)
        ]
        self.base = memory("VmRSS")
        self.width = width
        whole = [self.leaf(number) for number in range(leaves)]
        self.state = wh.move(whole, self.plans[0].lowered, 0)
        # What the first arrays took is not counted with what a switch takes.
        del whole
        give_memory_back()
        self.added = 0

    def leaf(self, number: int) -> np.ndarray:
        """What a leaf holds at first."""
        numbers = np.arange(self.width * self.width) % 251 + number
        return numbers.reshape(self.width, self.width).astype(np.float32)

    def moved_bytes(self) -> int:
        """What the process sends or receives that does most of either.

        No piece has several owners.
        """
        count = wh.process_count()
        sent, received = [0] * count, [0] * count
        first, second = (plan.boxes for plan in self.plans)
        for have, want in zip(first, second, strict=True):
            for a in range(count):
                for b in range(count):
                    if a != b:
                        sent[a] += 4 * overlap(have[a], want[b])
                        received[b] += 4 * overlap(have[a], want[b])
        return max(*sent, *received)

    def move(self) -> dict[str, float]:
        """There, which is timed, and back."""
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        seconds = timed(lambda: self.switch(1))
        peak = memory("VmHWM") - self.base
        self.switch(0)
        largest = max(plan.held() for plan in self.plans)
        return {"seconds": seconds, "peak": peak, "held": largest}

    def switch(self, number: int) -> None:
        """To one of the plans."""
        self.state = wh.move(self.state, self.plans[number].lowered, 0)

    def run_steps(self, go_on: Callable[[int], bool]) -> dict[str, float]:
        """Seconds of a step of the first plan, while the first process says so,
        in the mean."""
        plan = self.plans[0]
        count = 0
        begin = time.perf_counter()
        while "yes" in meet("yes" if go_on(count) else "")[0]:
            self.state, loss = plan.step(self.state, plan.x)
            loss.block_until_ready()
            count += 1
        self.added += count
        seconds = time.perf_counter() - begin
        return {"seconds": seconds / max(count, 1), "count": count}

    def check(self, state: list[Any], added: int) -> None:
        """Whether it is what it was at first, and what so many steps added."""
        for number in {0, len(state) // 2, len(state) - 1}:
            found = np.asarray(wh.gather(state[number]))
            expected = self.leaf(number) + added
            np.testing.assert_array_equal(found, expected)


class Saved:
    """A state that is saved under the first plan of a pair."""

    def __init__(self, directory: str, pair: Pair) -> None:
        self.directory = pathlib.Path(directory)
        self.checkpointer = wh.Checkpointer(directory, keep=1)
        self.pair = pair
        # Of the last save: its step, and what steps had added then.
        self.number = self.added = 0

    def place(self) -> pathlib.Path:
        """Of the last checkpoint."""
        return self.directory / f"step-{self.number}"

    def save(self) -> dict[str, float]:
        """Seconds for which a save blocks, and those of a copy of as much."""
        self.number += 1
        self.added = self.pair.added
        blocked = timed(
            lambda: self.checkpointer.save(self.number, self.pair.state)
        )
        return {"seconds": blocked}

    def copy(self) -> dict[str, float]:
        """Seconds of a copy of what this process saves."""
        parts = [
            np.ones(4 * overlap(b, b) // 4, np.float32)
            for boxes in self.pair.plans[0].boxes
            if (b := boxes[wh.process_index()]) is not None
        ]
        memory = [part + 1 for part in parts]

        def copy() -> None:
            for to, part in zip(memory, parts, strict=True):
                np.copyto(to, part)

        return {"seconds": timed(copy)}

    def steps(self, count: int) -> dict[str, float]:
        """Steps while nothing is written."""
        return self.pair.run_steps(lambda done: done < count)

    def steps_meanwhile(self) -> dict[str, float]:
        """Steps from a save until it is on the disk."""
        self.save()
        manifest = self.place() / "manifest.json"
        # A save that fails says so in `wait`.
        return self.pair.run_steps(
            lambda done: not done or (done < 1000 and not manifest.exists())
        )

    def wait(self) -> None:
        """Until the last save is complete, and no file is in memory."""
        self.checkpointer.wait()
        meet()
        for path in self.place().glob("*.safetensors"):
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        meet()

    def restore(self) -> dict[str, float]:
        """Seconds until the second plan has the state."""
        self.wait()
        plan = self.pair.plans[1]
        state: list[Any] = []

        def restore() -> None:
            restored = self.checkpointer.restore(self.pair.state)
            state.extend(wh.move(restored, plan.lowered, 0))

        seconds = timed(restore)
        self.pair.check(state, self.added)
        return {"seconds": seconds}

    def read(self) -> dict[str, float]:
        """Seconds to read the same: of each piece from the first byte to the
        last that this process needs."""
        manifest = json.loads((self.place() / "manifest.json").read_text())
        ranges = needed(manifest, self.pair.plans[1], wh.process_index())
        self.wait()

        parts = []

        def read() -> None:
            for name, begin, size in ranges:
                with open(self.place() / name, "rb", buffering=0) as file:
                    file.seek(begin)
                    data = np.empty(size, np.uint8)
                    parts.append(data)
                    if file.readinto(data.data) != size:
                        raise RuntimeError(f"{name} is short")

        return {
            "seconds": timed(read),
            "bytes": sum(size for *_, size in ranges),
        }


def needed(
    manifest: dict[str, Any], plan: Plan, process: int
) -> list[tuple[str, int, int]]:
    """File, first byte and number of bytes of what a process needs."""
    found = []
    leaves = {leaf["name"]: leaf for leaf in manifest["leaves"]}
    for number, boxes in enumerate(plan.boxes):
        if (box := boxes[process]) is None:
            continue
        for piece in leaves[str(number)]["pieces"]:
            start, size = piece["box"]
            first, last = [], []
            for a, m, b, n in zip(start, size, *box, strict=True):
                first.append(max(a, b) - a)
                last.append(min(a + m, b + n) - 1 - a)
            if any(f > end for f, end in zip(first, last, strict=True)):
                continue
            begin = 4 * int(np.ravel_multi_index(first, size))
            end = 4 * int(np.ravel_multi_index(last, size)) + 4
            name = manifest["files"][piece["file"]]["name"]
            found.append((name, piece["offset"] + begin, end - begin))
    return found


class Worker:
    """Carries out commands."""

    def __init__(self) -> None:
        self.pairs: dict[str, Pair] = {}
        self.saved: Saved | None = None

    def run(self, do: str, name: str = "", **options: Any) -> dict[str, float]:
        """What a command measures, in this process."""
        if do == "pair":
            pair = self.pairs[name] = Pair(**options)
            return {"bytes": pair.moved_bytes()}
        if do == "save to":
            self.saved = Saved(options["directory"], self.pairs[name])
            return {}
        if do == "drop":
            if self.saved:
                self.saved.wait()
            self.saved = None
            pair = self.pairs.pop(name)
            pair.check(pair.state, pair.added)
            del pair
            # What is freed is not counted with the next state.
            give_memory_back()
            return {}
        if do == "move":
            return self.pairs[name].move()
        assert self.saved
        answer: dict[str, float] | None = getattr(self.saved, do)(**options)
        return answer or {}


def main() -> None:
    """Carries out commands until the input ends."""
    wh.init_distributed()
    is_first = wh.process_index() == 0
    worker = Worker()
    while True:
        line = meet(sys.stdin.readline() if is_first else "")[0]
        if not line:
            return
        mine = worker.run(**json.loads(line))
        answers = [json.loads(text) for text in meet(json.dumps(mine))]
        if is_first:
            most = {key: max(a[key] for a in answers) for key in mine}
            print(json.dumps(most), flush=True)


if __name__ == "__main__":
    main()
