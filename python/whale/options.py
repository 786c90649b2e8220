"""The options of ``wh.jit``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Literal

from whale import clusters, compiler
from whale.parameters import Argnames, Argnums

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
