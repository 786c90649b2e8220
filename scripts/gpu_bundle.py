"""Makes what a machine with a GPU and nothing else needs to check Whale.

    scripts/gpu-bundle [OUT.tar.gz] [--gpu-arch=sm_90] [--cases=NAME,...]

In: the names of cases. Out: an archive of at most 48 MiB with the runtime
without compiler and without libraries of the host, compiled programs, what the
processor gives for them, and the Python that JAX and Whale need there. Unpack
it on the machine and run whale-gpu/gpu-check. Inputs do not travel: both sides
make them from the names. It takes some five minutes, most of them for the
runtime's build.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("python", "test/Conformance", "test/Inputs", "scripts")
sys.path.append(str(ROOT / "test/Executable"))
sys.path[:0] = [str(ROOT / folder) for folder in FOLDERS]

import gpu_accuracy  # noqa: E402
import gpu_cases  # noqa: E402
import gpu_models  # noqa: E402
import gpu_steps  # noqa: E402
import tensor_files  # noqa: E402

import whale as wh  # noqa: E402

# A larger one does not fit where bundles are sent.
MOST_BYTES = 48 << 20
# Every machine has them, or they come with the driver.
SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so|ld-linux|vdso")
models = gpu_steps.models
# Programs of scripts of these names.
TEXTS = ("kernels", "libraries")
STEPS = (
    *("gpt", "gpt-bf16", "lstm", "moe", "rope", "convnet"),
    *("classifier", "resnet-bf16", "experts-bf16"),
)
MODELS: dict[str, tuple[str, int, Any]] = {
    # name: kind, ranks, model
    **{name: ("step", 1, gpu_steps.MODELS[name]) for name in STEPS},
    "gpt-2": ("ranks", 2, lambda: models.gpt(True, **gpu_steps.GPT)),
}
# The step that Python runs, too.
PYTHON = "lstm"
TIMED = gpu_models.TIMED | gpu_models.SMALL
FOLDERS_INSIDE = ("bin", "lib", "programs", "inputs", "expected", "emulated")
# What JAX needs for its side of what is timed.
SOURCES = (
    "benchmarks/models/*.py",
    *(f"examples/gpt/{name}" for name in ("alice.txt", "data.py", "model.py")),
    *("scripts/gpu_jax.py", "scripts/gpu_models.py"),
    # And for Whale's.
    *("scripts/gpu_cases.py", "scripts/gpu_python.py"),
    "test/Inputs/tensor_files.py",
)
SOURCES_OF_PYTHON = (
    *("python/whale/*.py", "python/whale/*.json"),
    *("python/ext/*.cpp", "python/ext/*.h"),
    *("include/whale/ProgramFormat/*.h", "include/whale/Runtime/*.h"),
    "include/whale/System/*.h",
)


def write_text(name: str) -> str:
    """The text of a program that a script of that name writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "text.mlir")
        script = ROOT / f"test/Inputs/gpu_{name}.py"
        subprocess.run([sys.executable, script, path], check=True)
        return path.read_text()


def lower(name: str) -> jax.stages.Lowered:
    """A training step of a model."""
    wh.init()
    if name in TIMED:
        model = gpu_models.workload(TIMED[name])
        # As users do: else each step has new arrays, and no graph is repeated.
        step = jax.jit(
            model.train_step(), donate_argnums=(0, 1), keep_unused=True
        )
        return step.lower(*gpu_models.abstract_state(model), model.batch)
    _, ranks, make = MODELS[name]
    if ranks > 1:
        wh.set_default_strategy(wh.replicate())
    return gpu_steps.lower(make(), is_abstract=True)[0]


