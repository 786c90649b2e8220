"""What a step would waste without a word, said when it is compiled.

In: a step's arguments, before and after it is traced, and its program. Out:
warnings (`notices`), each with what to write instead: switches of JAX that a
program does not follow, arguments that the step changes in place, ranks that
repeat the whole batch, devices without work, GPUs that a program for the CPU
only names. Nothing here is done for a call that is known. Cost: a comparison of
the leaves, and a pass over the program's plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from whale import clusters
from whale.arguments import Argument
from whale.notices import warn
from whale.program import Program
from whale.signature import argument_label

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
    "jax_log_compiles": (
        False,
        "give Lowered.compile explain=True to see what was compiled",
    ),
}

# A stage with less than this part of a device's mean work is not worth one.
_SMALL_STAGE = 1e-3


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


def check_changed(places: Sequence[tuple[Any, ...]], call: Any) -> None:
    """Warns of arguments that a step has changed in place."""
    if not places:
        return
    label = argument_label(places[0])
    more = f" and {len(places) - 1} others" if len(places) > 1 else ""
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


def check_program(
    program: Program,
    arguments: Sequence[Argument],
    cluster: clusters.ClusterLike | None,
    says_target: bool,
) -> None:
    """Warns of what a program wastes.

    Args:
        program: what was compiled.
        arguments: what the step takes.
        cluster: what it is compiled for.
        says_target: whether the user has said where it runs.
    """
    plan, ranks = program.plan, program.ranks
    if not plan.get("task_graphs") or not ranks:
        return
    if program.target == "cpu" and not says_target:
        _check_kinds(ranks, cluster)
    if len(ranks) == 1:
        return
    _check_repetition(program, plan, arguments)
    _check_idle(program, plan, ranks)


def _check_kinds(
    ranks: Sequence[Mapping[str, Any]], cluster: clusters.ClusterLike | None
) -> None:
    kinds = [rank["kind"] for rank in ranks]
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


def _check_repetition(
    program: Program, plan: Mapping[str, Any], arguments: Sequence[Argument]
) -> None:
    everywhere = [rank["device"] for rank in program.ranks]
    # By its devices, all of them where nothing is said.
    several = [
        (graph, devices)
        for graph in plan["task_graphs"]
        if graph["phase"] != "apply"
        and len(devices := _devices(graph) or everywhere) > 1
    ]
    fed = [entry["fed_by"] is not None for entry in program.entries]
    given = [
        label
        for argument, is_fed in zip(arguments, fed)
        if not is_fed
        for label in candidates([argument])
    ]
    if not several or not given or any(map(_is_cut, program.entries)):
        return
    count = max(len(devices) for _, devices in several)
    named = ", ".join(given[:3])
    if not any(graph.get("strategy") for graph, _ in several):
        batch = (
            ""
            if any(a.batch_dim is not None for a in arguments)
            else f" and batch_argnums= for what carries it ({named}?)"
        )
        warn(
            f"nothing in the step has a strategy, so all {count} ranks "
            "compute the whole of it: give wh.set_default_strategy("
            f"wh.replicate()) to share out the mini-batch{batch}"
        )
    elif all(argument.batch_dim is None for argument in arguments):
        warn(
            f"no argument carries the mini-batch, so {count} ranks compute the "
            f"same: give wh.jit batch_argnums= for it ({named}?), or "
            'batch_argnums="auto"'
        )


def _is_cut(entry: Mapping[str, Any]) -> bool:
    """Whether ranks hold different parts of an argument."""
    boxes = [box for box in entry["boxes"] or () if box is not None]
    return any(box != boxes[0] for box in boxes)


def _devices(graph: Mapping[str, Any]) -> list[int]:
    return [device for group in graph.get("devices", ()) for device in group]


def _check_idle(
    program: Program,
    plan: Mapping[str, Any],
    ranks: Sequence[Mapping[str, Any]],
) -> None:
    # What nothing is said of is wherever its operands are.
    graphs = [graph for graph in plan["task_graphs"] if "devices" in graph]
    if any(
        "devices" not in graph and graph["phase"] != "apply"
        for graph in plan["task_graphs"]
    ):
        return
    busy = {device for graph in graphs for device in _devices(graph)}
    idle = [r for r in ranks if r["device"] not in busy]
    if idle:
        warn(
            f"{_named(idle)} no work, as no part of the step is placed there: "
            "give the scopes more devices, or the cluster fewer"
        )
    without = program.ranks_without_work() - {r["device"] for r in idle}
    if without:
        named = [r for r in ranks if r["device"] in without]
        stages = dict.fromkeys(
            graph["name"] for graph in graphs if without & set(_devices(graph))
        )
        warn(
            f"{_named(named)} no work in {', '.join(map(repr, stages))}: "
            "its share of what is there is empty; give it fewer devices, or a "
            "larger mini-batch"
        )
    # By group of devices, what is computed on it.
    work: dict[tuple[int, ...], float] = {}
    for graph in graphs:
        place = tuple(sorted(_devices(graph)))
        work[place] = work.get(place, 0) + graph["flops"]
    mean = sum(work.values()) / max(len(busy), 1)
    for place, flops in work.items():
        alone = not any(set(place) & set(o) for o in work if o != place)
        if alone and flops / len(place) < _SMALL_STAGE * mean:
            names = dict.fromkeys(
                graph["name"]
                for graph in graphs
                if tuple(sorted(_devices(graph))) == place
            )
            named = [r for r in ranks if r["device"] in place]
            warn(
                f"{_named(named)} little to do: {', '.join(map(repr, names))} "
                f"has {flops / sum(work.values()):.2g} of the step's "
                "arithmetic; put it in the scope before, or after"
            )


def _named(ranks: Sequence[Mapping[str, Any]]) -> str:
    """ "device 3 (T4) has", or "devices 2, 3 (2 × T4) have"."""
    numbers = ", ".join(str(rank["device"]) for rank in ranks[:8])
    if len(ranks) > 8:
        numbers += ", ..."
    if len(ranks) == 1:
        return f"device {numbers} ({ranks[0]['kind']}) has"
    kinds = _counted(rank["kind"] for rank in ranks)
    return f"devices {numbers} ({kinds}) have"
