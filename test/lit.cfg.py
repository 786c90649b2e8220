"""lit: every file with RUN lines under test/ is one test."""

import os

import lit.formats
import lit.util

config.name = "whale"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.whale_binary_dir, "test")
config.environment["PATH"] = os.pathsep.join(
    [config.whale_tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)
config.substitutions.append(
    ("%python", os.path.join(config.whale_source_dir, ".venv/bin/python"))
)
# Of the CUDA toolkit; tests that need it are counted as unsupported without.
toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
config.environment["PATH"] += os.pathsep + os.path.join(toolkit, "bin")
if lit.util.which("ptxas", config.environment["PATH"]):
    config.available_features.add("ptxas")
if any(
    os.path.exists(os.path.join(toolkit, folder, f"libnvJitLink.so.{major}"))
    for folder in ("lib64", "lib")
    for major in (12, 13)
):
    config.available_features.add("nvjitlink")
ranges = os.path.join(config.whale_binary_dir, "unittests/libPrintRanges.so")
if os.path.exists(ranges):
    config.available_features.add("nvtx")
    config.substitutions.append(("%ranges", ranges))
# The emulator links the toolkit's functions, too.
if any(
    os.path.exists(os.path.join(place, "libdevice/libdevice.10.bc"))
    for place in (toolkit + "/nvvm", "/usr/lib/nvidia-cuda-toolkit")
):
    config.available_features.add("libdevice")
# A pass that leaves invalid IR fails the test that shows it.
variable = "WHALE_VERIFY_EACH"
config.environment[variable] = os.environ.get(variable, "1")
# What XLA computes for comparison is small: making it fast takes longer.
variable = "XLA_FLAGS"
config.environment[variable] = os.environ.get(
    variable,
    "--xla_backend_optimization_level=0"
    " --xla_cpu_parallel_codegen_split_count=1",
)
# What scripts/test sets: each process would compile it.
for variable in os.environ:
    if variable.startswith(("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE")):
        config.environment[variable] = os.environ[variable]
# Its address space is too large for tests that limit it.
if config.whale_build_type == "Sanitize":
    config.available_features.add("sanitize")
# What the preset "sanitize" sets; lit itself passes the sanitizers' options on.
if "UCX_MEM_EVENTS" in os.environ:
    config.environment["UCX_MEM_EVENTS"] = os.environ["UCX_MEM_EVENTS"]
# scripts/test --full
if "WHALE_TEST_FULL" in os.environ:
    config.environment["WHALE_TEST_FULL"] = os.environ["WHALE_TEST_FULL"]
    config.available_features.add("full")
