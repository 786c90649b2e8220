"""Assembles the kernels of programs, and looks for what must not be in them.

usage: accept_ptx.py PROGRAM.whale:sm_90 ...

ptxas must accept each kernel. None may spill registers or have more of them
than a block of its size gets; none may have sums of floats in no order, square
roots and quotients that are approximations, or quotients of 64-bit integers,
which indices would be.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

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


def assemble(text: Path, architecture: str) -> str:
    """What ptxas says about each kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as output:
        result = subprocess.run(
            [
                "ptxas", "-v", f"-arch={architecture}", str(text),
                "-o", output.name,
            ],
            capture_output=True, text=True,
        )  # fmt: skip
    if result.returncode != 0:
        sys.exit(f"{text}: ptxas: {result.stderr}")
    return result.stderr


def find_problems(text: str, messages: str) -> list[str]:
    """What is wrong with the kernels of one file."""
    found = []
    body = {
        part.split("(", 1)[0]: part for part in re.split(r"\.entry ", text)[1:]
    }
    threads = {
        name: int(count)
        for name, count in re.findall(
            r"\.entry (\w+)\(.*?\.maxntid (\d+)", text, re.DOTALL
        )
    }
    for part in messages.split("Compiling entry function '")[1:]:
        name = part.split("'", 1)[0]
        # Those of the kernel itself come first.
        registers = int(re.findall(r"Used (\d+) registers", part)[0])
        spilled = re.findall(r"(\d+) bytes spill stores", part)[0]
        if spilled != "0":
            found.append(f"{name} spills {spilled} bytes")
        # The hardware gives a warp registers in units of eight for each thread.
        if -(-registers // 8) * 8 * threads[name] > BLOCK_REGISTERS:
            found.append(f"{name} has {registers} registers a thread")
    for name, part in body.items():
        found += [
            f"{name} has {what}"
            for what, pattern in FORBIDDEN.items()
            if re.search(pattern, part)
        ]
    return found


def main() -> None:
    problems = []
    for program in sys.argv[1:]:
        folder, architecture = program.rsplit(":", 1)
        kernels = 0
        for text in sorted(Path(folder).glob("*.ptx")):
            messages = assemble(text, architecture)
            kernels += messages.count("Compiling entry function")
            problems += [
                f"{architecture}: {problem}"
                for problem in find_problems(text.read_text(), messages)
            ]
        print(f"{architecture}: {kernels} kernels assembled")
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
