"""Names of modules in JAX's name stack, of libraries that write none.

In: the classes of flax nnx and equinox that are loaded. While `named` is
entered, calling a module opens a ``jax.named_scope``: with the class's name for
the outermost module, with its attributes, as ``layers/0``, for those inside.
The paths of a model are found when its outermost module is called, in time
linear in the model; a module that a transformation has made anew inside another
one's call is named by its class.

The ``__call__`` of a class is replaced meanwhile. A thread that has not entered
`named` is not affected.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax

_lock = threading.Lock()
_users = 0
# The classes whose calls are replaced, with what they had.
_replaced: list[tuple[type, Any]] = []


class _State(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        # Of the modules that are being called: where in the outermost one.
        self.open: list[tuple[str, ...]] = []
        # By identity, with the module, so that the number is not used again.
        self.paths: dict[int, tuple[Any, tuple[str, ...]]] = {}


_state = _State()


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Has the calls of modules in this thread open scopes of their names."""
    global _users
    with _lock:
        if _users == 0:
            _replace_calls()
        _users += 1
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1
        with _lock:
            _users -= 1
            if _users == 0:
                _restore_calls()


def _bases() -> list[type]:
    """The libraries' classes of modules, of those that are loaded."""
    found = []
    for module, name in (("flax.nnx", "Module"), ("equinox", "Module")):
        loaded = sys.modules.get(module)
        if loaded is not None and hasattr(loaded, name):
            found.append(getattr(loaded, name))
    return found


def _replace_calls() -> None:
    waiting, seen = _bases(), set()
    while waiting:
        kind = waiting.pop()
        if kind in seen:
            continue
        seen.add(kind)
        waiting += kind.__subclasses__()
        call = kind.__dict__.get("__call__")
        # Equinox wraps a method in a Module, which has a call of its own.
        if call is not None and not kind.__module__.startswith(
            ("equinox._", "equinox.internal")
        ):
            with contextlib.suppress(AttributeError, TypeError):
                kind.__call__ = _named_call(call)  # type: ignore[method-assign]
                _replaced.append((kind, call))


def _restore_calls() -> None:
    while _replaced:
        kind, call = _replaced.pop()
        kind.__call__ = call  # type: ignore[method-assign]


def _named_call(call: Any) -> Any:
    def named_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = call.__get__(self, type(self))
        if not _state.depth:
            return bound(*args, **kwargs)
        with _entered(self):
            return bound(*args, **kwargs)

    with contextlib.suppress(AttributeError, TypeError):
        functools.update_wrapper(named_call, call)
    return named_call


@contextlib.contextmanager
def _entered(module: Any) -> Iterator[None]:
    path = _path_of(module)
    around = _state.open[-1] if _state.open else ()
    inside = path[: len(around)] == around
    names = path[len(around) :] if inside else path
    _state.open.append(path)
    try:
        with contextlib.ExitStack() as stack:
            # None where a class calls that of its base, or itself.
            for name in names:
                stack.enter_context(jax.named_scope(name))
            yield
    finally:
        _state.open.pop()
        if not _state.open:
            _state.paths.clear()


def _path_of(module: Any) -> tuple[str, ...]:
    known = _state.paths.get(id(module))
    if known is None:
        around = _state.open[-1] if _state.open else ()
        _find(module, (*around, type(module).__name__))
        known = _state.paths[id(module)]
    return known[1]


def _find(root: Any, path: tuple[str, ...]) -> None:
    """Notes the paths of all modules in one, the shortest of each."""
    bases = tuple(_bases())
    waiting = [(root, path)]
    while waiting:
        value, path = waiting.pop(0)
        if isinstance(value, bases):
            if id(value) in _state.paths:
                continue
            _state.paths[id(value)] = value, path
            children = list(getattr(value, "__dict__", {}).items())
        elif isinstance(value, dict):
            children = list(value.items())
        elif isinstance(value, (list, tuple)):
            children = list(enumerate(value))
        else:
            continue
        waiting += [
            (child, (*path, str(name)))
            for name, child in children
            if isinstance(child, (*bases, dict, list, tuple))
        ]
