"""What the frontend adds to the text that JAX gives it.

In: a module of StableHLO, what the compiler gets about its arguments and
results, and the settings of a step. Out: its text with the attributes of Whale,
which go onto a clone of the module. Linear in the module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.interpreters import mlir

from whale import config, strategies
from whale.arguments import Argument

ir = mlir.ir


def annotate(
    module: ir.Module,
    arguments: Sequence[Argument],
    fed_by: Mapping[int, int],
    settings: Sequence[strategies.Setting],
    places: Sequence[str | None] | None,
    like_devices: Mapping[str, Sequence[Sequence[int]]],
) -> str:
    """The module's text with what the frontend adds to it.

    Where there are `places` for its results, all follows from these, and it has
    no strategies. `like_devices` are those of TaskGraphs of other steps.
    """
    # JAX may hand out the module again, so the attributes go onto a copy.
    with module.context as context, ir.Location.unknown():
        unregistered = context.allow_unregistered_dialects
        context.allow_unregistered_dialects = True
        try:
            copy = module.operation.clone()
            if places is None:
                _annotate_module(copy, settings)
                if like_devices:
                    copy.attributes["whale.like_devices"] = ir.DictAttr.get(
                        {
                            name: _device_lists(groups)
                            for name, groups in like_devices.items()
                        }
                    )
            else:
                _annotate_parts(copy)
            main = next(
                operation
                for operation in copy.regions[0].blocks[0].operations
                if operation.attributes["sym_name"].value == "main"
            )
            # Those of ordered effects come first, as arguments and as results.
            given = list(main.arg_attrs) if arguments else []
            tokens = [old for old in given if "jax.token" in old]
            if arguments:
                main.arg_attrs = tokens + [
                    _argument_attribute(
                        old, argument, fed_by.get(index), len(tokens)
                    )
                    for index, (old, argument) in enumerate(
                        zip(given[len(tokens) :], arguments, strict=True)
                    )
                ]
            if places is not None:
                main.attributes["res_attrs"] = ir.ArrayAttr.get(
                    [
                        _result_attribute(old, place)
                        for old, place in zip(
                            main.res_attrs,
                            [*[None] * len(tokens), *places],
                            strict=True,
                        )
                    ]
                )
            return str(copy.get_asm(enable_debug_info=True))
        finally:
            context.allow_unregistered_dialects = unregistered


def _annotate_module(
    copy: ir.Operation, settings: Sequence[strategies.Setting]
) -> None:
    """Adds strategies and the configuration to a module."""
    strategy = strategies.used_default()
    if strategy is not None:
        copy.attributes["whale.default_strategy"] = ir.Attribute.parse(
            strategy.attribute()
        )
    keys = config.current().nested()
    micro_batches = _only(
        [s.num_micro_batch for s in settings] + [keys.get("num_micro_batch")],
        "numbers of micro-batches (wh.pipeline, Config)",
    )
    if micro_batches is not None:
        keys["num_micro_batch"] = micro_batches
    if jax.config.jax_debug_nans:  # type: ignore[attr-defined]
        keys.setdefault("debug_nans", True)
    if keys:
        copy.attributes["whale.config"] = _attribute(keys)
    virtual_devices = _only(
        [s.virtual_devices or None for s in settings],
        "lists of virtual devices (wh.cluster)",
    )
    if virtual_devices is not None:
        copy.attributes["whale.virtual_devices"] = _device_lists(
            virtual_devices
        )
    patterns = _only(
        [s.patterns or None for s in settings],
        "sets of strategies by names (wh.scopes)",
    )
    if patterns is not None:
        copy.attributes["whale.scopes"] = ir.DictAttr.get(
            {name: ir.Attribute.parse(at) for name, at in patterns}
        )


def _device_lists(lists: Sequence[Sequence[int]]) -> ir.Attribute:
    return ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(v) for v in lists])


# The sections of the configuration that say nothing of strategies.
_SECTIONS = ("communication", "gpu")


def _annotate_parts(copy: ir.Operation) -> None:
    """Adds of the configuration what does not depend on strategies."""
    given = config.current().nested()
    if keys := {name: given[name] for name in _SECTIONS if name in given}:
        copy.attributes["whale.config"] = _attribute(keys)


def _only(values: Sequence[Any], what: str) -> Any:
    """The one value that is given, or None; a step cannot have two."""
    given = list(dict.fromkeys(v for v in values if v is not None))
    if len(given) > 1:
        raise ValueError(
            f"a step has two {what}: {given[0]} and {given[1]}; leave one out"
        )
    return given[0] if given else None


# Where another program has an argument, or wants a result.
_PLACE = "whale.given_placement"


def _entries(attribute: ir.DictAttr) -> dict[str, Any]:
    return {
        named.name: named.attr
        for named in attribute  # type: ignore[attr-defined]
    }


def _argument_attribute(
    old: ir.DictAttr, argument: Argument, fed_by: int | None, tokens: int
) -> ir.DictAttr:
    attributes = _entries(old)
    if argument.batch_dim is not None:
        attributes["whale.batch_dim"] = _attribute(argument.batch_dim)
    if fed_by is not None:
        attributes["whale.fed_by"] = _attribute(tokens + fed_by)
    if argument.donated:
        attributes["whale.donated"] = ir.UnitAttr.get()
    if argument.place is not None:
        attributes[_PLACE] = ir.Attribute.parse(argument.place)
    return ir.DictAttr.get(attributes)


def _result_attribute(old: ir.DictAttr, place: str | None) -> ir.DictAttr:
    attributes = _entries(old)
    if place is not None:
        attributes[_PLACE] = ir.Attribute.parse(place)
    return ir.DictAttr.get(attributes)


def _attribute(value: Any) -> ir.Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    return ir.DictAttr.get(
        {key: _attribute(inner) for key, inner in value.items()}
    )
