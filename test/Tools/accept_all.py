"""Assembles each different kernel of the test programs.

usage: accept_all.py

The programs are training steps of the families of models, operations that have
a form of their own on a GPU, and conformance cases. Without WHALE_TEST_FULL in
the environment they are a few of each; with it all, and for four more
architectures 200 kernels each, of programs that a fixed seed chooses. Kernels
that only differ in their names are one. What must not be in them says
accept_ptx.py, but for quotients of 64 bits where the program asks for them;
programs that the compiler refuses are counted.
"""

from __future__ import annotations

import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

ROOT = Path(__file__).resolve().parents[2]
for folder in ("python", "test/Conformance", "test/Executable"):
    sys.path.insert(0, str(ROOT / folder))

import gpu_attention  # noqa: E402
import gpu_forms  # noqa: E402
import gpu_steps  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from accept_ptx import assemble, find_problems  # noqa: E402

FULL = "WHALE_TEST_FULL" in os.environ
OTHERS = ("sm_75", "sm_80", "sm_100", "sm_120")
DIVIDES = re.compile(r"stablehlo\.(?:divide|remainder)\b.*[x<]u?i64>")
# Kernels of one call of ptxas.
TOGETHER = 40
# What each architecture needs at least.
HEAD = ".version {}\n.target {}\n.address_size 64\n"
VERSIONS = {"sm_120": "8.7"}


def find_programs(folder: Path) -> list[str]:
    """The texts of the programs."""
    texts = [
        gpu_steps.lower(gpu_steps.MODELS[name]())[0].as_text()
        for name in (gpu_steps.MODELS if FULL else ("moe",))
    ]
    for name, function, arguments in gpu_attention.make_cases():
        if FULL or name in ("causal", "bf16"):
            texts.append(
                gpu_attention.differentiated(function, arguments).as_text()
            )
    if FULL:
        arguments = list(gpu_forms.make_arguments(np.random.default_rng(0)))
        texts.append(jax.jit(gpu_forms.program).lower(arguments).as_text())
    generate = str(ROOT / "test/Conformance/generate.py")
    command = [sys.executable, generate, "--texts"]
    if not FULL:
        command += ["--only", "^(reduce|scatter|tanh|power).*_(f32|bf16)$"]
    subprocess.run([*command, str(folder)], check=True, capture_output=True)
    files = sorted(folder.glob("*.mlir"))
    return texts + [file.read_text() for file in files[:: 1 if FULL else 12]]


def compile_program(
    text: str, architecture: str
) -> tuple[list[str] | None, list[tuple[str, str]]]:
    """What the kernels need (nothing where the program is refused), and each
    kernel with its name."""
    with tempfile.TemporaryDirectory() as path:
        source, target = Path(path, "p.mlir"), Path(path, "p.whale")
        source.write_text(text)
        result = subprocess.run(
            [
                "whale-compile", str(source), "--cluster=1", "--target=cuda",
                f"--gpu-arch={architecture}", "-o", str(target),
            ],
            # Cubins are not looked at: ptxas makes them below.
            env={**os.environ, "WHALE_NVJITLINK": ""},
            capture_output=True, text=True,
        )  # fmt: skip
        if result.returncode != 0:
            return None, []
        needs, kernels = [], []
        for file in sorted(target.glob("*.ptx")):
            # What begins at the begin of a line ends where the next one does.
            for item in re.split(
                r"^(?=\.(?:visible|func|global|const) )",
                file.read_text(),
                flags=re.MULTILINE,
            ):
                item = re.sub(r"^\s*//.*\n", "", item, flags=re.MULTILINE)
                if entry := re.match(r"\.visible \.entry (k\d+)", item):
                    kernels.append((entry[1], item))
                elif item.startswith((".global", ".const", ".func")):
                    needs.append(item)
        return needs, kernels


def identify(item: str) -> tuple[str, bool]:
    """The name of a variable or function, and whether it is only declared."""
    name = re.match(r"\.func\s*(?:\([^)]*\)\s*)?(\w+)", item) or re.search(
        r"(\w+)(?:\[\d+\])?\s*[=;]", item
    )
    assert name, item[:80]
    return name[1], "{" not in item


def rename(entry: str, old: str, new: str) -> str:
    return re.sub(rf"(?<![A-Za-z0-9]){old}(?![0-9])", new, entry)


def collect(texts: list[str], architecture: str, most: int) -> tuple[Any, Any]:
    """Up to `most` different kernels of the programs, and what they need."""
    # Whether the program of the kernel divides integers of 64 bits.
    kernels: dict[str, bool] = {}
    globals_: dict[tuple[str, bool], str] = {}
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for start in range(0, len(texts), 64):
            if len(kernels) >= most:
                break
            some = texts[start : start + 64]
            for text, (needs, entries) in zip(
                some,
                pool.map(
                    lambda text: compile_program(text, architecture), some
                ),
            ):
                divides = bool(DIVIDES.search(text))
                refused += needs is None
                for item in needs or []:
                    globals_.setdefault(identify(item), item)
                for name, entry in entries:
                    kernels.setdefault(rename(entry, name, "NAME"), divides)
    print(f"{architecture}: {refused} programs refused", flush=True)
    # Functions are declared before they are defined.
    needs = sorted(globals_.values(), key=lambda item: "{" in item)
    return dict(list(kernels.items())[:most]), needs


def accept(
    kernels: dict[str, bool], globals_: list[str], architecture: str
) -> list[str]:
    """What is wrong with the kernels."""
    entries = list(kernels)

    def check(start: int) -> tuple[int, list[str]]:
        version = VERSIONS.get(architecture, "8.6")
        text = HEAD.format(version, architecture) + "\n".join(globals_) + "\n"
        for number, kernel in enumerate(entries[start : start + TOGETHER]):
            text += kernel.replace("NAME", f"k{number}") + "\n"
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            messages = assemble(Path(file.name), architecture)
        count = messages.count("Compiling entry function")
        problems = find_problems(text, messages)
        for number, entry in enumerate(entries[start : start + TOGETHER]):
            if kernels[entry]:
                wanted = f"k{number} has a quotient of 64-bit integers"
                problems = [what for what in problems if what != wanted]
        return count, problems

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(check, range(0, len(kernels), TOGETHER)))
    count = sum(count for count, _ in results)
    assert count == len(kernels), (count, len(kernels))
    print(f"{architecture}: {count} different kernels assembled", flush=True)
    return [f"{architecture}: {what}" for _, found in results for what in found]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = find_programs(Path(folder))
    kernels, globals_ = collect(texts, "sm_90", sys.maxsize)
    problems = accept(kernels, globals_, "sm_90")
    if FULL:
        random.Random(1).shuffle(texts)
        for architecture in OTHERS:
            problems += accept(*collect(texts, architecture, 200), architecture)
    print("\n".join(problems))
    sys.exit(bool(problems) or not kernels)


if __name__ == "__main__":
    main()
