"""Runs mutants, and says whether they end as they should.

In: a mutant with its files. Out: a word for how it ended, and what is wrong if
that is a failure. A tool must refuse a mutant with one error, or give what XLA
gives (within tensors.difference), or for a changed program what the unchanged
one gave, unless the change says something else is computed. A failure means a
crash, a hang, or silently wrong results. Costs a compilation and a run of Whale
and mostly one of XLA.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
import shutil
from typing import Any

import mutants
import numpy as np
import safetensors
import tensor_files
import tensors
import tools
from mutants import Mutant

from whale.dtypes import numpy_dtype


def write_arguments(folder: pathlib.Path, seed: int) -> list[np.ndarray]:
    """Makes in.safetensors for the program out.whale of the folder."""
    manifest = json.loads((folder / "out.whale" / "manifest.json").read_text())
    rng = np.random.default_rng(seed)
    values = [
        tensors.random_tensor(rng, argument["shape"], argument["dtype"])
        for argument in manifest["arguments"]
    ]
    names = [argument["name"] for argument in manifest["arguments"]]
    tensor_files.write(folder / "in.safetensors", dict(zip(names, values)))
    return values


# A text with one of these is not compared: XLA would need the devices of the
# mesh, and knows no such call.
OTHERWISE = ("sdy.manual_computation", "call @chlo.", "call @mhlo.")
SORT = re.compile(
    r'"stablehlo\.sort"\([^)]*\) <\{([^}]*)\}> \(\{(.*?)\n *\}\) : ', re.S
)


def _comparator(body: str) -> str:
    """The text of a comparator without the names of its values; before and
    after are as good an order as one another."""
    names: dict[str, str] = {}
    body = re.sub(
        r"%[\w#]+", lambda m: names.setdefault(m[0], f"%{len(names)}"), body
    )
    return re.sub(r"\s+", " ", re.sub(r"\bcompare +GT\b", "compare LT", body))


@functools.cache
def _orders() -> frozenset[str]:
    """The comparators of texts that nothing was changed in."""
    folders = (mutants.OWN, mutants.ROOT / "test/Dialect/StableHLO/Inputs")
    return frozenset(
        _comparator(body)
        for folder in folders
        for path in folder.glob("*.mlir")
        for _, body in SORT.findall(path.read_text())
    )


def is_specified(text: str) -> bool:
    """Whether StableHLO says what a text computes.

    Of sorting, it does where that is stable and by an order: changed
    comparators mostly contradict themselves.
    """
    sorts = SORT.findall(text)
    return (
        not any(name in text for name in OTHERWISE)
        and len(sorts) == text.count("stablehlo.sort")
        and all(
            "is_stable = true" in attributes and _comparator(body) in _orders()
            for attributes, body in sorts
        )
    )


def differs(
    outputs: dict[str, bytes],
    expected: list[np.ndarray],
    nearby: list[np.ndarray],
) -> str:
    """What is wrong with results of whale-run, beside XLA's; see
    tensors.difference."""
    for number, (right, near) in enumerate(zip(expected, nearby)):
        content = outputs[f"result{number}"]
        if len(content) != right.nbytes:
            return f"result{number} has {len(content)} bytes"
        actual = np.frombuffer(content, right.dtype).reshape(right.shape)
        if wrong := tensors.difference(actual, right, near):
            return f"result{number}{wrong}"
    return ""


def judge_text(mutant: Mutant, reference: tools.Reference) -> tuple[str, str]:
    """How a text that compiled runs."""
    manifest = json.loads(
        (mutant.folder / "out.whale/manifest.json").read_text()
    )
    bytes_ = sum(
        int(np.prod(argument["shape"], dtype=np.float64)) * 16
        for argument in manifest["arguments"]
    )
    if bytes_ > 1 << 28:
        return "large", ""
    arguments = write_arguments(mutant.folder, mutant.number)
    result = tools.run(mutant.run)
    if fault := result.fault():
        # A loop that was changed may never end, in XLA neither.
        if result.hangs and reference.run(mutant.text, arguments)[0] == "dies":
            return "endless", ""
        return "whale-run fails", fault
    if result.status:
        # What is compiled runs, unless it is too large for this machine.
        limits = ("allocate", "memory", "cannot start a thread")
        if any(limit in result.err for limit in limits):
            return "large", ""
        return "refused by whale-run", result.err
    if not is_specified(mutant.text):
        return "unspecified", ""
    answer, *rest = reference.run(mutant.text, arguments)
    if answer != "results":
        return f"XLA {answer}", rest[0][:300]
    outputs = tensor_files.read(mutant.folder / "out.safetensors")
    wrong = differs(outputs, *rest)
    return ("unlike XLA", wrong) if wrong else ("same", "")


# Parts of a manifest that say nothing about what is computed; whatever else is
# changed, and not refused, is another program.
NEUTRAL = re.compile(
    r"name|plan|target|kernel_signatures|hashes"
    r"|ranks\[\]\.(?!class\b)"
    r"|(arguments|results)\[\]\.(label|role|batch_dim|fed_by|donated|alias)"
    r"|classes\[\]\.arena_bytes"
    r"|(classes|functions)\[\]\.instructions\b.*\.(origin|flops|bytes|moment)"
    r"|channels\.\d+\.(kind|origin)"
)
FIELDS = (
    "format version target name ranks arguments results functions classes "
    "channels kernels kernel_signatures constants hashes plan"
).split()


def changed_places(before: Any, after: Any, place: str = "") -> list[str]:
    """Where two values of JSON differ, as "classes[].instructions[].copy[]"."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            found
            for key in before.keys() | after.keys()
            for found in changed_places(
                before.get(key), after.get(key), f"{place}.{key}".strip(".")
            )
        ]
    if (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
    ):
        return [
            found
            for one, two in zip(before, after)
            for found in changed_places(one, two, place + "[]")
        ]
    # JSON's true is no 1.
    return [] if repr(before) == repr(after) else [place]