def add_signature(name: str, program: pathlib.Path) -> None:
    """Gives a program what Whale's Python must know of it, as a step whose
    arguments and results are arrays."""
    lowered, arguments = gpu_steps.lower(MODELS[name][2](), is_abstract=True)
    leaves = jax.tree.leaves(arguments)
    results = jax.tree.leaves(lowered.out_info)

    def step(*_: Any) -> tuple[Any, ...]:
        return tuple(jax.numpy.zeros(x.shape, x.dtype) for x in results)

    saved = wh.jit(step, cluster=1, target="none").lower(*leaves).compile()
    with tempfile.TemporaryDirectory() as folder:
        saved.save(f"{folder}/step.whale")
        shutil.copy(f"{folder}/step.whale/python.json", program)


def of_timed(timed: gpu_models.Timed) -> dict[str, Any]:
    """What gpu-check must know of a step that it times: which arguments are
    the optimizer's state, which result is the loss, FLOPs."""
    model = gpu_models.workload(timed)
    params, state = map(
        lambda tree: len(jax.tree.leaves(tree)),
        gpu_models.abstract_state(model),
    )
    return {
        "state": [params, params + state],
        "loss": params + state,
        "flops": gpu_models.flops(model),
        "useful_flops": gpu_models.useful_flops(timed),
        "products": timed.products,
        "others": timed.others,
    }


def compile(text: str, path: pathlib.Path, *options: str) -> dict[str, Any]:
    """Makes a program directory; what its manifest says."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        tool = ROOT / "build/bin/whale-compile"
        subprocess.run([tool, file.name, f"-o={path}", *options], check=True)
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return manifest


def run(
    text: str, inputs: pathlib.Path, outputs: pathlib.Path, *options: str
) -> None:
    """Writes what a program gives on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "step.whale")
        compile(text, program, *options)
        tool = ROOT / "build/bin/whale-run"
        files = [f"--inputs={inputs}", f"--outputs={outputs}"]
        subprocess.run([tool, program, *files], check=True)


def add_accuracy(
    name: str, text: str, arrays: list[Any], bundle: pathlib.Path
) -> dict[str, Any]:
    """Puts numbers into the bundle, and what the processor and the emulator
    make of them; the names of the operations, and how far each of them may be
    from the processor on a GPU, in ulp."""
    inputs = bundle / "inputs" / name
    tensors = {f"arg{number}": array for number, array in enumerate(arrays)}
    tensor_files.write(inputs, tensors)
    results = []
    for target, folder in ("cpu", "expected"), ("cuda-emulated", "emulated"):
        path = bundle / folder / name
        run(text, inputs, path, "--cluster=1", f"--target={target}")
        results.append(gpu_cases.read(path))
    limits = {}
    for number, operation in enumerate(gpu_accuracy.OPERATIONS):
        is_near_one = operation in gpu_accuracy.CANCELLING
        right, emulated = (
            gpu_cases.numbers("F32", result[f"result{number}"][2])
            for result in results
        )
        apart = gpu_cases.ulps(emulated, right, is_near_one)
        limits[operation] = max(apart, gpu_accuracy.LIMIT), is_near_one
    return {"operations": limits}


def add(name: str, bundle: pathlib.Path, options: argparse.Namespace) -> Any:
    """Puts a case into the bundle; returns what is known of it."""
    kind, ranks, _ = MODELS.get(name, (name, 1, None))
    if name in TEXTS:
        kind = "kernels"
    known = {}
    flags = [f"--cluster={ranks}", f"--target={options.target}"]
    if options.target == "cuda":
        flags.append(f"--gpu-arch={options.gpu_arch}")
    if name in TEXTS:
        text = write_text(name)
    elif name == "accuracy":
        text, arrays = gpu_accuracy.text_and_inputs()
        known = add_accuracy(name, text, arrays, bundle)
    else:
        text = lower(name).as_text(debug_info=True)
    if name in TIMED:
        kind, known = "speed", of_timed(TIMED[name])
        pairs = ",".join(f"arg{i}:result{i}" for i in range(known["loss"]))
        flags.append(f"--feedback={pairs}")
    program = bundle / f"programs/{name}.whale"
    manifest = compile(text, program, *flags)
    if name == PYTHON:
        add_signature(name, program)
        known = {"python": True}
    case = {
        "name": name,
        "kind": kind,
        "inputs": [
            [tensor_files.file_type(entry["dtype"]), entry["shape"]]
            for entry in manifest["arguments"]
        ],
        **known,
    }
    if kind not in ("speed", "accuracy"):
        with tempfile.TemporaryDirectory() as folder:
            inputs = pathlib.Path(folder, "in")
            gpu_cases.write_inputs(inputs, case)
            expected = bundle / "expected" / name
            run(text, inputs, expected, f"--cluster={ranks}", "--target=cpu")
    return case


