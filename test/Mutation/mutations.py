"""Changes texts, JSON and bytes at random, the same for the same generator.

In: a random generator, what is to be changed, and mostly another of its kind to
take parts from. Out: the changed text or bytes, which may be the same. Texts
are changed by tables of types, extents, numbers and attributes, chosen so that
many mutants get past the parser; JSON is changed value by value. A change reads
its input a few times at most.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

TYPES = (
    "f32 f64 bf16 f16 i1 i8 i32 i64 ui32 ui8 complex<f32> i4 f8E4M3FN index "
    "i33 f80"
).split()
EXTENTS = (
    "0 1 2 3 7 ? 1000000 4294967296 9223372036854775807 99999999999999999999"
).split()
NUMBERS = (
    "0 -1 1 2 3 17 2147483647 -2147483648 4294967296 9223372036854775807 "
    "9223372036854775806 -9223372036854775807 "
    "-9223372036854775808 1.0 1e400 -0.0 0x7FC00000"
).split()
LISTS = "[] [0] [1] [0,1] [1,0] [0,0] [-1] [0,1,2,3] [9223372036854775807]"
CONSTANTS = (
    "dense<> dense<0> dense<1.0> dense<true> dense<[1,2]> dense<1e400> "
    'dense<0x7F800000> dense<"0x00"> dense_resource<a>'
).split()
OPERATIONS = (
    "stablehlo.add stablehlo.while stablehlo.foo chlo.tan stablehlo.reshape "
    "stablehlo.reduce stablehlo.multiply stablehlo.divide stablehlo.maximum "
    "stablehlo.convert stablehlo.negate stablehlo.case chlo.top_k"
).split()
STRATEGIES = (
    "#whale.replicate #whale.split #whale.replicate<devices=2> "
    '#whale.split<devices=9> #whale.split<devices=1,name="a"> '
    "#whale.replicate<devices=0> #whale.replicate<scope=-1> 3 unit"
).split()
ON_ARGUMENT = (
    "whale.batch_dim=0:i64 whale.batch_dim=1:i64 whale.batch_dim=-1:i64 "
    "whale.batch_dim=7:i64 whale.batchdim=0:i64 whale.fed_by=0:i64 "
    'whale.fed_by=99:i64 whale.fed_by="a" whale.donated whale.donated=1 '
    'whale.label="a" tf.aliasing_output=77:i32 tf.aliasing_output="a" '
    "jax.buffer_donor=true whale.placement=3 whale.last_use "
    "whale.stack_piece={} whale.global_type=f32 "
    "whale.placement=#whale.placement<[8]on[0]>"
).split()
ON_MODULE = (
    *(f"whale.default_strategy={strategy}" for strategy in STRATEGIES),
    "whale.config={num_micro_batch=2:i64}",
    "whale.config={num_task_graph=2:i64}",
    "whale.config={num_task_graph=32768:i64}",
    "whale.config={num_micro_batch=2:i64,num_task_graph=2:i64}",
    'whale.config={num_micro_batch=2:i64,pipeline={strategy="gpipe"}}',
    "whale.config={cluster={uneven_replicas=true}}",
    "whale.config={no_such=1:i64}",
    "whale.virtual_devices=[array<i64: 0>]",
    "whale.virtual_devices=[array<i64: 0,9>]",
    "whale.virtual_devices=[array<i64: 1>,array<i64: 0>]",
    "whale.virtual_devices=[]",
    "whale.arena_bytes=64:i64",
    "whale.locals={}",
    "whale.unknown",
)
ON_OPERATION = (
    *(f"whale.strategy={strategy}" for strategy in STRATEGIES),
    "whale.phase=#whale.phase<backward>",
    "whale.phase=#whale.phase<apply>",
    "whale.placements=[]",
    "whale.chunk=3:i64",
    "whale.out=array<i64: 0>",
    "whale.layout=1:i64",
    "whale.moment=1:i64",
    "whale.chunk=-1:i64",
    "whale.strateg=#whale.split",
)
# A pattern, and what may be in the place of a match.
REPLACED: list[tuple[str, list[str]]] = [
    (r"(?<=[x<])(?:f32|bf16|f16|i1|ui32|i64|i32|f64)(?=>)", TYPES),
    (r"(?<=[<x])\d+(?=x)", EXTENTS),
    (r"(?<=[<x])\d+(?=x)", ["1", "2", "3", "4", "5", "6", "7", "8", "9"]),
    (r"(?<![\w#%@.])-?\d+(?![\w.])", NUMBERS),
    (r"\[[^\[\]]*\]", LISTS.split()),
    (r"dense<[^>]*>", CONSTANTS),
    (r"stablehlo\.\w+", OPERATIONS),
    (r"%\w+", ["%0", "%1", "%arg0", "%arg1", "%cst", "%none"]),
    (r",? ?\b\w+ = (?:\[[^\[\]]*\]|[\w.#<>]+)", [""]),
    (r"#whale\.\w+(?:<[^<>]*>)?", STRATEGIES),
]
TOKEN = re.compile(r'"[^"\n]*"|[%#@!]?[\w.$-]+|\s+|.', re.S)

Change = Callable[[random.Random, str, str], str]


def replace(rng: random.Random, text: str, other: str) -> str:
    pattern, choices = rng.choice(REPLACED)
    matches = list(re.finditer(pattern, text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + rng.choice(choices) + text[match.end() :]


def replace_everywhere(rng: random.Random, text: str, other: str) -> str:
    """One type or extent by another wherever it stands: the text stays valid
    more often."""
    if rng.random() < 0.5:
        old = rng.choice(TYPES[:8])
        return re.sub(rf"(?<=[x<]){old}(?=>)", rng.choice(TYPES), text)
    extents = sorted(set(re.findall(r"(?<=[<x])\d+(?=x)", text)))
    if not extents:
        return text
    old, new = rng.choice(extents), rng.choice(EXTENTS + ["4", "5", "6"])
    return re.sub(rf"(?<=[<x]){old}(?=x)", new, text)


# Operations that may stand for one another, and numbers.
ALIKE = [
    "add subtract multiply divide maximum minimum power remainder "
    "atan2".split(),
    "tanh exponential logistic cosine negate abs sqrt rsqrt log sign floor "
    "exponential_minus_one cbrt round_nearest_even".split(),
    "and or xor".split(),
    "LT LE GT GE EQ NE".split(),
    "dense<0.000000e+00> dense<1.000000e-01> dense<-3.0> dense<0x7F800000> "
    "dense<0x7FC00000> dense<1.0e+30> dense<5.0e-324>".split(),
    "dense<0> dense<1> dense<3> dense<-1> dense<2147483647>".split(),
    "devices = 1>|devices = 2>|devices = 3>|devices = 1, name = |"
    "devices = 2, name = ".split("|"),
    "#whale.replicate #whale.split".split(),
    "forward backward apply".split(),
    "num_micro_batch num_task_graph".split(),
]


def replace_alike(rng: random.Random, text: str, other: str) -> str:
    """A token by another of its kind: what is typed correctly stays so."""
    found = []
    for group in ALIKE:
        # The longest first, of which others are the beginning.
        names = sorted(map(re.escape, group), key=len, reverse=True)
        for match in re.finditer(
            rf"(?<![\w])(?:{'|'.join(names)})(?!\w)", text
        ):
            found.append((match, group))
    if not found:
        return text
    match, group = rng.choice(found)
    return text[: match.start()] + rng.choice(group) + text[match.end() :]


def change_operand(rng: random.Random, text: str, other: str) -> str:
    """A value by another of the text."""
    names = list(re.finditer(r"%\w+", text))
    if not names:
        return text
    match = rng.choice(names)
    return text[: match.start()] + rng.choice(names)[0] + text[match.end() :]


def change_lines(rng: random.Random, text: str, other: str) -> str:
    lines = text.split("\n")
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(one, lines[two])
    else:
        lines[one], lines[two] = lines[two], lines[one]
    return "\n".join(lines)


def change_tokens(rng: random.Random, text: str, other: str) -> str:
    tokens = TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    if not places:
        return text
    one, two = rng.choice(places), rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        del tokens[one]
    elif kind == 1:
        tokens.insert(one, tokens[two])
    elif kind == 2:
        tokens[one], tokens[two] = tokens[two], tokens[one]
    else:
        tokens[one] = rng.choice(TOKEN.findall(other) or [""])
    return "".join(tokens)


def change_name(rng: random.Random, text: str, other: str) -> str:
    """Bytes that are no UTF-8 in a quoted name."""
    names = list(re.finditer(r'"[^"\n]*"', text))
    if not names:
        return text
    match = rng.choice(names)
    at = rng.randrange(match.start() + 1, match.end())
    part = rng.choice(["\\FF", "\\C3", "\\FF\\FE", "\udcff", "\\5Cx41"])
    return text[:at] + part + text[at:]


def change_bytes(rng: random.Random, text: str, other: str) -> str:
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(4)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + text[at + rng.randrange(1, 20) :]
    if kind == 2:
        return (
            text[:at]
            + chr(rng.choice([0, 9, 34, 60, 255, 8364, 0xDCFF]))
            + text[at:]
        )
    return text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 :]


def splice(rng: random.Random, text: str, other: str) -> str:
    """The beginning of one and the end of another, or its lines inside."""
    lines, others = text.split("\n"), other.split("\n")
    at, begin = rng.randrange(len(lines)), rng.randrange(len(others))
    if rng.random() < 0.3:
        return "\n".join(lines[:at] + others[begin:])
    part = others[begin : begin + rng.randrange(1, 5)]
    return "\n".join(lines[:at] + part + lines[at:])


def annotate(rng: random.Random, text: str, other: str) -> str:
    """An attribute for an argument, the module or an operation."""
    kind = rng.randrange(3)
    if kind == 0:
        pattern, attributes = r"(%\w+: tensor<[^<>]*>)(?= \{|[,)])", ON_ARGUMENT
    elif kind == 1:
        pattern, attributes = (
            r"(module(?: @\w+)?)()(?=(?: attributes)? \{)",
            (list(ON_MODULE)),
        )
    else:
        pattern, attributes = (
            r"( = stablehlo\.\w+ [^\n{}<]*?)(?= : )",
            list(ON_OPERATION),
        )
    attribute = rng.choice(attributes)
    matches = list(re.finditer(pattern, text))
    if not matches:
        return text
    match = rng.choice(matches)
    head, tail = text[: match.end()], text[match.end() :]
    if kind == 1:
        if tail.startswith(" attributes {"):
            return f"{head} attributes {{{attribute}, {tail[13:]}"
        return f"{head} attributes {{{attribute}}}{tail}"
    if tail.startswith(" {"):
        return f"{head} {{{attribute}, {tail[2:]}"
    return f"{head} {{{attribute}}}{tail}"


def nest(rng: random.Random, text: str, other: str) -> str:
    """An operation inside of so many conditions, or brackets in brackets."""
    depth = rng.choice([2, 5, 30, 300])
    if rng.random() < 0.3:
        at = text.find("{")
        return text[:at] + "module {" * depth + text[at:] + "}" * depth
    lines = text.split("\n")
    places = [
        i
        for i, line in enumerate(lines)
        if re.match(r" *%\w+ = stablehlo\.\w+ [^{}()]*: tensor<[^<>]*>$", line)
    ]
    if not places:
        return text
    at = rng.choice(places)
    match = re.match(r" *(%\w+) = (.*: (tensor<[^<>]*>))$", lines[at])
    assert match
    name, rest, type_ = match.groups()
    body = f"%inner = {rest}"
    for level in range(min(depth, 30)):
        one, two = f"%t{level}", f"%f{level}"
        body = (
            f"%p{level} = stablehlo.constant dense<true> : tensor<i1>\n"
            f'{one if level + 1 < min(depth, 30) else name} = "stablehlo.if"'
            f"(%p{level}) ({{\n{body}\n"
            f"stablehlo.return {'%inner' if level == 0 else f'%t{level - 1}'}"
            f" : {type_}\n}}, {{\n{two} = {rest}\n"
            f"stablehlo.return {two} : {type_}\n}}) : (tensor<i1>) -> {type_}"
        )
    lines[at] = body
    return "\n".join(lines)


TEXT_CHANGES: list[Change] = [
    replace, replace, replace_everywhere, replace_everywhere, replace_alike,
    replace_alike, replace_alike, replace_alike, change_operand, change_lines,
    change_tokens, change_bytes, change_name, splice, annotate, annotate, nest,
]  # fmt: skip


def mutate_text(rng: random.Random, text: str, other: str) -> str:
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = rng.choice(TEXT_CHANGES)(rng, text, other) or " "
    return text


# What is in the place of a value of JSON: numbers first, so many.
NUMBERS_FIRST = 21
VALUES: list[Any] = [
    0, -1, 1, 2, 3, 0.5, 1e-320, 5e-324, 1e-7, 1e24, 1.1e24, 1e25, 1e308, -0.0,
    2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, True, None, "", "a",
    "cpu", "f32", "../../etc/passwd", "\x00", "é", [], {}, [[]], [0], [-1],
    {"a": 1}, "i4", "complex<f32>",
]  # fmt: skip


def places_of(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside of a value."""
    found: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        inner = stack.pop()
        keys: Any = ()
        if isinstance(inner, dict):
            keys = list(inner)
        elif isinstance(inner, list):
            keys = range(len(inner))
        for key in keys:
            found.append((inner, key))
            stack.append(inner[key])
    return found


