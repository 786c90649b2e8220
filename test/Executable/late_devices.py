"""Late devices (docs/runtime.md) in tests that compare programs of N ranks.

A program gives the same bits there, and they must find transfers to move
behind what is behind their starts, if anything does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from first_steps import Step

import whale as wh
from whale.program import read_tables
from whale.signature import host_value

# One holds back all transfers, one all computation.
SEEDS = (0, 1, 2)

# Results and statistics of a run on late devices of a seed.
Run = Callable[[int], tuple[Sequence[Any], dict[str, Any]]]


class Failure(Exception):
    """What is wrong with a program or its results."""


def check_bits(
    results: Sequence[Any], again: Sequence[Any], where: str
) -> None:
    """That two runs gave the same."""
    for i, (a, b) in enumerate(zip(results, again, strict=True)):
        if np.asarray(a).tobytes() != np.asarray(b).tobytes():
            raise Failure(f"result{i} has other bits {where}")


def read_manifest(program: str) -> dict[str, Any]:
    """What the program says, with the tables that are in other files."""
    with open(f"{program}/manifest.json") as file:
        manifest = json.load(file)
    read_tables(program, manifest)
    return manifest


def may_move(instructions: list[dict[str, Any]], started: int = 0) -> bool:
    """Whether anything is computed between a start and the wait for it, or for
    one that was started later: the transfers of a rank end in turn. `started`
    are those before these instructions."""
    ended = started
    for instruction in instructions:
        if "start" in instruction:
            started += 1
        elif "wait" in instruction:
            ended = max(ended, instruction["wait"] + 1)
        elif ended < started:
            return True
        for inner in (
            instruction.get("cond", []),
            instruction.get("body", []),
            *instruction.get("branches", []),
        ):
            if may_move(inner, started):
                return True
            if count := count_starts(inner):
                started += count
                ended = started
    return False


def count_starts(instructions: list[dict[str, Any]]) -> int:
    """How many numbers of transfers these take."""
    return sum(
        ("start" in instruction)
        + sum(
            map(
                count_starts,
                [instruction.get("cond", []), instruction.get("body", [])]
                + instruction.get("branches", []),
            )
        )
        for instruction in instructions
    )


def check(manifest: dict[str, Any], results: Sequence[Any], run: Run) -> int:
    """That a program, if it has several ranks, gives these results on late
    devices: the number of transfers that they moved in a step."""
    if len(manifest["ranks"]) == 1:
        return 0
    moved = 0
    for seed in SEEDS:
        again, stats = run(seed)
        check_bits(results, again, f"on late devices of seed {seed}")
        moved += sum(rank["moved_transfers"] for rank in stats["ranks"])
    movable = any(may_move(c["instructions"]) for c in manifest["classes"])
    if movable and not moved:
        raise Failure("late devices moved no transfer")
    return moved


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Programs that are loaded inside run on late devices."""
    os.environ["WHALE_TEST_LATE"] = str(seed)
    try:
        yield
    finally:
        del os.environ["WHALE_TEST_LATE"]


def check_step(
    program: wh.Program, arguments: Sequence[Any], result: Any
) -> int:
    """The same of a program in memory, which gave this for the arguments.

    Those that are donated to it must be copies.
    """
    values, in_tree = program.signature.flatten(tuple(arguments), {})
    return check_leaves(program, values, in_tree, result)


def check_leaves(
    program: wh.Program,
    values: list[Any],
    in_tree: jax.tree_util.PyTreeDef,
    result: Any,
) -> int:
    """The same for the leaves of its arguments and their tree."""

    def words(result: Any) -> list[np.ndarray]:
        leaves = program.signature.results
        return list(map(host_value, jax.tree.leaves(result), leaves))

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/step.whale"
        program.save(path)

        def run(seed: int) -> tuple[list[np.ndarray], dict[str, Any]]:
            with seeded(seed):
                late = wh.load(path)
            late.own.reset()
            return words(late.run(values, in_tree)), late.stats or {}

        return check(read_manifest(path), words(result), run)


@dataclasses.dataclass
class Tally:
    """What a test has checked so."""

    programs: int = 0
    moved: int = 0

    def check(self, step: Step) -> None:
        """One more of a test that has many."""
        self.moved += check_leaves(
            step.program, step.values, step.in_tree, step.result
        )
        self.programs += 1

    def __str__(self) -> str:
        """As "7 transfers moved in 2 programs"."""
        programs = "program" if self.programs == 1 else "programs"
        return f"{self.moved} transfers moved in {self.programs} {programs}"


def run_text(
    text: str, arguments: list[Any], types: list[Any], cluster: str
) -> tuple[list[Any], int]:
    """The results of a text, and how many transfers late devices moved."""
    from run import compiled, run_compiled

    with compiled(text, cluster) as path:

        def run(seed: int) -> tuple[list[Any], dict[str, Any]]:
            with seeded(seed):
                return run_compiled(path, arguments, types)

        results, _ = run_compiled(path, arguments, types)
        return results, check(read_manifest(path), results, run)
