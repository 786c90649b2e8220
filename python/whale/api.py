"""``wh.jit``: a training step compiled for a cluster."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import jax

from whale import clusters, config, scopes
from whale.lowering import Argument, Lowered, lower
from whale.program import Program
from whale.signature import abstract_leaves, argument_label

Argnums: TypeAlias = int | Iterable[int] | None

TARGETS = ("cpu", "cuda", "none")


def jit(
    function: Callable[..., Any] | None = None,
    *,
    cluster: clusters.ClusterLike | None = None,
    target: str = "cpu",
    donate_argnums: Argnums = None,
    static_argnums: Argnums = None,
    static_argnames: str | Iterable[str] | None = None,
    batch_argnums: Argnums = None,
    in_axes: Any = None,
    feedback: Mapping[int, int] | None = None,
) -> Any:
    """Compiles a training step for a cluster, as `jax.jit` does for a device.

    Args:
        function: the step: arrays in pytrees in, arrays in pytrees out.
            Without it, the result decorates a function.
        cluster: a path of a cluster file, the parsed dictionary, or a number
            of CPU ranks of this machine.
        target: where the program runs: ``"cpu"`` or ``"cuda"``.
        donate_argnums: arguments whose memory the step may take over.
        static_argnums: arguments that are constants of the step.
        static_argnames: the same by name.
        batch_argnums: arguments whose leaves of rank 1 and more carry the
            global mini-batch in dimension 0.
        in_axes: the general form, a prefix of the positional arguments as in
            `jax.vmap`: the dimension of the mini-batch, or None.
        feedback: which result is the next step's value of which argument, by
            top-level position; left out, it is the one order-preserving match
            of equal tree, shapes and dtypes, if there is one.

    Returns:
        A function that takes and returns what `function` does, with `lower`.
    """
    options = {
        "cluster": cluster,
        "target": target,
        "donate_argnums": donate_argnums,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "batch_argnums": batch_argnums,
        "in_axes": in_axes,
        "feedback": feedback,
    }
    if function is None:
        return functools.partial(Jit, **options)
    return Jit(function, **options)


class Jit:
    """A step that is lowered and compiled when its signature is new."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        cluster: clusters.ClusterLike | None,
        target: str,
        donate_argnums: Argnums,
        static_argnums: Argnums,
        static_argnames: str | Iterable[str] | None,
        batch_argnums: Argnums,
        in_axes: Any,
        feedback: Mapping[int, int] | None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"wh.jit takes a function, not {function!r}")
        if target not in TARGETS:
            raise ValueError(
                f"target must be one of {', '.join(TARGETS)}, not {target!r}"
            )
        if batch_argnums is not None and in_axes is not None:
            raise ValueError("give batch_argnums or in_axes, not both")
        functools.update_wrapper(self, function)
        self._function = function
        self._cluster = cluster
        self._target = target
        self._parameters = _positional_parameters(function)
        self._static = self._positions("static_argnums", static_argnums)
        names = (
            [static_argnames]
            if isinstance(static_argnames, str)
            else list(static_argnames or ())
        )
        # As in jax.jit: where only one is given, the other follows from it.
        self._static_names = set(names)
        if static_argnames is None:
            self._static_names |= set(self._names(self._static))
        elif static_argnums is None:
            self._static |= {
                self._parameters.index(name)
                for name in names
                if name in self._parameters
            }
        self._donated = self._positions("donate_argnums", donate_argnums)
        self._batch = self._positions("batch_argnums", batch_argnums)
        self._in_axes = in_axes
        self._feedback = feedback
        for what, positions in (
            ("donate_argnums", self._donated),
            ("batch_argnums", self._batch),
        ):
            both = sorted(positions & self._static)
            if both:
                raise ValueError(f"{what} and static_argnums share {both}")
        self._programs: dict[Any, Program] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the step, compiled first if its signature is new."""
        call = self._bind(args, kwargs)
        key = (
            *call.key,
            scopes.default_strategy(),
            scopes.ambient(),
            scopes.open_settings(),
            tuple(sorted(config.current().items())),
        )
        program = self._programs.get(key)
        if program is None:
            program = self._lower(call).compile()
            self._programs[key] = program
        return program.run(call.leaves, call.tree)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the step for arrays or `jax.ShapeDtypeStruct`."""
        return self._lower(self._bind(args, kwargs))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)

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
            self._feedback,
            self._cluster,
            self._target,
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
            position = self._position(call, path)
            arguments.append(
                Argument(
                    aval=aval,
                    label=argument_label(path),
                    position=position,
                    donated=position in self._donated,
                    batch_dim=axis,
                )
            )
        _check_batch(arguments)
        return arguments

    def _position(self, call: _Call, path: tuple[Any, ...]) -> int | None:
        """The position in the function's signature of the argument."""
        kind, place = path[0].idx, path[1]
        if kind == 0:
            return call.positions[place.idx]
        if place.key in self._parameters:
            return self._parameters.index(place.key)
        return None

    def _batch_dims(self, call: _Call) -> list[int | None]:
        """The dimension of the mini-batch of each leaf, or None."""
        if self._in_axes is None:
            return [
                0
                if self._position(call, path) in self._batch and aval.shape
                else None
                for path, aval in zip(call.paths, call.avals)
            ]
        count = len(call.positions) + len(call.static_args)
        axes = self._in_axes
        if isinstance(axes, list):
            axes = tuple(axes)
        if not isinstance(axes, tuple):
            axes = (axes,) * max(count, len(self._parameters))
        by_position = dict(enumerate(axes))
        if count > len(axes):
            raise ValueError(
                f"in_axes has {len(axes)} entries for {count} positional "
                "arguments"
            )
        prefix = tuple(by_position[p] for p in call.positions)
        named = {
            name: by_position.get(self._parameters.index(name))
            if name in self._parameters
            else None
            for name in call.kwargs
        }
        try:
            full = jax.tree.broadcast(
                (prefix, named),
                (call.args, call.kwargs),
                is_leaf=lambda node: node is None,
            )
        except ValueError as error:
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
                not isinstance(axis, int) or not -rank <= axis < rank
            ):
                raise ValueError(
                    f"in_axes: {axis!r} is no dimension of argument "
                    f"{argument_label(path)}, which has {rank}"
                )
            dims.append(axis % rank if axis is not None else None)
        return dims

    def _positions(self, what: str, argnums: Argnums) -> set[int]:
        if argnums is None:
            return set()
        wanted = [argnums] if isinstance(argnums, int) else list(argnums)
        result = set()
        for number in wanted:
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{what}: not a position: {number!r}")
            count = len(self._parameters)
            limited = not _takes_any_number(self._function)
            if number < 0:
                number += count
            if number < 0 or (limited and number >= count):
                raise ValueError(
                    f"{what}: {number} is no position of a function with "
                    f"{count} positional arguments"
                )
            result.add(number)
        return result

    def _names(self, positions: Iterable[int]) -> list[str]:
        count = len(self._parameters)
        return [self._parameters[p] for p in positions if p < count]


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
            tuple((a.shape, a.dtype, a.weak_type) for a in self.avals),
            tuple(sorted(self.static_args.items())),
            tuple(sorted(self.static_kwargs.items())),
        )

    def with_static(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Puts the static arguments back between the others."""
        every = dict(zip(self.positions, args)) | self.static_args
        return (
            tuple(every[p] for p in sorted(every)),
            kwargs | self.static_kwargs,
        )


def _check_hashable(what: int | str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"static argument {what!r} is a {type(value).__name__}, which "
            "cannot be hashed; static arguments are told apart by their value"
        ) from None


def _check_batch(arguments: Iterable[Argument]) -> None:
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
                f"{size} in {argument.label}"
            )


def _positional_parameters(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def _takes_any_number(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is p.VAR_POSITIONAL for p in parameters)
