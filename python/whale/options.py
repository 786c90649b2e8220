"""The options of ``wh.jit``."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any, Literal

from whale import clusters, compiler
from whale.likes import Like, LikeOption
from whale.parameters import Argnames, Argnums
from whale.program import Program

TARGETS = ("cpu", "cuda", "none")


@dataclasses.dataclass(frozen=True)
class Options:
    """What `wh.jit` is given besides the function, as it describes them.

    Raises:
        TypeError, ValueError: for what none of them can be.
    """

    cluster: clusters.ClusterLike | None
    target: str | None
    donate_argnums: Argnums
    donate_argnames: Argnames
    static_argnums: Argnums
    static_argnames: Argnames
    batch_argnums: Argnums | Literal["auto"]
    batch_argnames: Argnames
    in_axes: Any
    feedback: Mapping[int, int] | None
    own_ranks: bool
    plan: compiler.PlanLike | None
    in_like: LikeOption = None
    out_like: LikeOption = None

    def __post_init__(self) -> None:
        if self.target is not None and self.target not in TARGETS:
            raise ValueError(
                f"target must be one of {', '.join(TARGETS)}, not "
                f"{self.target!r}"
            )
        if self.plan is not None and not isinstance(
            self.plan, (Mapping, str, os.PathLike)
        ):
            raise TypeError(
                f"plan: expected a plan, or a file's path, not {self.plan!r}"
            )
        for what, batch in (
            ("batch_argnums", self.batch_argnums),
            ("batch_argnames", self.batch_argnames),
        ):
            if batch is not None and self.in_axes is not None:
                raise ValueError(f"give {what} or in_axes, not both")
        if self.infers_batch and self.batch_argnums != "auto":
            raise ValueError(
                "batch_argnums: expected positions or 'auto', not "
                f"{self.batch_argnums!r}"
            )
        if self.infers_batch and self.batch_argnames is not None:
            raise ValueError(
                "give batch_argnums='auto' or batch_argnames, not both"
            )
        if self.feedback is not None and not isinstance(self.feedback, Mapping):
            raise TypeError(
                "feedback: expected a dictionary, result numbers by argument "
                f"numbers, not {self.feedback!r}"
            )

        for like in self.likes:
            if like.option == "out_like" and self.plan is not None:
                raise ValueError(
                    "give out_like or plan, not both: where results are wanted "
                    "decides all that a plan could"
                )

    @functools.cached_property
    def likes(self) -> tuple[Like, ...]:
        """The steps that this one has tensors in common with."""
        given = (
            Like.of("in_like", self.in_like),
            Like.of("out_like", self.out_like),
        )
        return tuple(like for like in given if like is not None)

    @property
    def cluster_of_programs(self) -> clusters.ClusterLike | None:
        """The given cluster, or that of the steps in whose place it is."""
        if self.cluster is not None:
            return self.cluster
        for like in self.likes:
            if not isinstance(like.step, Program):
                return like.step.cluster_of_programs()
        return None

    @property
    def infers_batch(self) -> bool:
        """Whether the arguments with the mini-batch are to be found."""
        return isinstance(self.batch_argnums, str)

    @property
    def batch_positions(self) -> Argnums:
        """Those of the arguments that are named to carry it."""
        return (
            None if isinstance(self.batch_argnums, str) else self.batch_argnums
        )
