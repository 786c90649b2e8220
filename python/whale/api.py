"""``wh.jit``: a training step compiled for a cluster.

In: a step and what its arguments are: donated, static, part of the batch. Out:
`Jit`, which takes arrays and returns `wh.Array`s, as `jax.jit` does. A program
is found by the trees, shapes and dtypes of a call, the static values and the
settings of JAX and Whale. Each new combination is traced and compiled once, and
kept as long as the `Jit` is. A call like one of the last ones is known by its
tree, the settings and a mark of each leaf, which costs some microseconds; else
each leaf is looked at. Nothing is copied here.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
from jax._src import config as jax_config

from whale import clusters, compiler, config, nan_checks, strategies
from whale.answers import StepAnswers
from whale.arguments import Argument
from whale.array import array_class
from whale.likes import LikeOption
from whale.lowering import Lowered, lower
from whale.options import Options
from whale.parameters import Argnames, Argnums, Parameter, Parameters, listed
from whale.program import Program
from whale.signature import abstract, abstract_leaves, argument_label
from whale.tracebacks import api_boundary


@api_boundary
def jit(
    function: Callable[..., Any] | None = None,
    *,
    cluster: clusters.ClusterLike | None = None,
    target: str | None = None,
    donate_argnums: Argnums = None,
    donate_argnames: Argnames = None,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    batch_argnums: Argnums | Literal["auto"] = None,
    batch_argnames: Argnames = None,
    in_axes: Any = None,
    feedback: Mapping[int, int] | None = None,
    own_ranks: bool = False,
    plan: compiler.PlanLike | None = None,
    in_like: LikeOption = None,
    out_like: LikeOption = None,
) -> Any:
    """Compiles a training step for a cluster, as `jax.jit` does for a device.

    Args:
        function: the step: arrays in pytrees in, arrays in pytrees out.
            Without it, the result decorates a function.
        cluster: a path of a cluster file, the parsed dictionary, or a number
            of CPU ranks of this machine, which share its memory.
        target: where the program runs: ``"cpu"``, as where it is left out, or
            ``"cuda"``.
        donate_argnums: arguments whose memory the step may reuse, by
            position.
        donate_argnames: such arguments by name, as are all that take keywords
            only.
        static_argnums: arguments that are constants of the step.
        static_argnames: the same by name.
        batch_argnums: arguments whose leaves of rank 1 and more carry the
            global mini-batch in dimension 0. ``"auto"`` takes all that is no
            state, and says which these are.
        batch_argnames: the same by name.
        in_axes: the general form, a prefix of the positional arguments as in
            `jax.vmap`: the dimension of the mini-batch, or None. Or a
            dictionary from the names of arguments, those that take keywords
            only too, to such prefixes; what it leaves out is not batched.
        feedback: which result is the next step's value of which argument, by
            top-level position; left out, it is the one order-preserving match
            of equal tree, shapes and dtypes, if there is one.
        own_ranks: steps for equal ranks share these: their threads,
            connections, and memory as large as the largest step needs, and
            follow one another. True gives this one its own, to run beside
            others.
        plan: what is carried out in place of what would be decided: a plan
            (``step.plan``, ``wh.explain``, edited or not), or the path of a
            file that has one. docs/planner.md shows it.
        in_like: a step that has run or was lowered, or ``step.lower(...)``.
            Arguments that are of the tree, shapes and dtypes of its state are
            read where that step has them, and nothing is moved between the
            two. Where several could be meant, ``(step, {argument: argument
            of the step})`` says which, or ``(step, argument)`` where there is
            one.
        out_like: the same of results, as of an initialization. Each rank makes
            its part of them, by no strategy: no device holds the whole state.

    Returns:
        A function that takes and returns what `function` does. Its
        ``lower(...)`` plans a call, and ``lower(...).compile()`` is its
        program. Of the last call's program it answers ``plan`` (prints, draws
        and compares it), ``stats``, ``profile()``, ``trace(path, steps=3)``,
        ``cost_analysis()`` and ``memory_analysis()``.
    """
    options = Options(
        cluster,
        target,
        donate_argnums,
        donate_argnames,
        static_argnums,
        static_argnames,
        batch_argnums,
        batch_argnames,
        in_axes,
        feedback,
        own_ranks,
        plan,
        in_like,
        out_like,
    )
    if function is None:
        return functools.partial(Jit, options=options)
    return Jit(function, options)


def as_step(
    step: Callable[..., Any], cluster: clusters.ClusterLike | None
) -> Any:
    """What `wh.jit` and the like have made, or `wh.jit` of another function,
    which that of `jax.jit` is, too."""
    if hasattr(step, "lower") and not isinstance(step, type(jax.jit(len))):
        return step
    return jit(step, cluster=cluster)


class Jit(StepAnswers):
    """A step that is lowered and compiled when its signature is new."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        if not callable(function):
            raise TypeError(f"wh.jit takes a function, not {function!r}")
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options
        self._parameters = parameters = Parameters(function)
        # What each option gives: arguments, each as it is given.
        given: dict[str, Mapping[Parameter, int | str]] = {}
        for what, argnums in (
            ("static_argnums", options.static_argnums),
            ("donate_argnums", options.donate_argnums),
            ("batch_argnums", options.batch_positions),
        ):
            given[what] = parameters.of_argnums(what, argnums)
        for what, argnames in (
            ("static_argnames", options.static_argnames),
            ("donate_argnames", options.donate_argnames),
            ("batch_argnames", options.batch_argnames),
        ):
            given[what] = parameters.of_argnames(what, argnames)
        _check_disjoint(given)
        self._static = {
            p for p in given["static_argnums"] if isinstance(p, int)
        }
        self._static_names = set(listed(options.static_argnames))
        # As in jax.jit: where only one is given, the other follows from it.
        if options.static_argnames is None:
            self._static_names |= parameters.names(self._static)
        elif options.static_argnums is None:
            by_name = given["static_argnames"]
            self._static |= {p for p in by_name if isinstance(p, int)}
        self._donated: set[Parameter] = {
            *given["donate_argnums"],
            *given["donate_argnames"],
        }
        self._batch: set[Parameter] = {
            *given["batch_argnums"],
            *given["batch_argnames"],
        }
        self._in_axes = options.in_axes
        self._programs: dict[Any, Program] = {}
        self._last: Program | None = None
        self._lowered: weakref.ref[Lowered] | None = None
        # Those of the last calls, of different kinds, where none is static.
        self._has_static = bool(self._static or self._static_names)
        self._known: list[_Known] = []

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the step, compiled first if its signature is new."""
        settings = self._settings()
        if not self._has_static:
            leaves, tree = jax.tree.flatten((args, kwargs))
            for known in self._known:
                if known.is_for(leaves, tree, settings):
                    self._last = known.program
                    return self._run(known.program, leaves, tree)
        call = self._bind(args, kwargs)
        key = call.key, settings
        program = self._programs.get(key)
        if program is None:
            program = self._lower(call).program()
        self._last = program
        if not self._has_static:
            self._known = [_Known(program, call, settings), *self._known[:3]]
        return self._run(program, call.leaves, call.tree)

    def _run(self, program: Program, leaves: list[Any], tree: Any) -> Any:
        result = program.run(leaves, tree)
        if self._options.out_like is not None:
            nan_checks.check_made(program, result)
        return result

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the step for arrays or `jax.ShapeDtypeStruct`."""
        call = self._bind(args, kwargs)
        lowered = self._lower(call)
        self._lowered = weakref.ref(lowered)
        return lowered

    def replace_function(
        self, change: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> Jit:
        """The same for what `change` makes of the function."""
        return Jit(change(self._function), self._options)

    def last_program(self) -> Program | None:
        """What the last call ran."""
        return self._last

    def known_program(self) -> Program:
        """What the last call ran, or what was lowered or compiled alone."""
        if self._last is not None:
            return self._last
        lowered = self._lowered() if self._lowered is not None else None
        if lowered is not None:
            return lowered.program()
        if len(self._programs) == 1:
            return next(iter(self._programs.values()))
        name = getattr(self, "__name__", "step")
        raise ValueError(
            f"{name!r} has {len(self._programs) or 'no'} programs"
            f"{'' if self._programs else ' yet'}, and what state it takes "
            f"depends on shapes: call it first, or give {name}.lower(...) in "
            "its place, whose arguments may be jax.ShapeDtypeStruct, as "
            "jax.eval_shape(init, key) gives them"
        )

    def cluster_of_programs(self) -> clusters.ClusterLike | None:
        """What it is compiled for."""
        return self._options.cluster_of_programs

    def of_name(self, name: str) -> Parameter:
        """The argument that a name gives."""
        return self._parameters.of_name(name)

    def __repr__(self) -> str:
        count = len(self._programs)
        return (
            f"<wh.jit of {getattr(self, '__name__', self._function)!r} for "
            f"{clusters.described(self.cluster_of_programs())}: {count} "
            f"{'program' if count == 1 else 'programs'}>"
        )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)

    def _settings(self) -> tuple[Any, ...]:
        """What a program is compiled for besides its arguments."""
        likes = self._options.likes
        if not likes:
            return _settings()
        return (*_settings(), *(like.program() for like in likes))

    def _lower(self, call: _Call) -> Lowered:
        arguments = self._arguments(call)
        avals = [argument.aval for argument in arguments]
        args, kwargs = jax.tree.unflatten(call.tree, avals)
        args, kwargs = call.with_static(args, kwargs)

        def trace(function: Callable[..., Any]) -> Any:
            return jax.jit(
                function,
                static_argnums=tuple(sorted(call.static_args)),
                static_argnames=tuple(sorted(call.static_kwargs)),
                keep_unused=True,
            ).trace(*args, **kwargs)

        return lower(
            self._function,
            trace,
            arguments,
            call.tree,
            self._options,
            _Owner(
                self,
                (call.key, self._settings()),
                call.without_arrays(),
            ),
        )

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        static_args = {p: args[p] for p in self._static if p < len(args)}
        static_kwargs = {
            n: kwargs[n] for n in self._static_names if n in kwargs
        }
        for what, value in (static_args | static_kwargs).items():
            _check_hashable(what, value)
        return _Call(
            positions=[p for p in range(len(args)) if p not in static_args],
            args=tuple(a for p, a in enumerate(args) if p not in static_args),
            kwargs={k: v for k, v in kwargs.items() if k not in static_kwargs},
            static_args=static_args,
            static_kwargs=static_kwargs,
        )

    def _arguments(self, call: _Call) -> list[Argument]:
        axes = self._batch_dims(call)
        arguments = []
        for path, aval, axis in zip(call.paths, call.avals, axes):
            parameter = self._parameter(call, path)
            arguments.append(
                Argument(
                    aval=aval,
                    label=argument_label(path),
                    parameter=parameter,
                    donated=parameter in self._donated,
                    batch_dim=axis,
                )
            )
        return arguments

    def _parameter(self, call: _Call, path: tuple[Any, ...]) -> Parameter:
        """The argument of the function that a leaf of the call is part of."""
        kind, place = path[0].idx, path[1]
        if kind == 0:
            return call.positions[place.idx]
        return self._parameters.of_name(place.key)

    def _batch_dims(self, call: _Call) -> list[int | None]:
        """The dimension of the mini-batch of each leaf, or None."""
        if self._in_axes is None:
            return [
                0
                if self._parameter(call, path) in self._batch and aval.shape
                else None
                for path, aval in zip(call.paths, call.avals)
            ]
        axes = self._axes(call)
        prefix = tuple(axes.get(p) for p in call.positions)
        named = {
            name: axes.get(self._parameters.of_name(name))
            for name in call.kwargs
        }
        try:
            full = jax.tree.broadcast(
                (prefix, named),
                (call.args, call.kwargs),
                is_leaf=lambda node: node is None,
            )
        except ValueError as error:
            if isinstance(self._in_axes, Mapping):
                known = self._known_names(call)
                wrong = [n for n in self._in_axes if n not in known]
                raise ValueError(
                    f"in_axes: there is no argument {wrong[0]!r}, only "
                    f"{', '.join(known)}"
                    if wrong
                    else f"in_axes: no prefixes of the arguments: {error}"
                ) from None
            raise ValueError(
                f"in_axes is no prefix of the arguments: {error}"
            ) from None
        dims = []
        flat = jax.tree.leaves(full, is_leaf=lambda node: node is None)
        values = jax.tree.leaves(
            (call.args, call.kwargs), is_leaf=lambda node: node is None
        )
        # None stands for "not batched" in one and for an empty tree in the
        # other.
        flat = [axis for axis, value in zip(flat, values) if value is not None]
        for axis, path, aval in zip(flat, call.paths, call.avals):
            rank = len(aval.shape)
            if axis is not None and (
                isinstance(axis, bool)
                or not isinstance(axis, int)
                or not -rank <= axis < rank
            ):
                raise ValueError(
                    f"in_axes: {axis!r} is no dimension of argument "
                    f"{argument_label(path)}, which has {rank}"
                )
            dims.append(axis % rank if axis is not None else None)
        return dims

    def _axes(self, call: _Call) -> dict[Parameter, Any]:
        """The prefix that `in_axes` has for each argument."""
        axes = self._in_axes
        if isinstance(axes, Mapping) and axes.keys() <= set(
            self._known_names(call)
        ):
            return {
                self._parameters.of_name(name): prefix
                for name, prefix in axes.items()
            }
        count = len(call.positions) + len(call.static_args)
        if isinstance(axes, list):
            axes = tuple(axes)
        if not isinstance(axes, tuple):
            axes = (axes,) * max(count, len(self._parameters.positional))
        if count > len(axes):
            raise ValueError(
                f"in_axes has {len(axes)} entries for {count} positional "
                "arguments"
            )
        return dict(enumerate(axes))

    def _known_names(self, call: _Call) -> list[str]:
        """The names of arguments that this call has, or may have."""
        return list(dict.fromkeys([*self._parameters.named, *call.kwargs]))


