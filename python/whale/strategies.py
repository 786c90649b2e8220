"""``wh.replicate`` and ``wh.split``: strategies as scopes of a model.

A scope reaches the compiler as one component of JAX's name stack,
``whale:KIND:COUNT:ID:NAME``, which JAX carries through differentiation,
rematerialisation, ``vmap`` and ``scan`` into the locations of the lowered
text. Nothing else ties an operation to its strategy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import jax

from whale.errors import WhaleError
from whale.tracebacks import api_boundary

# Reads a component back; a name is percent-encoded, so it never holds a
# slash, a colon, a parenthesis or a quote.
_COMPONENT = re.compile(r"whale:(replicate|split):(\*|\d+):(\d+):([\w.~%-]*)")


# Numbers of devices, micro-batches and TaskGraphs, in words and as a check.
MOST = 1 << 15
COUNT = f"a whole number from 1 to {MOST}"


def is_count(value: Any) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 1 <= value <= MOST
    )


class Strategy(contextlib.ContextDecorator):
    """How a part of the model is spread over devices.

    Entered with ``with`` it holds for the operations traced inside, and every
    entry is a TaskGraph of its own unless it has a name.
    """

    kind: str

    @api_boundary
    def __init__(
        self, device_count: int | None = None, name: str | None = None
    ) -> None:
        if device_count is not None and not is_count(device_count):
            raise ValueError(
                f"{self.kind}: device_count must be {COUNT}, "
                f"not {device_count!r}"
            )
        if name is not None and (not isinstance(name, str) or not name):
            raise ValueError(
                f"{self.kind}: name must be a non-empty string, not {name!r}"
            )
        self.device_count = device_count
        self.name = name
        # Where neither this scope nor a cluster around it says a number.
        self.default_count: int | None = None

    def __enter__(self) -> Strategy:
        for around, _ in _state.open:
            self._check_inside(around)
        scope = jax.named_scope(self.component(_next_id()))
        scope.__enter__()
        # By thread, not in the strategy: one may be open several times.
        _state.open.append((self, scope))
        _state.note()
        return self

    def __exit__(self, *details: Any) -> None:
        if not _state.open or _state.open[-1][0] is not self:
            raise WhaleError(
                f"{self} is left in another thread than it was entered in, or "
                "before one that was entered after it"
            )
        _, scope = _state.open.pop()
        _state.note()
        scope.__exit__(*details)

    def _check_inside(self, around: Strategy) -> None:
        """Raises ValueError where this scope can't be in `around`."""
        if around.name == self.name is not None:
            if around.attribute() != self.attribute():
                raise ValueError(
                    f"{self} is in {around}, a scope of the same name; one "
                    "TaskGraph has one strategy, so give them different names"
                )
        elif isinstance(around, split):
            # It would take its operations out of what is to be sharded, onto
            # devices of its own.
            raise ValueError(
                f"{self} is in {around}, which shards all that it holds; "
                "end that split before, or give both one name and strategy"
            )

    def component(self, scope: int) -> str:
        """The component of the name stack for the entry numbered `scope`."""
        count: int | str | None = self.device_count
        for setting in open_settings():
            if setting.virtual_devices and self.device_count is None:
                count = setting.device_count or "*"
        count = count or self.default_count or "*"
        # Names are bytes: those that are no UTF-8 are as os.fsdecode has them.
        name = urllib.parse.quote(
            self.name or "", safe="", errors="surrogateescape"
        )
        return f"whale:{self.kind}:{count}:{scope}:{name}"

    def attribute(self) -> str:
        """The strategy as an attribute of the ``whale`` dialect."""
        parameters = []
        if self.device_count is not None:
            parameters.append(f"devices = {self.device_count}")
        if self.name is not None:
            escaped = self.name.replace("\\", "\\\\").replace('"', '\\"')
            parameters.append(f'name = "{escaped}"')
        inside = f"<{', '.join(parameters)}>" if parameters else ""
        return f"#whale.{self.kind}{inside}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Strategy)
            and self.attribute() == other.attribute()
        )

    def __hash__(self) -> int:
        return hash(self.attribute())

    def __repr__(self) -> str:
        return (
            f"{self.kind}(device_count={self.device_count!r}, "
            f"name={self.name!r})"
        )


class replicate(Strategy):  # noqa: N801 - reads as a function
    """A TaskGraph on `device_count` devices that share out the mini-batch.

    Args:
        device_count: how many devices, or None for all of the cluster.
        name: scopes of one name are one TaskGraph on the same devices.
    """

    kind = "replicate"


class split(Strategy):  # noqa: N801 - reads as a function
    """A TaskGraph whose tensors are sharded over `device_count` devices.

    Args:
        device_count: how many devices, or None for all of the cluster.
        name: scopes of one name are one TaskGraph on the same devices.
    """

    kind = "split"


