"""What the tools quote is printable and short, wherever it comes from."""

from __future__ import annotations

import pathlib
import re
import select
import subprocess

import pytest

BIN = pathlib.Path(__file__).parents[2] / "build" / "bin"
TEXT = """\
func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
  return %arg0 : tensor<f32>
}
"""
# An escape sequence of terminals, and ends of lines.
CONTROL = "a\x1b[31mb\rc\nd"
LONG = 100000 * "n"


def error(*command: str, folder: pathlib.Path) -> str:
    """The one line of a failure."""
    (folder / "good.mlir").write_text(TEXT)
    result = subprocess.run(
        [BIN / command[0], *command[1:]],
        capture_output=True,
        cwd=folder,
        timeout=60,
    )
    assert result.returncode == 1, result
    line = result.stderr.decode()
    assert re.match(r"([^\n]*: )?error: [^\n]*\n$", line), line
    return line[:-1]


COMPILE = ("whale-compile", "good.mlir", "--cluster=1", "-o", "o.whale")
RUN = ("whale-run", "p.whale", "--inputs=in", "--outputs=out")


@pytest.mark.parametrize(
    "command",
    [
        ("whale-opt", "{}"),
        ("whale-opt", "--{}"),
        ("whale-opt", "good.mlir", "-o", "{}/o"),
        ("whale-opt", "good.mlir", "--mlir-timing={}"),
        (*COMPILE, "--{}"),
        (*COMPILE, "--target={}"),
        (*COMPILE, "--strategy={}"),
        (*COMPILE, "--feedback={}"),
        (*COMPILE, "--batch-args={}"),
        (*COMPILE, "--parent={}"),
        ("whale-compile", "good.mlir", "--cluster={}", "-o", "o.whale"),
        ("whale-compile", "good.mlir", "--cluster=1", "-o", "{}/o"),
        (*RUN, "--{}"),
        (*RUN, "--steps={}"),
        (*RUN, "--slowdowns={}"),
        (*RUN, "--network={}"),
        ("whale-run", "{}", "--inputs=in", "--outputs=out"),
    ],
)
def test_options(command: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    line = error(*(p.format(CONTROL) for p in command), folder=tmp_path)
    assert "a\\x1B[31mb c d" in line and line.isprintable()
    line = error(*(p.format(LONG) for p in command), folder=tmp_path)
    assert "nn...nn" in line and len(line) < 1000


def test_names_in_a_text(tmp_path: pathlib.Path) -> None:
    for name, shown in ((CONTROL[:-2], "a\\x1B[31mb c"), (LONG, "nn...nn")):
        (tmp_path / "text.mlir").write_text(
            f'func.func @main() {{ "{name}.b"() : () -> () return }}'
        )
        for form in ("text", "json"):
            result = subprocess.run(
                [BIN / "whale-compile", "text.mlir", "--cluster=1", "-o", "o",
                 f"--messages={form}"],
                capture_output=True, cwd=tmp_path, timeout=60,
            )  # fmt: skip
            assert result.returncode == 1
            said = (
                (result.stdout + result.stderr).decode().replace(2 * "\\", "\\")
            )
            assert shown in said and len(said) < 1000, said
            assert said.replace("\n", "").isprintable(), said


def test_output_comes_last(tmp_path: pathlib.Path) -> None:
    """Output is written once standard error took all lines, however slowly."""
    # More than a pipe holds, and less than two.
    (tmp_path / "long.mlir").write_text(TEXT.replace("main", "m" * 50000))
    process = subprocess.Popen(
        [
            BIN / "whale-opt",
            tmp_path / "long.mlir",
            "--canonicalize",
            "--mlir-print-ir-before-all",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    ready, _, _ = select.select([process.stdout], [], [], 1)
    assert not ready
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(output) > 50000 and len(errors) > 100000
