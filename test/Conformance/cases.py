"""Reads conformance cases: a StableHLO text, its inputs and what it gives.

Two kinds of text are understood.

- Functions that check themselves, as those of StableHLO's interpreter:
  `check.expect_eq`, `check.expect_almost_eq`, `check.expect_close`, each also
  with `_const`, and custom calls of the same names. The check is taken out,
  and both of its operands become results.
- A function @main with tensors beside it: `arg0`, `arg1`, ... and `result0`,
  ... in safetensors or npz files, or in `.npy` files of these names. They are
  looked for in files whose names begin with the text's, then in all files of
  its folder if that holds one text alone.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

import numpy as np
from safetensors import deserialize

from whale.dtypes import numpy_dtype

# Operations that only carry values to the one that a case is about, the most
# likely subject last.
PLUMBING = (
    "constant", "return", "custom_call", "tuple", "get_tuple_element",
    "reshape", "broadcast_in_dim", "transpose", "iota", "convert", "slice",
    "add", "multiply", "maximum", "minimum", "compare", "select", "and", "or",
    "subtract", "divide", "concatenate",
)  # fmt: skip

_SAFETENSORS = {
    "BOOL": "i1", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64",
    "U8": "ui8", "U16": "ui16", "U32": "ui32", "U64": "ui64", "F16": "f16",
    "BF16": "bf16", "F32": "f32", "F64": "f64", "C64": "complex<f32>",
    "C128": "complex<f64>", "F8_E4M3": "f8E4M3FN", "F8_E5M2": "f8E5M2",
    "I4": "i4", "U4": "ui4",
}  # fmt: skip


class BadCase(Exception):
    """A case that cannot be read, with the reason."""


@dataclasses.dataclass
class Tensor:
    """The element type and shape of a tensor type."""

    dtype: str
    shape: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> Tensor:
        """`tensor<2x3xf32>` and the like, encodings ignored."""
        match = re.fullmatch(r"\s*tensor<((?:\d+x)*)(.*?)>\s*", text, re.S)
        if not match:
            raise BadCase(f"no tensor of static shape: {text.strip()}")
        shape = tuple(int(extent) for extent in match[1].split("x")[:-1])
        return Tensor(match[2].split(",")[0].strip(), shape)


@dataclasses.dataclass
class Check:
    """Two results that must agree; exactly, if `exact`."""

    actual: int
    expected: int | np.ndarray
    exact: bool = False


@dataclasses.dataclass
class Case:
    """One function to run."""

    name: str
    operation: str
    text: str
    arguments: list[np.ndarray]
    results: list[Tensor]
    checks: list[Check]

    @property
    def dtypes(self) -> set[str]:
        """The element types that occur in its results and arguments."""
        return set(re.findall(r"tensor<(?:\d+x)*([^>?*]+?>?)>", self.text))


def split_commas(text: str) -> list[str]:
    """Splits at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "<([{":
            depth += 1
        elif letter in ")]}" or (letter == ">" and text[position - 1] != "-"):
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    rest = text[start:]
    return parts + [rest] if rest.strip() else parts


@dataclasses.dataclass
class Function:
    """A function of a text, from `func.func` to its closing brace."""

    name: str
    head: str
    body: str
    start: int
    end: int


def skip(text: str, position: int) -> int:
    """The position behind the bracket that opens at `position`."""
    pairs = {"(": ")", "{": "}"}
    opening, closing = text[position], pairs[text[position]]
    depth = 0
    while position < len(text):
        letter = text[position]
        if letter == '"':
            position = text.index('"', position + 1)
        elif letter == opening:
            depth += 1
        elif letter == closing:
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    raise BadCase(f"a '{opening}' is not closed")


def find_functions(text: str) -> list[Function]:
    """The functions of a module in the order of the text."""
    functions = []
    for match in re.finditer(
        r"func\.func\s+(?:public\s+|private\s+)?@(\"[^\"]*\"|[\w.$-]+)\s*\(",
        text,
    ):
        position = skip(text, match.end() - 1)
        # Up to the body: results and attributes, which may have braces.
        while text[position] != "{" or re.search(
            r"attributes\s*$", text[match.start() : position]
        ):
            inside = text[position] in "({"
            position = skip(text, position) if inside else position + 1
        end = skip(text, position)
        functions.append(
            Function(
                match[1].strip('"'),
                text[match.start() : position],
                text[position + 1 : end - 1],
                match.start(),
                end,
            )
        )
    return functions