def mutate_json(rng: random.Random, text: str, other: str) -> str:
    """A field dropped, doubled, renamed, or with another value."""
    try:
        value = json.loads(text)
    except ValueError:
        return mutate_bytes(rng, text.encode()).decode("utf-8", "replace")
    if rng.random() < 0.15:
        changed = rng.choice([change_tokens, change_bytes])(rng, text, other)
        return changed or " "
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = places_of(value)
        if not places:
            break
        inner, key = rng.choice(places)
        kind = rng.randrange(8)
        numbers = [
            (inner, key)
            for inner, key in places
            if isinstance(inner[key], (int, float))
        ]
        if numbers and rng.random() < 0.5:
            inner, key = rng.choice(numbers)
            kind = rng.choice([3, 4, 4, 5])
            if kind == 5:
                inner[key] = rng.choice(VALUES[:NUMBERS_FIRST])
                continue
        if kind == 0:
            del inner[key]
        elif kind == 1 and isinstance(inner, list):
            inner.insert(key, copy.deepcopy(inner[key]))
        elif kind == 1:
            name = rng.choice(["a", "count", "op", str(key) + "s"])
            inner[name] = copy.deepcopy(inner[key])
        elif kind == 2:
            from_, at = rng.choice(places)
            inner[key] = copy.deepcopy(from_[at])
        elif kind == 3 and isinstance(inner[key], int):
            inner[key] += rng.choice([-1, 1])
        elif kind == 4 and isinstance(inner[key], (int, float)):
            inner[key] *= rng.choice([0, -1, 2, 1000, 1e-30, 1e30])
        else:
            inner[key] = copy.deepcopy(rng.choice(VALUES))
    result = json.dumps(value)
    if rng.random() < 0.03:
        result = result.replace(": ", ": " + "[" * 5000, 1)
    return result


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + data[at + rng.randrange(1, 20) :]
        elif kind == 2:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 3:
            data = data[:at] + rng.choice([b"\0" * 8, b"\xff" * 8]) + data[at:]
        else:
            data = data[:at] + data[at : at + 30] + data[at:]
    return data


