"""``wh.Config`` and ``wh.init``: what holds for a whole process."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from whale import notices, strategies
from whale.tracebacks import api_boundary


@dataclasses.dataclass(frozen=True)
class Exclusion:
    """Another key that a step cannot have beside one."""

    key: str
    why: str
    # Those of the other key; all but False if there are none.
    values: tuple[Any, ...] = ()

    def is_about(self, value: Any) -> bool:
        """Whether it is about this value of the other key."""
        return value in self.values if self.values else value is not False


@dataclasses.dataclass(frozen=True)
class Key:
    """One setting, from config_keys.json, which the compiler also reads."""

    # In the Markdown of docs/python.md.
    meaning: str
    # A number from `least` to `most` or one of `names`, or else True or False.
    least: int | None = None
    most: int | None = None
    names: tuple[str, ...] = ()
    # For Python alone, and not for the compiler.
    python: bool = False
    # Keys that it acts with alone, with the values that they then have.
    needs: Mapping[str, tuple[Any, ...]] = dataclasses.field(
        default_factory=dict
    )
    excludes: tuple[Exclusion, ...] = ()

    @property
    def accepts(self) -> str:
        """What it accepts, in words."""
        names = ", ".join(map(repr, self.names))
        if len(self.names) > 1 and self.most is None:
            names = f"one of {names}"
        if self.most is None:
            return names or "True or False"
        number = f"a whole number from {self.least} to {self.most}"
        return f"{names} or {number}" if names else number

    def check(self, value: Any) -> bool:
        if isinstance(value, str):
            return value.lower() in [name.lower() for name in self.names]
        if self.most is None:
            return isinstance(value, bool) and not self.names
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.least is not None
            and self.least <= value <= self.most
        )

    @property
    def help(self) -> str:
        """What it means, without links."""
        return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", self.meaning)


def _read_keys() -> dict[str, Key]:
    file = pathlib.Path(__file__).with_name("config_keys.json")
    return {
        name: _read_key(entry)
        for name, entry in json.loads(file.read_text()).items()
    }


def _read_key(entry: dict[str, Any]) -> Key:
    needs = entry.pop("needs", {})
    excludes = [
        Exclusion(**other | {"values": tuple(other.get("values", ()))})
        for other in entry.pop("excludes", ())
    ]
    return Key(
        **entry | {"names": tuple(entry.get("names", ()))},
        needs={key: tuple(values) for key, values in needs.items()},
        excludes=tuple(excludes),
    )


KEYS: Mapping[str, Key] = _read_keys()


class Config(Mapping[str, Any]):
    """The settings of a process, by dotted name.

    Sections may be written as nested dictionaries or with dots:
    ``{"cluster": {"uneven_replicas": True}}`` is
    ``{"cluster.uneven_replicas": True}``. What is left out is as without it.

    The keys:

    KEYS

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
            if KEYS[path].python:
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


# The keys' entries come from their table.
Config.__doc__ = (Config.__doc__ or "").replace(
    "KEYS\n",
    "\n    ".join(
        textwrap.fill(
            f"- ``{name}`` ({key.accepts}): {key.help}.",
            76,
            subsequent_indent=" " * 6,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, key in KEYS.items()
    )
    + "\n",
)

_current = Config()


@api_boundary
def init(config: Config | Mapping[str, Any] | None = None) -> None:
    """Starts afresh: sets the configuration, forgets scopes and defaults."""
    from whale import own_state

    global _current
    own_state.forget()
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