class Setting(contextlib.ContextDecorator):
    """What holds for the whole of a step: entered around a part of it, or
    around the call that traces it. One of a kind at a time."""

    kind: str
    # What settings of any kind can say.
    virtual_devices: tuple[tuple[int, ...], ...] = ()
    device_count: int | None = None
    num_micro_batch: int | None = None
    # Patterns of names, each with the attribute of its strategy.
    patterns: tuple[tuple[str, str], ...] = ()

    def _key(self) -> Any:
        """What settings of this kind can differ in."""
        raise NotImplementedError

    def __enter__(self) -> Setting:
        if any(other.kind == self.kind for other in _state.settings):
            raise ValueError(f"wh.{self.kind} is in a wh.{self.kind}")
        _state.settings.append(self)
        _state.note()
        if _state.seen is not None:
            _state.seen.append(self)
        return self

    def __exit__(self, *details: Any) -> None:
        if self not in _state.settings:
            raise WhaleError(
                f"wh.{self.kind} is left in another thread than it was entered "
                "in"
            )
        _state.settings.remove(self)
        _state.note()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.kind, self._key()))

    def __repr__(self) -> str:
        return f"{self.kind}({self._key()!r})"


class _State(threading.local):
    def __init__(self) -> None:
        self.open: list[tuple[Strategy, Any]] = []
        self.ids: Iterator[int] | None = None
        self.settings: list[Setting] = []
        # The settings that were entered since the trace began.
        self.seen: list[Setting] | None = None
        self.note()

    def note(self) -> None:
        """To be called when `open` or `settings` has changed."""
        # Each call of a step asks for them.
        self.held = (
            tuple(strategy for strategy, _ in self.open),
            tuple(self.settings),
        )


_state = _State()
_ids: Iterator[int] = itertools.count(1)
_default: Strategy | None = None
# Whether a step has been lowered under it.
_is_default_used = False

# What JAX has cached of a trace holds the scopes of that trace; a value of
# this context that no other trace had keeps every cache, those of inner
# `jax.jit` functions too, from answering for it.
_trace_token = jax.make_user_context(None)


def _next_id() -> int:
    return next(_ids if _state.ids is None else _state.ids)


def reset() -> Strategy | None:
    """Forgets the default strategy and starts to number scopes anew.

    Returns:
        the default strategy, if no step has been lowered under it.
    """
    global _default, _ids
    forgotten = None if _is_default_used else _default
    _default = None
    _ids = itertools.count(1)
    return forgotten


@api_boundary
def set_default_strategy(strategy: Strategy | None) -> None:
    """Sets the strategy of every operation that is outside all scopes."""
    global _default, _is_default_used
    if strategy is not None and not isinstance(strategy, Strategy):
        raise TypeError(
            "set_default_strategy takes wh.replicate(...), wh.split(...) or "
            f"None, not {strategy!r}"
        )
    _default = strategy
    _is_default_used = False


def default_strategy() -> Strategy | None:
    """What `set_default_strategy` set last."""
    return _default


def used_default() -> Strategy | None:
    """The same, for a step that is lowered under it."""
    global _is_default_used
    _is_default_used = True
    return _default


def open_settings() -> tuple[Setting, ...]:
    """The settings that are open in this thread."""
    return _state.held[1]


def ambient() -> tuple[Strategy, ...]:
    """The strategies whose scopes are open in this thread, outermost first."""
    return _state.held[0]


def held() -> tuple[Any, ...]:
    """All that a step is lowered under: default, `ambient`, `open_settings`."""
    return _default, _state.held


@contextlib.contextmanager
def tracing() -> Iterator[list[Setting]]:
    """Numbers scopes from 1 and lets JAX trace everything anew.

    Yields the settings that hold for the trace; complete when it ends.
    """
    outer = _state.ids, _state.seen
    _state.ids = itertools.count(1)
    _state.seen = list(_state.settings)
    try:
        with _trace_token(object()):
            yield _state.seen
    finally:
        _state.ids, _state.seen = outer


@contextlib.contextmanager
def reopened(strategies: tuple[Strategy, ...]) -> Iterator[None]:
    """Opens scopes again inside a trace, whose name stack starts empty."""
    with contextlib.ExitStack() as stack:
        for strategy in strategies:
            stack.enter_context(jax.named_scope(strategy.component(_next_id())))
        yield


@dataclasses.dataclass(frozen=True)
class Scope:
    """One scope as a lowered text shows it."""

    kind: str
    device_count: int | None
    id: int
    name: str | None

    def __str__(self) -> str:
        count = "" if self.device_count is None else str(self.device_count)
        name = f"name={self.name!r}" if self.name is not None else ""
        inside = ", ".join(part for part in (count, name) if part)
        return f"wh.{self.kind}({inside})"


def scopes_in(text: str) -> list[Scope]:
    """The scopes that operations of `text` are in, ordered by their id."""
    found = {}
    for kind, count, scope, name in _COMPONENT.findall(text):
        found[int(scope)] = Scope(
            kind=kind,
            device_count=None if count == "*" else int(count),
            id=int(scope),
            name=urllib.parse.unquote(name, errors="surrogateescape") or None,
        )
    return [found[key] for key in sorted(found)]
