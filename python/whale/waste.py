"""What a step would waste without a word, said when it is compiled.

In: a step's arguments, before and after it is traced, and its plan. Out:
warnings (`notices`), each with what to write instead: switches of JAX that a
program does not follow, arguments and others that the step changes in place,
state that it does not return, ranks that repeat the whole batch, devices
without work, GPUs that a program for the CPU only names. Nothing here is done
for a call that is known. Cost: a comparison of the leaves, and a pass over the
plan.
"""

from __future__ import annotations

import collections
import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from whale import clusters
from whale.arguments import Argument
from whale.notices import warn
from whale.plan import Plan
from whale.signature import Leaf, argument_label

# Switches of JAX, with the value that is followed and what to do instead.
_SWITCHES: Mapping[str, tuple[Any, str]] = {
    "jax_disable_jit": (
        False,
        "call the step's function itself to run it operation by operation",
    ),
    "jax_debug_infs": (
        False,
        "look for the infinity with jax.jit in the place of wh.jit",
    ),
    "jax_disable_most_optimizations": (
        False,
        "take it back; a program of Whale is always optimized",
    ),
    "jax_no_execution": (
        False,
        "call step.lower(...).compile() to compile a step and not run it",
    ),
    "jax_log_compiles": (
        False,
        "give Lowered.compile explain=True to see what was compiled",
    ),
}


def check_switches() -> None:
    """Warns of switches of JAX that are not followed."""
    for name, (followed, remedy) in _SWITCHES.items():
        value = getattr(jax.config, name, followed)
        if value != followed:
            warn(f"{name}={value!r} is not followed by wh.jit; {remedy}")


def changed_leaves(
    call: Any, before: Sequence[Any], result: Any
) -> list[tuple[Any, ...]]:
    """The places in a call of arrays that the step has put there itself.

    Args:
        call: ``(args, kwargs)`` after the step.
        before: their leaves before it.
        result: what the step gives: what it returns is not lost.
    """
    try:
        paths, _ = jax.tree.flatten_with_path(call)
    except (TypeError, ValueError):
        return []  # The step has made no tree of them, which is its business.
    if len(paths) == len(before) and all(
        leaf is old for (_, leaf), old in zip(paths, before)
    ):
        return []
    known = {id(leaf) for leaf in before}
    known |= {id(leaf) for leaf in jax.tree.leaves(result)}
    return [path for path, leaf in paths if id(leaf) not in known]


def _and_others(count: int) -> str:
    if count == 0:
        return ""
    return f" and {count} others" if count > 1 else " and another"


def check_changed(places: Sequence[tuple[Any, ...]], call: Any) -> None:
    """Warns of arguments that a step has changed in place."""
    if not places:
        return
    label = argument_label(places[0])
    more = _and_others(len(places) - 1)
    root = places[0][:2]
    holder = call[0][root[1].idx] if root[0].idx == 0 else call[1][root[1].key]
    if any(
        kind.__module__.startswith("flax.nnx") for kind in type(holder).__mro__
    ):
        remedy = "take wh.nnx_jit, which puts new values into modules of nnx"
    else:
        remedy = "return the new values, and pass them to the next step"
    warn(
        f"the step assigns to its argument {label}{more}; under wh.jit, as "
        f"under jax.jit, that is lost when it returns: {remedy}"
    )


def holders_of_traced(function: Callable[..., Any]) -> list[str]:
    """What a function sees from outside that holds a value being traced.

    Attributes of the object that it is a method of, and what its own code names
    of the functions around it and of its module.
    """
    inner = inspect.unwrap(function)
    owner = getattr(inner, "__self__", None)
    seen = {
        f"self.{name}": value
        for name, value in getattr(owner, "__dict__", {}).items()
    }
    inner = getattr(inner, "__func__", inner)
    if inspect.isfunction(inner):
        # A variable around it may have no value yet.
        with contextlib.suppress(ValueError):
            known = inspect.getclosurevars(inner)
            seen |= {**known.globals, **known.nonlocals}
    return [name for name, value in seen.items() if _is_traced(value)]


def _is_traced(value: Any) -> bool:
    try:
        leaves = jax.tree.leaves(value)
    except (TypeError, ValueError):
        return False
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def check_outside(before: Sequence[str], after: Sequence[str]) -> None:
    """Warns of what a step has put where it is not called with.

    Args:
        before, after: `holders_of_traced` of it, around its trace.
    """
    lost = [name for name in after if name not in before]
    if lost:
        warn(
            f"the step puts a value into {', '.join(lost)}; under wh.jit, as "
            "under jax.jit, that is done when it is traced and at no call: "
            "return the value, and pass it to the next step"
        )


