"""One side of one case, in a process of its own.

Reads a command a line from standard input and answers with a line of JSON:
``compile`` (seconds, and how the state is sharded), ``steps N`` (seconds and
processor seconds of each, and the loss), ``memory`` (bytes).

In: the side, the name of a case and, for JAX, the shardings that Whale chose,
so that both hold the same parts. Compilation is always from scratch; the state
is placed once, outside of the time, and donated from step to step. A step ends
when its loss is a number of Python. Costs a process with one copy of the model.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import cases
import jax
import models

import whale as wh

# The step with all that it takes, placed where the step wants it.
Ready = tuple[Any, Any, Any, Any]


class Whale:
    """A step under `wh.jit`."""

    def __init__(self, case: cases.Case) -> None:
        self.case = case
        self.workload = getattr(models, case.model)(
            annotate=case.ranks > 1, **case.options
        )
        if case.strategy != "none":
            wh.set_default_strategy(getattr(wh, case.strategy)())

    def compile(self) -> dict[str, Any]:
        """Compiles anew; shardings are the split dimension of each leaf."""
        abstract = abstract_arguments(self.workload)
        start = time.perf_counter()
        self.step = (
            wh.jit(
                self.workload.train_step(),
                cluster=self.cluster(),
                target="none" if self.case.plan_only else "cpu",
                donate_argnums=(0, 1),
                batch_argnums=2,
            )
            .lower(*abstract)
            .compile()
        )
        seconds = time.perf_counter() - start
        return {
            "seconds": seconds,
            "shardings": [
                split_dimension(argument)
                for argument in self.step.manifest["arguments"]
            ],
        }

    def cluster(self) -> Any:
        """The ranks of this machine; more than that as nodes of eight."""
        if not self.case.compile_only:
            return self.case.ranks
        if not self.case.plan_only:
            # A rank of a machine that has no memory for the step.
            host = {"kind": "cpu", "count": self.case.ranks}
            return {"nodes": [{"devices": [host]}]}
        link = {"bandwidth": 1.5e11, "latency": 3e-6}
        device = {"kind": "V100-SXM2-32GB", "count": 8}
        count = self.case.ranks // 8
        return {
            "nodes": [{"count": count, "devices": [device], "link": link}],
            "network": {"bandwidth": 6.25e9, "latency": 1e-5},
        }

    def place(self) -> Any:
        return arguments(self.workload)

    def memory(self) -> int:
        """Bytes of the rank that needs most."""
        return max(rank["peak_bytes"] for rank in self.step.stats["ranks"])


class Jax:
    """The same step under `jax.jit` on as many host devices, its arguments
    sharded as Whale's are."""

    def __init__(self, case: cases.Case, shardings: list[int | None]) -> None:
        self.workload = getattr(models, case.model)(
            annotate=False, **case.options
        )
        axis = jax.sharding.AxisType.Auto
        self.mesh = jax.make_mesh((case.ranks,), ("device",), (axis,))
        leaves, tree = jax.tree.flatten(abstract_arguments(self.workload))
        self.shardings = jax.tree.unflatten(
            tree, [self.sharding(dim) for dim in shardings]
        )
        assert len(leaves) == len(shardings)

    def sharding(self, dimension: int | None) -> jax.sharding.NamedSharding:
        spec = jax.sharding.PartitionSpec
        axes = spec()
        if dimension is not None:
            axes = spec(*[None] * dimension, "device")
        return jax.sharding.NamedSharding(self.mesh, axes)

    def compile(self) -> dict[str, Any]:
        """Compiles anew."""
        abstract = abstract_arguments(self.workload)
        params, state, _ = self.shardings
        start = time.perf_counter()
        self.step = (
            jax.jit(
                self.workload.train_step(),
                donate_argnums=(0, 1),
                in_shardings=self.shardings,
                out_shardings=(params, state, self.sharding(None)),
            )
            .lower(*abstract)
            .compile()
        )
        return {"seconds": time.perf_counter() - start}

    def place(self) -> Any:
        return jax.device_put(arguments(self.workload), self.shardings)

    def memory(self) -> int:
        """Bytes of a device: arguments and temporaries."""
        analysis = self.step.memory_analysis()
        assert analysis
        return analysis.argument_size_in_bytes + analysis.temp_size_in_bytes


def arguments(workload: models.Workload) -> tuple[Any, Any, Any]:
    """Parameters, state of the optimizer, mini-batch."""
    params = jax.jit(workload.init)(jax.random.key(0))
    return params, workload.optimizer.init(params), workload.batch


def abstract_arguments(workload: models.Workload) -> tuple[Any, Any, Any]:
    """Their shapes."""
    params = jax.eval_shape(workload.init, jax.random.key(0))
    state = jax.eval_shape(workload.optimizer.init, params)
    batch = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
        workload.batch,
    )
    return params, state, batch


def split_dimension(argument: dict[str, Any]) -> int | None:
    """The dimension along which the ranks hold parts of an argument; None
    where each holds all of it, or what they hold is no split of one dimension.
    """
    view, boxes = argument["view"], argument["boxes"]
    if view != argument["shape"] or None in boxes:
        return None
    split = [
        dim
        for dim, extent in enumerate(view)
        if any(box[1][dim] != extent for box in boxes)
    ]
    return split[0] if len(split) == 1 else None


def steps(side: Any, count: int) -> dict[str, Any]:
    """Runs `count` steps, each until its loss is known."""
    if not hasattr(side, "state"):
        side.state = side.place()
    params, state, batch = side.state
    seconds, processor = [], []
    for _ in range(count):
        start, cpu = time.perf_counter(), time.process_time()
        params, state, value = side.step(params, state, batch)
        loss = float(value)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - cpu)
    side.state = params, state, batch
    return {"seconds": seconds, "processor": processor, "loss": loss}


def main() -> None:
    """``worker.py SIDE CASE [SHARDINGS]``"""
    name, text = sys.argv[1], sys.argv[2]
    case = next(case for case in cases.CASES if case.name == text)
    side: Any
    if name == "whale":
        side = Whale(case)
    else:
        side = Jax(case, json.loads(sys.argv[3]))
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "compile":
            answer = side.compile()
        elif command == "steps":
            answer = steps(side, int(rest[0]))
        else:
            answer = {"bytes": side.memory()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
