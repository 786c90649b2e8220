"""This machine as a cluster.

Under test: `wh.detect_cluster`, with this machine's memory and with GPUs as
NVIDIA's driver names them. The compiler must take what it gives. A failure
means plans for a machine that is not there.
"""

from __future__ import annotations

import os

import jax.numpy as jnp
import pytest

import whale as wh
from whale import machine

pytest.importorskip("whale._whale")


def gpu(name, gigabytes, capability=(9, 0)):
    return machine.Gpu(
        name, int(gigabytes * 2**30), capability, 132, 1.98e9, 2.6e9, 5120
    )


@pytest.mark.parametrize(
    "name, gigabytes, kind",
    [
        ("NVIDIA H100 80GB HBM3", 79.1, "H100-SXM5-80GB"),
        ("NVIDIA H100 PCIe", 79.1, "H100-PCIe-80GB"),
        ("NVIDIA H100 NVL", 93.1, "H100-NVL-94GB"),
        ("NVIDIA H200", 139.8, "H200-SXM5-141GB"),
        ("NVIDIA H20", 95.1, "H20-SXM5-96GB"),
        ("NVIDIA A100-SXM4-80GB", 79.3, "A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-40GB", 39.4, "A100-SXM4-40GB"),
        ("NVIDIA A100-PCIE-40GB", 39.4, "A100-PCIe-40GB"),
        ("Tesla V100-SXM2-32GB", 31.7, "V100-SXM2-32GB"),
        ("Tesla P100-PCIE-16GB", 15.9, "P100-PCIe-16GB"),
        ("Tesla T4", 14.6, "T4-PCIe-16GB"),
        ("NVIDIA GeForce RTX 4090", 23.5, "NVIDIA GeForce RTX 4090"),
    ],
)
def test_kinds_of_gpus(name, gigabytes, kind):
    assert machine.kind_of(gpu(name, gigabytes)) == kind


def test_this_machine():
    cluster = wh.detect_cluster()
    (node,) = cluster["nodes"]
    if machine.gpus():
        pytest.skip("has GPUs")
    assert node["devices"] == [{"kind": "cpu"}]
    assert 1 <= node["cores"] <= len(os.sched_getaffinity(0))
    assert 2**30 <= cluster["kinds"]["cpu"]["memory_bytes"] < 2**44
    step = wh.jit(lambda x: x + 1, cluster=cluster)
    assert step(jnp.ones(3)).tolist() == [2, 2, 2]


def test_a_measured_processor():
    cluster = wh.detect_cluster(measure=2)
    (node,) = cluster["nodes"]
    assert sum(device["count"] for device in node["devices"]) == 2
    assert node["link"]["bandwidth"] > 0
    assert 1 <= node["cores"] <= len(os.sched_getaffinity(0))
    assert cluster["kinds"]["cpu"]["flops"]["f32"] > 1e6
    step = wh.jit(lambda x: x + 1, cluster=cluster)
    assert step(jnp.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="a number of ranks, not 0"):
        wh.detect_cluster(measure=0)


def test_gpus(monkeypatch):
    known, other = gpu("NVIDIA H200", 139.8), gpu("NVIDIA X", 20, (8, 6))
    monkeypatch.setattr(machine, "gpus", lambda: [known, known, other])
    cluster = wh.detect_cluster()
    assert cluster["nodes"][0]["devices"] == [
        {"kind": "H200-SXM5-141GB", "count": 2},
        {"kind": "NVIDIA X", "count": 1},
    ]
    # The compiler knows the kinds, or is told all of them.
    plan = wh.explain(wh.jit(lambda x: x + 1), jnp.ones(3), cluster=cluster)
    assert [device["kind"] for device in plan["devices"]]
