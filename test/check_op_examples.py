"""Parses the examples of operations: check_op_examples.py PAGE.md...

whale-opt reads and verifies each block of MLIR in pages of
docs/reference/dialects, and each operation there has to have one. Values that
an example uses but doesn't define get the types that it says; of symbols, such
as a mesh, those that are another example of the page. A block of attributes is
put on an operation.
"""

import bisect
import itertools
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"^```mlir\n((?:(?!```).)*)```$", re.DOTALL | re.MULTILINE)
OPERATION = re.compile(r"^### `([\w.]+)` ", re.MULTILINE)
SYMBOL = re.compile(r"^[\w.]+ (@\w+)")
SPLIT = "\n// -----\n"
ERROR = re.compile(r"^<stdin>:(\d+):(\d+): error: (.*)$", re.MULTILINE)
UNDEFINED = "use of undeclared SSA value name"
MISTYPED = re.compile(
    r"use of value '(.*)' expects different type than prior uses: '(.*)' vs"
)


class Example:
    """A block, and what has been found out about it."""

    def __init__(self, page: str, block: str, symbols: dict[str, str]) -> None:
        self.name = f"{page}: {block.splitlines()[0]}"
        self.text = block
        if re.match(r"#(?!\w+ = )", block):
            attributes = re.split(r"\n(?=#)", block.strip())
            self.text = "".join(
                f'"test.op"() {{a = {attribute}}} : () -> ()\n'
                for attribute in attributes
            )
        for symbol, definition in symbols.items():
            if symbol in block and definition != block:
                self.text += definition
        self.types: dict[str, str] = {}

    def complete(self) -> str:
        """The text with the values that it doesn't define, in front."""
        values = [
            f'%{name} = "test.value"() : () -> {type}\n'
            for name, type in self.types.items()
        ]
        return "".join(values) + self.text

    def learn(self, line: int, column: int, message: str) -> bool:
        """Whether an error says what a value is, that was not known yet."""
        if message == UNDEFINED:
            at = self.complete().splitlines()[line - 1][column - 1 :]
            name = re.match(r"%([\w$.-]+)", at)
            if not name or name[1] in self.types:
                return False
            self.types[name[1]] = "none"
            return True
        typed = MISTYPED.match(message)
        if typed:
            value = typed[1].lstrip("%")
            new = self.types.get(value) == "none"
            self.types[value] = typed[2]
            return new
        return False


def examples_of(path: pathlib.Path) -> tuple[list[Example], list[str]]:
    """The examples of a page, and which operations miss one."""
    text = path.read_text()
    parts = OPERATION.split(text)
    missing = [
        f"{name} has no example"
        for name, body in zip(parts[1::2], parts[2::2])
        if not any(name in block for block in BLOCK.findall(body))
    ]
    blocks = BLOCK.findall(text)
    symbols = {
        match[1]: block for block in blocks if (match := SYMBOL.match(block))
    }
    return [Example(path.stem, block, symbols) for block in blocks], missing


def parse(examples: list[Example]) -> dict[int, list[tuple[int, int, str]]]:
    """The errors in each example, by its number: line, column and message."""
    texts = [example.complete() for example in examples]
    result = subprocess.run(
        ["whale-opt", "-split-input-file", "-allow-unregistered-dialect"],
        input=SPLIT.join(texts),
        capture_output=True,
        text=True,
        timeout=60,
    )
    # The first line of each text.
    lengths = (text.count("\n") + SPLIT.count("\n") for text in texts)
    starts = list(itertools.accumulate(lengths, initial=1))
    errors: dict[int, list[tuple[int, int, str]]] = {}
    for row, column, message in ERROR.findall(result.stderr):
        number = bisect.bisect(starts, int(row)) - 1
        line = int(row) - starts[number] + 1
        errors.setdefault(number, []).append((line, int(column), message))
    if result.returncode and not errors:
        sys.exit(result.stderr)
    return errors


def main() -> None:
    examples: list[Example] = []
    problems: list[str] = []
    for page in sys.argv[1:]:
        found, missing = examples_of(pathlib.Path(page))
        examples += found
        problems += missing
    if not examples:
        sys.exit(__doc__)
    # Each round tells one value's type of each example.
    while examples:
        again = []
        for number, errors in parse(examples).items():
            example = examples[number]
            learnt = [example.learn(*error) for error in errors]
            if any(learnt):
                again.append(example)
            else:
                problems.append(f"{example.name}\n  {errors[0][2]}")
        examples = again
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
