"""The ``cluster=`` argument: a path, the parsed dictionary, or a count."""

from __future__ import annotations

import json
import os
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