def may_compute_otherwise(mutant: Mutant) -> bool:
    """Whether a program that was changed may give other results."""
    name = "out.whale/manifest.json"
    before, after = (
        json.loads((folder / name).read_text())
        for folder in (mutant.base, mutant.folder)
    )
    return any(
        place.split(".")[0].split("[")[0] in FIELDS and not NEUTRAL.match(place)
        for place in changed_places(before, after)
    )


def judge_program(
    mutant: Mutant, reference: tools.Reference
) -> tuple[str, str]:
    """How a program that was changed runs: if at all, as before."""
    result = tools.run(mutant.run)
    if fault := result.fault():
        return "whale-run fails", fault
    if result.status:
        return "refused", ""
    before, after = (
        tensor_files.read(folder / "out.safetensors")
        for folder in (mutant.base, mutant.folder)
    )
    if before == after:
        return "same", ""
    if may_compute_otherwise(mutant):
        return "another program", ""
    return "unlike before", "what was changed says nothing about results"


def judge_tensors(
    mutant: Mutant, reference: tools.Reference
) -> tuple[str, str]:
    """How a program runs on arguments that were changed: as XLA does."""
    result = tools.run(mutant.run)
    if fault := result.fault():
        return "whale-run fails", fault
    if result.status:
        return "refused", ""
    path = mutant.folder / "in.safetensors"
    try:
        given = dict(safetensors.deserialize(path.read_bytes()))
    except Exception as error:
        return "taken, and refused by safetensors", str(error)
    manifest = json.loads(
        (mutant.folder / "out.whale/manifest.json").read_text()
    )
    arguments = [
        np.frombuffer(
            given[argument["name"]]["data"], numpy_dtype(argument["dtype"])
        ).reshape(argument["shape"])
        for argument in manifest["arguments"]
    ]
    text = (mutant.base / "text.mlir").read_text()
    answer, *rest = reference.run(text, arguments)
    if answer != "results":
        return f"XLA {answer}", rest[0][:300]
    outputs = tensor_files.read(mutant.folder / "out.safetensors")
    wrong = differs(outputs, *rest)
    return ("unlike XLA", wrong) if wrong else ("same", "")


def judge(mutant: Mutant, reference: tools.Reference) -> tuple[str, str]:
    """How a mutant ended ("same", "refused", ...), and if that is a failure
    what is wrong."""
    if mutant.kind == "program":
        return judge_program(mutant, reference)
    if mutant.kind == "safetensors":
        return judge_tensors(mutant, reference)
    program = mutant.folder / "out.whale"
    shutil.rmtree(program, ignore_errors=True)
    (mutant.folder / "text.mlir").write_text(
        mutant.text, errors="surrogateescape"
    )
    result = tools.run(mutant.compile)
    if mutant.kind == "pass":
        # MLIR may say in a second one that a type was not to be inferred.
        if fault := result.fault(most_errors=10):
            return "whale-opt fails", fault
        return ("refused" if result.status else "taken"), ""
    if fault := result.fault():
        return "whale-compile fails", fault
    if program.exists() != (result.status == 0):
        return "whale-compile fails", f"status {result.status} and a program"
    if result.status:
        return "refused", ""
    if "--target=cpu" not in mutant.options:
        return "planned", ""
    return judge_text(mutant, reference)


GOOD = {"refused", "taken", "planned", "same", "another program", "large",
        "endless", "unspecified"}  # fmt: skip
