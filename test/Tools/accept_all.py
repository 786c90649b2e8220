"""Assembles each different kernel of the test programs.

usage: accept_all.py

The programs are training steps of the families of models, attention,
operations that have a form of their own on a GPU, and the conformance cases,
many of which are compiled as one program. For sm_90 all kernels are assembled,
but of the conformance cases a sixth; for four more architectures each dtype and
40 kernels of small programs that a fixed seed chooses. With WHALE_TEST_FULL in
the environment it is all, and all for Pascal and Volta, too, by the ptxas of
CUDA 12.9 (scripts/requirements-full.txt). Kernels that only differ in names and
numbers of labels are one.

ptxas must accept each kernel. None may spill registers or have more of them
than a block of its size gets; none may have sums of floats in no order, square
roots and quotients that are approximations, or quotients of 64-bit integers,
which indices would be, unless the program asks for them. The compiler must
refuse no program.
"""

from __future__ import annotations

import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

ROOT = Path(__file__).resolve().parents[2]
for folder in ("python", "test/Conformance", "test/Executable", "test/Inputs"):
    sys.path.insert(0, str(ROOT / folder))

import gpu_attention  # noqa: E402
import gpu_forms  # noqa: E402
import gpu_kernels  # noqa: E402
import gpu_steps  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from join import join_texts  # noqa: E402

FULL = "WHALE_TEST_FULL" in os.environ
OTHERS = ("sm_75", "sm_80", "sm_100", "sm_120")
# What CUDA 13 has dropped.
OLD = ("sm_60", "sm_70")
DTYPES = (
    "bf16", "f8E4M3FN", "f8E5M2", "f16", "f64", "complex<f64>", "i4", "ui64",
)  # fmt: skip
# Cases of a program, kernels of a call of ptxas: many take less time in all,
# few keep both processors busy to the end.
CASES, TOGETHER = 128, 100
# Where only some kernels are wanted.
FEW_CASES = 16
DIVIDES = re.compile(r"stablehlo\.(?:divide|remainder)\b.*[x<]u?i64>")
# What each architecture needs at least.
HEAD = ".version {}\n.target {}\n.address_size 64\n"
VERSIONS = {"sm_60": "6.0", "sm_70": "6.0", "sm_120": "8.7"}
FORBIDDEN = {
    "sums of floats in no order": r"\b(?:atom|red)\.[a-z.]*add\.[a-z.]*f\d+",
    "an approximate square root": r"\b(?:r?sqrt)\.approx",
    # Functions of libdevice begin with one that flushes small numbers to zero;
    # fmodf begins with a quotient without its fraction, which it corrects.
    "an approximate quotient": (
        r"\b(?:div\.(?:approx|full)"
        r"(?!\.f32\s+(%r\d+),[^;]*;\s*cvt\.rzi\.f32\.f32\s+%r\d+, \1;)"
        r"|rcp\.approx(?!\.ftz))"
    ),
    "a quotient of 64-bit integers": r"\b(?:div|rem)\.[su]64",
}
BLOCK_REGISTERS = 65536


