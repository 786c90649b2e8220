"""From a Python function to the text that the compiler reads.

In: a function, the types of its leaves, what is donated, batched and fed back.
Out: `Lowered`, StableHLO text with JAX's locations and the attributes of Whale,
which compiles to a `Program`. JAX traces and lowers; the attributes go onto a
clone of its module. Each lowering traces anew and holds the module twice and
the text once. But for the feedback, all is linear in leaves and text. No array
is read.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import jax
from jax.extend import source_info_util

from whale import (
    batches,
    callbacks,
    checkpoint_names,
    clusters,
    compiler,
    compiling,
    distributed,
    files,
    likes,
    nesting,
    strategies,
    waste,
)
from whale.annotations import annotate
from whale.arguments import Argument
from whale.callbacks import Callback
from whale.feedback import find_feedback
from whale.inferred import infer_batch
from whale.options import Options
from whale.parameters import Parameter
from whale.plan import Plan
from whale.program import Program
from whale.signature import Leaf, Signature
from whale.tracebacks import api_boundary

# The call stacks in locations are those of the user's code.
source_info_util.register_exclusion(os.path.dirname(__file__))


class Owner(Protocol):
    """What a step is lowered for."""

    def find(self) -> Program | None:
        """What was compiled for this call before."""

    def of_name(self, name: str) -> Parameter:
        """The argument that a name gives."""

    def lower(self, avals: Sequence[jax.ShapeDtypeStruct]) -> Lowered:
        """Lowers the step for other types of its leaves."""

    def keep(self, program: Program) -> Program:
        """Gets what was compiled for this call; returns what to use."""


class Lowered:
    """A step as annotated StableHLO, ready to be compiled."""

    def __init__(
        self,
        text: str,
        signature: Signature,
        options: Options,
        arguments: Sequence[Argument],
        owner: Owner,
        functions: Sequence[Callback] = (),
        state: Collection[int] = (),
    ) -> None:
        """A step as `lower` makes it.

        Args:
            text: annotated StableHLO.
            signature: what the step takes and gives.
            options: those of `wh.jit`.
            arguments: its leaves, as the compiler gets them.
            owner: what it was lowered for.
            functions: what its callbacks call.
            state: the leaves that a result of the step before replaces.
        """
        self._text = text
        self._signature = signature
        self._cluster = options.cluster_of_programs
        self._follows_results = options.out_like is not None
        self._target = options.target or "cpu"
        self._says_target = options.target is not None
        self._own_ranks = options.own_ranks
        self._plan = options.plan
        self._arguments = tuple(arguments)
        self._owner = owner
        self._functions = functions
        self._state = frozenset(state)
        self._program: Program | None = None

    def as_text(self) -> str:
        """The text that ``whale-compile`` reads."""
        return self._text

    @property
    def in_tree(self) -> jax.tree_util.PyTreeDef:
        """The tree of ``(args, kwargs)`` without the static ones."""
        assert self._signature.in_tree is not None
        return self._signature.in_tree

    @property
    def out_tree(self) -> jax.tree_util.PyTreeDef:
        """The tree of the results."""
        assert self._signature.out_tree is not None
        return self._signature.out_tree

    @property
    def scopes(self) -> list[strategies.Scope]:
        """The scopes that operations of the step are in."""
        return strategies.scopes_in(self._text)

    @api_boundary
    def compile(
        self,
        *,
        dump_phases_to: str | os.PathLike[str] | None = None,
        explain: bool | str = False,
    ) -> Program:
        """Compiles the step for its cluster, or gives what is compiled.

        A call of the step and this share one program.

        Args:
            dump_phases_to: a directory for the text of each level of the IR.
                It is compiled anew, as with `explain`.
            explain: print to standard error what the compiler decided:
                ``"summary"`` (or True) in ten lines, ``"memory"`` what is held
                where at the peak, ``"all"`` both and each decision.

        Raises:
            CompileError: with the compiler's diagnostics, or what ended it.
            ValueError: where there is no cluster, or it cannot be read.
        """
        if dump_phases_to is None and not explain:
            return self.program()
        what = explain if isinstance(explain, str) else "summary" * explain
        if what and what not in compiler.EXPLANATIONS:
            raise ValueError(
                f"explain must be True, or one of "
                f"{', '.join(compiler.EXPLANATIONS)}, not {explain!r}"
            )
        return self._compile(os.fspath(dump_phases_to or ""), what)

    def known_program(self) -> Program:
        """The same as `program`, for those that ask a step for it."""
        return self.program()

    def cluster_of_programs(self) -> clusters.ClusterLike | None:
        """What it is compiled for."""
        return self._cluster

    def of_name(self, name: str) -> Parameter:
        """The argument that a name gives."""
        return self._owner.of_name(name)

    def program(self) -> Program:
        """The step compiled without further options, once."""
        if self._program is None:
            self._program = self._owner.find()
        if self._program is None:
            self._program = self._owner.keep(self._compile("", ""))
        return self._program

    def _compile(self, dump_phases_to: str, explain: str) -> Program:
        cluster = self._given_cluster(self._cluster)
        directory = files.ScratchDirectory()
        path = os.path.join(directory.path, "program.whale")

        def write() -> None:
            compiling.compile(
                self._text,
                cluster,
                path,
                target=self._target,
                name=self.name,
                plan=self._plan,
                dump_phases_to=dump_phases_to,
                explain=explain,
            )

        options = (
            clusters.cluster_text(cluster),
            self._target,
            jax.__version__,
            "" if self._plan is None else compiler.plan_text(self._plan),
        )
        distributed.share_program(
            path, self._text, options, write, self._describe()
        )
        program = Program(
            path,
            self._signature,
            directory,
            self._functions,
            own_ranks=self._own_ranks,
        )
        self._check_waste(program.plan, cluster, program.target)
        return program

    def _check_waste(
        self,
        plan: Plan,
        cluster: clusters.ClusterLike,
        target: str,
    ) -> None:
        # An initialization has no mini-batch to share out.
        if self._follows_results:
            return
        is_assumed = target == "cpu" and not self._says_target
        rest = [
            argument
            for leaf, argument in enumerate(self._arguments)
            if leaf not in self._state
        ]
        waste.check_plan(plan, rest, cluster, is_assumed)

    @property
    def name(self) -> str:
        """The function's, as JAX has it."""
        name = re.search(r"^module @(?:jit_)?(\w+)", self._text, re.M)
        return name[1] if name else "main"

    def __repr__(self) -> str:
        known = self._program or self._owner.find()
        state = "compiled" if known is not None else "not compiled"
        return (
            f"<whale.Lowered {self.name!r} for "
            f"{clusters.described(self._cluster)}: {state}>"
        )

    @api_boundary
    def plan(self, *, cluster: clusters.ClusterLike | None = None) -> Plan:
        """What the compiler would decide; nothing is compiled.

        Args:
            cluster: what to plan for, in place of the step's own.

        Raises: as `compile`.
        """
        cluster = self._given_cluster(
            self._cluster if cluster is None else cluster
        )
        plan = self._make_plan(cluster)
        self._check_waste(plan, cluster, self._target)
        return plan

    def _make_plan(self, cluster: clusters.ClusterLike) -> Plan:
        return Plan(
            compiler.plan(
                self._text,
                clusters.cluster_argument(cluster),
                self._target,
                self._plan,
            )
        )

    def needs(
        self,
        *,
        cluster: clusters.ClusterLike | None = None,
        **options: Any,
    ) -> tuple[Plan | None, list[dict[str, Any]]]:
        """What `compiler.needs` says of the step; `wh.fit` reads it."""
        cluster = self._given_cluster(
            self._cluster if cluster is None else cluster
        )
        plan, parts = compiler.needs(
            self._text,
            clusters.cluster_argument(cluster),
            self._target,
            self._plan,
            **options,
        )
        return None if plan is None else Plan(plan), parts

    def with_samples(self, samples: int) -> Lowered:
        """The step traced again, for a mini-batch of another size."""
        avals = []
        for argument in self._arguments:
            aval, axis = argument.aval, argument.batch_dim
            if axis is not None:
                shape = (*aval.shape[:axis], samples, *aval.shape[axis + 1 :])
                aval = jax.ShapeDtypeStruct(
                    shape, aval.dtype, weak_type=aval.weak_type
                )
            avals.append(aval)
        return self._owner.lower(avals)

    def matched_names(self) -> dict[str, list[str]]:
        """The names that each pattern of `wh.scopes` stands for.

        The step is planned, as `plan` does.
        """
        plan = self._make_plan(self._given_cluster(self._cluster))
        return plan.get("scopes", {})

    @staticmethod
    def _given_cluster(
        cluster: clusters.ClusterLike | None,
    ) -> clusters.ClusterLike:
        if cluster is None:
            raise ValueError(
                "no cluster to compile for: give wh.jit a cluster= (a path, a "
                "dictionary, or the number of CPU ranks)"
            )
        return cluster

    def _describe(self) -> str:
        """The step and its batch, where processes compare what they compile."""
        batch = [
            f"{argument.aval.dtype}{list(argument.aval.shape)}"
            for argument in self._arguments
            if argument.batch_dim is not None
        ]
        shapes = f" of batch {', '.join(batch)}" if batch else ""
        return f"'{self.name}'{shapes}"

    def batch_slices(self, process: int) -> list[list[slice]]:
        """Which rows of the batch a process needs, for each leaf of the batch.

        Compiles the step if need be, in all processes together.

        Args:
            process: the number of a process.

        Returns:
            for each batch leaf, in the order of the arguments, the slices of
            its batch dimension, in order.

        Raises:
            IndexError: where there is no such process.
        """
        count = distributed.process_count()
        if process not in range(count):
            raise IndexError(
                f"there is no process {process!r}: they are 0 to {count - 1}"
            )
        return [
            batches.rows_of(self.program(), index, leaf.batch_dim, process)
            for index, leaf in enumerate(self._arguments)
            if leaf.batch_dim is not None
        ]

    def _paired(
        self, argument: str | int, values: list[Any]
    ) -> list[tuple[int, Argument, Any]]:
        """The leaves of an argument with their values."""
        indices = self._leaves_of(argument, len(values))
        return [
            (index, self._arguments[index], value)
            for index, value in zip(indices, values)
        ]

    def _leaves_of(self, argument: str | int, count: int) -> list[int]:
        """The numbers of the leaves of an argument, which are so many."""
        if isinstance(argument, str):
            argument = self._owner.of_name(argument)
        indices = self._leaves.get(argument)
        if indices is None:
            raise ValueError(f"the step has no argument {argument!r}")
        if count != len(indices):
            raise ValueError(
                f"argument {argument!r} has {len(indices)} leaves, not {count}"
            )
        return indices

    @functools.cached_property
    def _leaves(self) -> dict[str | int, list[int]]:
        """The numbers of the leaves of each argument."""
        leaves: dict[str | int, list[int]] = {}
        for index, leaf in enumerate(self._arguments):
            leaves.setdefault(leaf.parameter, []).append(index)
        return leaves

    def move(self, argument: str | int, tree: Any) -> Any:
        """What `wh.move` gives for an argument."""
        program = self.program()
        try:
            values, structure = jax.tree.flatten(tree)
            indices = self._leaves_of(argument, len(values))
        except Exception as error:
            # The others wait for this process.
            program.native.refuse_move(str(error))
            raise
        return jax.tree.unflatten(structure, program.move(indices, values))

    def place(self, argument: str | int, local: Any) -> Any:
        """What `from_local_data` gives for an argument."""
        values, tree = jax.tree.flatten(local)
        placed = []
        for index, leaf, rows in self._paired(argument, values):
            if leaf.batch_dim is None:
                raise ValueError(
                    f"{leaf.label} is no part of the batch: give it as a "
                    "whole, the same in each process"
                )
            placed.append(
                batches.from_rows(self.program(), index, leaf.batch_dim, rows)
            )
        return jax.tree.unflatten(tree, placed)