def _settings() -> tuple[Any, ...]:
    """What a program is compiled for besides its arguments."""
    return (
        # What JAX's settings make of a function, such as 64 bits.
        jax_config.trace_context(),
        jax_config.debug_nans.value,
        strategies.held(),
        config.current().key,
    )


class _Known:
    """A program, and what calls look like that it is for."""

    def __init__(
        self, program: Program, call: _Call, settings: tuple[Any, ...]
    ) -> None:
        self.program = program
        self._tree = call.tree
        self._avals = call.avals
        self._settings = settings
        self._class = array_class()
        # Of the values that were given last.
        self._marks = [self._class.mark_of(leaf) for leaf in call.leaves]

    def is_for(
        self,
        leaves: list[Any],
        tree: jax.tree_util.PyTreeDef,
        settings: tuple[Any, ...],
    ) -> bool:
        """Whether the program is what a call wants; False where that raises."""
        if tree != self._tree or settings != self._settings:
            return False
        for index in self._class.find_others(leaves, self._marks):
            leaf = leaves[index]
            try:
                given = abstract(leaf)
            except TypeError:
                return False
            if _type(given) != _type(self._avals[index]):
                return False
            self._marks[index] = self._class.mark_of(leaf)
        return True


def _type(aval: jax.ShapeDtypeStruct) -> tuple[Any, ...]:
    return aval.shape, aval.dtype, aval.weak_type


