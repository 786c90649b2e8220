#!/usr/bin/env python
"""Runs StableHLO texts through XLA and through Whale, and compares results.

    compare.py FILE.mlir|FOLDER... [--cluster N|C.json] [--strategy ...]
               [--batch-args 1,2|auto] [--steps N] [--repeat N] [--seed S]

XLA runs the text as it is on one CPU; Whale compiles it for the cluster
and runs it on that many ranks. Each result is compared relative to its largest
magnitude. With --steps, results feed the arguments of the same position and
type (or what --feedback says), and f32 may differ ten times as much. With
--repeat, the program runs that often and must give the same bits; so must a
program of several ranks on late devices (docs/runtime.md), which must find
transfers to move if there is anything to compute beside them. Exit status 1 if
anything differs or fails; a folder gives one line a file and a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import late_devices
import ml_dtypes
import numpy as np
import relaunch
import tensor_files
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax, lapack
from jaxlib.mlir import ir
from late_devices import Failure, check_bits, read_manifest
from relaunch import call, tool
from tensor_files import gpu_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]

# dtype of MLIR -> (numpy, safetensors, tolerance relative to the magnitude)
DTYPES = {
    "f64": (np.float64, "F64", 1e-9),
    "f32": (np.float32, "F32", 1e-4),
    "bf16": (ml_dtypes.bfloat16, "BF16", 2e-2),
    "f16": (np.float16, "F16", 2e-2),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, "F8_E4M3", 0.13),
    "f8E5M2": (ml_dtypes.float8_e5m2, "F8_E5M2", 0.26),
    "i64": (np.int64, "I64", 0),
    "i32": (np.int32, "I32", 0),
    "i16": (np.int16, "I16", 0),
    "i8": (np.int8, "I8", 0),
    "ui64": (np.uint64, "U64", 0),
    "ui32": (np.uint32, "U32", 0),
    "ui16": (np.uint16, "U16", 0),
    "ui8": (np.uint8, "U8", 0),
    "i1": (np.bool_, "BOOL", 0),
    "complex<f32>": (np.complex64, "C64", 1e-4),
}
BY_SAFETENSORS = {entry[1]: entry[0] for entry in DTYPES.values()}


def read_safetensors(path):
    """Reads a file into {name: array}."""
    return {
        name: np.frombuffer(data, BY_SAFETENSORS[dtype]).reshape(shape)
        for name, (dtype, shape, data) in gpu_cases.read(
            pathlib.Path(path)
        ).items()
    }


class Text:
    """A StableHLO text with the signature of its @main."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.context = jax_mlir.make_ir_context()
        with self.context:
            self.module = ir.Module.parse(self.path.read_text())
        self.name = self.path.name.removesuffix(".mlir")
        main = self._main(self.module)
        self.arguments = [self._type(t) for t in main.type.inputs]
        self.results = [self._type(t) for t in main.type.results]
        self.labels = self._labels()
        half = r"x(bf16|f16|f8)|<(bf16|f16)>"
        self.half = bool(re.search(half, str(self.module)))

    @staticmethod
    def _main(module):
        for op in module.body.operations:
            op = op.operation.opview
            if op.operation.name == "func.func" and op.sym_name.value == "main":
                return op
        raise Failure("there is no function @main")

    @staticmethod
    def _type(type_):
        tensor = ir.RankedTensorType(type_)
        return str(tensor.element_type), tuple(tensor.shape)

    def _labels(self):
        """Names of the arguments, from the locations of this text or of the
        one beside it that has them."""
        labels = [""] * len(self.arguments)
        beside = self.path.with_name(self.name + ".loc.mlir")
        for path in (self.path, beside):
            if not path.exists():
                continue
            for line in path.read_text().splitlines():
                if "func.func" not in line or "@main(" not in line:
                    continue
                for index, name in re.findall(
                    r'%arg(\d+): [^%]*?loc\("((?:[^"\\]|\\.)*)"\)', line
                ):
                    labels[int(index)] = labels[int(index)] or name
            for index, name in re.findall(
                r'#loc(\d+) = loc\("((?:[^"\\]|\\.)*)"\)', path.read_text()
            ):
                if int(index) <= len(labels) and int(index) > 0:
                    labels[int(index) - 1] = labels[int(index) - 1] or name
        return labels


def make_input(rng, dtype, shape, label):
    """A value of a sensible range, judged by the argument's name."""
    kind = DTYPES[dtype][0] if dtype in DTYPES else None
    if kind is None:
        raise Failure(f"no inputs of type {dtype}")
    name = label.lower()
    if dtype == "i1":
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if dtype.startswith("complex"):
        value = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        return np.asarray(value).astype(kind)
    if dtype.startswith(("i", "ui")):
        if re.search(r"count|step", name) or (not shape and dtype == "i32"):
            return np.full(shape, 3, kind)
        if dtype in ("ui32", "ui64") and (len(shape) and shape[-1] in (2, 4)):
            return np.asarray(rng.integers(0, 2**32, shape)).astype(kind)
        low = -4 if dtype == "i8" else 0
        return np.asarray(rng.integers(low, 4, shape)).astype(kind)
    value = rng.normal(size=shape) * 0.1
    if re.search(r"\bnu\b|\bv\b|\bv_row|\bv_col|\bvar\b|square|second", name):
        value = np.abs(value) + (1.0 if "var" in name else 0.01)
    elif re.search(r"scale|\bg\b|gamma", name):
        value = value + 1.0
    return np.asarray(value).astype(kind)