def find_programs() -> tuple[list[str], list[str]]:
    """The texts of the programs, and smaller ones of some of their kernels."""
    texts = [
        gpu_steps.lower(make())[0].as_text()
        for make in gpu_steps.MODELS.values()
    ]
    for _, function, arguments in gpu_attention.make_cases():
        texts.append(
            gpu_attention.differentiated(function, arguments).as_text()
        )
    small = list(texts)
    arguments = list(gpu_forms.make_arguments(np.random.default_rng(0)))
    texts.append(jax.jit(gpu_forms.program).lower(arguments).as_text())
    texts.append(gpu_kernels.lower())
    with tempfile.TemporaryDirectory() as folder:
        generate = str(ROOT / "test/Conformance/generate.py")
        subprocess.run(
            [sys.executable, generate, "--texts", folder],
            check=True, capture_output=True,
        )  # fmt: skip
        cases = [file.read_text() for file in sorted(Path(folder).iterdir())]
    random.Random(1).shuffle(cases)
    if not FULL:
        cases = cases[: len(cases) // 6]
    for divides in (False, True):
        alike = [
            case for case in cases if bool(DIVIDES.search(case)) == divides
        ]
        for start in range(0, len(alike), CASES):
            texts.append(join_texts(alike[start : start + CASES]))
            small.append(join_texts(alike[start : start + FEW_CASES]))
    return texts, small


def multiply_all() -> str:
    """A program with a kernel for each of some dtypes."""
    texts = []
    for number, dtype in enumerate(DTYPES):
        type_ = f"tensor<{number + 64}x{dtype}>"
        texts.append(
            f"module {{\nfunc.func public @main(%a: {type_}) -> {type_} {{\n"
            f"%r = stablehlo.multiply %a, %a : {type_}\n"
            f"return %r : {type_}\n}}\n}}\n"
        )
    return join_texts(texts)


def compile_program(text: str, architecture: str) -> list[str]:
    """The functions and variables of a program's PTX."""
    with tempfile.TemporaryDirectory() as path:
        source, target = Path(path, "p.mlir"), Path(path, "p.whale")
        source.write_text(text)
        result = subprocess.run(
            [
                "whale-compile", str(source), "--cluster=1", "--target=cuda",
                f"--gpu-arch={architecture}", "-o", str(target),
            ],
            # Cubins are not looked at: ptxas makes them below. Other tests
            # verify what passes make.
            env=os.environ | {"WHALE_NVJITLINK": "", "WHALE_VERIFY_EACH": "0"},
            capture_output=True, text=True,
        )  # fmt: skip
        if result.returncode != 0:
            sys.exit(f"{architecture}: {result.stderr}")
        items = []
        for file in sorted(target.glob("*.ptx")):
            # What begins at the begin of a line ends where the next one does.
            items += re.split(
                r"^(?=\.(?:visible|func|global|const) )",
                re.sub(r"^\s*//.*\n", "", file.read_text(), flags=re.MULTILINE),
                flags=re.MULTILINE,
            )[1:]
        return items


def normalize(kernel: str) -> str:
    """The kernel with the name NAME, as the first one of a file."""
    name = kernel.split("(")[0].split()[-1]
    kernel = re.sub(rf"(?<![A-Za-z0-9]){name}(?![0-9])", "NAME", kernel)
    return re.sub(r"(\$L__BB|__local_depot|// callseq )\d+", r"\g<1>0", kernel)


def identify(item: str) -> tuple[str, bool]:
    """The name of a variable or function, and whether it is only declared."""
    name = re.match(r"\.func\s*(?:\([^)]*\)\s*)?(\w+)", item) or re.search(
        r"(\w+)(?:\[\d+\])?\s*[=;]", item
    )
    assert name, item[:80]
    return name[1], "{" not in item


def collect(
    texts: list[str], architecture: str, enough: int | None
) -> tuple[dict[str, bool], str]:
    """The different kernels of the programs, of the first ones that have
    `enough`, each with whether its program divides integers of 64 bits; and
    what they need."""
    kernels: dict[str, bool] = {}
    needs: dict[tuple[str, bool], str] = {}
    step = 2 if enough else len(texts)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for start in range(0, len(texts), step):
            if enough and len(kernels) >= enough:
                break
            some = texts[start : start + step]
            compiled = pool.map(
                lambda text: compile_program(text, architecture), some
            )
            for text, items in zip(some, compiled):
                divides = bool(DIVIDES.search(text))
                for item in items:
                    if item.startswith(".visible .entry"):
                        kernels.setdefault(normalize(item), divides)
                    else:
                        needs.setdefault(identify(item), item)
    # Functions are declared before they are defined.
    return (
        dict(list(kernels.items())[:enough]),
        "\n".join(sorted(needs.values(), key=lambda item: "{" in item)),
    )


def find_assembler(architecture: str) -> str:
    """The ptxas for an architecture."""
    if architecture not in OLD:
        return "ptxas"
    for place in sys.path:
        tool = Path(place, "nvidia/cuda_nvcc/bin/ptxas")
        if tool.exists():
            # Packages of Python's don't keep that it may be executed.
            tool.chmod(tool.stat().st_mode | 0o111)
            return str(tool)
    sys.exit(f"{architecture}: there is no ptxas of CUDA 12.9")


def assemble(text: str, architecture: str) -> list[str]:
    """What ptxas says about each kernel of a text."""
    with tempfile.TemporaryDirectory() as path:
        source = Path(path, "kernels.ptx")
        source.write_text(text)
        result = subprocess.run(
            [
                *(find_assembler(architecture), "-v", f"-arch={architecture}"),
                *(source, "-o", f"{path}/o"),
            ],
            capture_output=True, text=True,
        )  # fmt: skip
    if result.returncode != 0:
        sys.exit(f"{architecture}: {result.stderr}")
    said = result.stderr.split("Compiling entry function '")[1:]
    # In the order of their names, which is not that of the text.
    return sorted(said, key=lambda part: int(part[1 : part.index("'")]))


def find_problems(kernel: str, said: str, divides: bool) -> Iterator[str]:
    """What is wrong with a kernel of which ptxas has said this."""
    # Those of the kernel itself come first.
    registers = int(re.findall(r"Used (\d+) registers", said)[0])
    spilled = re.findall(r"(\d+) bytes spill stores", said)[0]
    threads = int(re.findall(r"\.maxntid (\d+)", kernel)[0])
    if spilled != "0":
        yield f"{spilled} bytes are spilled"
    # The hardware gives a warp registers in units of eight for each thread.
    if -(-registers // 8) * 8 * threads > BLOCK_REGISTERS:
        yield f"{registers} registers for each of {threads} threads"
    for what, pattern in FORBIDDEN.items():
        if re.search(pattern, kernel) and not (divides and "64-bit" in what):
            yield what


def accept(texts: list[str], architecture: str, enough: int | None) -> int:
    """Prints what is wrong with kernels of the programs; how many things."""
    kernels, needs = collect(texts, architecture, enough)
    head = HEAD.format(VERSIONS.get(architecture, "8.6"), architecture) + needs
    entries = list(kernels)
    parts = [
        entries[start : start + TOGETHER]
        for start in range(0, len(entries), TOGETHER)
    ]

    def check(part: list[str]) -> list[str]:
        text = "\n".join(
            kernel.replace("NAME", f"k{number}")
            for number, kernel in enumerate(part)
        )
        return assemble(f"{head}\n{text}", architecture)

    problems = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for part, said in zip(parts, pool.map(check, parts)):
            assert len(part) == len(said), (len(part), len(said))
            for kernel, message in zip(part, said):
                for what in find_problems(kernel, message, kernels[kernel]):
                    print(f"{architecture}: {what}:\n{kernel[:10000]}")
                    problems += 1
    print(
        f"{architecture}: {len(kernels)} different kernels, {problems} problems"
    )
    return problems


def main() -> None:
    texts, small = find_programs()
    problems = accept(texts, "sm_90", None)
    for architecture in (*OTHERS, *(OLD if FULL else ())):
        some = list(texts if FULL else small)
        random.Random(architecture).shuffle(some)
        some.insert(0, multiply_all())
        problems += accept(some, architecture, None if FULL else 40)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