def add_runtime(bundle: pathlib.Path, tool: pathlib.Path) -> None:
    """Puts whale-run, the tests of its build and the libraries that they are
    linked with into it; and Python's package with what its extension is built
    from or, where the build has the libraries of the host, itself."""
    for program in tool, tool.parents[1] / "unittests/GpuTests":
        shutil.copy(program, bundle / "bin" / program.name)
    linked = subprocess.run(["ldd", tool], capture_output=True, text=True)
    for library in re.findall(r"=> (/\S+)", linked.stdout):
        if not SYSTEM.search(pathlib.Path(library).name):
            shutil.copy(library, bundle / "lib")
    for script in "gpu-check", "gpu_cases.py", "gpu_speed.py", "gpu_trace.py":
        shutil.copy(ROOT / "scripts" / script, bundle)
    trace = tool.parents[1] / "lib/libwhale-gpu-trace.so"
    if trace.exists():
        shutil.copy(trace, bundle / "lib")
    sources: set[pathlib.Path] = set()
    for pattern in SOURCES + SOURCES_OF_PYTHON:
        sources.update(ROOT.glob(pattern))
    if "libdnnl" in linked.stdout:
        # What computes on the processor is not built there.
        sources.update(ROOT.glob("python/whale/_whale*.so"))
    else:
        for archive in (tool.parents[1] / "lib").glob("*.a"):
            shutil.copy(archive, bundle / "lib")
    for source in sources:
        path = bundle / "source" / source.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)


def main() -> None:
    """Builds, compiles, and packs."""
    names = [*TEXTS, "accuracy", *MODELS, *gpu_models.TIMED]
    parser = argparse.ArgumentParser(
        prog="gpu-bundle",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", nargs="?", default="whale-gpu.tar.gz")
    parser.add_argument("--gpu-arch", default="sm_90", metavar="sm_NN")
    parser.add_argument("--cases", default=",".join(names), metavar="NAMES")
    parser.add_argument("--target", default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--whale-run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = {*options.cases.split(",")} - {*names, *gpu_models.SMALL}
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))} of {names}")
    if options.whale_run:
        tool = pathlib.Path(options.whale_run)
    else:
        subprocess.run(["cmake", "--preset=gpu"], check=True, cwd=ROOT)
        subprocess.run(["ninja", "-C", ROOT / "build/gpu"], check=True)
        tool = ROOT / "build/gpu/bin/whale-run"
    with tempfile.TemporaryDirectory() as folder:
        bundle = pathlib.Path(folder, "whale-gpu")
        for inner in FOLDERS_INSIDE:
            (bundle / inner).mkdir(parents=True)
        add_runtime(bundle, tool)
        cases = [
            add(name, bundle, options) for name in options.cases.split(",")
        ]
        (bundle / "cases.json").write_text(json.dumps(cases, indent=1))
        # More takes five times as long, for a tenth less.
        with tarfile.open(options.out, "w:gz", compresslevel=3) as archive:
            archive.add(bundle, bundle.name)
    size = os.path.getsize(options.out)
    print(f"{options.out}: {size / 1e6:.1f} MB, {len(cases)} programs")
    if size > MOST_BYTES:
        sys.exit(f"error: more than {MOST_BYTES >> 20} MiB")


if __name__ == "__main__":
    main()
