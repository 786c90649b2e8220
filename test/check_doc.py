"""Runs the examples of a page: check_doc.py [--update] PAGE.md

An example is a block of MLIR, a line that holds `whale-opt ARGUMENTS`, and the
block that whale-opt makes of the first one. --update writes what it makes.
"""

import pathlib
import re
import subprocess
import sys

EXAMPLE = re.compile(
    r"```mlir\n(?P<input>(?:(?!```).)*)```\n\n"
    r"(?P<text>[^\n]*`whale-opt (?P<arguments>[^`\n]*)`[^\n]*\n)\n"
    r"```mlir\n(?P<output>(?:(?!```).)*)```\n",
    re.DOTALL,
)


def strip_module(text: str) -> str:
    """The text without the module around it, which examples leave out."""
    lines = text.strip("\n").split("\n")
    if lines[0] == "module {" and lines[-1] == "}":
        lines = [line.removeprefix("  ") for line in lines[1:-1]]
    return "\n".join(lines) + "\n"


def run(match: re.Match) -> str:
    result = subprocess.run(
        ["whale-opt", *match["arguments"].split()],
        input=match["input"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if result.returncode:
        sys.exit(result.stderr)
    return strip_module(result.stdout)


def main() -> None:
    update = "--update" in sys.argv
    path = pathlib.Path(sys.argv[-1])
    page = path.read_text()
    failed = 0

    def check(match: re.Match) -> str:
        nonlocal failed
        output = run(match)
        if output != match["output"] and not update:
            failed += 1
            print(f"whale-opt {match['arguments']} makes\n{output}")
            print(f"and not\n{match['output']}")
        return (
            f"```mlir\n{match['input']}```\n\n{match['text']}\n"
            f"```mlir\n{output}```\n"
        )

    updated, examples = EXAMPLE.subn(check, page)
    if update:
        path.write_text(updated)
    if not examples:
        sys.exit(f"{path} has no examples")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
