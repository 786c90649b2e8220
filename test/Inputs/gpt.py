"""Writes a training step of the GPT of the benchmarks as StableHLO.

usage: gpt.py FILE [KEY=VALUE...]

For example: gpt.py step.mlir layers=12 width=1024 heads=16 batch=8 context=1024
dtype=bfloat16
"""

import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("python", "benchmarks"):
    sys.path.insert(0, str(ROOT / folder))

import jax  # noqa: E402
import models  # noqa: E402


def main() -> None:
    options = dict(option.split("=") for option in sys.argv[2:])
    workload = models.gpt(
        False,
        **{
            key: int(value) if value.isdecimal() else value
            for key, value in options.items()
        },
    )
    params = jax.eval_shape(workload.init, jax.random.key(0))
    state = jax.eval_shape(workload.optimizer.init, params)
    step = jax.jit(workload.train_step(), keep_unused=True)
    text = step.lower(params, state, workload.batch).as_text()
    pathlib.Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
