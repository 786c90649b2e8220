"""What the papers measured, made of simulated steps.

Each function takes the values of the settings and gives numbers by name. What
a row of the table says of them is in `rows`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

from plan_models import Step

import whale as wh
from paper import models
from paper.constants import (
    NETWORK,
    mixed,
    v100s,
)
from paper.m6 import m6_1t, m6_10b, m6_100b
from paper.recurrent import gnmt
from paper.settings import SETTINGS
from paper.simulate import Result, Run, simulate

Values = dict[str, Any]
Numbers = dict[str, float]
COUNTS = (8, 16, 32)


def middle(**changes: Any) -> Values:
    """The settings that figures are made with, and some that differ: their
    names have _ for the dot."""
    values = {name: setting.value for name, setting in SETTINGS.items()}
    values |= {"network": NETWORK["bandwidth"].value, "free links": False}
    return values | changes


def simulate_on(
    values: Values,
    cluster: Callable[..., dict[str, Any]],
    run: Run,
) -> Result:
    """A step on the cluster, with the network that the values have. Plans are
    those for the cluster as it is."""
    changed = cluster(network=values["network"], is_free=values["free links"])
    return simulate(dataclasses.replace(run, simulated=changed))


def classifier(values: Values, count: int, classes: int, head: str) -> Result:
    """ResNet-50 on V100: its class head `split`, or all data parallel."""
    whole = functools.partial(wh.replicate, count)
    split = functools.partial(wh.split, count)
    cluster = functools.partial(v100s, count)
    return simulate_on(
        values,
        cluster,
        Run(
            functools.partial(
                models.resnet,
                values["resnet.batch"] * count,
                classes,
                values["resnet.optimizer"],
                whole,
                split if head == "split" else whole,
            ),
            cluster(),
        ),
    )


def classes_100k(values: Values) -> Numbers:
    """Figures 13 and 16."""
    overlaps = values["overlap"]
    numbers: Numbers = {}
    for count in COUNTS:
        plain = classifier(values, count, 100_000, "replicate")
        hybrid = classifier(values, count, 100_000, "split")
        numbers[f"rate data parallel {count}"] = plain.rate(overlaps)
        numbers[f"rate hybrid {count}"] = hybrid.rate(overlaps)
        numbers[f"gain {count}"] = hybrid.rate(overlaps) / plain.rate(overlaps)
        for name, result in (("data parallel", plain), ("hybrid", hybrid)):
            numbers[f"share {name} {count}"] = (
                1 - result.compute_seconds / result.seconds(overlaps)
            )
    return numbers


def classes_1m(values: Values) -> Numbers:
    """Figure 14."""
    overlaps = values["overlap"]
    plain = classifier(values, 8, 1_000_000, "replicate")
    rates = {
        count: classifier(values, count, 1_000_000, "split") for count in COUNTS
    }
    numbers = {
        f"rate hybrid {count}": rate.rate(overlaps)
        for count, rate in rates.items()
    }
    return numbers | {
        "data parallel fits": float(plain.fits),
        "hybrid fits": float(all(rate.fits for rate in rates.values())),
        "scaling": rates[32].rate(overlaps) / rates[8].rate(overlaps) / 4,
    }


def class_head(values: Values) -> Numbers:
    """Figure 15: the head split by its columns or its rows, as the planner
    estimates the step before it takes one of them."""
    numbers: Numbers = {"columns": 1}
    for count in COUNTS:
        found = re.search(
            r"\['head'\]: remark: .* split along dimension 1 .*\), "
            r"([\d.]+) s; not along dimension 0 .*\), ([\d.]+) s",
            classifier(values, count, 100_000, "split").remarks,
        )
        if not found:
            return {"columns": 0}
        numbers[f"gain {count}"] = float(found[2]) / float(found[1])
    return numbers


def make_model(
    values: Values, model: str, count: int
) -> functools.partial[Step]:
    """A step on as many devices, data parallel."""
    batch, optimizer = values[f"{model}.batch"] * count, values["optimizer"]
    if model == "resnet":
        return functools.partial(models.resnet, batch, optimizer=optimizer)
    make = models.bert if model == "bert" else gnmt
    return functools.partial(make, batch, values[f"{model}.length"], optimizer)


def scaling(values: Values, model: str) -> Numbers:
    """Figures 9 and 10: how many times as fast as one device."""
    results = {
        count: simulate_on(
            values,
            functools.partial(v100s, count),
            Run(
                make_model(values, model, count),
                v100s(count),
                default=wh.replicate,
            ),
        )
        for count in (1, *COUNTS)
    }
    rates = {
        count: result.rate(values["overlap"])
        for count, result in results.items()
    }
    return {"rate 1": rates[1]} | {
        f"speed-up {count}": rates[count] / rates[1] for count in COUNTS
    }


def uneven_data_parallel(
    values: Values, model: str, balances: bool = True
) -> Numbers:
    """Figure 17: shares by speed over equal ones, on 8 V100 and 8 P100. A
    plan for devices that are equally fast has equal shares."""
    cluster = functools.partial(mixed, 8)
    make = make_model(values, model, 16)

    def run(planned: dict[str, Any]) -> Result:
        return simulate_on(
            values, cluster, Run(make, planned, default=wh.replicate)
        )

    equal = run(cluster(is_alike=True))
    uneven = run(cluster()) if balances else equal
    overlaps = values["overlap"]
    return {"gain": uneven.rate(overlaps) / equal.rate(overlaps)}


def pipeline(
    stages: int, micro_batches: int, schedule: str = "1f1b"
) -> dict[str, Any]:
    """A configuration."""
    return {
        "num_task_graph": stages,
        "num_micro_batch": micro_batches,
        "pipeline.strategy": schedule,
    }


def bert_pipeline(
    values: Values,
    stages: int,
    schedule: str,
    recomputes: bool,
    devices: int = 0,
) -> Result:
    """BertLarge in stages, and as many replicas as there are devices for."""
    devices = devices or stages
    micro_batches = values["bert.micro_batches"]
    batch = values["bert.batch"] * micro_batches * (devices // stages)
    return simulate_on(
        values,
        functools.partial(v100s, devices),
        Run(
            functools.partial(
                models.bert,
                batch,
                values["bert.length"],
                values["optimizer"],
                recomputes=recomputes,
            ),
            v100s(devices),
            pipeline(stages, micro_batches, schedule),
            wh.replicate,
        ),
    )


def schedules(values: Values, gpipe_recomputes: bool = True) -> Numbers:
    """Figure 11: 1F1B over GPipe."""
    numbers: Numbers = {}
    for stages in (4, 8):
        gpipe = bert_pipeline(values, stages, "gpipe", gpipe_recomputes)
        ours = bert_pipeline(values, stages, "1f1b", False)
        numbers[f"gain {stages}"] = ours.rate(True) / gpipe.rate(True)
    return numbers


def nested(values: Values) -> Numbers:
    """Figure 12: stages times replicas, on 8 V100."""
    rates = {
        stages: bert_pipeline(values, stages, "1f1b", False, devices=8).rate(
            True
        )
        for stages in (2, 4, 8)
    }
    return {f"rate {stages}": rate for stages, rate in rates.items()} | {
        f"gain {stages}": rates[stages] / rates[8] for stages in (2, 4)
    }


def uneven_pipeline(
    values: Values, model: str, balances: bool = True
) -> Numbers:
    """Figure 18: stages by speed over equal ones, in two pipelines of two V100
    and two P100. A plan for devices that are equally fast has equal
    stages."""
    cluster = functools.partial(mixed, 4)
    devices = ((0,), (1,), (4,), (5,), (2,), (3,), (6,), (7,))
    micro_batches = values[f"{model}.micro_batches"]
    batch = values[f"{model}.batch"] * micro_batches * 2
    make_step = models.bert if model == "bert" else models.t5

    def run(planned: dict[str, Any]) -> Result:
        return simulate_on(
            values,
            cluster,
            Run(
                functools.partial(
                    make_step,
                    batch,
                    values[f"{model}.length"],
                    values["optimizer"],
                ),
                planned,
                pipeline(4, micro_batches),
                functools.partial(wh.replicate, 1),
                devices,
            ),
        )

    equal = run(cluster(is_alike=True))
    uneven = run(cluster()) if balances else equal
    return {"gain": uneven.rate(True) / equal.rate(True)}


def dense_10b(values: Values, recomputes: bool = True) -> Numbers:
    """Figure 19. Stages are scopes: where the compiler cuts inside of a layer
    that is computed again, a backward waits for the stage before it."""
    rates = {}
    for count in (8, 256):
        batch = 35 * values["m6.batch"] * (count // 8)
        result = simulate_on(
            values,
            functools.partial(v100s, count),
            Run(
                functools.partial(
                    m6_10b,
                    batch,
                    values["m6.length"],
                    recomputes,
                    8,
                    functools.partial(wh.replicate, 1),
                ),
                v100s(count),
                {"num_micro_batch": 35, "pipeline.strategy": "1f1b"},
            ),
        )
        if not result.fits:
            return {"fits": 0}
        rates[count] = result.rate(True)
    return {"fits": 1, "scaling": rates[256] / rates[8] / 32} | {
        f"rate {count}": rate for count, rate in rates.items()
    }


EXPERTS = {"100B": (128, m6_100b), "1T": (480, m6_1t)}
SEQUENCES = 8


def experts(values: Values, size: str) -> Numbers:
    """M6-MoE: one group of sequences on each device. Hours and energy are of
    100 million samples, as the paper has them."""
    devices, make = EXPERTS[size]
    batch = SEQUENCES * devices
    result = simulate_on(
        values,
        functools.partial(v100s, devices),
        Run(
            functools.partial(
                make,
                batch,
                values["m6 experts.length"],
                sequences=SEQUENCES,
                scope=functools.partial(wh.split, devices),
            ),
            v100s(devices),
            default=wh.replicate,
        ),
    )
    rate = result.rate(values["overlap"])
    hours = 100e6 / rate / 3600 * devices
    joules = result.simulated["energy_j"] / batch * 100e6
    return {
        "fits": float(result.fits),
        "rate": rate,
        "device hours": hours,
        "megawatt hours": joules / 3.6e9,
    }