@dataclasses.dataclass(frozen=True)
class _Owner:
    """One signature of a step."""

    jit: Jit
    key: Any
    # Without what it was called with.
    call: _Call

    def of_name(self, name: str) -> Parameter:
        return self.jit.of_name(name)

    def find(self) -> Program | None:
        """What has been compiled for it."""
        return self.jit._programs.get(self.key)

    def lower(self, avals: Sequence[jax.ShapeDtypeStruct]) -> Lowered:
        """Lowers the step for other types of its leaves."""
        args, kwargs = jax.tree.unflatten(self.call.tree, avals)
        args, kwargs = self.call.with_static(args, kwargs)
        # What was lowered last is what the user has lowered.
        return self.jit._lower(self.jit._bind(args, kwargs))

    def keep(self, program: Program) -> Program:
        """Calls of the step use the program, too."""
        return self.jit._programs.setdefault(self.key, program)


class _Call:
    """The arguments of one call, static ones apart."""

    def __init__(
        self,
        positions: list[int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        static_args: dict[int, Any],
        static_kwargs: dict[str, Any],
    ) -> None:
        self.positions = positions
        self.args = args
        self.kwargs = kwargs
        self.static_args = static_args
        self.static_kwargs = static_kwargs
        self.leaves, self.avals, self.tree = abstract_leaves(args, kwargs)

    @property
    def paths(self) -> list[tuple[Any, ...]]:
        """Where in the call each leaf stands."""
        found, _ = jax.tree.flatten_with_path((self.args, self.kwargs))
        return [path for path, _ in found]

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes another program: the types and the static values."""
        return (
            self.tree,
            tuple(map(_type, self.avals)),
            _typed(self.static_args),
            _typed(self.static_kwargs),
        )

    def without_arrays(self) -> _Call:
        """The same without what would keep arrays."""
        other = copy.copy(self)
        other.args, other.kwargs, other.leaves = (), {}, []
        return other

    def with_static(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Puts the static arguments back between the others."""
        every = dict(zip(self.positions, args)) | self.static_args
        return (
            tuple(every[p] for p in sorted(every)),
            kwargs | self.static_kwargs,
        )


def _typed(values: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Static values with their types: 2 and 2.0 make other programs."""
    return tuple(
        (place, type(values[place]), values[place]) for place in sorted(values)
    )


def _check_hashable(what: int | str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"static argument {what!r} is a {type(value).__name__}, which "
            "cannot be hashed; static arguments are distinguished by their "
            "value"
        ) from None


def _check_disjoint(
    options: Mapping[str, Mapping[Parameter, int | str]],
) -> None:
    """Static arguments are no arrays, so nothing of them is donated or cut.

    Raises:
        ValueError: naming an argument as the options do.
    """
    for what, given in options.items():
        for other in ("static_argnums", "static_argnames"):
            if what.startswith("static"):
                continue
            for parameter in given.keys() & options[other].keys():
                one, two = given[parameter], options[other][parameter]
                raise ValueError(
                    f"{what} and {other} share {one!r}"
                    if one == two
                    else f"{what} has {one!r}, which is {two!r} of {other}"
                )