@api_boundary
def from_local_data(local: Any, lowered: Lowered, argument: str | int) -> Any:
    """An argument of a step of which each process has its own rows.

    Collective where the step is not compiled yet.

    Args:
        local: arrays, or a tree of them as the argument has it: the rows that
            ``lowered.batch_slices(wh.process_index())`` names, one after the
            other along the batch dimension.
        lowered: the step, from ``wh.jit(...).lower(...)``.
        argument: its position, or its name.

    Returns:
        arrays for the step, of the whole shape.

    Raises:
        ValueError: for other shapes, dtypes or trees, and for arguments that
            are no part of the batch.
    """
    return lowered.place(argument, local)


@api_boundary
def move(tree: Any, lowered: Lowered, argument: str | int = 0) -> Any:
    """The arrays as an argument of another step wants them, in one exchange.

    Collective, at a boundary of steps: first all processes check what they were
    given and that there is memory for it, and agree; where one cannot, all
    raise its error, and every array is as before. Then the arrays are taken
    over, as by a step to which they are donated. The step that takes them next
    moves nothing.

    Args:
        tree: arrays, as the argument has them, that any step has computed,
            under any plan, or that a `Checkpointer` has restored.
        lowered: the step, from ``wh.jit(...).lower(...)``; it is compiled if
            need be.
        argument: its position, or its name.

    Raises:
        TypeError: where `lowered` is no lowered step.
        ValueError: where the argument has other leaves.
        RuntimeError: in all processes, where one cannot take part.
    """
    nesting.check_together("wh.move")
    if not isinstance(lowered, Lowered):
        raise TypeError(
            "lowered must be a step, from wh.jit(...).lower(...), got "
            f"{type(lowered).__name__}"
        )
    return lowered.move(argument, tree)


