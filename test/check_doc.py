"""Runs the examples of a page: check_doc.py [--update] PAGE.md

An example is a block of MLIR (or of Python that prints some), a line that holds
`whale-opt ARGUMENTS`, and the block that whale-opt makes of the first one.
Without a first block, the example goes on from the one before. A line that says
so leaves the module `@kernels` out. With `whale-compile ARGUMENTS` the second
block is the remarks of --explain and the table of task graphs, or what another
--explain of the arguments prints. A block of JSON in front is cluster.json.
--update writes what the tools make.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLE = re.compile(
    r"(?:```json\n(?P<cluster>(?:(?!```).)*)```\n\n)?"
    r"(?:```(?P<language>mlir|python)\n(?P<input>(?:(?!```).)*)```\n\n)?"
    r"(?P<text>[^\n]*`(?P<tool>whale-opt|whale-compile)"
    r"(?P<arguments>[^`\n]*)`[^\n]*\n)\n"
    r"```(?:mlir|text)\n(?P<output>(?:(?!```).)*)```\n",
    re.DOTALL,
)
KERNELS = re.compile(r"^  module @kernels .*?^  }\n", re.DOTALL | re.MULTILINE)
WITHOUT_KERNELS = "without `@kernels`"


def strip_module(text: str) -> str:
    """The text without the module around it, which examples leave out."""
    lines = text.strip("\n").split("\n")
    if lines[0] == "module {" and lines[-1] == "}":
        lines = [line.removeprefix("  ") for line in lines[1:-1]]
    return "\n".join(lines) + "\n"


def execute(
    command: list[str], text: str = "", folder: str | None = None
) -> str:
    """What a command prints, run in a folder."""
    python = pathlib.Path(__file__).resolve().parents[1] / "python"
    result = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(python), "JAX_PLATFORMS": "cpu"},
    )
    if result.returncode:
        sys.exit(result.stderr)
    return result.stdout


def explain(arguments: list[str], text: str, folder: str) -> str:
    """What whale-compile says of its decisions."""
    pathlib.Path(folder, "step.mlir").write_text(text)
    command = ["whale-compile", "step.mlir", *arguments, "--target=none"]
    own = any(argument.startswith("--explain=") for argument in arguments)
    command += [] if own else ["--explain"]
    said = execute(command, folder=folder).replace(f"{folder}/", "")
    if own:
        return said
    _, _, decisions = said.partition("== decisions\n")
    return decisions.replace("\n== task graphs\n", "")


class Page:
    """Runs the examples of a page one after the other."""

    def __init__(self) -> None:
        self.last = ""
        self.folder = tempfile.TemporaryDirectory()
        self.failed = 0

    def check(self, match: re.Match) -> str:
        """The example with the output that whale-opt makes."""
        text = match["input"] or self.last
        folder = self.folder.name
        if match["cluster"]:
            pathlib.Path(folder, "cluster.json").write_text(match["cluster"])
        if match["language"] == "python":
            pathlib.Path(folder, "step.py").write_text(text)
            text = execute([sys.executable, "step.py"], folder=folder)
        arguments = match["arguments"].split()
        if match["tool"] == "whale-compile":
            self.last = text
            output = explain(arguments, text, folder)
        else:
            self.last = output = execute(["whale-opt", *arguments], text)
            if WITHOUT_KERNELS in match["text"]:
                output = KERNELS.sub("", output)
            output = strip_module(output)
        if output != match["output"]:
            self.failed += 1
            print(f"{match['tool']} {match['arguments']} makes\n{output}")
            print(f"and not\n{match['output']}")
        start, end = match.start("output"), match.end("output")
        whole = match[0]
        offset = match.start()
        return whole[: start - offset] + output + whole[end - offset :]


def main() -> None:
    path = pathlib.Path(sys.argv[-1])
    page = Page()
    updated, examples = EXAMPLE.subn(page.check, path.read_text())
    if not examples:
        sys.exit(f"{path} has no examples")
    if "--update" in sys.argv:
        path.write_text(updated)
    elif page.failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
