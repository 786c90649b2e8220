"""Inputs and results of programs that are checked on a GPU.

In: what a case is, tensors in safetensors files. Out: the inputs of a case, and
how far results are from those of the processor. Needs Python alone: it is used
where a bundle is made and where it is checked. Both sides make the inputs of a
program from its name, so that none travel. Comparing takes a second for some
million numbers.
"""

from __future__ import annotations

import array
import json
import math
import pathlib
import random
import struct
from collections.abc import Iterable
from typing import Any

# Of a tensor of each element type: bytes, and which bits are random and which
# are set. Floats are +-2^e m with e from -7 to -4; integers are from 0 to 3, so
# that they are places in anything.
_BITS = {
    "F64": (8, 0x803FFFFFFFFFFFFF, 0x3F80000000000000),
    "F32": (4, 0x81FFFFFF, 0x3C000000),
    "F16": (2, 0x8FFF, 0x2000),
    "BF16": (2, 0x81FF, 0x3C00),
    "BOOL": (1, 1, 0),
    **{f"{sign}{8 * size}": (size, 3, 0)
       for sign in "IU" for size in (1, 2, 4, 8)},
}  # fmt: skip
# How far a result may be from the processor's, of the tensor's magnitude.
TOLERANCES = {"F64": 1e-9, "F32": 1e-4, "F16": 2e-2, "BF16": 2e-2}
# Larger tensors repeat so many numbers, as making them takes time. It is prime,
# so that no two rows are the same.
_BLOCK = 65521

Tensors = dict[str, tuple[str, list[int], bytes]]


def random_elements(
    dtype: str, count: int, seed: str, is_positive: bool = False
) -> bytes:
    """The same elements on all machines.

    Args:
        dtype: as safetensors has it.
        is_positive: whether floats have no sign.
    """
    size, mask, base = _BITS[dtype]
    if is_positive:
        mask &= (1 << (8 * size - 1)) - 1
    here = min(count, _BLOCK)
    masks, bases = (
        int.from_bytes(bits.to_bytes(size, "little") * here, "little")
        for bits in (mask, base)
    )
    drawn = random.Random(seed).randbytes(size * here)
    numbers = int.from_bytes(drawn, "little") & masks | bases
    block = numbers.to_bytes(size * here, "little")
    return (block * -(-count // _BLOCK))[: size * count]


def write_inputs(path: pathlib.Path, case: dict[str, Any]) -> None:
    """Makes the file of inputs of a case: of each, its dtype and shape. Those
    of `state` are positive, as an optimizer's squares are."""
    state = range(*case.get("state", (0, 0)))
    tensors: Tensors = {}
    for number, (dtype, shape) in enumerate(case["inputs"]):
        seed = f"{case['name']} {number}"
        count, is_positive = math.prod(shape), number in state
        data = random_elements(dtype, count, seed, is_positive)
        tensors[f"arg{number}"] = dtype, shape, data
    write(path, tensors)


def write(path: pathlib.Path, tensors: Tensors) -> None:
    """Writes a safetensors file."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        offsets = [at, at + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in tensors.values():
            file.write(data)


def read(path: pathlib.Path) -> Tensors:
    """Reads a safetensors file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    body = content[8 + length :]
    return {
        name: (
            entry["dtype"],
            entry["shape"],
            body[slice(*entry["data_offsets"])],
        )
        for name, entry in json.loads(content[8 : 8 + length]).items()
        if name != "__metadata__"
    }


def numbers(dtype: str, data: bytes) -> Any:
    """The floats of a tensor."""
    if dtype == "BF16":
        wide = bytearray(2 * len(data))
        wide[2::4], wide[3::4] = data[::2], data[1::2]
        dtype, data = "F32", bytes(wide)
    if dtype == "F16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    return array.array("f" if dtype == "F32" else "d", data)


def difference(name: str, expected: Tensors, found: Tensors) -> list[str]:
    """A line for each result that is not what the processor gives.

    Args:
        name: of the case. One that ends with bf16 computes in bf16, which the
            processor rounds to more often: its f32 results are as far apart.
    """
    least = TOLERANCES["BF16"] if name.endswith("bf16") else 0
    problems = []
    for result, (dtype, shape, right) in expected.items():
        if result not in found or found[result][:2] != (dtype, shape):
            said = found.get(result, ["missing"])[:2]
            problems.append(f"{result}: {said}")
            continue
        data = found[result][2]
        if dtype not in TOLERANCES:
            if data != right:
                problems.append(f"{result} ({dtype}{shape}): other elements")
            continue
        pairs = list(zip(numbers(dtype, right), numbers(dtype, data)))
        finite = [(a, b) for a, b in pairs if math.isfinite(a)]
        rest = [(a, b) for a, b in pairs if not math.isfinite(a)]
        most = max((abs(a) for a, _ in finite), default=0.0)
        apart = max((abs(a - b) for a, b in finite), default=0.0)
        wrong = any(not math.isfinite(b) for _, b in finite)
        wrong |= any(a != b and not (a != a and b != b) for a, b in rest)
        if wrong or not apart <= max(TOLERANCES[dtype], least) * most:
            far = f"{apart / (most or 1):.2g} of its magnitude apart"
            problems.append(f"{result} ({dtype}{shape}): {far}")
    return problems


# Of f32: the least number with all its bits, and the largest.
_TINY, _MOST = 2.0**-126, (2 - 2.0**-23) * 2.0**127


def ulps(
    actual: Iterable[float], wanted: Iterable[float], is_near_one: bool = False
) -> float:
    """The largest difference of f32 numbers, in units in the last place.

    What is subnormal is as good as zero. Infinite where only one is a number,
    or where they are not the same infinity; near the largest number one of
    them may be infinite.

    Args:
        is_near_one: whether the units of smaller numbers are those of 1.
    """
    largest = 0.0
    for a, b in zip(map(float, actual), map(float, wanted)):
        if a == b or a != a and b != b:
            continue
        if a != a or b != b:
            return math.inf
        if math.isinf(a):
            a = math.copysign(_MOST, a)
        elif math.isinf(b) and abs(a) < _MOST:
            return math.inf
        # Beyond the largest number is infinity, which the largest is next to.
        b = max(-_MOST, min(b, _MOST))
        if abs(a) == _MOST and abs(b) < 0.999 * _MOST:
            return math.inf
        size = max(abs(b), 1.0 if is_near_one else _TINY)
        unit = 2.0 ** (math.frexp(size)[1] - 24)
        largest = max(largest, abs(a - b) / unit)
    return largest
