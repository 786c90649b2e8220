"""What is timed: one entry for each row of the table."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Case:
    """A training step of `model` (a function of models.py) on some ranks.

    What is measured of it is its time and memory or, with `compile_only`, the
    time to compile it. Without a strategy (`none`) every rank computes all.
    `target` is how many times faster than JAX it shall be; `own` names another
    case and how many times as long as that one, and how many seconds more, this
    one may take. `idle` names a case that this one is again, while another
    process keeps all cores busy: it loses at most a quarter more against JAX.
    With `cores` both sides may use so many cores alone.
    """

    name: str
    what: str
    model: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    ranks: int = 1
    strategy: str = "replicate"
    compile_only: bool = False
    plan_only: bool = False
    target: float | None = None
    own: tuple[str, float] | None = None
    own_extra: float = 0.0
    idle: str | None = None
    cores: int | None = None


_DEEP = {"layers": 24, "width": 1024, "heads": 16}

_CASES = (
    Case("gpt", "GPT, 4 layers, f32", "gpt", target=2.0),
    Case(
        "gpt-bf16",
        "GPT, 4 layers, bf16",
        "gpt",
        {"dtype": "bfloat16"},
        target=2.0,
    ),
    Case(
        "gpt-replicate-4",
        "GPT, replicate",
        "gpt",
        ranks=4,
        target=1.5,
        own=("gpt", 1.15),
    ),
    Case(
        "gpt-split-4",
        "GPT, split",
        "gpt",
        ranks=4,
        strategy="split",
        target=1.5,
        own=("gpt", 1.10),
    ),
    Case("lstm", "LSTM, 64 steps", "lstm", target=1.5),
    Case("lstm-4", "LSTM, 64 steps", "lstm", ranks=4, target=1.5),
    Case("convnet", "convolution net", "convnet", target=1.5),
    Case("convnet-4", "convolution net", "convnet", ranks=4, target=1.5),
    Case("wavenet", "WaveNet", "wavenet", target=1.5),
    Case("moe", "mixture of experts", "moe", target=1.5),
    Case("moe-4", "mixture of experts", "moe", ranks=4, target=1.5),
    Case("rope", "RoPE/GQA transformer", "rope_transformer", target=1.5),
    Case(
        "rope-4",
        "RoPE/GQA transformer",
        "rope_transformer",
        ranks=4,
        target=1.5,
    ),
    Case("classifier", "convolution classifier", "classifier", target=1.8),
    Case(
        "classifier-4",
        "convolution classifier",
        "classifier",
        ranks=4,
        target=1.5,
    ),
    Case("bias", "biases of attention", "biased_transformer", target=1.5),
    Case(
        "bias-4",
        "biases of attention",
        "biased_transformer",
        ranks=4,
        target=1.5,
    ),
    Case(
        "bias-pairs-4",
        "a bias for each pair",
        "biased_transformer",
        {"buckets": 0, "batch": 8},
        ranks=4,
        target=1.5,
    ),
    Case("vit", "ViT, 65 tokens", "vision_transformer", target=1.5),
    Case("vit-4", "ViT, 65 tokens", "vision_transformer", ranks=4, target=1.5),
    Case(
        "vit-split-4",
        "ViT of 3 heads, split",
        "vision_transformer",
        {"classes": 10000},
        ranks=4,
        strategy="split",
        target=1.5,
    ),
    Case(
        "small-none-4",
        "200 small parameters, no strategy",
        "small_parameters",
        ranks=4,
        strategy="none",
    ),
    Case(
        "small-4",
        "200 small parameters",
        "small_parameters",
        ranks=4,
        own=("small-none-4", 1.5),
        own_extra=1e-3,
    ),
    Case(
        "compile-gpt",
        "compile GPT, 4 layers",
        "gpt",
        compile_only=True,
        target=1.0,
    ),
    Case(
        "compile-gpt24-8",
        "compile GPT, 24 layers",
        "gpt",
        _DEEP,
        ranks=8,
        compile_only=True,
        target=1.0,
    ),
    Case(
        "compile-gpt24-512",
        "plan GPT, 24 layers",
        "gpt",
        _DEEP | {"batch": 1024},
        ranks=512,
        plan_only=True,
        compile_only=True,
        own=("compile-gpt24-8", 2.0),
    ),
    Case("small-convolution", "small convolution", "small_convolution"),
)

# One rank takes all cores: beside another process that does, and on one core
# alone, no step may wait for threads that don't run.
_ALONE = tuple(
    case for case in _CASES if case.ranks == 1 and not case.compile_only
)
_BUSY = tuple(
    dataclasses.replace(
        case,
        name=f"{case.name}-busy",
        what=f"{case.what}, beside a busy process",
        target=None,
        idle=case.name,
    )
    for case in _ALONE
)
_CORE = tuple(
    dataclasses.replace(
        case,
        name=f"{case.name}-core",
        what=f"{case.what}, on one core",
        target=1.0,
        cores=1,
    )
    for case in _ALONE
    if case.name in ("lstm", "moe", "small-convolution")
)
CASES = _CASES + _BUSY + _CORE