_CHECK = re.compile(
    r"^[ \t]*(?:(%\w+)\s*=\s*)?(?:stablehlo\.custom_call\s+@check\.(\w+)\s*"
    r"\(\s*([^)]*)\)|check\.(\w+)\s+(.*))",
    re.M,
)


def read_statement(text: str, start: int) -> str:
    """The lines from `start` on that belong together: a literal may have
    several."""
    end = start
    while True:
        end = text.find("\n", end + 1)
        end = len(text) if end < 0 else end
        part = text[start:end]
        level = sum(part.count(letter) for letter in "[({")
        level -= sum(part.count(letter) for letter in "])}")
        if end == len(text) or (level == 0 and " : " in part):
            return part


def parse_check(
    match: re.Match, statement: str, number: int
) -> tuple[bool, str, list[tuple[str, str]]]:
    """(whether it is exact, what comes in its place, [(value, type), ...])."""
    name = match[2] or match[4]
    exact = name in ("expect_eq", "expect_eq_const", "eq")
    if match[2]:
        types = re.search(r":\s*\((.*)\)\s*->", statement, re.S)
        if not types:
            raise BadCase(f"cannot read the check: {statement.strip()}")
        operands = split_commas(match[3])
        return exact, "", list(zip(operands, split_commas(types[1])))
    rest = statement[match.start(5) - match.start() :]
    rest = re.sub(r"\s*//.*", "", rest)
    if name.endswith("_const"):
        found = re.match(
            r"\s*(%[\w#]+)\s*,\s*(dense<.*>)\s*:\s*(tensor<[^,]*>)", rest, re.S
        )
        if not found:
            raise BadCase(f"cannot read the check: {statement.strip()}")
        constant, type_ = f"%whale_expected_{number}", found[3]
        line = f"    {constant} = stablehlo.constant {found[2]} : {type_}"
        return exact, line, [(found[1], type_), (constant, type_)]
    values, listed = rest.rsplit(" : ", 1)
    operands = [part for part in split_commas(values) if "=" not in part]
    parts = split_commas(listed.strip().strip("()"))
    parts = parts * 2 if len(parts) == 1 else parts
    return exact, "", list(zip(operands[:2], parts))


def checked_case(
    text: str, function: Function, functions: list[Function], name: str
) -> Case:
    """A function with checks, rewritten to return what they compare."""
    returned: list[tuple[str, str]] = []
    checks: list[Check] = []
    body, position = "", 0
    for match in _CHECK.finditer(function.body):
        if match.start() < position:
            continue
        statement = read_statement(function.body, match.start())
        exact, lines, pairs = parse_check(match, statement, len(checks))
        if len(pairs) < 2:
            raise BadCase("a check without two operands")
        base = len(returned)
        returned.extend(pairs[:2])
        checks.append(Check(base, base + 1, exact))
        body += function.body[position : match.start()] + lines
        position = match.start() + len(statement)
    body += function.body[position:]
    body = re.sub(
        r"^[ \t]*(func\.)?return\b[^\n]*$(?!.*^[ \t]*(func\.)?return\b)",
        "",
        body,
        flags=re.M | re.S,
    ).rstrip()
    values = ", ".join(value.strip() for value, _ in returned)
    types = [type_.strip() for _, type_ in returned]
    main = (
        f"func.func public @main() -> ({', '.join(types)}) {{{body}\n"
        f"    func.return {values} : {', '.join(types)}\n  }}"
    )
    # Of the others only those that do not check stay.
    pieces, position = [], 0
    for other in functions:
        pieces.append(text[position : other.start])
        if other is function:
            pieces.append(main)
        elif not _CHECK.search(other.body) and other.name != "main":
            pieces.append(text[other.start : other.end])
        position = other.end
    pieces.append(text[position:])
    return Case(
        name,
        find_operation(function.body),
        "".join(pieces),
        [],
        [Tensor.parse(type_) for type_ in types],
        checks,
    )


def find_operation(body: str) -> str:
    """The operation that a text is about."""
    found = re.findall(r"(?:stablehlo|chlo)\.([a-z_0-9]+)\b", body)
    found = [name for name in found if name not in ("precision", "transpose<")]
    targets = re.findall(r"custom_call\s*@(?!check)([\w.]+)", body)
    if targets:
        return f"custom_call @{targets[0]}"
    special = [name for name in found if name not in PLUMBING]
    if special:
        return special[0]
    found = [name for name in found if name in PLUMBING]
    return max(found, key=PLUMBING.index, default="none")


