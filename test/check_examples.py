"""Runs the examples of passes: check_examples.py [--update] PAGE.md...

A page of docs/reference/passes has the name of its pass and at least one
example: a block of MLIR, `becomes`, and the block that whale-opt makes of it.
`is refused:` is before a block of errors, `is remarked:` before one of
remarks. `with ...` in the line that starts with "Example" gives options of the
pass and further arguments in quotes. White space is free, so that lines can
be broken, and what is only a place in the text (`loc("-":1:2)`) left out.
--update writes what whale-opt says into the TableGen files of passes.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

from check_doc import strip_module

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(
    r"^Example(?P<title>(?:(?!\n\n|```).)*)\s+"
    r"```mlir\n(?P<input>(?:(?!```).)*)```\s+"
    r"(?P<verb>becomes|is refused:|is remarked:)\s+"
    r"```(?:mlir|text)\n(?P<output>(?:(?!```).)*)```$",
    re.DOTALL | re.MULTILINE,
)
PLACE = re.compile(r' loc\("[^"]*":\d+:\d+\)')
# What --update fills a line of Passes.td with, behind its indentation.
WIDTH = 76


def tokens(text: str) -> list[str]:
    """The text without its white space."""
    return re.findall(r'"[^"]*"|\w+|\S', text)


def diagnostics(stderr: str, kind: str) -> str:
    """The diagnostics of a kind, without where they are."""
    found = re.findall(rf"^\S+:\d+:\d+: ({kind}: .*)$", stderr, re.MULTILINE)
    return "".join(f"{line}\n" for line in found)


def find_declaration(name: str) -> pathlib.Path:
    """The TableGen file that declares a pass."""
    for path in ROOT.glob("include/whale/**/*Passes.td"):
        if f'"{name}"' in path.read_text():
            return path
    sys.exit(f"there is no pass {name}")


def run(name: str, title: str, text: str, verb: str) -> str:
    """What whale-opt says of an example; ValueError where it can't be run."""
    options = re.search(r"with\s+`([^`]*)`", title)
    words = options[1].split() if options else []
    pipeline = f"{name}{{{' '.join(w for w in words if w[0] != '-')}}}"
    declaration = find_declaration(name).read_text()
    if re.search(rf'InterfacePass<\s*"{name}"', declaration):
        pipeline = f"any({pipeline})"
    result = subprocess.run(
        [
            "whale-opt",
            f"-pass-pipeline=builtin.module({pipeline})",
            *(word for word in words if word[0] == "-"),
        ],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if verb == "is refused:":
        if not result.returncode:
            raise ValueError("is not refused")
        return diagnostics(result.stderr, "error")
    if result.returncode:
        raise ValueError(f"can't be run:\n{result.stderr}")
    if verb == "is remarked:":
        return diagnostics(result.stderr, "remark")
    return strip_module(PLACE.sub("", result.stdout))


def find_break(line: str) -> int:
    """Where to break a long line: inside of few brackets, and then far on."""
    depth = 0
    places = []
    for match in re.finditer(r'"[^"]*"|->|[(\[{<]|[)\]}>]| ', line):
        start = match.start()
        if match[0] in "([{<":
            depth += 1
        elif match[0] in ")]}>":
            depth -= 1
        elif (
            match[0] == " "
            and WIDTH // 4 <= start <= WIDTH
            and not re.search(r"([:=]|->|attributes|strategy)$", line[:start])
            and not re.match(r" (=|\]|\{$)", line[start:])
        ):
            places.append((depth, -start))
    return -min(places)[1] if places else len(line)


def wrap(line: str) -> str:
    """The line in several where it is longer than a line of Passes.td."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    lines = []
    while len(line) > WIDTH:
        end = find_break(line)
        lines.append(line[:end])
        line = indent + line[end:].lstrip() if end < len(line) else ""
    return "\n".join([*lines, line]).rstrip()


def update(name: str, old: str, new: str) -> None:
    """Replaces an output where the pass is declared."""
    path = find_declaration(name)
    text = path.read_text()
    start = text.find(f'"{name}"')
    # "}]" would end the description.
    lines = [wrap(line) for line in new.replace("}]", "} ]").splitlines()]
    old = textwrap.indent(old, "    ")
    new = textwrap.indent("\n".join(lines) + "\n", "    ")
    if old not in text[start:]:
        sys.exit("run scripts/make_reference.py first")
    path.write_text(text[:start] + text[start:].replace(old, new, 1))


def check(page: pathlib.Path, updates: bool) -> list[str]:
    """What is wrong with the examples of a page."""
    name = page.stem
    text = page.read_text().split("\n## ")[0]
    problems = []
    if "```" in EXAMPLE.sub("", text):
        problems.append("has a block that is no example")
    examples = list(EXAMPLE.finditer(text))
    if not examples:
        problems.append("has no example")
    for example in examples:
        title, given, verb, old = example.groups()
        try:
            new = run(name, title, given, verb)
        except ValueError as error:
            problems.append(f"has an example that {error}")
            continue
        if tokens(new) == tokens(old):
            continue
        if updates:
            update(name, old, new)
        else:
            problems.append(f"has an example that gives\n{new}and not\n{old}")
    return [f"{name} {problem}" for problem in problems]


def main() -> None:
    pages = [argument for argument in sys.argv[1:] if argument != "--update"]
    if not pages:
        sys.exit(__doc__)
    problems: list[str] = []
    for page in pages:
        problems += check(pathlib.Path(page), "--update" in sys.argv)
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