def lower(
    function: Callable[..., Any],
    call: Callable[[Callable[..., Any]], Any],
    arguments: Sequence[Argument],
    in_tree: jax.tree_util.PyTreeDef,
    options: Options,
    owner: Owner,
) -> Lowered:
    """Traces and lowers `function`; `call` turns it into JAX's traced stage."""
    waste.check_switches()
    ambient = strategies.ambient()
    changed: list[tuple[Any, ...]] = []
    holders: list[Any] = []

    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        before = jax.tree.leaves((args, kwargs))
        with strategies.reopened(ambient):
            result = function(*args, **kwargs)
        changed[:] = waste.changed_leaves((args, kwargs), before, result)
        holders[:] = [(args, kwargs)] if changed else []
        return result

    outside = waste.holders_of_traced(function)
    with strategies.tracing() as settings:
        trace = call(traced)
        lowered = checkpoint_names.lower(trace)
    if changed:
        waste.check_changed(changed, holders.pop())
    waste.check_outside(outside, waste.holders_of_traced(function))
    results, out_tree = jax.tree.flatten(trace.out_info)
    fed_by = find_feedback(
        arguments, in_tree, results, out_tree, options.feedback
    )
    if options.infers_batch:
        arguments = infer_batch(arguments, fed_by, trace.jaxpr.jaxpr)
        fed_by = find_feedback(
            arguments, in_tree, results, out_tree, options.feedback
        )
    _check_batch(arguments)
    signature = Signature(
        arguments=tuple(Leaf.of(a.aval, a.label) for a in arguments),
        results=tuple(
            Leaf.of(aval, f"result[{index}]")
            for index, aval in enumerate(results)
        ),
        donated=tuple(a.donated for a in arguments),
        in_tree=in_tree,
        out_tree=out_tree,
    )
    waste.check_donated(arguments, signature.results)
    module = lowered.compiler_ir("stablehlo")
    arguments, places = _places(options, arguments, signature)
    text = annotate(
        module,
        arguments,
        fed_by,
        settings,
        places,
        likes.task_graph_devices(options.likes),
    )
    return Lowered(
        text,
        signature,
        options,
        arguments,
        owner,
        callbacks.functions_of(lowered, text),
        fed_by,
    )


