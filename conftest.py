"""What all Python tests have in common, wherever they are."""

from __future__ import annotations

import os
import signal

import pytest

# What XLA computes for comparison is small: making it fast takes longer.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    " --xla_cpu_parallel_codegen_split_count=1",
)


def pytest_configure() -> None:
    # Tests interrupt and hang up processes, which a job in the background, or
    # under nohup, would have ignored. What only this process handles does what
    # it should in those that it starts.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("WHALE_TEST_FULL"):
        return
    skip = pytest.mark.skip(reason="takes minutes; run with --full")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)
