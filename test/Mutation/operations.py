"""Single operations of a text, right and with other types or attributes.

In: a text in MLIR's generic form and a random generator. Out: the text of a
module whose @main applies one operation of it to its arguments, with an operand
or result left out, put in or of another type, or without an attribute or with
another number in one. Costs a pass over the text.
"""

from __future__ import annotations

import dataclasses
import random
import re

import calls
import mutations

_PLAIN = re.compile(r'^ *(?:%[^"=]* = )?("\w+\.\w+")\([^()]*\)(.*)$')
_END = re.compile(r"^(.*) : \(([^()]*)\) -> (.*)$")
_DIALECTS = ("stablehlo.", "chlo.")
_ATTRIBUTE = re.compile(r"(?:, )?\b\w+ = (?:array<[^>]*>|[\w.#-]+)(?: : \w+)?")


@dataclasses.dataclass
class Operation:
    """Its name in quotes, attributes with regions, and types."""

    name: str
    rest: str
    operands: list[str]
    results: list[str]

    def text(self) -> str:
        arguments = [f"%in{i}" for i in range(len(self.operands))]
        typed = [f"{n}: {t}" for n, t in zip(arguments, self.operands)]
        given = [f"%out#{i}" for i in range(len(self.results))]
        head = f"%out:{len(given)} = " if given else ""
        types = ", ".join(self.results)
        end = f" {', '.join(given)} : {types}" if given else ""
        return (
            f"func.func @main({', '.join(typed)}) -> ({types}) {{\n"
            f"  {head}{self.name}({', '.join(arguments)}){self.rest}"
            f" : ({', '.join(self.operands)}) -> ({types})\n"
            f"  return{end}\n}}\n"
        )


def split_types(text: str) -> list[str]:
    """The types of a list that is separated by commas."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "<([") - (c in ">)]" and text[at - 1] != "-")
        if c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def operations_in(text: str) -> list[Operation]:
    """The operations whose regions use nothing from outside."""
    found = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = _PLAIN.match(line)
        if not match or not match[1].strip('"').startswith(_DIALECTS):
            continue
        rest = match[2]
        if rest.endswith("({"):
            indent = line[: len(line) - len(line.lstrip())]
            last = number
            while last < len(lines) and not lines[last].startswith(
                indent + "})"
            ):
                last += 1
            body = lines[number + 1 : last]
            used = set(re.findall(r"%\w+", "\n".join(body)))
            made = set(
                re.findall(r"(%\w+)(?::\d+)?(?=: | = |, %)", "\n".join(body))
            )
            if last == len(lines) or used - made:
                continue
            rest = "\n".join([rest, *body, lines[last]])
        head, _, tail = rest.rpartition(" : (")
        end = _END.match(f"{head.splitlines()[-1] if head else ''} : ({tail}")
        if not end or "\n" in tail:
            continue
        results = end[3].removeprefix("(").removesuffix(")")
        found.append(
            Operation(match[1], head, split_types(end[2]), split_types(results))
        )
    return found


def _damage_type(rng: random.Random, type_: str) -> str:
    """Another element type, extent, rank, or something else altogether."""
    kind = rng.randrange(4)
    extents = list(re.finditer(r"(?<=[<x])(?:\d+|\?)(?=x)", type_))
    if kind == 0 and extents:
        match = rng.choice(extents)
        return type_[: match.start()] + rng.choice(
            ["0", "1", "2", "5", "?"]
        ) + type_[match.end() :]  # fmt: skip
    if kind == 1:
        return re.sub(r"<((?:(?:\d+|\?)x)*)", r"<\g<1>2x", type_, count=1)
    if kind == 2 and extents:
        return re.sub(r"<(?:\d+|\?)x", "<", type_, count=1)
    if kind == 3 and type_.startswith("tensor<"):
        shape = re.match(r"tensor<((?:(?:\d+|\?)x)*)", type_)
        assert shape
        return f"tensor<{shape[1]}{rng.choice(mutations.TYPES)}>"
    return calls.tensor(rng.choice(calls.TYPES))


def damaged(rng: random.Random, text: str) -> str:
    """The text of an operation that is damaged in one or two places."""
    found = operations_in(text)
    if not found:
        return text
    operation = rng.choice(found)
    for _ in range(rng.choice([1, 1, 2])):
        types = rng.choice([operation.operands, operation.results])
        kind = rng.randrange(8)
        if kind < 4 and types:
            at = rng.randrange(len(types))
            types[at] = _damage_type(rng, types[at])
        elif kind == 4 and types:
            del types[rng.randrange(len(types))]
        elif kind == 5:
            types.insert(
                rng.randrange(len(types) + 1),
                calls.tensor(rng.choice(calls.TYPES)),
            )
        elif kind == 6:
            matches = list(_ATTRIBUTE.finditer(operation.rest))
            if matches:
                match = rng.choice(matches)
                operation.rest = (
                    operation.rest[: match.start()]
                    + operation.rest[match.end() :]
                ).replace("<{, ", "<{")
        else:
            operation.rest = mutations.replace(rng, operation.rest, "")
    return operation.text()