def feedback_of(text, option):
    """{argument: result} of --feedback, else by equal position and type."""
    if option:
        pairs = [pair.split(":") for pair in option.split(",")]
        return {int(a[3:]): int(r[6:]) for a, r in pairs}
    pairs = {}
    for i, (argument, result) in enumerate(zip(text.arguments, text.results)):
        if argument != result:
            break
        pairs[i] = i
    return pairs


def batch_arguments(text, option):
    """What --batch-args says; `auto` judges by the arguments' names."""
    if option != "auto":
        return option
    names = r"(batch|x|y|tokens|ids|images?|labels?|targets?|inputs?|data)\b"
    return ",".join(
        str(i)
        for i, (label, (_, shape)) in enumerate(
            zip(text.labels, text.arguments)
        )
        if shape and re.match(names, label)
    )


def run_xla(text, inputs, steps, feedback):
    """The results of the last step on one CPU."""
    device = jax.devices("cpu")[0]
    lapack._lapack.initialize()
    options = _jax.CompileOptions()
    values = list(inputs)
    with text.context:
        module = text.module
        if not values:
            # jaxlib crashes where there is nothing to pass.
            module = ir.Module.parse(
                str(module).replace("@main()", "@main(%unused: tensor<f32>)")
            )
            values = [np.float32(0)]
        program = device.client.compile_and_load(
            module, _jax.DeviceList((device,)), options
        )
    for _ in range(steps):
        # Donated buffers are gone after a step: every step gets its own.
        arrays = [jax.device_put(np.array(value), device) for value in values]
        results = [np.asarray(array) for array in program.execute(arrays)]
        for argument, result in feedback.items():
            values[argument] = results[result]
    return results


def compile_whale(text, args, feedback, folder):
    """The program of the text for the cluster."""
    program = f"{folder}/{text.name}.whale"
    command = [tool("whale-compile"), str(text.path), "-o", program]
    command += [f"--cluster={args.cluster}"] + args.compile_arg
    if args.strategy:
        command.append(f"--strategy={args.strategy}")
    batch = batch_arguments(text, args.batch_args)
    if batch:
        command.append(f"--batch-args={batch}")
    if feedback:
        pairs = [f"arg{a}:result{r}" for a, r in feedback.items()]
        command.append("--feedback=" + ",".join(pairs))
    call(command, "whale-compile", args.timeout)
    # What is read of it, written again, is the same.
    test = [tool("whale-program-test"), program]
    call(test, "whale-program-test", args.timeout)
    return program


def run_whale(program, text, inputs, args, folder, stats=None):
    """The results of the last step on the ranks of the cluster. `stats` is a
    path for what a step cost."""
    names = [f"arg{i}" for i in range(len(inputs))]
    tensor_files.write(
        pathlib.Path(folder, "in.safetensors"), dict(zip(names, inputs))
    )
    results = None
    for _ in range(args.repeat):
        again = run_once(program, text, args, folder, stats)
        if results is not None:
            check_bits(results, again, "in another run")
        results = again
    return results


def run_once(program, text, args, folder, stats=None, late=None):
    """The results for inputs in a folder; `late` is a seed of late devices."""
    command = [tool("whale-run"), program]
    command += [f"--inputs={folder}/in.safetensors"]
    command += [f"--outputs={folder}/out.safetensors"]
    if args.steps > 1:
        command.append(f"--steps={args.steps}")
    if stats:
        command.append(f"--stats={stats}")
    environment = {} if late is None else {"WHALE_TEST_LATE": str(late)}
    call(command, "whale-run", args.timeout, environment)
    tensors = read_safetensors(f"{folder}/out.safetensors")
    return [tensors[f"result{i}"] for i in range(len(text.results))]


def check_late(program, text, args, folder, results):
    """Runs the program of several ranks on late devices, with the inputs of
    `run_whale`: the number of transfers that they moved in a step."""

    def run(seed):
        stats = f"{folder}/late.json"
        again = run_once(program, text, args, folder, stats, seed)
        with open(stats) as file:
            return again, json.load(file)

    return late_devices.check(read_manifest(program), results, run)


