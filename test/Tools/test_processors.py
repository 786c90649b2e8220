"""Kernels for a named processor say what they need of one."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import subprocess

import pytest
from jobs import BIN, HANG, compile_, error, run


def compile_for(program: pathlib.Path, cpu: str) -> str:
    """Compiles the step of `compile_` for a processor; returns the error."""
    result = subprocess.run(
        [
            *(BIN / "whale-compile", program.parent / "step.mlir"),
            *("--cluster=4", "--strategy=replicate", f"--cpu={cpu}"),
            *("-o", program),
        ],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert result.returncode == (1 if result.stderr else 0)
    return result.stderr


def features(program: pathlib.Path) -> list[str]:
    manifest = json.loads((program / "manifest.json").read_text())
    found: list[str] = manifest.get("kernel_features", [])
    return found


@pytest.fixture
def program(tmp_path: pathlib.Path) -> pathlib.Path:
    return compile_(tmp_path, "replicate")


def test_levels(program: pathlib.Path) -> None:
    native = set(features(program))
    levels = []
    for level in 2, 3, 4:
        assert not compile_for(program, f"x86-64-v{level}")
        levels.append(set(features(program)))
        if levels[-1] <= native:
            assert run(program, "out").returncode == 0
    assert levels[0] < levels[1] < levels[2]
    assert "sse4.2" in levels[0] and "avx" not in levels[0]
    assert "avx2" in levels[1] and "avx512f" not in levels[1]
    assert "avx512vl" in levels[2]


HALVES = """
func.func @main(%x: tensor<4x66xTYPE>) -> tensor<4x204xTYPE> {
  %zero = stablehlo.constant dense<0.0> : tensor<TYPE>
  %0 = stablehlo.exponential %x : tensor<4x66xTYPE>
  %1 = stablehlo.pad %0, %zero, low = [0, 4], high = [0, 4], interior = [0, 2]
      : (tensor<4x66xTYPE>, tensor<TYPE>) -> tensor<4x204xTYPE>
  return %1 : tensor<4x204xTYPE>
}
"""


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("level", [2, 3, 4])
def test_half_precision(tmp_path: pathlib.Path, dtype: str, level: int) -> None:
    # Selects of bf16 once needed a function that no library of Debian 12 has.
    source = tmp_path / "step.mlir"
    source.write_text(HALVES.replace("TYPE", dtype))
    program = tmp_path / "program"
    assert not compile_for(program, f"x86-64-v{level}")
    # Loaded here, where the C++ runtime's symbols are private to extensions.
    ctypes.CDLL(str(program / "kernels.so"), os.RTLD_NOW)


def test_a_processor_without_a_feature(program: pathlib.Path) -> None:
    path = program / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["kernel_features"].append("avx4096")
    path.write_text(json.dumps(manifest))
    (program / "checksums.txt").unlink(missing_ok=True)
    text = error(run(program, "out"))
    assert "kernel_features: the kernels need a processor with avx4096" in text
    assert "--cpu=" in text


def test_unknown_processors(program: pathlib.Path) -> None:
    for name in "x86-65", "", "help":
        text = compile_for(program, name)
        assert text == f"error: --cpu: LLVM knows no processor '{name}'\n"
