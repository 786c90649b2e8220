"""The GPT of the examples, as modules."""

from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "gpt"))
import data as gpt_data  # noqa: E402
import model as gpt_model  # noqa: E402

__all__ = ["gpt_data", "gpt_model"]
