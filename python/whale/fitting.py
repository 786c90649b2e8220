"""``wh.fit``: what a step needs, what options would save, the largest batch.

In: a step that is not compiled. Out: `Fit`, what the compiler says of the step
as it is and of each option that it has planned it with, also where it does not
fit; and the largest mini-batch, which the compiler estimates and one more
trace of the step confirms. No code is generated. Each option costs a plan, in
the compiler's process, beside which this one traces.
"""

from __future__ import annotations

import dataclasses
import html
import json
import queue
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from whale import native
from whale.plan import Plan

if TYPE_CHECKING:
    from whale.lowering import Lowered

# What estimates may be wrong by where they are confirmed.
_MARGIN = 0.98
# One confirms the estimate; where it was too high, another one that of two
# plans.
_TRACES = 2


@dataclasses.dataclass(frozen=True)
class Need:
    """What the devices of a plan need that are fullest, and a step takes."""

    fits: bool
    ranks: tuple[int, ...]
    kind: str
    memory_bytes: int
    peak_memory_bytes: int
    step_time_s: float

    @staticmethod
    def of(part: Mapping[str, Any]) -> Need:
        return Need(
            part["fits"],
            tuple(part["ranks"]),
            part["kind"],
            part["memory_bytes"],
            part["peak_memory_bytes"],
            part["step_time_s"],
        )


@dataclasses.dataclass(frozen=True)
class Held:
    """What a fullest device holds at its peak; all of these are its bytes."""

    what: str
    bytes: int
    values: int


@dataclasses.dataclass(frozen=True)
class Option:
    """What a step would need with options: keys of `wh.Config`."""

    options: Mapping[str, Any]
    # None where the step has no plan with them, and `error` says why.
    need: Need | None
    error: str | None
    # Of the fullest device, and of a step: less is saved than 0 where more is
    # needed.
    saved_bytes: int
    seconds: float
    # Whether results are rounded otherwise than without them.
    rounds: bool


@dataclasses.dataclass(frozen=True)
class LargestBatch:
    """How many samples fit."""

    samples: int
    # Of a step with so many samples that was planned; None where the number is
    # an estimate: the one that was planned did not fit, or `error` says why
    # none was.
    need: Need | None
    error: str | None = None


