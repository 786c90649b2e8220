"""``wh.nnx_jit``: steps that change modules of flax nnx in place.

In: a step ``loss = step(model, optimizer, x, y)``, as ``flax.nnx.jit`` takes
it. Out: a function that is called in the same way. The modules of a call, and
what else of its arguments nnx takes for a graph, are split into a definition,
which is a constant of the step, and a state, which `wh.jit` gets in the place
of the first of them; what it gives back is put into the modules. One `Jit` for
each definition. Cost: a pass over the modules before and after each call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from whale import clusters
from whale.answers import StepAnswers
from whale.api import Jit, jit
from whale.lowering import Lowered
from whale.parameters import Parameter, Parameters, listed
from whale.program import Program
from whale.tracebacks import api_boundary


@api_boundary
def nnx_jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`wh.jit` for a step that changes modules of flax nnx in place.

    Arguments that are modules, optimizers, metrics or random streams of nnx, or
    trees of those, are changed as the step changes them; it may not add or
    remove variables. All are the step's state from call to call.

    Args:
        function: the step. Without it, the result decorates a function.
        options: those of `wh.jit`, but `feedback`. Where a donated argument
            holds modules, the memory of all modules is reused.

    Returns:
        A function that takes and returns what `function` does, with `lower`.
    """
    if "feedback" in options:
        raise TypeError(
            "wh.nnx_jit takes no feedback: the state of the modules is it"
        )
    if function is None:
        return functools.partial(nnx_jit, **options)
    return NnxJit(function, **options)


class NnxJit(StepAnswers):
    """A step on modules of nnx, with a `Jit` for each of their definitions."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        # Says at once what is wrong with the options.
        self._for_options: Jit = jit(function, **options)
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options
        self._parameters = Parameters(function)
        self._steps: dict[Any, Jit] = {}
        self._last: Jit | None = None

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the step and puts the new values into its modules."""
        from flax import nnx

        modules, step, args, kwargs = self._split(args, kwargs)
        state, result = step(*args, **kwargs)
        nnx.update(modules, state)
        return result

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the step for these modules and arrays."""
        _, step, args, kwargs = self._split(args, kwargs)
        return step.lower(*args, **kwargs)

    def last_program(self) -> Program | None:
        """What the last call ran."""
        return None if self._last is None else self._last.last_program()

    def known_program(self) -> Program:
        """What the last call ran, or was lowered last."""
        if self._last is not None:
            return self._last.known_program()
        name = getattr(self, "__name__", "step")
        raise ValueError(
            f"{name!r} has no programs yet, and what state it takes depends on "
            f"its modules: call it first, or {name}.lower(...)"
        )

    def cluster_of_programs(self) -> clusters.ClusterLike | None:
        """What it is compiled for."""
        return self._for_options.cluster_of_programs()

    def of_name(self, name: str) -> Parameter:
        """The argument that a name gives."""
        return self._parameters.of_name(name)

    def replace_function(
        self, change: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> NnxJit:
        """The same for what `change` makes of the function."""
        return NnxJit(change(self._function), **self._options)

    def __repr__(self) -> str:
        name = getattr(self, "__name__", self._function)
        return f"<wh.nnx_jit of {name!r}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Jit, tuple[Any, ...], dict[str, Any]]:
        """The modules of a call, and a call of the step on their state."""
        from flax import nnx

        values = dict(enumerate(args)) | kwargs
        places = tuple(p for p, v in values.items() if _holds_modules(v))
        if not places:
            raise TypeError(
                "wh.nnx_jit: no argument holds a module of flax nnx; a module "
                "that the step closes over becomes an argument, and a step "
                "without any takes wh.jit"
            )
        modules = tuple(values[place] for place in places)
        definition, state = nnx.split(modules)
        key = definition, places
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._make(definition, places)
        self._last = step
        # The state is where the first of the modules is.
        values |= dict.fromkeys(places) | {places[0]: state}
        return (
            modules,
            step,
            tuple(values[place] for place in range(len(args))),
            {name: values[name] for name in kwargs},
        )

    def _make(self, definition: Any, places: tuple[Parameter, ...]) -> Jit:
        from flax import nnx

        function = self._function

        @functools.wraps(function)
        def pure(*args: Any, **kwargs: Any) -> Any:
            values = dict(enumerate(args)) | kwargs
            modules = nnx.merge(definition, values[places[0]])
            values |= dict(zip(places, modules))
            result = function(
                *(values[place] for place in range(len(args))),
                **{name: values[name] for name in kwargs},
            )
            after, state = nnx.split(modules)
            if after != definition:
                name = getattr(function, "__name__", "the step")
                raise ValueError(
                    f"{name} adds or removes variables of its modules, or "
                    "changes what is no array in them; under wh.nnx_jit it may "
                    "change the values of variables alone"
                )
            return state, result

        options = dict(self._options)
        first = self._position(places[0])
        if isinstance(first, int):
            options["feedback"] = {first: 0}
            if self._is_donated(places):
                donated = listed(options.get("donate_argnums"))
                options["donate_argnums"] = (*donated, first)
        step: Jit = jit(pure, **options)
        return step

    def _position(self, place: Parameter) -> Parameter:
        return (
            place if isinstance(place, int) else self._parameters.of_name(place)
        )

    def _is_donated(self, places: tuple[Parameter, ...]) -> bool:
        donated: set[Parameter] = set()
        for what, find in (
            ("donate_argnums", self._parameters.of_argnums),
            ("donate_argnames", self._parameters.of_argnames),
        ):
            donated |= find(what, self._options.get(what)).keys()
        return any(self._position(place) in donated for place in places)


def _holds_modules(value: Any) -> bool:
    """Whether nnx has a state for what is in a tree."""
    from flax import nnx

    if isinstance(value, dict):
        return any(map(_holds_modules, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_modules, value))
    return bool(nnx.graph.is_graph_node(value))