def load_tensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors, npz or npy file."""
    if path.suffix == ".npy":
        return {path.stem.split(".")[-1]: np.load(path)}
    if path.suffix == ".npz":
        return dict(np.load(path))
    tensors = {}
    for name, entry in deserialize(path.read_bytes()):
        dtype = numpy_dtype(_SAFETENSORS[entry["dtype"]])
        data = np.frombuffer(bytes(entry["data"]), dtype)
        tensors[name] = data.reshape(entry["shape"])
    return tensors


def tensors_beside(path: pathlib.Path) -> dict[str, np.ndarray]:
    """What the files that belong to a text hold, by argN and resultN."""
    suffixes = (".safetensors", ".npz", ".npy")
    files = [
        file for file in sorted(path.parent.iterdir())
        if file.suffix in suffixes
    ]  # fmt: skip
    stem = path.name.removesuffix(".mlir")
    own = [file for file in files if file.name.startswith(stem + ".")]
    if not own and len(list(path.parent.glob("*.mlir"))) == 1:
        own = files
    tensors = {}
    for file in own:
        for name, value in load_tensors(file).items():
            match = re.fullmatch(
                r"(arg|input|result|output|expected)_?(\d+)", name
            )
            if match:
                kind = "arg" if match[1] in ("arg", "input") else "result"
                tensors[f"{kind}{match[2]}"] = value
    return tensors


def view_as(value: np.ndarray, type_: Tensor) -> np.ndarray:
    """A tensor in the type of the text: files hold what has no type of its
    own as integers or floats of the same or a larger width."""
    wanted = numpy_dtype(type_.dtype)
    if wanted.kind == "c" and value.shape == (*type_.shape, 2):
        # The real and the imaginary part, as safetensors hold complex<f64>.
        value = value.reshape(-1).view(wanted)
    if value.dtype != wanted:
        # NumPy stores types that are not its own as bytes without one.
        bits = value.dtype.kind == "V" or type_.dtype[0] in "fb"
        same = value.dtype.itemsize == wanted.itemsize
        if bits and same and value.dtype.kind in "uiV":
            value = value.view(wanted)
        else:
            value = value.astype(wanted)
    return np.ascontiguousarray(value).reshape(type_.shape)


def signature(function: Function) -> tuple[list[Tensor], list[Tensor]]:
    """The types of a function's arguments and results."""
    start = function.head.index("(")
    end = skip(function.head, start)
    arguments = [
        re.sub(r"^\s*%[\w.]+\s*:\s*", "", part)
        for part in split_commas(function.head[start + 1 : end - 1])
    ]
    rest = function.head[end:].strip().removesuffix("{").strip()
    rest = re.sub(r"attributes\s*\{.*", "", rest, flags=re.S).strip()
    results: list[str] = []
    if rest.startswith("->"):
        rest = rest[2:].strip()
        inside = rest[1 : skip(rest, 0) - 1] if rest[0] == "(" else rest
        results = split_commas(inside)
    clean = [
        [re.sub(r"\s*(\{|loc\().*", "", part, flags=re.S) for part in parts]
        for parts in (arguments, results)
    ]
    types = [[Tensor.parse(part) for part in parts] for parts in clean]
    return types[0], types[1]


def tensor_case(path: pathlib.Path, text: str, main: Function) -> Case:
    """@main with its tensors in files."""
    arguments, results = signature(main)
    tensors = tensors_beside(path)
    values = []
    for number, type_ in enumerate(arguments):
        if f"arg{number}" not in tensors:
            raise BadCase(f"no value for argument {number}")
        values.append(view_as(tensors[f"arg{number}"], type_))
    checks = [
        Check(number, view_as(tensors[f"result{number}"], type_))
        for number, type_ in enumerate(results)
        if f"result{number}" in tensors
    ]
    if not checks:
        raise BadCase("nothing says what it should give")
    name = path.name.removesuffix(".mlir")
    return Case(name, find_operation(main.body), text, values, results, checks)


def read_cases(path: pathlib.Path) -> list[Case]:
    """All cases of a file."""
    stem = path.name.removesuffix(".mlir")
    cases = []
    for text in re.split(r"^// -----.*$", path.read_text(), flags=re.M):
        functions = find_functions(text)
        checked = [f for f in functions if _CHECK.search(f.body)]
        for function in checked:
            only = len(checked) == 1 and function.name == "main"
            name = stem if only else f"{stem}:{function.name}"
            cases.append(checked_case(text, function, functions, name))
        if checked:
            continue
        for function in functions:
            if function.name == "main":
                cases.append(tensor_case(path, text, function))
    return cases
