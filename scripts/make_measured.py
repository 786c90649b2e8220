#!/usr/bin/env python3
"""Writes the tables of what GPUs have measured: make_measured.py [--check]

In: docs/measured, a file for each report of a GPU, as scripts/gpu-check writes
them (report.json) and people keep them. Out: the tables between the marks
`<!-- measured NAME -->` and `<!-- end -->` of the pages below. With --check
nothing is written, and a page that is out of date is an error.

A report has `date`, `gpu`, `driver`, `memory_mib`, `jax` (its version), and
`sections` (whether each went well). `timed` has by model `flops` (two for each
product of numbers as the model writes them, three times those of the forward
pass), `useful_flops` (without what a causal mask hides, and for experts without
places that no token takes and products by which tokens go there), `whale_ms`
and, by the attention that JAX was given, `jax_ms`: milliseconds of a step,
medians. `untuned` has a list of models that nothing was tuned for.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEASURED = ROOT / "docs/measured"
PAGES = ("README.md", "docs/gpu.md")
# Dense bf16 products a second, two operations each.
PEAK = 989e12
MODELS = {
    "gpt-large-bf16": "GPT: 12 layers of width 1,024, 8 x 1,024 tokens, Adam, "
    "bf16",
    "moe-large-bf16": "mixture of 8 experts, of which a token has 2: 4 layers "
    "of width 1,024, 16 x 1,024 tokens, bf16",
    "resnet50-bf16": "ResNet-50, 128 images of 224 x 224, momentum, bf16",
    "resnet50-f32": "ResNet-50, 64 images of 224 x 224, momentum, f32 without "
    "TF32",
}

Report = dict[str, Any]


def last(reports: list[Report], key: str) -> Report:
    """The latest report that has such figures."""
    return [report for report in reports if key in report][-1]


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def times(whale: float, jax: float | None) -> str:
    return f"{jax:g} ({jax / whale:.2f} x)" if jax else ""


def head(*cells: str) -> list[str]:
    return [row(*cells), "|" + "---|" * len(cells)]


def steps(reports: list[Report]) -> list[str]:
    """Milliseconds of a step, and what JAX takes."""
    lines = head(
        "milliseconds of a step", "Whale", "JAX", "JAX with cuDNN attention"
    )
    timed = last(reports, "timed")["timed"]
    for name, what in MODELS.items():
        whale, jax = timed[name]["whale_ms"], timed[name]["jax_ms"]
        lines.append(
            row(
                *(what, f"{whale:g}", times(whale, jax["default"])),
                times(whale, jax.get("cudnn")),
            )
        )
    return lines


def shares(reports: list[Report]) -> list[str]:
    """Shares of the peak: of useful FLOPs beside all."""
    lines = head(
        *("share of 989 TFLOP/s: useful (all FLOPs)", "Whale", "JAX"),
        "JAX with cuDNN attention",
    )
    timed = last(reports, "timed")["timed"]
    for name, what in MODELS.items():
        if not name.endswith("bf16"):
            continue
        case = timed[name]

        def share(milliseconds: float | None, case: Any = case) -> str:
            if not milliseconds:
                return ""
            useful, all_ = (
                case[key] / milliseconds / PEAK * 1e3
                for key in ("useful_flops", "flops")
            )
            text = f"{useful:.1%}"
            return text if useful == all_ else f"{text} ({all_:.1%})"

        jax = case["jax_ms"]
        lines.append(
            row(
                *(what.split(":")[0], share(case["whale_ms"])),
                *(share(jax["default"]), share(jax.get("cudnn"))),
            )
        )
    return lines


def untuned(reports: list[Report]) -> list[str]:
    """Models that nothing was tuned for."""
    lines = head("bf16 but for DLRM", "Whale", "JAX", "")
    for model in last(reports, "untuned")["untuned"]:
        whale = model["whale_ms"]
        jax = times(whale, model["jax_ms"])
        why = model.get("why", "")
        lines.append(row(model["what"], f"{whale:g}", jax, why))
    return lines


def history(reports: list[Report]) -> list[str]:
    """The steps of all reports, the first one first."""
    lines = head("report", "GPU", "Whale, and JAX in milliseconds of a step")
    for report in reports:
        if "timed" not in report:
            continue
        texts = []
        for name in MODELS:
            case = report["timed"][name]
            jax = ", ".join(f"{each:g}" for each in case["jax_ms"].values())
            texts.append(f"{name} {case['whale_ms']:g} ({jax})")
        file = report["file"]
        lines.append(
            row(
                *(f"[{report['date']}](measured/{file})", report["gpu"]),
                "; ".join(texts),
            )
        )
    return lines


TABLES: dict[str, Callable[[list[Report]], list[str]]] = {
    function.__name__: function
    for function in (steps, shares, untuned, history)
}


def read_reports() -> list[Report]:
    """All of them, the earliest first."""
    reports = []
    for file in sorted(MEASURED.glob("*.json"), key=lambda file: file.stem):
        reports.append(json.loads(file.read_text()) | {"file": file.name})
    return reports


def fill(text: str, reports: list[Report]) -> str:
    """The page with its tables."""

    def replace(mark: re.Match[str]) -> str:
        lines = TABLES[mark[1]](reports)
        begin = f"<!-- measured {mark[1]} -->"
        return "\n".join([begin, *lines, "<!-- end -->"])

    pattern = r"<!-- measured (\w+) -->\n.*?<!-- end -->"
    return re.sub(pattern, replace, text, flags=re.DOTALL)


def main() -> None:
    reports = read_reports()
    for page in PAGES:
        path = ROOT / page
        text = path.read_text()
        filled = fill(text, reports)
        if sys.argv[1:] != ["--check"]:
            path.write_text(filled)
        elif filled != text:
            sys.exit(f"{page} is out of date: run scripts/make_measured.py")


if __name__ == "__main__":
    main()
