"""Makes mutants: inputs of Whale's tools, each changed in a few places.

In: a kind, a number, a seed and a corpus of texts, clusters, tensors and
manifests. Out: a folder with changed inputs, and the commands to run on them.
These decide what is made, so that a failure can be made again by itself. Costs
a copy of the program directory where that is what is changed.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import random
import re
import shutil
import tempfile

import calls
import mutations
import operations
import tools

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OWN = HERE / "Inputs"

# What is changed: a text; one call in it that the compiler knows by name, or
# one operation; a text, maybe of a later level, that any one pass then gets; a
# cluster file; a program; its arguments.
KINDS = ["text"] * 6 + ["call", "operation", "pass", "cluster"] * 2
KINDS += ["program"] * 2 + ["safetensors"] * 2
UNEVEN = json.dumps({
    "kinds": {"k": {"flops": {"f32": 1e9}, "memory_bytes": 1e9,
                    "memory_bandwidth": 1e9}},
    "nodes": [{"devices": [{"kind": "cpu", "slowdown": 2.5}, {"kind": "k"}],
               "link": {"bandwidth": 1e9, "latency": 1e-5}},
              {"devices": [{"kind": "cpu"}]}],
    "network": {"bandwidth": 1e8, "latency": 1e-4},
})  # fmt: skip


@dataclasses.dataclass
class Mutant:
    """One run: the folder has its inputs, and gets its outputs."""

    kind: str
    number: int
    folder: pathlib.Path
    text: str = ""
    options: tuple[str, ...] = ()
    # Of a program or its arguments: what it was before.
    base: pathlib.Path = pathlib.Path()

    @property
    def compile(self) -> list[str]:
        if self.kind == "pass":
            return [
                "whale-opt", str(self.folder / "text.mlir"), *self.options,
                "-o", str(self.folder / "out.mlir"),
            ]  # fmt: skip
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


@functools.cache
def passes() -> list[str]:
    """The compiler's passes and pipelines."""
    shown = tools.run(["whale-opt", "--help"]).out
    return sorted(set(re.findall(r"^ +--(whale-[\w-]+)", shown, re.M)))


@functools.cache
def inputs_of_passes() -> list[str]:
    """The inputs of the tests of passes, some of each level, without what
    these expect."""
    return [
        part
        for path in sorted((ROOT / "test").rglob("*.mlir"))
        for part in re.sub(r"//(?! -----).*", "", path.read_text()).split(
            "// -----"
        )
    ]


@functools.cache
def generic(text: str) -> str:
    """A text in MLIR's generic form."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        command = ["whale-opt", "--mlir-print-op-generic", file.name]
        return tools.run(command).out


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
        count = rng.choice(["1", "2", "2", "3", "32768", "99999999999"])
        options.append("--micro-batches=" + count)
    if rng.random() < 0.1:
        options.append(
            "--feedback=" + rng.choice(["arg0:result0", "arg9:result0"])
        )
    if rng.random() < 0.5:
        options.append("--explain" + rng.choice(["", "=json"]))
    return options


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
    if kind == "call":
        text = calls.damaged(rng)
        return Mutant(
            kind, number, folder, text, tuple(random_options(rng, text))
        )
    if kind == "operation":
        text = operations.damaged(rng, generic(rng.choice(corpus.texts)))
        return Mutant(
            kind, number, folder, text, tuple(random_options(rng, text))
        )
    if kind == "pass":
        levels = sorted((scratch / "base").glob("*/levels/*.mlir"))
        text = rng.choice(levels).read_text()
        if rng.random() < 0.7:
            text = rng.choice(inputs_of_passes())
        if rng.random() < 0.5:
            text = mutations.mutate_text(rng, text, rng.choice(corpus.texts))
        return Mutant(
            kind, number, folder, text, (f"--{rng.choice(passes())}",)
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
        return Mutant(kind, number, folder, base=base)
    damage(rng, folder / "out.whale", corpus)
    return Mutant(kind, number, folder, base=base)


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
