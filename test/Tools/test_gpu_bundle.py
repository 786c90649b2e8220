"""Bundles for machines with a GPU: made, unpacked and checked on a test
machine, whose kernels are the processor's.

The report must call right what is right, and wrong what a test has damaged; it
must name what a machine lacks and go on. A failure means that a check on real
GPUs cannot be believed. Needs libdevice for bundles; one is made for most of
the tests, and compiles several programs.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile

import pytest
from jobs import has_libdevice

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import gpu_cases  # noqa: E402
import gpu_models  # noqa: E402
import gpu_speed  # noqa: E402
import gpu_trace  # noqa: E402
import make_measured  # noqa: E402

ON_TEST_MACHINE = [
    "--target=cuda-test",
    f"--whale-run={ROOT / 'build/bin/whale-run'}",
]


def check(
    bundle: pathlib.Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    report = bundle.parent / "report.txt"
    return subprocess.run(
        [sys.executable, bundle / "gpu-check", f"--report={report}", *options],
        capture_output=True,
        text=True,
        env=os.environ
        | {"WHALE_TEST_CUDA": "5"}
        | {"WHALE_TEST_CUDA_DIRECTORY": str(bundle.parent / "machine")}
        | variables,
    )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    cases = "--cases=accuracy,lstm,gpt-2,gpt-small-bf16"
    place = tmp_path_factory.mktemp("bundle")
    return make(place, cases, *ON_TEST_MACHINE)


def make(place: pathlib.Path, *options: str) -> pathlib.Path:
    if not has_libdevice():
        pytest.skip("there is no libdevice")
    archive = place / "bundle.tar.gz"
    script = ROOT / "scripts/gpu_bundle.py"
    subprocess.run([sys.executable, script, archive, *options], check=True)
    with tarfile.open(archive) as files:
        files.extractall(place, filter="data")
    return place / "whale-gpu"


@pytest.mark.long
def test_bundle_is_checked(bundle: pathlib.Path) -> None:
    checked = "--only=machine,conformance,accuracy,steps,ranks,nccl,python"
    result = check(bundle, checked)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"^right  .* 1\d tests\.$", result.stdout, re.M)
    # By whale-run, and by Python.
    assert result.stdout.count("right  lstm: ") == 2
    assert re.search("^add 0, atan2 [12], acos ", result.stdout, re.M)
    assert "emulator's results, but for 0: none" in result.stdout
    # Through the host, and by NCCL.
    assert result.stdout.count("right  gpt-2: ") == 2
    report = bundle.parent / "report.txt"
    assert "\n0 wrong, " in report.read_text()
    data = json.loads(report.with_suffix(".json").read_text())
    assert data["sections"] == dict.fromkeys(checked[7:].split(","), True)

    # The last number of what is expected is another, far away.
    for name in "lstm", "accuracy":
        with (bundle / "expected" / name).open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x7e")
    cases = "--cases=lstm,accuracy"
    result = check(bundle, "--only=accuracy,steps", cases)
    assert result.returncode == 1
    assert "WRONG  lstm: result" in result.stdout
    assert "WRONG  tanh: " in result.stdout
    assert "\n2 wrong, " in report.read_text()
    data = json.loads(report.with_suffix(".json").read_text())
    assert data["sections"] == {"accuracy": False, "steps": False}


def test_python_that_cannot_be_built(
    bundle: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(bundle, tmp_path / "whale-gpu")
    for extension in copy.glob("source/python/whale/_whale*.so"):
        extension.unlink()
    result = check(copy, "--only=python", CXX="no-compiler")
    assert result.returncode == 0
    assert "not run: there is no C++ compiler no-compiler" in result.stdout


def test_python_that_crashes(
    bundle: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(bundle, tmp_path / "whale-gpu")
    script = copy / "source/scripts/gpu_python.py"
    debugger = tmp_path / "bin/gdb"
    debugger.parent.mkdir()
    debugger.write_text('#!/bin/sh\necho "#0  f ()"; echo "$@"\n')
    debugger.chmod(0o755)
    path = f"{debugger.parent}:{os.environ['PATH']}"
    for line, said in (
        (
            "import ctypes; ctypes.string_at(1)",
            r"SIGSEGV\nFatal Python error: Segmentation fault\n",
        ),
        ("raise SystemExit(7)", r"exit status 7\n"),
        ("1 / 0", r"exit status 1\nTraceback (.*\n)*ZeroDivisionError"),
    ):
        text = "import warnings; warnings.warn('Whale was tested with jax')\n"
        script.write_text(text + line)
        result = check(copy, "--only=python", PATH=path)
        assert result.returncode == 1
        assert re.search(f"^WRONG  lstm: {said}", result.stdout, re.M), line
        # Where a signal ended it, natively, and what does not crash.
        stack = rf"^{debugger}:\n#0  f \(\)\n.* --args .*{script} .*\n"
        alone = "the extension alone: loads it\n"
        found = re.search(stack + alone, result.stdout, re.M)
        assert bool(found) == ("SIGSEGV" in said), result.stdout


@pytest.mark.long
def test_steps_are_timed_beside_jax(bundle: pathlib.Path) -> None:
    result = check(bundle, "--only=speed", "--rounds=1")
    assert result.returncode == 0, result.stdout + result.stderr
    # cuDNN has no CPU; the others go on.
    for line in (
        r"JAX [\d.]+ \(xla\) on cpu, ready after .* s; loss ([\d.]+), JAX's \1",
        r"no JAX \(cudnn\): \w+Error: .*",
        r"products of bf16 on both sides, 1.45e-06 TFLOP a step",
        r"Whale [\d.]+ ms a step \([\d.]+ to [\d.]+\), [\d.]+ GB",
        r"JAX \(default\) [\d.]+ ms a step \(.*\), [\d.]+ x Whale's",
        r"JAX \(xla\) [\d.]+ ms a step \(.*\), [\d.]+ x Whale's",
    ):
        assert re.search(f"^gpt-small-bf16: {line}$", result.stdout, re.M), line

    (bundle / "source/scripts/jax.py").write_text("raise ImportError('gone')")
    result = check(bundle, "--only=speed", "--rounds=1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("no JAX") == 3
    assert "gpt-small-bf16: Whale " in result.stdout
    assert "not compared with JAX: absolute times" in result.stdout


@pytest.mark.parametrize(
    "gpu, peak",
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("Another", None),
    ],
)
def test_peaks(gpu: str, peak: float | None) -> None:
    assert gpu_speed.peak(gpu) == peak


def test_useful_flops() -> None:
    """By hand, of a model that is small enough."""
    gpt = gpu_models.SMALL["gpt-small-bf16"]
    # One layer, two samples, 8 tokens, of whose 64 pairs 28 are hidden, each of
    # two products of 32 numbers; three times forward.
    hidden = 3 * 2 * 28 * 2 * 2 * 32
    written = gpu_models.flops(gpu_models.workload(gpt))
    assert gpu_models.useful_flops(gpt) == written - hidden
    experts = {
        **{"layers": 1, "width": 16, "heads": 2, "experts": 4, "hidden": 8},
        **{"vocabulary": 32, "batch": 1, "context": 8},
    }
    mixture = gpu_models.Timed("moe_transformer", experts, "f32")
    # Four experts of five places for 16 choices of tokens.
    places = 4 * 5
    moves = 2 * 2 * 8 * places * 16
    empty = 2 * 2 * (places - 16) * 16 * 8
    hidden = 28 * 2 * 2 * 16
    written = gpu_models.flops(gpu_models.workload(mixture))
    useful = written - 3 * (moves + empty + hidden)
    assert gpu_models.useful_flops(mixture) == useful


def test_tables_are_those_of_the_reports() -> None:
    """Figures that a page has are in a report's file, and the page is what
    scripts/make_measured.py writes."""
    reports = make_measured.read_reports()
    page = "a\n<!-- measured steps -->\nold\n<!-- end -->\nb\n"
    filled = make_measured.fill(page, reports)
    assert "old" not in filled and filled.startswith("a\n<!-- measured steps")
    assert "| 17.2 | 41.1 (2.39 x) | 27.7 (1.61 x) |" in filled
    assert make_measured.fill(filled, reports) == filled
    for name in make_measured.PAGES:
        text = (ROOT / name).read_text()
        assert "<!-- measured " in text
        assert make_measured.fill(text, reports) == text, (
            f"{name} is out of date: run scripts/make_measured.py"
        )


@pytest.mark.parametrize(
    "case, found, is_right",
    [
        ("lstm", (1, 2, 3), True),
        ("lstm", (1, 2, 3.0001), True),
        ("lstm", (1, 2, 3.001), False),
        ("gpt-bf16", (1, 2, 3.001), True),
        ("gpt-bf16", (1, 2, 3.1), False),
        ("lstm", (1, math.nan, math.nan), False),
        ("lstm", (1, 2, math.inf), False),
    ],
)
def test_differences(
    case: str, found: tuple[float, ...], is_right: bool
) -> None:
    def result(numbers: tuple[float, ...]) -> gpu_cases.Tensors:
        return {"result0": ("F32", [3], struct.pack("<3f", *numbers))}

    problems = gpu_cases.difference(case, result((1, 2, 3)), result(found))
    assert problems == [] if is_right else len(problems) == 1


@pytest.mark.parametrize(
    "actual, wanted, is_near_one, ulps",
    [
        (1, 1, False, 0),
        (1 + 2**-23, 1, False, 1),
        (1 - 2**-24, 1, False, 0.5),
        (1.5, 1.5 + 2**-24, False, 0.5),
        (2**-140, 0, False, 2**9),
        (2**-24, 0, True, 0.5),
        (math.nan, math.nan, False, 0),
        (math.nan, 1, False, math.inf),
        (1, math.inf, False, math.inf),
        (math.inf, 1, False, math.inf),
        (math.inf, (2 - 2**-23) * 2.0**127, False, 0),
        (math.inf, 1e300, False, 0),
    ],
)
def test_ulps(
    actual: float, wanted: float, is_near_one: bool, ulps: float
) -> None:
    assert gpu_cases.ulps([actual], [wanted], is_near_one) == ulps


def test_gaps_of_a_trace(tmp_path: pathlib.Path) -> None:
    """The last two of four steps count, and no copies behind them."""
    lines = ["1000\t9000\t15\t0\t0\t64\tcopy to GPU"]
    for step in range(4):
        begin = 10_000 + 100 * step
        lines += [
            f"{begin}\t{begin + 40}\t13\t32\t128\t4\tfirst",
            f"{begin + 30}\t{begin + 60}\t14\t32\t128\t4\tsecond",
            f"{begin + 60}\t{begin + 99}\t0\t0\t0\t0\thost cuGraphLaunch",
        ]
    lines.append("20000\t21000\t15\t0\t0\t64\tcopy to host")
    trace = tmp_path / "trace"
    trace.write_text("\n".join(lines))
    operations = gpu_trace.read(trace)
    last = gpu_trace.last_steps(operations, 4)
    assert [op.name for op in last] == ["first", "second"] * 2
    assert gpu_trace.busy_time(last) == 120
    table = gpu_trace.summary(operations, 4)
    assert "gaps 25.0%; 2.0 operations" in table
    assert "host" not in table
    assert gpu_trace.summary([], 4) == "no kernels were run"


@pytest.mark.long
def test_runtime_without_host_libraries(tmp_path: pathlib.Path) -> None:
    build = tmp_path / "build"
    for command in (
        ["cmake", "--preset=gpu", "-B", build],
        ["ninja", "-C", build, "--quiet"],
    ):
        subprocess.run(list(map(str, command)), check=True, cwd=ROOT)
    tool = build / "bin/whale-run"
    linked = subprocess.run(["ldd", tool], capture_output=True, text=True)
    for library in "dnnl", "lapack", "LLVM", "MLIR":
        assert library not in linked.stdout

    text = tmp_path / "step.mlir"
    text.write_text("""
