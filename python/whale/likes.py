"""``out_like`` and ``in_like``: a program's tensors where another has its own.

In: a step that has been compiled, with what it is asked for, and the leaves of
another program that is lowered. Out: for each leaf of the other one's arguments
or results where it is to be, as text, or None. Whole arguments and results are
matched, by tree, shapes and dtypes: what is state in the step, an argument that
is donated or that a result feeds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax

from whale.clusters import ClusterLike, cluster_text, device_count
from whale.matching import only_longest_match
from whale.parameters import Parameter
from whale.placement import Placement
from whale.program import Program
from whale.signature import Leaf


@runtime_checkable
class Known(Protocol):
    """A step of ``wh.jit``, or what it was lowered to."""

    def known_program(self) -> Program:
        """Its program; a ValueError that says what to do where none is."""

    def cluster_of_programs(self) -> ClusterLike | None:
        """What it is compiled for."""

    def of_name(self, name: str) -> Parameter:
        """The argument that a name gives."""


LikeOption: TypeAlias = Any
Pairs: TypeAlias = Mapping[Parameter, Parameter]


@dataclasses.dataclass(frozen=True)
class Like:
    """What an option asks for: a step, and maybe which argument for which."""

    option: str
    step: Known | Program
    # The argument of the step, for each argument or result of the other one.
    pairs: Mapping[Any, Any] | None = None
    # The same where it is for all that the other one gives.
    whole: Any = None

    @staticmethod
    def of(option: str, value: LikeOption) -> Like | None:
        """What is given for an option.

        Raises:
            TypeError: where that is no step, nor a pair of one.
        """
        if value is None:
            return None
        step, pairs, whole = value, None, None
        if isinstance(value, tuple) and len(value) == 2:
            step, asked = value
            if isinstance(asked, Mapping):
                pairs = asked
            else:
                whole = asked
        if not isinstance(step, (Known, Program)) or not (
            whole is None or isinstance(whole, (int, str))
        ):
            raise TypeError(
                f"{option}: expected a step of wh.jit, what it was lowered to, "
                "or its program, or (step, argument) or (step, {position: "
                f"argument}}), not {value!r}"
            )
        return Like(option, step, pairs, whole)

    def program(self) -> Program:
        """The step's.

        Raises:
            ValueError: where it has none yet.
        """
        if isinstance(self.step, Program):
            return self.step
        try:
            return self.step.known_program()
        except ValueError as error:
            raise ValueError(f"{self.option}: {error}") from None

    def check_cluster(self, cluster: ClusterLike) -> None:
        """Raises ValueError where the step is for another cluster."""
        program = self.program()
        own = (
            program.rank_count
            if isinstance(self.step, Program)
            else self.step.cluster_of_programs()
        )
        # Of a program it is known how many ranks it has.
        same = (
            device_count(cluster) == own
            if isinstance(self.step, Program)
            else own is not None and cluster_text(own) == cluster_text(cluster)
        )
        if not same:
            raise ValueError(
                f"{self.option}: {program.name!r} is compiled for another "
                "cluster; leave out cluster=, and it is that of the step"
            )


@dataclasses.dataclass(frozen=True)
class Part:
    """A top-level argument or result, or the state of a module of one of
    several: its place, tree and leaves."""

    place: Any
    tree: Any
    leaves: tuple[Leaf, ...]
    # Of the first leaf, among all.
    first: int

    def is_like(self, other: Part) -> bool:
        """Whether both have the same tree, shapes and dtypes."""
        return self.leaves == other.leaves and self.tree == other.tree

    def describe(self) -> str:
        """ "0 (3 leaves: f32[8,4], ...)"."""
        shown = ", ".join(map(str, self.leaves[:2]))
        more = ", ..." if len(self.leaves) > 2 else ""
        count = len(self.leaves)
        return (
            f"{self.place!r} ({count} {'leaf' if count == 1 else 'leaves'}: "
            f"{shown}{more})"
        )


def parts_of(
    trees: Sequence[tuple[Any, jax.tree_util.PyTreeDef]],
    leaves: Sequence[Leaf],
) -> list[Part]:
    """Those that have leaves; the leaves are of all trees in their order."""
    parts = []
    first = 0
    for place, tree in trees:
        own = [dataclasses.replace(leaf, label="") for leaf in leaves[first:]]
        if tree.num_leaves:
            parts.append(
                Part(place, tree, tuple(own[: tree.num_leaves]), first)
            )
        first += tree.num_leaves
    return parts


def modules_of(
    tree: jax.tree_util.PyTreeDef,
) -> list[tuple[Any, jax.tree_util.PyTreeDef]] | None:
    """The numbers of several modules of flax nnx, and the trees of their
    states, where a tree is that of all of them, as `nnx.split` and `wh.nnx_jit`
    make it of a tuple; else None."""
    data = tree.node_data()
    if data is None or data[0].__module__.partition(".")[0] != "flax":
        return None
    keys, children = data[1], tree.children()
    if not isinstance(keys, tuple) or keys != tuple(range(len(children))):
        return None
    return list(zip(keys, children))


def arguments_of(
    in_tree: jax.tree_util.PyTreeDef,
    leaves: Sequence[Leaf],
    parameters: Sequence[Parameter] | None = None,
) -> list[Part]:
    """The arguments of a program; `parameters` are those of the leaves, the
    positions of the arguments if left out."""
    args, kwargs = in_tree.children()
    trees: list[tuple[Any, jax.tree_util.PyTreeDef]] = []
    for place, tree in (
        *enumerate(args.children()),
        *zip(kwargs.node_data()[1], kwargs.children()),
    ):
        modules = modules_of(tree)
        trees += (
            [(place, tree)]
            if modules is None
            else [((place, number), part) for number, part in modules]
        )
    parts = parts_of(trees, leaves)
    if parameters is None:
        return parts
    return [
        dataclasses.replace(
            part,
            place=(parameters[part.first], part.place[1])
            if isinstance(part.place, tuple)
            else parameters[part.first],
        )
        for part in parts
    ]


def results_of(
    out_tree: jax.tree_util.PyTreeDef, leaves: Sequence[Leaf]
) -> tuple[Part, list[Part]]:
    """All that a function returns, and the elements of a tuple or list."""
    whole = Part(0, out_tree, tuple(leaves), 0)
    whole = parts_of([(0, out_tree)], leaves)[0] if leaves else whole
    if (modules := modules_of(out_tree)) is not None:
        return whole, parts_of(modules, leaves)
    data = out_tree.node_data()
    if not data or data[0] not in (tuple, list):
        return whole, [whole] if leaves else []
    return whole, parts_of(list(enumerate(out_tree.children())), leaves)


def state_of(like: Like) -> tuple[Program, list[Part]]:
    """The step's program, and those of its arguments that are state.

    Raises:
        ValueError: where there is none.
    """
    program = like.program()
    signature = program.signature
    if signature.in_tree is None:
        raise ValueError(
            f"{like.option}: a program that was loaded does not say what the "
            "trees of its arguments are; give the step that it was saved from"
        )
    fed = [entry.get("fed_by") is not None for entry in program.entries]
    parts = [
        part
        for part in arguments_of(signature.in_tree, signature.arguments)
        if any(
            fed[index] or signature.donated[index]
            for index in range(part.first, part.first + len(part.leaves))
        )
    ]
    if not parts and like.pairs is None and like.whole is None:
        raise ValueError(
            f"{like.option}: no argument of {program.name!r} is state: none "
            "is donated, and no result is its next value; name the arguments, "
            f"as in {like.option}=(step, {{0: 0}})"
        )
    return program, parts


def task_graph_devices(likes: Sequence[Like]) -> dict[str, list[list[int]]]:
    """Where the steps have their TaskGraphs; the first one that has a name
    says what it means."""
    devices: dict[str, list[list[int]]] = {}
    for like in likes:
        decisions = like.program().plan.get("decisions", {})
        for name, groups in decisions.get("devices", {}).items():
            devices.setdefault(name, groups)
    return devices


class Matcher:
    """Finds which of a program's tensors are which arguments of a step."""

    def __init__(self, like: Like, what: str) -> None:
        self._like = like
        self._what = what
        self._program, self._state = state_of(like)
        signature = self._program.signature
        assert signature.in_tree is not None
        self._arguments = {
            part.place: part
            for part in arguments_of(signature.in_tree, signature.arguments)
        }

    def pair(self, parts: Sequence[Part]) -> list[tuple[Part, Part]]:
        """The parts that are like an argument, with that.

        Raises:
            ValueError: where there are several ways, or those that were named
                are not alike.
        """
        if self._like.pairs is not None:
            return self._named(parts, self._like.pairs)
        kinds: list[Part] = []

        def number(part: Part) -> int:
            for index, kind in enumerate(kinds):
                if kind.is_like(part):
                    return index
            kinds.append(part)
            return len(kinds) - 1

        own = [number(part) for part in parts]
        state = [number(part) for part in self._state]
        match = only_longest_match(own, state)
        if not match and set(own) & set(state):
            several = [p for p, kind in zip(parts, own) if kind in state]
            raise ValueError(
                f"{self._like.option}: {self._what} "
                f"{', '.join(repr(p.place) for p in several)} could be "
                f"several arguments of {self._program.name!r}: "
                f"{self._described()}; say which, as in {self._example(parts)}"
            )
        return [(parts[i], self._state[j]) for i, j in match]

    def one(self, part: Part, place: Any) -> tuple[Part, Part]:
        """A part, and the argument that it is said to be.

        Raises:
            ValueError: where it is not, or there is none.
        """
        if isinstance(place, str) and not isinstance(self._like.step, Program):
            place = self._like.step.of_name(place)
        argument = self._arguments.get(place)
        if argument is None:
            raise ValueError(
                f"{self._like.option}: {self._program.name!r} has no argument "
                f"{place!r} with arrays, only "
                f"{', '.join(map(repr, self._arguments))}"
            )
        if not argument.is_like(part):
            raise ValueError(
                f"{self._like.option}: {self._what} {part.describe()} is not "
                "of the tree, shapes and dtypes of argument "
                f"{argument.describe()} of {self._program.name!r}"
            )
        return part, argument

    def _named(
        self, parts: Sequence[Part], pairs: Mapping[Any, Any]
    ) -> list[tuple[Part, Part]]:
        known = {part.place: part for part in parts}
        found = []
        for own, place in pairs.items():
            if own not in known:
                raise ValueError(
                    f"{self._like.option}: there is no {self._what} {own!r} "
                    f"with arrays, only {', '.join(map(repr, known))}"
                )
            found.append(self.one(known[own], place))
        return found

    def explain(self, parts: Sequence[Part]) -> str:
        """That parts are like no argument, for an error."""
        return (
            f"{self._like.option}: {self._what} "
            f"{', '.join(part.describe() for part in parts)} "
            f"{'is' if len(parts) == 1 else 'are'} like no argument of "
            f"{self._program.name!r} that is state: {self._described()}"
        )

    def _described(self) -> str:
        return ", ".join(part.describe() for part in self._state)

    def _example(self, parts: Sequence[Part]) -> str:
        return (
            f"{self._like.option}=(step, {{{parts[0].place!r}: "
            f"{self._state[0].place!r}}})"
        )

    def places(
        self, pairs: Sequence[tuple[Part, Part]], count: int
    ) -> list[str | None]:
        """For each of `count` leaves where the step has it."""
        entries = self._program.manifest["arguments"]
        # Entries that are alike share their boxes.
        written: dict[tuple[int, ...], str] = {}
        places: list[str | None] = [None] * count
        for part, argument in pairs:
            for offset in range(len(part.leaves)):
                entry = entries[argument.first + offset]
                key = (id(entry["boxes"]), *entry["view"])
                if key not in written:
                    written[key] = Placement.of(entry).text()
                places[part.first + offset] = written[key]
        return places


