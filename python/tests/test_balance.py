"""Unequal devices and shares that rotate give what one device gives."""

from __future__ import annotations

from typing import Any

import pytest
from test_pipelines import check, halves, nowhere

import whale as wh


def cluster_of(*slowdowns: float) -> dict[str, Any]:
    """One node of CPU ranks that are so many times slower than their kind."""
    kind = {
        "flops": {"f32": 1e9},
        "memory_bytes": 1 << 30,
        "memory_bandwidth": 1e12,
    }
    devices = [{"kind": "c", "slowdown": factor} for factor in slowdowns]
    return {"kinds": {"c": kind}, "nodes": [{"devices": devices}]}


@pytest.mark.parametrize("count", [1, 3, 4, 5])
@pytest.mark.parametrize("slowdowns", [(1, 2), (1, 3.3), (2, 1, 1.5)])
def test_replicas_of_unequal_speed(
    slowdowns: tuple[float, ...], count: int
) -> None:
    cluster = cluster_of(*slowdowns)
    scope = len(slowdowns)
    check(
        {"num_micro_batch": count},
        lambda i: wh.replicate(scope, name="all"),
        cluster,
        masked=True,
    )


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zero-bubble"])
def test_pipelines_whose_shares_rotate(schedule: str) -> None:
    config = {"num_micro_batch": 4, "pipeline.strategy": schedule}
    check(config, halves, cluster_of(1, 2, 2.5, 1))


def test_split_and_replicas_of_unequal_speed() -> None:
    def scope(i: int) -> Any:
        if i % 2:
            return wh.split(2, name=f"layer{i}")
        return wh.replicate(2, name=f"layer{i}")

    check({"num_micro_batch": 4}, scope, cluster_of(1, 2))


# The slower replica takes other shares of unequal micro-batches, or none.
@pytest.mark.parametrize(
    ("first", "second", "micro_batches", "slowdown"),
    [(1, 2, 5, 3), (2, 2, 8, 2), (1, 2, 16, 2)],
)
def test_unequal_replicas_of_a_pipeline(
    first: int, second: int, micro_batches: int, slowdown: int
) -> None:
    def scope(i: int) -> Any:
        if i < 2:
            return wh.replicate(first, name="first")
        return wh.split(second, name="second")

    count = first + second
    cluster = cluster_of(*[1] * count, *[slowdown] * count)
    check({"num_micro_batch": micro_batches}, scope, cluster, samples=32)


def test_automatic_stages_on_unequal_devices() -> None:
    config = {"num_micro_batch": 5, "num_task_graph": 2}
    wh.set_default_strategy(wh.replicate(2))
    check(config, nowhere, cluster_of(1, 2, 1.7, 1))
