"""The arguments that a function takes, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Argnums: TypeAlias = int | Iterable[int] | None
Argnames: TypeAlias = str | Iterable[str] | None
# An argument of a function: its position, or its name if it has none.
Parameter: TypeAlias = int | str


class Parameters:
    """What a function's signature says, as far as Python can read it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters: list[inspect.Parameter] = []
        known = True
        try:
            parameters += inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            known = False
        kinds = {p.kind for p in parameters}
        by_both = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.positional = [
            p.name
            for p in parameters
            if p.kind in (inspect.Parameter.POSITIONAL_ONLY, by_both)
        ]
        self.named = [
            p.name
            for p in parameters
            if p.kind in (by_both, inspect.Parameter.KEYWORD_ONLY)
        ]
        self._takes_any_number = (
            not known or inspect.Parameter.VAR_POSITIONAL in kinds
        )
        self._takes_any_name = (
            not known or inspect.Parameter.VAR_KEYWORD in kinds
        )

    def of_name(self, name: str) -> Parameter:
        """The argument that a keyword gives."""
        if name in self.positional:
            return self.positional.index(name)
        return name

    def names(self, positions: Iterable[int]) -> set[str]:
        """The names of the arguments at these positions that have one."""
        count = len(self.positional)
        return {self.positional[p] for p in positions if p < count}

    def of_argnums(self, what: str, argnums: Argnums) -> dict[Parameter, int]:
        """The positions that the option `what` gives, counted from 0, each
        with the number that it gives.

        Raises:
            TypeError, ValueError: where one is no position of the function.
        """
        result: dict[Parameter, int] = {}
        count = len(self.positional)
        for number in listed(argnums):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{what}: not a position: {number!r}")
            place = number + count if number < 0 else number
            if place < 0 or (not self._takes_any_number and place >= count):
                raise ValueError(
                    f"{what}: {number} is no position of a function with "
                    f"{count} positional arguments"
                )
            result[place] = number
        return result

    def of_argnames(
        self, what: str, argnames: Argnames
    ) -> dict[Parameter, str]:
        """The arguments that the option `what` names, each with its name.

        Raises:
            TypeError, ValueError: where the function takes none of that name.
        """
        result: dict[Parameter, str] = {}
        for name in listed(argnames):
            if not isinstance(name, str):
                raise TypeError(f"{what}: not a name: {name!r}")
            if name not in self.named and not self._takes_any_name:
                raise ValueError(
                    f"{what}: the function takes no argument {name!r} by name, "
                    f"only {', '.join(self.named) or 'by position'}"
                )
            result[self.of_name(name)] = name
        return result


def listed(given: Any) -> list[Any]:
    """The items of an option that takes one or several."""
    if given is None:
        return []
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return list(given) if several else [given]
