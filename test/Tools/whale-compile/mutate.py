"""Compiles damaged texts: mutate.py FOLDER_OF_TEXTS SCRATCH_FOLDER

Each text of JAX is changed at a few random places (lines dropped or swapped,
types, extents, numbers, attributes and operands replaced) and compiled. It must
compile, or fail with one line that holds `error: ` and leave no program. The
changes are the same in every run; WHALE_TEST_FULL makes many more of them.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

TYPES = "f32 f64 bf16 f16 i1 i8 i32 i64 ui32 complex<f32> i4 f8E4M3FN index i33"
EXTENTS = "0 1 2 3 7 ? 4294967296 9223372036854775807 99999999999999999999"
NUMBERS = "0 -1 1 2 17 9223372036854775807 -9223372036854775808"
LISTS = "[] [0] [1] [0,1] [1,0] [0,0] [-1] [0,1,2,3]"
CONSTANTS = "dense<> dense<0> dense<1.0> dense<true> dense<[1,2]> dense<1e400>"
ARGUMENT = (
    "whale.batch_dim=0:i64 whale.batch_dim=-1:i64 whale.fed_by=0:i64 "
    "whale.fed_by=99:i64 whale.donated tf.aliasing_output=77:i32 "
    'tf.aliasing_output="a" jax.buffer_donor=true whale.placement=3'
)
# A pattern, and what may stand in the place of a match.
REPLACED = [
    (r"(?<=[x<])(?:f32|bf16|f16|i32|i1|ui32|i64|f64)(?=>)", TYPES),
    (r"(?<=[<x])\d+(?=x)", EXTENTS),
    (r"(?<![\w#%@.])-?\d+(?![\w.])", NUMBERS),
    (r"\[[^\[\]]*\]", LISTS),
    (r"dense<[^>]*>", CONSTANTS),
    (r"stablehlo\.\w+", "stablehlo.add stablehlo.while stablehlo.foo chlo.tan"),
    (r"%\w+", "%0 %1 %arg0 %arg1 %cst %none"),
    (r"(?<=%arg\d: )(?=tensor)", ""),
    (r",? ?\b\w+ = (?:\[[^\[\]]*\]|[\w.#<>]+)", ""),
]


def mutate(text: str, rng: random.Random) -> str:
    """The text with one change."""
    lines = text.split("\n")
    line = rng.randrange(len(lines))
    kind = rng.randrange(len(REPLACED) + 5)
    if kind == 0:
        del lines[line]
    elif kind == 1:
        lines.insert(line, rng.choice(lines))
    elif kind == 2:
        return text[: rng.randrange(len(text))]
    elif kind == 3:
        at = rng.randrange(len(text))
        return text[:at] + text[at + rng.randrange(1, 20) :]
    elif kind == 4:
        attribute = rng.choice(ARGUMENT.split())
        return re.sub(
            r"(%arg0: tensor<[^<>]*>)(?: \{[^{}]*\})?",
            lambda match: f"{match[1]} {{{attribute}}}",
            text,
            count=1,
        )
    else:
        pattern, choices = REPLACED[kind - 5]
        matches = list(re.finditer(pattern, text))
        if not matches:
            return text
        match = rng.choice(matches)
        new = rng.choice(choices.split() or [""])
        return text[: match.start()] + new + text[match.end() :]
    return "\n".join(lines)


def check(text: str, arguments: list[str], folder: pathlib.Path) -> str:
    """What is wrong with how whale-compile takes the text, or nothing."""
    source, program = folder / "text.mlir", folder / "out.whale"
    source.write_text(text)
    result = subprocess.run(
        ["whale-compile", source, "-o", program, *arguments],
        capture_output=True,
        timeout=60,
    )
    errors = result.stderr.decode()
    left = program.exists()
    shutil.rmtree(program, ignore_errors=True)
    if result.returncode == 0:
        return "" if left else "there is no program"
    if result.returncode != 1:
        return f"exit status {result.returncode}: {errors}"
    if errors.count("error: ") != 1 or errors.count("\n") != 1:
        return f"more or less than one line with an error: {errors}"
    return "a program was left" if left else ""


def main() -> None:
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.mlir"))
    texts = [path.read_text() for path in paths]
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for seed in range(3000 if os.environ.get("WHALE_TEST_FULL") else 60):
        rng = random.Random(seed)
        text = rng.choice(texts)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            text = mutate(text, rng) or " "
        arguments = [
            f"--cluster={rng.choice([1, 2, 3, 4])}",
            f"--strategy={rng.choice(['replicate', 'split', 'none'])}",
            f"--target={rng.choice(['none', 'none', 'none', 'cpu'])}",
        ]
        wrong = check(text, arguments, folder)
        if wrong:
            failed += 1
            (folder / f"bad{seed}.mlir").write_text(text)
            print(f"bad{seed}.mlir {' '.join(arguments)}: {wrong}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
