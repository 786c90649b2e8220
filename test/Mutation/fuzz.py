#!/usr/bin/env python
"""Gives Whale's tools damaged inputs.

    fuzz.py SCRATCH [--count N] [--seed S] [--kind KIND] [--only NUMBER]
            [--texts FOLDER...] [--jobs J]

Mutant number i of a seed is always the same: a text, a cluster file, a program
directory or a safetensors file, changed (mutations.py), with random options.
Each runs through `whale-compile`, and `whale-run` where it compiles. A tool
must end by itself within 20 s of processor time and 4 GiB with status 0, or
with status 1 and one line that contains `error: `; no remark prints inf or nan;
a text that compiles gives what XLA gives. What fails is made smaller, kept in
SCRATCH, and printed with its command. Exit status 1 if any fails.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import json
import multiprocessing
import os
import pathlib
import random
import shlex
import shutil
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import mutations  # noqa: E402
import tensors  # noqa: E402
import tools  # noqa: E402

KINDS = ["text"] * 6 + ["cluster"] * 2 + ["program"] * 2 + ["safetensors"] * 2
UNEVEN = json.dumps({
    "kinds": {"k": {"flops": {"f32": 1e9}, "memory_bytes": 1e9,
                    "memory_bandwidth": 1e9}},
    "nodes": [{"devices": [{"kind": "cpu", "slowdown": 2.5}, {"kind": "k"}],
               "link": {"bandwidth": 1e9, "latency": 1e-5}},
              {"devices": [{"kind": "cpu"}]}],
    "network": {"bandwidth": 1e8, "latency": 1e-4},
})  # fmt: skip
# What XLA leaves open, or does otherwise than StableHLO says: a text with one
# of these may give something else.
UNSPECIFIED = (
    "stablehlo.sort", "rng_bit_generator", "custom_call", "stablehlo.rng",
    "chlo.top_k", "composite", "sdy.manual_computation",
)  # fmt: skip


@dataclasses.dataclass
class Mutant:
    """One run: the folder has its inputs, and gets its outputs."""

    kind: str
    number: int
    folder: pathlib.Path
    text: str = ""
    options: tuple[str, ...] = ()

    @property
    def compile(self) -> list[str]:
        return [
            "whale-compile", str(self.folder / "text.mlir"), *self.options,
            "-o", str(self.folder / "out.whale"),
        ]  # fmt: skip

    @property
    def run(self) -> list[str]:
        return [
            "whale-run", str(self.folder / "out.whale"),
            f"--inputs={self.folder}/in.safetensors",
            f"--outputs={self.folder}/out.safetensors",
        ]  # fmt: skip


class Corpus:
    """What mutants are made from."""

    def __init__(self, folders: list[pathlib.Path]):
        paths = [p for folder in folders for p in sorted(folder.glob("*.mlir"))]
        self.texts = [path.read_text() for path in paths]
        # Those of this folder have strategies and micro-batches.
        self.own = [path.read_text() for path in sorted(OWN.glob("*.mlir"))]
        seeds = ROOT / "unittests" / "Fuzz"
        self.clusters = [
            path.read_text()
            for path in sorted((seeds / "cluster").glob("*.json"))
        ] + [UNEVEN]
        self.tensors = [
            path.read_bytes()
            for path in sorted((seeds / "safetensors").glob("*.safetensors"))
        ]
        self.manifests = [
            path.read_text()
            for path in sorted((seeds / "manifest").glob("*.json"))
        ]


OWN = HERE / "Inputs"


def random_options(rng: random.Random, text: str) -> list[str]:
    options = [
        "--cluster=" + rng.choice(["1", "2", "2", "3", "4", UNEVEN]),
        "--target=" + rng.choice(["none", "none", "cpu"]),
    ]
    if "default_strategy" not in text or rng.random() < 0.1:
        strategy = rng.choice(["replicate", "split", "split", "none"])
        options.append(f"--strategy={strategy}")
    if rng.random() < 0.2:
        options.append(
            "--batch-args=" + rng.choice(["0", "1", "0,1", "2", "9"])
        )
    if rng.random() < 0.2:
        count = rng.choice(["1", "2", "2", "3", "1048576", "99999999999"])
        options.append("--micro-batches=" + count)
    if rng.random() < 0.1:
        options.append(
            "--feedback=" + rng.choice(["arg0:result0", "arg9:result0"])
        )
    if rng.random() < 0.5:
        options.append("--explain" + rng.choice(["", "=json"]))
    return options


def write_arguments(folder: pathlib.Path, seed: int) -> list[np.ndarray]:
    """Makes in.safetensors for the program out.whale of the folder."""
    manifest = json.loads((folder / "out.whale" / "manifest.json").read_text())
    rng = np.random.default_rng(seed)
    values = [
        tensors.random_tensor(rng, argument["shape"], argument["dtype"])
        for argument in manifest["arguments"]
    ]
    names = [argument["name"] for argument in manifest["arguments"]]
    tensors.write(folder / "in.safetensors", dict(zip(names, values)))
    return values


def compare(mutant: Mutant, reference: tools.Reference) -> tuple[str, str]:
    """How a text that compiled ended ("same", "unlike", ...), and why."""
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
        if "allocate" in result.err or "memory" in result.err:
            return "large", ""
        return "refused by whale-run", result.err
    if any(name in mutant.text for name in UNSPECIFIED):
        return "unspecified", ""
    answer, *rest = reference.run(mutant.text, arguments)
    if answer != "results":
        return f"XLA {answer}", rest[0][:300]
    outputs = tensors.read(mutant.folder / "out.safetensors")
    for number, (expected, nearby) in enumerate(zip(*rest)):
        content = outputs[f"result{number}"]
        if len(content) != expected.nbytes:
            return "unlike XLA", f"result{number} has {len(content)} bytes"
        actual = np.frombuffer(content, expected.dtype).reshape(expected.shape)
        if wrong := tensors.difference(actual, expected, nearby):
            return "unlike XLA", f"result{number}{wrong}"
    return "same", ""


def judge(mutant: Mutant, reference: tools.Reference) -> tuple[str, str]:
    """How a mutant ended, and if that is a failure what is wrong."""
    if mutant.kind in ("text", "cluster"):
        program = mutant.folder / "out.whale"
        shutil.rmtree(program, ignore_errors=True)
        (mutant.folder / "text.mlir").write_text(mutant.text, errors="replace")
        result = tools.run(mutant.compile)
        if fault := result.fault():
            return "whale-compile fails", fault
        if program.exists() != (result.status == 0):
            return (
                "whale-compile fails",
                f"status {result.status} and a program",
            )
        if result.status:
            return "refused", ""
        if "--target=cpu" not in mutant.options:
            return "planned", ""
        return compare(mutant, reference)
    result = tools.run(mutant.run)
    if fault := result.fault():
        return "whale-run fails", fault
    return ("refused" if result.status else "runs"), ""


GOOD = {"refused", "planned", "same", "runs", "large", "endless",
        "unspecified"}  # fmt: skip


def make(kind: str, number: int, seed: int, corpus: Corpus,
         scratch: pathlib.Path) -> Mutant:  # fmt: skip
    rng = random.Random(f"{seed} {number}")
    kind = kind or rng.choice(KINDS)
    folder = scratch / f"mutant{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if kind == "text":
        pool = corpus.own if rng.random() < 0.6 else corpus.texts
        text = mutations.mutate_text(
            rng, rng.choice(pool), rng.choice(corpus.own + corpus.texts)
        )
        return Mutant(
            kind, number, folder, text, tuple(random_options(rng, text))
        )
    if kind == "cluster":
        cluster = mutations.mutate_json(
            rng, rng.choice(corpus.clusters), UNEVEN
        )
        (folder / "cluster.json").write_text(cluster, errors="replace")
        options = random_options(rng, "")
        options[0] = f"--cluster={folder}/cluster.json"
        options.append("--explain")
        return Mutant(
            kind, number, folder, rng.choice(corpus.own), tuple(options)
        )
    bases = sorted((scratch / "base").iterdir())
    base = rng.choice(bases)
    for name in ("out.whale", "in.safetensors"):
        copy = shutil.copytree if (base / name).is_dir() else shutil.copy
        copy(base / name, folder / name)
    if kind == "safetensors":
        path = folder / "in.safetensors"
        data = rng.choice([path.read_bytes()] * 3 + corpus.tensors)
        path.write_bytes(mutations.mutate_safetensors(rng, data))
        return Mutant(kind, number, folder)
    damage(rng, folder / "out.whale", corpus)
    return Mutant(kind, number, folder)


def damage(rng: random.Random, program: pathlib.Path, corpus: Corpus) -> None:
    files = sorted(path for path in program.iterdir())
    path = rng.choice(files)
    if rng.random() < 0.6:
        path = program / "manifest.json"
        # Without sums it is read to its end.
        for sums in program.glob("checksums*"):
            sums.unlink()
    kind = rng.randrange(20)
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.unlink()
        path.mkdir()
    elif kind == 2:
        path.write_bytes(b"")
    elif path.suffix == ".json":
        other = rng.choice(corpus.manifests)
        text = other if kind == 3 else path.read_text()
        path.write_text(
            mutations.mutate_json(rng, text, other), errors="replace"
        )
    else:
        path.write_bytes(mutations.mutate_bytes(rng, path.read_bytes()))


def make_bases(scratch: pathlib.Path, corpus: Corpus) -> None:
    """Programs without loops: a changed one may rightly never end."""
    texts = [text for text in corpus.own if "stablehlo.while" not in text]
    for number, text in enumerate(texts):
        folder = scratch / "base" / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "text.mlir").write_text(text)
        mutant = Mutant("text", 0, folder, text, ("--cluster=2",))
        result = tools.run(mutant.compile)
        if result.status != 0:
            sys.exit(f"a text of the corpus is refused: {result.err}")
        write_arguments(folder, number)


def shrink(mutant: Mutant, outcome: str, reference: tools.Reference) -> None:
    """Leaves out lines of the text as long as it ends in the same way."""
    budget, size = 80, len(mutant.text.split("\n")) // 2
    while size >= 1 and budget > 0:
        lines, at = mutant.text.split("\n"), 0
        while at < len(lines) and budget > 0:
            fewer = lines[:at] + lines[at + size :]
            smaller = dataclasses.replace(mutant, text="\n".join(fewer))
            budget -= 1
            if judge(smaller, reference)[0] == outcome:
                lines, mutant.text = fewer, smaller.text
            else:
                at += size
        size //= 2
    judge(mutant, reference)


_reference = tools.Reference()


def check(number: int, kind: str, seed: int, corpus: Corpus,
          scratch: pathlib.Path) -> tuple[int, str, str, str]:  # fmt: skip
    """(number, kind, how it ended, what to print if that is a failure)."""
    mutant = make(kind, number, seed, corpus, scratch)
    outcome, why = judge(mutant, _reference)
    if outcome in GOOD:
        shutil.rmtree(mutant.folder)
        return number, mutant.kind, outcome, ""
    if mutant.kind == "text" and "takes more" not in why:
        shrink(mutant, outcome, _reference)
    commands = [mutant.run]
    if mutant.kind in ("text", "cluster"):
        commands.insert(0, mutant.compile)
    shown = " && ".join(shlex.join(command) for command in commands)
    return number, mutant.kind, outcome, f"{why.strip()}\n    {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scratch", type=pathlib.Path)
    full = "WHALE_TEST_FULL" in os.environ
    parser.add_argument("--count", type=int, default=10000 if full else 300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="", choices=["", *sorted(set(KINDS))])
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--texts",
        type=pathlib.Path,
        nargs="*",
        default=[ROOT / "test/Dialect/StableHLO/Inputs"],
    )
    options = parser.parse_args()
    corpus = Corpus(options.texts)
    make_bases(options.scratch, corpus)
    numbers = range(options.count) if options.only is None else [options.only]
    one = functools.partial(
        check, kind=options.kind, seed=options.seed, corpus=corpus,
        scratch=options.scratch,
    )  # fmt: skip
    ends: collections.Counter[str] = collections.Counter()
    failed = 0
    with multiprocessing.Pool(options.jobs) as pool:
        for number, kind, outcome, message in pool.imap_unordered(one, numbers):
            ends[f"{kind}: {outcome}"] += 1
            if message:
                failed += 1
                print(
                    f"mutant {number} ({kind}): {outcome}: {message}",
                    flush=True,
                )
    for outcome, count in sorted(ends.items()):
        print(f"{count:6} {outcome}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