@dataclasses.dataclass(frozen=True)
class Fit:
    """Whether a step fits, and what would let it.

    As text, and in notebooks, three tables: who holds what where memory is
    fullest, what each option would save and cost, the largest mini-batch.
    """

    need: Need
    held: tuple[Held, ...]
    options: tuple[Option, ...]
    samples: int | None
    # None where nothing carries a mini-batch, or no size of it fits.
    largest_batch: LargestBatch | None
    # None where the step does not fit and the planner has given it up.
    plan: Plan | None
    _parts: tuple[Mapping[str, Any], ...] = dataclasses.field(repr=False)

    @property
    def best(self) -> Option | None:
        """The options that let the step fit in the least time, of those that
        change no result; None where it fits as it is, or none do."""
        enough = [
            option
            for option in self.options
            if option.need and option.need.fits and not option.rounds
        ]
        if self.need.fits or not enough:
            return None
        return min(enough, key=lambda option: option.seconds)

    def __str__(self) -> str:
        first = dict(self._parts[0])
        first.pop("largest_batch", None)
        parts = [first, *self._parts[1:]]
        return native.extension().fit_table(json.dumps(parts)) + self._batch()

    def _batch(self) -> str:
        most = self.largest_batch
        if most is None:
            return ""
        how = "as its plan says" if most.need else "as is estimated"
        if most.error:
            how += f" ({most.error})"
        return (
            f"the largest mini-batch that fits has {most.samples} samples, "
            f"{how}; this one has {self.samples}\n"
        )

    def __repr__(self) -> str:
        fits = "fits" if self.need.fits else "does not fit"
        return (
            f"<Fit: {fits}, {self.need.peak_memory_bytes} of "
            f"{self.need.memory_bytes} bytes>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def fit(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Fit:
    """Says what a step needs, what options would save, and how much fits.

    Nothing is compiled or run. The step is traced once more for the largest
    mini-batch, where an argument carries one, or twice if what is expected of
    it does not fit.

    Args:
        step: what `wh.jit` has made; or a function, which is taken as
            ``wh.jit(step, cluster=cluster)`` takes it.
        *args: its arguments, arrays or `jax.ShapeDtypeStruct`.
        **kwargs: its keyword arguments. ``cluster``, which is none of them, is
            what to plan for in place of the step's own, as in `wh.jit`.

    Raises:
        CompileError: as of a compilation, but for a step that does not fit.
        ValueError: where there is no cluster.
    """
    # It needs modules that need this one.
    from whale.api import as_step

    cluster = kwargs.pop("cluster", None)
    made = as_step(step, cluster)
    lowered = made.lower(*args, **kwargs)
    with _Pricing(lowered, cluster) as pricing:
        first = pricing.first()
        largest = _largest_batch(lowered, cluster, first)
        plan, parts = pricing.result()
    need = Need.of(first)
    return Fit(
        need,
        tuple(
            Held(row["what"], row["bytes"], row["values"])
            for row in first["held"]
        ),
        tuple(_option(part, need) for part in parts[1:]),
        first.get("samples"),
        largest,
        plan,
        tuple(parts),
    )


class _Pricing:
    """The compiler, which prices options while this thread traces the step."""

    def __init__(self, lowered: Lowered, cluster: Any) -> None:
        self._lowered = lowered
        self._cluster = cluster
        self._first: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._said: Any = None
        self._error: BaseException | None = None
        self._end: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> _Pricing:
        self._thread.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: Any) -> None:
        if error is not None:
            self._end()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._said = self._lowered.needs(
                cluster=self._cluster,
                prices_options=True,
                on_part=self._first.put,
                on_start=self._started,
            )
        except BaseException as error:
            self._error = error
        finally:
            self._first.put(None)

    def _started(self, end: Callable[[], None]) -> None:
        self._end = end

    def first(self) -> Mapping[str, Any]:
        """What the step needs, as soon as it is known."""
        part = self._first.get()
        if part is None:
            self.result()
        return part

    def result(self) -> tuple[Plan | None, list[dict[str, Any]]]:
        """All that the compiler says."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._said


def _option(part: Mapping[str, Any], without: Need) -> Option:
    need = None if "error" in part else Need.of(part)
    return Option(
        part["options"],
        need,
        part.get("error"),
        without.peak_memory_bytes - need.peak_memory_bytes if need else 0,
        need.step_time_s - without.step_time_s if need else 0.0,
        part.get("rounds", False),
    )


def _largest_batch(
    lowered: Lowered, cluster: Any, first: Mapping[str, Any]
) -> LargestBatch | None:
    """The estimate, confirmed by a trace of the step with so many samples."""
    samples, most = first.get("samples"), first.get("largest_batch")
    if samples is None or most is None:
        return None
    need = Need.of(first)
    # Micro-batches are to be equal.
    step = first.get("micro_batches", 1)
    candidate = int(most * _MARGIN) // step * step
    for _ in range(_TRACES):
        if candidate == samples and need.fits:
            return LargestBatch(samples, need)
        if candidate < 1:
            return None
        try:
            other = lowered.with_samples(candidate)
            _, (found, *_) = other.needs(cluster=cluster, prices_options=False)
        except Exception as error:
            # The model may be one for this size alone.
            return LargestBatch(candidate, None, str(error).partition("\n")[0])
        there = Need.of(found)
        if there.fits:
            return LargestBatch(candidate, there)
        # Bytes are about linear in samples.
        more = there.peak_memory_bytes - need.peak_memory_bytes
        if more * (candidate - samples) <= 0:
            return None
        room = (there.memory_bytes - there.peak_memory_bytes) / more
        least = candidate + room * (candidate - samples)
        candidate = int(least * _MARGIN) // step * step
    return LargestBatch(candidate, None) if candidate >= 1 else None