func.func @main(%a: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
      : (tensor<300x300xf32>, tensor<300x300xf32>) -> tensor<300x300xf32>
  return %0 : tensor<300x300xf32>
}
""")
    program = tmp_path / "step.whale"
    compiler = ROOT / "build/bin/whale-compile"
    subprocess.run([compiler, text, "--cluster=1", "-o", program], check=True)
    case = {"name": "step", "inputs": [["F32", [300, 300]]]}
    gpu_cases.write_inputs(tmp_path / "in", case)
    files = [f"--inputs={tmp_path / 'in'}", f"--outputs={tmp_path / 'out'}"]
    result = subprocess.run(
        [tool, program, *files], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "a product on the CPU: this Whale was built without" in result.stderr

    # The tests, and the extension that is built anew, find no driver here.
    bundle = make(tmp_path, "--cases=lstm", f"--whale-run={tool}")
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\nexec c++ -static-libstdc++ "$@"\n')
    compiler.chmod(0o755)
    for section in "conformance", "python":
        result = check(bundle, f"--only={section}", CXX=str(compiler))
        assert result.returncode == 1
        assert "libcuda.so.1 cannot be opened" in result.stdout

    # A process that has libstdc++ shares nothing with that of the extension.
    (extension,) = bundle.glob("source/python/whale/_whale*.so")
    listing = ["nm", "--dynamic", "--defined-only", str(extension)]
    symbols = subprocess.run(listing, capture_output=True, text=True).stdout
    assert "PyInit__whale" in symbols
    assert "num_put" not in symbols
