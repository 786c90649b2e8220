"""``wh.Config`` and ``wh.init``: what holds for a whole process."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from whale import notices, strategies


@dataclasses.dataclass(frozen=True)
class Key:
    """One setting: what it accepts, in words and as a check."""

    accepts: str
    check: Callable[[Any], bool]


# The usual names of the schedules of a pipeline, and those of EPL.
SCHEDULES = (
    "gpipe",
    "1f1b",
    "backward-optimizer",
    "interleaved",
    "zero-bubble",
    "preferforward",
    "preferbackward",
    "preferbackwardoptimizer",
)

MOST_BYTES = 1 << 40

# What is for Python alone.
_HERE = ("warnings",)

KEYS: Mapping[str, Key] = {
    "num_micro_batch": Key(strategies.COUNT, strategies.is_count),
    "batch_norm": Key("'micro'", lambda value: value == "micro"),
    "num_task_graph": Key(strategies.COUNT, strategies.is_count),
    "pipeline.strategy": Key(
        "the name of a schedule, one of " + ", ".join(SCHEDULES),
        lambda value: isinstance(value, str) and value.lower() in SCHEDULES,
    ),
    "cluster.uneven_replicas": Key(
        "True or False", lambda value: isinstance(value, bool)
    ),
    "communication.bucket_bytes": Key(
        f"a number of bytes from 0 to {MOST_BYTES}",
        lambda value: (
            isinstance(value, int)
            and not isinstance(value, bool)
            and 0 <= value <= MOST_BYTES
        ),
    ),
    "gpu.tf32": Key("True or False", lambda value: isinstance(value, bool)),
    "gpu.epilogues": Key(
        "True or False", lambda value: isinstance(value, bool)
    ),
    "zero.level": Key("'v0'", lambda value: value == "v0"),
    "debug_nans": Key("True or False", lambda value: isinstance(value, bool)),
    "warnings": Key("True or False", lambda value: isinstance(value, bool)),
}


class Config(Mapping[str, Any]):
    """The settings of a process, by dotted name.

    Sections may be written as nested dictionaries or with dots:
    ``{"cluster": {"uneven_replicas": True}}`` is
    ``{"cluster.uneven_replicas": True}``. What is left out is as without it.

    The keys:

    - ``num_micro_batch``: how many micro-batches a mini-batch is cut into.
    - ``num_task_graph``: how many TaskGraphs the compiler cuts a step without
      scopes into.
    - ``pipeline.strategy``: the schedule of a pipeline: ``"gpipe"``,
      ``"1f1b"``, ``"backward-optimizer"``, ``"interleaved"`` or
      ``"zero-bubble"``, or the ``"PreferForward"``, ``"PreferBackward"``,
      ``"PreferBackwardOptimizer"`` of EPL. Left out, the cost model chooses.
    - ``batch_norm``: ``"micro"``, so that statistics between layers are those
      of each micro-batch. Left out, they are an error where there are several.
    - ``cluster.uneven_replicas``: True allows replicas of unequal numbers of
      devices.
    - ``communication.bucket_bytes``: up to how many bytes small reductions of
      gradients are joined in one exchange: 262144 if left out, 0 joins none.
    - ``zero.level``: ``"v0"`` has replicas share out the state of the
      optimizer, as EPL's level of that name and DeepSpeed's first stage do.
    - ``debug_nans``: True makes a step whose results have a NaN a
      `FloatingPointError` that names the operation which made the first one.
      Left out, JAX's ``jax_debug_nans`` says so.
    - ``warnings``: False turns off the warnings of steps that waste something.
    - ``gpu.tf32``: True allows GPUs to round the operands of f32 products and
      convolutions of default precision to TF32, as XLA does.
    - ``gpu.epilogues``: False keeps products on GPUs from taking GELU and the
      sums of biases with them.

    Raises:
        ValueError: for a name or a value that is no setting of Whale, and for
            one that is given in both forms.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        self._add("", {} if settings is None else settings)

    def _add(self, prefix: str, settings: Mapping[str, Any]) -> None:
        if not isinstance(settings, Mapping):
            raise ValueError(
                f"Config takes a dictionary, not {settings!r}"
                + (f" for {prefix[:-1]!r}" if prefix else "")
            )
        for name, value in settings.items():
            path = f"{prefix}{name}"
            section = any(key.startswith(f"{path}.") for key in KEYS)
            if section:
                self._add(f"{path}.", value)
            elif path not in KEYS:
                valid = ", ".join(sorted(KEYS))
                raise ValueError(
                    f"unknown Config key {path!r}; the valid keys are {valid}"
                )
            elif not KEYS[path].check(value):
                raise ValueError(
                    f"Config key {path!r} must be {KEYS[path].accepts}, "
                    f"not {value!r}"
                )
            elif path in self._values:
                raise ValueError(
                    f"Config key {path!r} is given twice, nested and with "
                    f"dots: {self._values[path]!r} and {value!r}"
                )
            else:
                self._values[path] = value

    @functools.cached_property
    def key(self) -> tuple[tuple[str, Any], ...]:
        """The settings, as what programs are found by."""
        return tuple(sorted(self._values.items()))

    def nested(self) -> dict[str, Any]:
        """The compiler's settings with one dictionary for each section."""
        result: dict[str, Any] = {}
        for path, value in self._values.items():
            if path in _HERE:
                continue
            *sections, name = path.split(".")
            place = result
            for section in sections:
                place = place.setdefault(section, {})
            place[name] = value
        return result

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Config({self._values!r})"


_current = Config()


def init(config: Config | Mapping[str, Any] | None = None) -> None:
    """Starts afresh: sets the configuration, forgets scopes and defaults."""
    global _current
    _current = config if isinstance(config, Config) else Config(config)
    forgotten = strategies.reset()
    if forgotten is not None:
        notices.warn(
            f"wh.init forgets the default strategy {forgotten}, which no step "
            "has had; call wh.set_default_strategy after wh.init"
        )


def current() -> Config:
    """The configuration of the last ``init``."""
    return _current
