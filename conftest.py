"""What all Python tests have in common, wherever they are."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("WHALE_TEST_FULL"):
        return
    skip = pytest.mark.skip(reason="takes minutes; run with --full")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)
