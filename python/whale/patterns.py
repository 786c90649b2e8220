"""``wh.scopes``: strategies for models that can't be edited, by names.

In: patterns of the names in JAX's name stack, each with a strategy, and a step.
Out: the step, traced under a `Setting` that the lowered text carries as the
attribute ``whale.scopes``; the compiler puts the scopes in, where it knows the
whole name path of an operation, calls included. What flax linen, haiku and
keras write there are their modules' names; nnx and equinox, which write none or
those of classes, get theirs from `module_names` meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

from whale import module_names
from whale.strategies import Setting, Strategy
from whale.tracebacks import api_boundary


class PatternScopes(Setting):
    """The strategies of all that is traced inside, by names."""

    kind = "scopes"

    def __init__(self, strategies: Mapping[str, Strategy]) -> None:
        if not isinstance(strategies, Mapping) or not strategies:
            raise TypeError(
                "wh.scopes takes a dictionary from patterns of names to "
                f"strategies, not {strategies!r}"
            )
        for pattern, strategy in strategies.items():
            if not isinstance(pattern, str) or not all(pattern.split("/")):
                raise ValueError(
                    "wh.scopes: a pattern is names with slashes between, as "
                    f"'encoder/layer_*', not {pattern!r}"
                )
            if not isinstance(strategy, Strategy):
                raise TypeError(
                    f"wh.scopes: {pattern!r} needs wh.replicate(...) or "
                    f"wh.split(...), not {strategy!r}"
                )
        self.strategies = dict(strategies)
        self.patterns = tuple(
            (pattern, strategy.attribute())
            for pattern, strategy in sorted(strategies.items())
        )
        self._names = contextlib.ExitStack()

    def __enter__(self) -> Setting:
        super().__enter__()
        self._names.enter_context(module_names.named())
        return self

    def __exit__(self, *details: Any) -> None:
        self._names.close()
        super().__exit__(*details)

    def _key(self) -> Any:
        return self.patterns


@api_boundary
def scopes(
    strategies: Mapping[str, Strategy],
    step: Callable[..., Any] | None = None,
) -> Any:
    """Gives the parts of a step strategies by their names.

    A name is what ``jax.named_scope`` was given, or a module's: its name in
    flax linen, haiku and keras, its attribute in flax nnx and equinox. A
    pattern, such as ``"encoder/layer_[0-5]"``, is names with slashes between,
    in which ``*``, ``?``, ``[...]`` and ``{a,b}`` have the shell's meaning and
    ``**`` is any number of names. It stands for all operations whose names hold
    such a run, wherever the run begins; of two patterns that of the inner name
    counts, and scopes in the model are inside or outside as if entered there. A
    strategy without a name makes each module a TaskGraph of its own.

    Args:
        strategies: by pattern.
        step: a function, or what `wh.jit` made of one. Left out, the result is
            a context manager and a decorator.

    Returns:
        the step, to be called as before.

    Raises:
        CompileError: when the step is compiled, for a pattern that matches no
            name (it lists those that there are), and for a name to which two
            patterns give two strategies.
    """
    setting = PatternScopes(strategies)
    if step is None:
        return setting
    if not callable(step):
        raise TypeError(f"wh.scopes takes a function, not {step!r}")
    if hasattr(step, "replace_function"):
        return step.replace_function(lambda function: _under(setting, function))
    return _under(setting, step)


def _under(
    setting: PatternScopes, function: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        # Not the setting itself: a function may be traced in two threads.
        with PatternScopes(setting.strategies):
            return function(*args, **kwargs)

    return scoped
