"""What programs keep from step to step beside the user's state: a loss scale.

In: the arguments in a program's manifest. Out: values for those that are its
own, with the leaves that describe them; what a step gives for them is kept for
the next one. A checkpoint holds them by the program's name: of several programs
with one name, as a step has that was compiled for several shapes, those of the
one that ran last. What is restored is for all of them, also for those that are
compiled later.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from whale.signature import Leaf


class OwnState:
    """The arguments of a program that are its own, behind the user's."""

    def __init__(self, name: str, entries: Sequence[Mapping[str, Any]]) -> None:
        """Begins with what was restored, else with what the manifest has.

        Args:
            name: the program's.
            entries: the arguments in its manifest.
        """
        own = [entry for entry in entries if entry.get("initial")]
        self.leaves = tuple(
            Leaf(
                f"{entry['label']}[{name}]",
                (len(entry["initial"]),),
                entry["dtype"],
            )
            for entry in own
        )
        self._initial = [np.array(e["initial"], np.float32) for e in own]
        self.values: list[Any] = [
            _restored.get(leaf.label, value)
            for leaf, value in zip(self.leaves, self._initial)
        ]
        self._turn = 0
        if own:
            _known.add(self)

    def __len__(self) -> int:
        return len(self.leaves)

    @property
    def is_initial(self) -> bool:
        """Whether its next step begins as the manifest says."""
        return all(map(operator.is_, self.values, self._initial))

    def keep(self, values: list[Any]) -> None:
        """Takes what a step has given for them."""
        self.values = values
        self._turn = next(_turns)

    def reset(self) -> None:
        """Begins anew, as after a step that failed."""
        self.values = list(self._initial)

    def named(self) -> Iterator[tuple[str, int, Any]]:
        """Each with its name, and when it was kept."""
        for leaf, value in zip(self.leaves, self.values):
            yield leaf.label, self._turn, value

    def restore(self, label: str, value: Any) -> None:
        """Takes a value of a checkpoint, if it is for this one."""
        for index, leaf in enumerate(self.leaves):
            if leaf.label == label:
                self.values[index] = value
                self._turn = next(_turns)


_known: weakref.WeakSet[OwnState] = weakref.WeakSet()
_turns = itertools.count(1)
_restored: dict[str, Any] = {}


def saved() -> list[tuple[str, Any]]:
    """What a checkpoint holds: names and values, by name."""
    last: dict[str, tuple[int, Any]] = {}
    for state in _known:
        for label, turn, value in state.named():
            # Of those that no step has had, there may be several.
            if turn > last.get(label, (0, None))[0]:
                last[label] = turn, value
    return [(label, value) for label, (_, value) in sorted(last.items())]


def is_own(label: str) -> bool:
    """Whether a leaf of a checkpoint is a program's own."""
    return label.startswith("amp.loss_scale[")


def restore(label: str, value: Any) -> None:
    """Gives a leaf of a checkpoint to the programs that it is for."""
    _restored[label] = value
    for state in _known:
        state.restore(label, value)


def forget() -> None:
    """Programs that are compiled from now on begin anew."""
    _restored.clear()
