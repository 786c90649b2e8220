"""Whale's first interface: cluster, replica, stage, pipeline and split.

They say the same as ``wh.replicate`` and ``wh.split`` and become the same
scopes; ``wh.cluster`` and ``wh.pipeline`` add the user's own virtual devices
and the number of micro-batches to the step that is lowered inside of them, or
that they are in::

    with wh.cluster([[0, 1], [2, 3]]):
        with wh.pipeline(num_micro_batch=8):
            with wh.stage():
                h = encoder(x)
            with wh.stage():
                y = decoder(h)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whale.strategies import (
    COUNT,
    Setting,
    Strategy,
    ambient,
    is_count,
    open_settings,
    replicate,
)


def _is_list(value: Any) -> bool:
    """Whether it is a sequence, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class cluster(Setting):  # noqa: N801 - reads as a function
    """The virtual devices of the TaskGraphs inside.

    Args:
        virtual_devices: lists of device ids. TaskGraphs take them in turn, in
            the order of their first use: of twice as many lists as there are
            TaskGraphs, each takes two, as two replicas of the whole; TaskGraphs
            beyond the last list start again with the first. Left out, the
            compiler groups all devices of the cluster.
    """

    kind = "cluster"

    def __init__(
        self, virtual_devices: Sequence[Sequence[int]] | None = None
    ) -> None:
        lists = () if virtual_devices is None else virtual_devices
        if not _is_list(lists) or not all(map(_is_list, lists)):
            raise ValueError(
                "cluster: the virtual devices are lists of device ids, as "
                f"[[0, 1], [2, 3]], not {virtual_devices!r}"
            )
        self.virtual_devices = tuple(tuple(devices) for devices in lists)
        if virtual_devices is not None and not lists:
            raise ValueError("cluster: there are no virtual devices")
        for devices in self.virtual_devices:
            if not devices:
                raise ValueError("cluster: a virtual device has no devices")
            for device in devices:
                if isinstance(device, bool) or not isinstance(device, int):
                    raise ValueError(f"cluster: {device!r} is no device id")
                if device < 0:
                    raise ValueError(f"cluster: device {device} is negative")
            if len(set(devices)) != len(devices):
                raise ValueError(
                    f"cluster: a device occurs twice in {list(devices)}"
                )

        # What each virtual device has, if all have as many.
        counts = {len(devices) for devices in self.virtual_devices}
        self.device_count = counts.pop() if len(counts) == 1 else None

    def _key(self) -> Any:
        return self.virtual_devices


class pipeline(Setting):  # noqa: N801 - reads as a function
    """The stages inside compute micro-batches in a pipeline.

    Args:
        num_micro_batch: how many micro-batches a mini-batch is cut into.
    """

    kind = "pipeline"

    def __init__(self, num_micro_batch: int = 1) -> None:
        if not is_count(num_micro_batch):
            raise ValueError(
                f"pipeline: num_micro_batch must be {COUNT}, "
                f"not {num_micro_batch!r}"
            )
        self.num_micro_batch = num_micro_batch

    def __enter__(self) -> Setting:
        if any(isinstance(strategy, stage) for strategy in ambient()):
            raise ValueError(
                "wh.pipeline is in a wh.stage; it goes around its stages"
            )
        return super().__enter__()

    def _key(self) -> Any:
        return self.num_micro_batch


def replica(name: str | None = None) -> Strategy:
    """``wh.replicate`` on a virtual device of ``wh.cluster``, or on all."""
    return replicate(name=name)


class stage(replicate):  # noqa: N801 - reads as a function
    """One stage of a ``wh.pipeline``: a ``wh.replicate``.

    Args:
        device_count: how many devices. Left out, those of a virtual device of
            ``wh.cluster``; without such, one, and the pipeline is repeated over
            the other devices.
        name: stages of one name are one TaskGraph.
    """

    def __init__(
        self, device_count: int | None = None, name: str | None = None
    ) -> None:
        super().__init__(device_count, name)
        self.default_count = 1

    def __enter__(self) -> Strategy:
        if not any(isinstance(s, pipeline) for s in open_settings()):
            raise ValueError("wh.stage is in no wh.pipeline")
        if any(isinstance(strategy, stage) for strategy in ambient()):
            raise ValueError(
                "wh.stage is in a wh.stage; stages follow one another"
            )
        return super().__enter__()
