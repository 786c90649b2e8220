"""Runs a program by Whale's Python package, as gpu-check asks.

    gpu_python.py PROGRAM INPUTS OUTPUTS

Where the package has no extension, it is built first: with the C++ compiler and
the nanobind that are found here, from its sources and the runtime's archives.
Exit status 3 where one of these is missing.
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

# The program has the GPU.
os.environ["JAX_PLATFORMS"] = "cpu"

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMPILER = os.environ.get("CXX", "c++")
# The exit status where there is something missing.
NOT_RUN = 3
LIBRARIES = ROOT.parent / "lib"
sys.path[:0] = [str(ROOT / folder) for folder in ("python", "test/Inputs")]


def missing() -> str | None:
    """What the extension cannot be built without."""
    if not importlib.util.find_spec("nanobind"):
        return "nanobind"
    if not shutil.which(COMPILER):
        return f"C++ compiler {COMPILER}"
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python.h"
    return None


def build(extension: pathlib.Path) -> None:
    """Compiles and links the extension."""
    import nanobind

    library = pathlib.Path(nanobind.source_dir())
    includes = (
        *(ROOT / "include", sysconfig.get_path("include")),
        *(nanobind.include_dir(), library.parent / "ext/robin_map/include"),
    )
    flags = "-std=c++20 -O1 -fPIC -fvisibility=hidden -fno-strict-aliasing"
    definitions = "-DNDEBUG", "-DNB_DOMAIN=whale"
    folders = [f"-I{folder}" for folder in includes]
    with tempfile.TemporaryDirectory() as place:

        def make_object(source: pathlib.Path) -> str:
            result = f"{place}/{source.stem}.o"
            subprocess.run(
                [COMPILER, *flags.split(), *definitions, *folders]
                + ["-c", str(source), "-o", result],
                check=True,
            )
            return result

        sources = sorted((ROOT / "python/ext").glob("*.cpp"))
        sources.insert(0, library / "nb_combined.cpp")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            objects = list(pool.map(make_object, sources))
        archives = map(str, LIBRARIES.glob("*.a"))
        # Nothing of the archives may be shared with what the process has
        # loaded: where there is a static libstdc++ alone, two of them in one
        # process would have one set of facets' numbers.
        others = map(str, LIBRARIES.glob("*.so.*"))
        subprocess.run(
            [COMPILER, "-shared", "-o", str(extension), *objects]
            + ["-Wl,--start-group", *archives, "-Wl,--end-group", *others]
            + ["-ldl", "-lpthread", f"-Wl,-rpath,{LIBRARIES}"]
            + ["-Wl,--exclude-libs,ALL"],
            check=True,
        )


def main() -> None:
    """Builds what is missing, and runs one step."""
    program, inputs, outputs = map(pathlib.Path, sys.argv[1:])
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    extension = ROOT / f"python/whale/_whale{suffix}"
    if not extension.exists():
        if what := missing():
            print(f"there is no {what}", file=sys.stderr)
            sys.exit(NOT_RUN)
        build(extension)
    import gpu_cases
    import numpy as np
    import tensor_files

    import whale as wh

    step = wh.load(program)
    tensors = gpu_cases.read(inputs)
    arguments = [
        np.frombuffer(tensors[f"arg{number}"][2], leaf.aval.dtype)
        for number, leaf in enumerate(step.signature.arguments)
    ]
    results = step(
        *(
            array.reshape(leaf.shape)
            for array, leaf in zip(arguments, step.signature.arguments)
        )
    )
    found = {f"result{i}": np.asarray(x) for i, x in enumerate(results)}
    tensor_files.write(outputs, found)


if __name__ == "__main__":
    main()
