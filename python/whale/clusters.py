"""The ``cluster=`` argument: a path, the parsed dictionary, or a count."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

ClusterLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | int


def cluster_text(cluster: ClusterLike) -> str:
    """What the cluster says: JSON, or a number of CPU ranks.

    Raises:
        ValueError: where the file cannot be read or the count is not
            positive. What the JSON says is checked by the compiler.
    """
    if isinstance(cluster, bool):
        raise ValueError(f"cluster: not a cluster: {cluster!r}")
    if isinstance(cluster, int):
        if cluster < 1:
            raise ValueError(
                f"cluster: the number of ranks must be at least 1, not "
                f"{cluster}"
            )
        return str(cluster)
    if isinstance(cluster, Mapping):
        return json.dumps(cluster)
    if isinstance(cluster, (str, os.PathLike)):
        try:
            with open(cluster, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cluster: {error}") from None
    raise ValueError(
        "cluster: expected a path, a dictionary or a number of ranks, not "
        f"{cluster!r}"
    )


def cluster_argument(cluster: ClusterLike) -> str:
    """The cluster for the compiler, which names a file in its messages."""
    text = cluster_text(cluster)
    if isinstance(cluster, (str, os.PathLike)):
        return os.path.abspath(cluster)
    return text


def device_count(cluster: ClusterLike | None) -> int | None:
    """How many devices a cluster has; None where it doesn't say that well."""
    if cluster is None or isinstance(cluster, int):
        return cluster
    try:
        parsed = json.loads(cluster_text(cluster))
        return sum(
            node.get("count", 1)
            * sum(d.get("count", 1) for d in node["devices"])
            for node in parsed["nodes"]
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


# The built-in kinds but "cpu", as the beginnings of their names.
_GPU = re.compile(r"(P100|V100S?|T4|A100|A800|H100|H800|H20|H200)\b")


def is_gpu(kind: str, cluster: ClusterLike | None) -> bool:
    """Whether a kind of devices is one of GPUs, by its name or architecture."""
    if _GPU.match(kind):
        return True
    try:
        parsed = json.loads(cluster_text(cluster or 1))
        return "arch" in parsed["kinds"][kind]
    except (ValueError, KeyError, TypeError):
        return False


def described(cluster: ClusterLike | None) -> str:
    """ "4 devices", for people."""
    count = device_count(cluster)
    if cluster is None:
        return "no cluster"
    if count is None:
        return "a cluster"
    return f"{count} {'device' if count == 1 else 'devices'}"