def _places(
    options: Options, arguments: Sequence[Argument], signature: Signature
) -> tuple[Sequence[Argument], list[str | None] | None]:
    """The arguments, and places for the results, with those of other steps.

    Raises:
        ValueError: where these have nothing in common, or another cluster.
    """
    results = None
    assert signature.in_tree is not None and signature.out_tree is not None
    for like in options.likes:
        if options.cluster_of_programs is not None:
            like.check_cluster(options.cluster_of_programs)
        if like.option == "out_like":
            results = likes.result_places(
                like, signature.out_tree, signature.results
            )
            continue
        found = likes.argument_places(
            like,
            signature.in_tree,
            signature.arguments,
            [a.parameter for a in arguments],
            [a.batch_dim is None and not a.aval.weak_type for a in arguments],
        )
        arguments = [
            dataclasses.replace(argument, place=place)
            for argument, place in zip(arguments, found)
        ]
    return arguments, results


def _check_batch(arguments: Sequence[Argument]) -> None:
    first: Argument | None = None
    for argument in arguments:
        if argument.batch_dim is None:
            continue
        if first is None:
            first = argument
            continue
        size = argument.aval.shape[argument.batch_dim]
        assert first.batch_dim is not None
        expected = first.aval.shape[first.batch_dim]
        if size != expected:
            raise ValueError(
                f"the mini-batch has {expected} samples in {first.label} and "
                f"{size} in {argument.label}; what carries none is left out by "
                "in_axes, as None"
            )
