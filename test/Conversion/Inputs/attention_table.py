"""What computes attention on a GPU, and with how much workspace.

usage: attention_table.py CAPABILITY WORKSPACE

Prints a line for each number of heads of queries and keys, of tokens, and of
features, of two samples in bf16 with a causal mask: whose calls forward and of
the gradient are, and the MiB that cuDNN's take besides their tensors. Nothing
is run: the operations go through whale-lower-library-ops alone.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys

HEADS = ((32, 8), (40, 8), (64, 8), (32, 32))
TOKENS = (2048, 4096, 8192, 32768)
FEATURES = (64, 128, 256)
SAMPLES = 2


def tensor(*shape: int, dtype: str = "bf16") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"


def make_function(heads: int, groups: int, tokens: int, features: int) -> str:
    """Attention and its gradient, whose cotangents of shared keys are summed
    to bf16, as JAX has them."""
    sharing = heads // groups
    query = tensor(SAMPLES, tokens, groups, sharing, features)
    key = tensor(SAMPLES, tokens, groups, features)
    parts = tensor(sharing, SAMPLES, tokens, groups, features, dtype="f32")
    whole = tensor(SAMPLES, tokens, groups, features, dtype="f32")
    wide = query.replace("bf16", "f32")
    scalar = "tensor<f32>"
    masked = "scale 0.1 {causal = 0 : i64, fill = -1.0e9 : f64}"
    sums = "".join(
        f"""
  %s{i} = stablehlo.reduce(%g#{i} init: %zero) applies stablehlo.add
      across dimensions = [0] : ({parts}, {scalar}) -> {whole}
  %r{i} = stablehlo.convert %s{i} : ({whole}) -> {key}"""
        for i in (1, 2)
    )
    return f"""
func.func @f_{heads}_{groups}_{tokens}_{features}(
    %q: {query}, %k: {key}, %v: {key}, %c: {query})
    -> ({query}, {query}, {key}, {key}) {{
  %zero = stablehlo.constant dense<0.0> : {scalar}
  %o = whale.attention query "bqngd" %q key "bknd" %k value "bkne" %v
      to "bqnge" {masked} : ({query}, {key}, {key}) -> {query}
  %g:3 = whale.attention_gradient query "bqngd" %q key "bknd" %k
      value "bkne" %v cotangent "bqnge" %c to "bqngd", "gbknd", "gbkne"
      {masked} : ({query}, {key}, {key}, {query}) -> ({wide}, {parts}, {parts})
  %r0 = stablehlo.convert %g#0 : ({wide}) -> {query}{sums}
  return %o, %r0, %r1, %r2 : {query}, {query}, {key}, {key}
}}
"""


def describe(text: str, suffix: str, workspace: int) -> str:
    """Whose the operation forward ("") or of the gradient is."""
    call = re.search(rf'library_call "(fused_)?attention{suffix}"\(.*', text)
    if not call:
        return "a kernel"
    if not call[1]:
        return "the processor"
    taken = re.search(r"whale.workspace = (\d+)", call[0])
    assert taken and int(taken[1]) <= workspace, (call[0], workspace)
    return f"cuDNN with {-(-int(taken[1]) // 2**20)} MiB"


def main() -> None:
    capability, workspace = map(int, sys.argv[1:])
    cases = list(itertools.product(HEADS, TOKENS, FEATURES))
    options = f"target=sm_{capability}+cudnn={workspace}"
    result = subprocess.run(
        [
            "whale-opt",
            f"-pass-pipeline=builtin.module(func.func("
            f"whale-lower-library-ops{{{options}}}))",
        ],
        input="".join(make_function(*heads, t, f) for heads, t, f in cases),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    functions = result.stdout.split("func.func ")[1:]
    for (heads, tokens, features), text in zip(cases, functions, strict=True):
        forward, gradient = (
            describe(text, suffix, workspace) for suffix in ("", "_gradient")
        )
        print(
            f"{heads[0]}/{heads[1]} heads, {tokens} tokens, {features} "
            f"features: {forward}; {gradient}"
        )


if __name__ == "__main__":
    main()
