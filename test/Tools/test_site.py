"""The documentation as a site: scripts/docs stops at a broken link."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_site() -> None:
    subprocess.run([ROOT / "scripts" / "docs"], check=True)
    site = ROOT / "build" / "site"
    assert "ten lines" in (site / "index.html").read_text()
    assert "batch_argnums" in (site / "api" / "index.html").read_text()
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