# Of f32, f64, bf16 and integers: NaN, infinity, the smallest, the largest.
WORDS = [
    bytes.fromhex(word)
    for word in (
        "0000c07f 0000807f 000080ff 01000000 ffff7f7f 00000080 ffffffff "
        "000000000000f87f 000000000000f07f 0100000000000000 ffffffffffffff7f"
    ).split()
]


def _same_sizes(rng: random.Random, data: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header, body = data[8 : 8 + length], bytearray(data[8 + length :])
    try:
        value = json.loads(header)
    except ValueError:
        return data
    kind = rng.randrange(4)
    if kind == 0 and isinstance(value, dict):
        names = list(value)
        rng.shuffle(names)
        value = {name: value[name] for name in names}
        if rng.random() < 0.5:
            value["__metadata__"] = {"a": rng.choice(["", "b", "\x1b[31m"])}
        header = json.dumps(value).encode()
    elif kind == 1:
        header += b" " * rng.randrange(1, 20)
    else:
        for _ in range(rng.choice([1, 1, 3])):
            word = rng.choice(WORDS)
            places = range(0, max(1, len(body) - len(word) + 1), len(word))
            at = rng.choice(places)
            body[at : at + len(word)] = word[: len(body) - at]
    return len(header).to_bytes(8, "little") + header + bytes(body)


def mutate_safetensors(rng: random.Random, data: bytes) -> bytes:
    """The header's JSON, its length, or any bytes; or the same tensors told
    otherwise, or others of the same sizes."""
    length = int.from_bytes(data[:8], "little")
    header, body = data[8 : 8 + length], data[8 + length :]
    kind = rng.randrange(6)
    if kind == 0:
        return mutate_bytes(rng, data)
    if kind == 1:
        length = rng.choice([0, 1, length - 1, length + 1, 2**31, 2**63, 2**64])
        return (length % 2**64).to_bytes(8, "little") + header + body
    if kind >= 4:
        return _same_sizes(rng, data)
    text = mutate_json(rng, header.decode(), "{}").encode("utf-8", "replace")
    return len(text).to_bytes(8, "little") + text + body