def argument_places(
    like: Like,
    in_tree: jax.tree_util.PyTreeDef,
    leaves: Sequence[Leaf],
    parameters: Sequence[Parameter],
    may_be_state: Sequence[bool],
) -> list[str | None]:
    """Where the step has what is given to another program.

    Args:
        like: the step.
        in_tree: of the other program.
        leaves: its arguments.
        parameters: which argument each is part of.
        may_be_state: whether each is no part of a mini-batch.

    Raises:
        ValueError: where nothing is like an argument of the step.
    """
    matcher = Matcher(like, "argument")
    parts = arguments_of(in_tree, leaves, parameters)
    if like.whole is not None:
        if len(parts) != 1:
            raise ValueError(
                "in_like: the function takes several arguments: say which is "
                f"which, as in in_like=(step, {{{parts[0].place!r}: "
                f"{like.whole!r}}})"
            )
        return matcher.places([matcher.one(parts[0], like.whole)], len(leaves))
    own = [part for part in parts if may_be_state[part.first]]
    pairs = matcher.pair(own if like.pairs is None else parts)
    if not pairs:
        raise ValueError(matcher.explain(own or parts))
    return matcher.places(pairs, len(leaves))


def result_places(
    like: Like,
    out_tree: jax.tree_util.PyTreeDef,
    leaves: Sequence[Leaf],
) -> list[str | None]:
    """Where the step wants what another program gives.

    Raises:
        ValueError: where a result that is no number is like no argument.
    """
    matcher = Matcher(like, "result")
    whole, parts = results_of(out_tree, leaves)
    if like.whole is not None:
        return matcher.places([matcher.one(whole, like.whole)], len(leaves))
    if like.pairs is not None:
        return matcher.places(matcher.pair(parts), len(leaves))
    # A tuple may be one argument of the step, or several.
    if pairs := matcher.pair([whole]):
        return matcher.places(pairs, len(leaves))
    pairs = matcher.pair(parts)
    found = {part.first for part, _ in pairs}
    others = [
        part
        for part in parts
        if part.first not in found
        if any(leaf.aval.shape for leaf in part.leaves)
    ]
    if not pairs or others:
        raise ValueError(matcher.explain(others or parts))
    return matcher.places(pairs, len(leaves))