def difference(expected, actual, dtype, half, steps=1):
    """How far apart two tensors are, in tolerances: at most 1 is equal. What a
    program with half precision computes in f32 is no more precise."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float("inf")
    if expected.size == 0:
        return 0.0
    tolerance = DTYPES[dtype][2]
    if steps > 1 and dtype == "f32":
        tolerance *= 10
    if half and tolerance:
        tolerance = max(tolerance, DTYPES["bf16"][2])
    if tolerance == 0:
        return 0.0 if np.array_equal(expected, actual) else float("inf")
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    a, b = expected.astype(wide), actual.astype(wide)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return float("inf")
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    magnitude = max(np.abs(a[finite]).max(), 1e-6)
    return float(np.abs(a[finite] - b[finite]).max() / magnitude / tolerance)


def reference(text, args, feedback):
    """Inputs and XLA's results, kept in --cache from one run to the next."""
    cache = None
    if args.cache:
        name = f"{text.name}-{args.seed}-{args.steps}.safetensors"
        cache = pathlib.Path(args.cache) / name
        if cache.exists():
            tensors = read_safetensors(cache)
            inputs = [tensors[f"arg{i}"] for i in range(len(text.arguments))]
            results = [tensors[f"result{i}"] for i in range(len(text.results))]
            return inputs, results
    rng = np.random.default_rng(args.seed)
    inputs = [
        make_input(rng, dtype, shape, label)
        for (dtype, shape), label in zip(text.arguments, text.labels)
    ]
    if args.inputs:
        given = read_safetensors(args.inputs)
        inputs = [given.get(f"arg{i}", value) for i, value in enumerate(inputs)]
    try:
        results = run_xla(text, inputs, args.steps, feedback)
    except Exception as error:
        line = str(error).splitlines()[0]
        raise Failure(f"XLA: {line}") from None
    if cache:
        cache.parent.mkdir(parents=True, exist_ok=True)
        tensors = {f"arg{i}": value for i, value in enumerate(inputs)}
        tensors.update({f"result{i}": v for i, v in enumerate(results)})
        tensor_files.write(cache, tensors)
    return inputs, results


def compare(path, args):
    """Compares one text; returns (worst difference, report, transfers moved on
    late devices, (seconds of compiling, of running))."""
    try:
        text = Text(path)
    except Exception as error:
        raise Failure(f"XLA: {str(error).splitlines()[0]}") from None
    for dtype, _ in text.arguments + text.results:
        if dtype not in DTYPES:
            raise Failure(f"XLA: safetensors cannot hold {dtype}")
    feedback = feedback_of(text, args.feedback) if args.steps > 1 else {}
    inputs, expected = reference(text, args, feedback)
    with tempfile.TemporaryDirectory() as folder:
        times = [time.time()]
        program = compile_whale(text, args, feedback, folder)
        times.append(time.time())
        actual = run_whale(program, text, inputs, args, folder)
        times.append(time.time())
        moved = check_late(program, text, args, folder, actual)
        relaunch.check(
            *(program, f"{folder}/in.safetensors", actual, text.name),
            *(args.steps, args.timeout),
        )
    worst, report = judge(text, expected, actual, args.steps)
    return worst, report, moved, (times[1] - times[0], times[2] - times[1])


def judge(text, expected, actual, steps):
    """The worst difference in tolerances, and a line for each above 1."""
    worst, report = 0.0, []
    for i, (a, b) in enumerate(zip(expected, actual)):
        dtype = text.results[i][0]
        apart = difference(a, b, dtype, text.half, steps)
        worst = max(worst, apart)
        if apart > 1:
            report.append(f"result{i} ({dtype}{list(a.shape)}): {apart:.3g}")
    return worst, report


def compare_each(paths, texts):
    """One process a text, because XLA crashes on some; returns the status."""
    options = [a for a in sys.argv[1:] if pathlib.Path(a) not in texts]
    counts = {}
    for path in paths:
        command = [sys.executable, __file__, str(path), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        line = done.stdout.strip() or f"CRASHED  {path.stem}"
        print(line, flush=True)
        state = line.split()[0]
        counts[state] = counts.get(state, 0) + 1
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 0 if set(counts) <= {"ok", "skipped"} else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", type=pathlib.Path)
    parser.add_argument("--cluster", default="1")
    parser.add_argument("--strategy")
    parser.add_argument("--batch-args", help="3,4, or auto")
    parser.add_argument("--feedback")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", help="safetensors with some arguments")
    parser.add_argument("--cache", help="a folder for XLA's results")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--filter", default="", help="part of the file names")
    parser.add_argument("--compile-arg", action="append", default=[])
    args = parser.parse_args()

    paths = []
    for path in args.texts:
        if path.is_dir():
            paths += sorted(
                p for p in path.glob("*.mlir") if ".loc." not in p.name
            )
        else:
            paths.append(path)
    paths = [path for path in paths if args.filter in path.name]
    if len(paths) > 1:
        sys.exit(compare_each(paths, args.texts))
    if not paths:
        parser.error("there is no such text")
    try:
        worst, report, moved, seconds = compare(paths[0], args)
        state = "ok" if worst <= 1 else "DIFFERS"
        note = "; ".join(report[:4]) or f"{worst:.2g} of the tolerance"
        note += f", {moved} transfers moved"
        note += " (compile {:.1f} s, run {:.1f} s)".format(*seconds)
    except Failure as failure:
        note = str(failure)
        state = "skipped" if note.startswith("XLA") else "FAILED"
    print(f"{state:8} {paths[0].stem:40} {note}", flush=True)
    sys.exit(0 if state == "ok" else 1)


if __name__ == "__main__":
    main()