def check_donated(
    arguments: Sequence[Argument], results: Sequence[Leaf]
) -> None:
    """Warns of state that a step is given for good, and returns nothing of: a
    result takes the place of one donated value of its shape and type.
    """
    left = collections.Counter((each.shape, each.dtype) for each in results)
    lost = []
    for argument in (a for a in arguments if a.donated):
        leaf = Leaf.of(argument.aval, argument.label)
        kind = (leaf.shape, leaf.dtype)
        if left[kind]:
            left[kind] -= 1
        else:
            lost.append(argument)
    if not lost:
        return
    are = "which are" if len(lost) > 1 else "which is"
    warn(
        f"the step returns nothing in the place of {lost[0].label}"
        f"{_and_others(len(lost) - 1)}, {are} donated: the next step has no "
        "such state; return the new values, or don't donate what they replace"
    )


def check_plan(
    plan: Plan,
    arguments: Sequence[Argument],
    cluster: clusters.ClusterLike | None,
    is_cpu_assumed: bool,
) -> None:
    """Warns of what a program wastes that carries out a plan.

    Args:
        plan: what was decided, or what is to be.
        arguments: what the step takes besides its state.
        cluster: what it is for.
        is_cpu_assumed: whether it is for the CPU, which the user has not said.
    """
    kinds = [
        devices["kind"]
        for devices in plan.get("devices", ())
        for _ in devices["ranks"]
    ]
    if not plan.get("task_graphs") or not kinds:
        return
    if is_cpu_assumed:
        _check_kinds(kinds, cluster)
    if len(kinds) == 1:
        return
    _check_repetition(plan, arguments)
    for text in plan.idle_devices():
        warn(text)


def _check_kinds(
    kinds: Sequence[str], cluster: clusters.ClusterLike | None
) -> None:
    gpus = {kind for kind in set(kinds) if clusters.is_gpu(kind, cluster)}
    if gpus:
        warn(
            f"the cluster has {_counted(k for k in kinds if k in gpus)}, and "
            "the step runs on this machine's CPU instead: give wh.jit "
            'target="cuda", or target="cpu" if that is meant'
        )


def _counted(names: Any) -> str:
    """ "2 × T4, 1 × V100"."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} × {name}" for name, count in counts.items())


def candidates(arguments: Sequence[Argument]) -> list[str]:
    """The labels of the leaves that may carry a mini-batch."""
    return [a.label for a in arguments if may_be_batch(a)]


def may_be_batch(argument: Argument) -> bool:
    """Whether a leaf, of what is no state, may carry a mini-batch."""
    aval = argument.aval
    is_raw_key = aval.dtype == "uint32" and aval.shape in ((2,), (4,))
    return (
        not argument.donated
        and len(aval.shape) > 0
        and not is_raw_key
        and not aval.weak_type
        and not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended)
    )


# Of the step's FLOPs: less is not worth sharing out.
_SMALL_PART = 0.01


def _check_repetition(plan: Plan, arguments: Sequence[Argument]) -> None:
    given = candidates(arguments)
    everywhere = [rank for each in plan["devices"] for rank in each["ranks"]]
    # By its devices, all of them where nothing is said.
    several = [
        (graph, devices)
        for graph in plan["task_graphs"]
        if graph["phase"] != "apply"
        and len(devices := _devices(graph) or everywhere) > 1
    ]
    is_cut = any("split" in (a["placement"] or "") for a in plan["arguments"])
    if not several or not given or is_cut:
        return
    # Beside stages of their own, what is left is next to nothing.
    repeated = sum(graph.get("flops", 0) for graph, _ in several)
    if repeated < _SMALL_PART * sum(
        graph.get("flops", 0)
        for graph in plan["task_graphs"]
        if graph["phase"] != "apply"
    ):
        return
    count = max(len(devices) for _, devices in several)
    named = ", ".join(given[:3])
    batch = [a for a in arguments if a.batch_dim is not None]
    if not any(graph.get("strategy") for graph, _ in several):
        carrier = (
            ""
            if batch
            else f" and batch_argnums= for what carries it ({named}?)"
        )
        warn(
            f"nothing in the step has a strategy, so all {count} ranks "
            "compute the whole of it: give wh.set_default_strategy("
            f"wh.replicate()) to share out the mini-batch{carrier}"
        )
    elif not batch:
        warn(
            f"no argument carries the mini-batch, so {count} ranks compute the "
            f"same: give wh.jit batch_argnums= for it ({named}?), or "
            'batch_argnums="auto"'
        )
    elif all(a.aval.shape[a.batch_dim or 0] == 1 for a in batch):
        warn(
            f"a mini-batch of one sample is not shared out: {count} ranks "
            "compute the same; give the step more samples, or fewer devices"
        )


def _devices(graph: Mapping[str, Any]) -> list[int]:
    return [device for group in graph.get("devices", ()) for device in group]
