"""Compiles steps for a cluster of unlike GPUs, and checks what whale-sim says.

Usage: sim.py DIRECTORY. What the compiler expected of a step is what the
simulator finds in the program, and what a program sends when it runs is what
the simulator says it does.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import whale as wh

GPUS = {
    "nodes": [
        {
            "devices": [{"kind": "V100", "count": 2}],
            "link": {"bandwidth": 1.2e11, "latency": 3e-6},
        },
        {
            "devices": [{"kind": "P100", "count": 2, "slowdown": 1.5}],
            "link": {"bandwidth": 6e9, "latency": 6e-6},
        },
    ],
    "network": {"bandwidth": 5.9e9, "latency": 1e-5},
}
WIDTH, LAYERS, ROWS = 64, 4, 16


def layer(w, x):
    return jnp.tanh(x @ w)


def replicated(params, x):
    with wh.replicate():
        for w in params:
            x = layer(w, x)
    return (x**2).mean()


def divided(params, x):
    for number, w in enumerate(params):
        with wh.split() if number % 2 else wh.replicate():
            x = layer(w, x)
    return (x**2).mean()


def staged(params, x):
    for number, w in enumerate(params):
        with wh.replicate(device_count=1, name=f"stage {number}"):
            x = layer(w, x)
    return (x**2).mean()


def scanned(params, x):
    with wh.split():
        x, _ = jax.lax.scan(
            lambda x, w: (layer(w, x), None), x, jnp.stack(params)
        )
    return (x**2).mean()


def step_of(loss, cluster):
    def step(params, x):
        value, gradient = jax.value_and_grad(loss)(params, x)
        return [w - 0.1 * g for w, g in zip(params, gradient)], value

    return wh.jit(step, cluster=cluster, batch_argnums=1)


def simulate(*arguments):
    text = subprocess.run(
        ["whale-sim", *map(str, arguments), "--json"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(text)


def check_nccl(path, own):
    """By the other rule each reduction and gathering has its algorithm."""
    found = simulate(path, "--collectives=nccl")
    assert (own["collective_rule"], found["collective_rule"]) == ("own", "nccl")
    assert own["collectives"].keys() == found["collectives"].keys()
    for kind, times in found["collectives"].items():
        assert "algorithms" not in own["collectives"][kind]
        chosen = times.get("algorithms", {})
        assert sum(chosen.values()) == (
            times["count"]
            if kind in ("all_reduce", "all_gather", "reduce_scatter")
            else 0
        ), (kind, times)


def check_task_graphs(found, program):
    """All that they do is done by somebody, and is what the plan says."""
    planned = {}
    for graph in program.manifest["plan"]["task_graphs"]:
        name = graph["name"]
        planned[name] = planned.get(name, 0) + graph["flops"]
    uses = found["task_graphs"]
    assert {use["name"] for use in uses} <= planned.keys(), (uses, planned)
    for use in uses:
        done = sum(each["share"] * len(each["ranks"]) for each in use["shares"])
        assert np.isclose(done, 1), use
        assert use["compute_s"] <= found["step_time_s"], use
    sent = sum(use["communication_bytes"] for use in uses)
    assert 0 < sent <= found["communication_bytes"], uses
    return {use["name"]: use for use in uses}


def check(name, loss, folder, **config):
    wh.init(wh.Config(config))
    params = [np.eye(WIDTH, dtype=np.float32)] * LAYERS
    x = np.ones((ROWS, WIDTH), np.float32)
    program = step_of(loss, GPUS).lower(params, x).compile()
    path = folder / f"{name}.whale"
    program.save(path)
    found = simulate(path)
    expected = program.manifest["plan"]["step_time_s"]
    ratio = found["step_time_s"] / expected
    assert 0.9 < ratio < 1.1, (name, found["step_time_s"], expected)
    assert found["samples"] == ROWS
    assert not found["out_of_memory"]
    for device in found["devices"]:
        spent = sum(
            device[f"{what}_s"] for what in ("compute", "communication", "idle")
        )
        assert np.isclose(spent, found["step_time_s"]), (name, device)
    for rows in found["memory_over_time"]:
        peaks = [
            found["devices"][r]["peak_memory_bytes"] for r in rows["ranks"]
        ]
        assert max(bytes for _, bytes in rows["points"]) <= min(peaks)
        assert min(bytes for _, bytes in rows["points"]) > 0
        times = [seconds for seconds, _ in rows["points"]]
        assert times == sorted(times) and times[-1] <= found["step_time_s"]
    check_nccl(path, found)
    uses = check_task_graphs(found, program)
    if name == "staged":
        ranks = [use["shares"][0]["ranks"] for use in uses.values()]
        assert sorted(ranks) == [[0], [1], [2], [3]], uses
        # Activations and their gradients travel between neighbours.
        assert all(use["communication_bytes"] > 0 for use in uses.values())
    program(params, x)
    sent = sum(
        each["bytes_sent"]
        for rank in program.stats["ranks"]
        for each in rank["collectives"].values()
    )
    assert sent == found["communication_bytes"], (name, sent, found)
    path_seconds = sum(each["seconds"] for each in found["critical_path"])
    assert np.isclose(path_seconds, found["step_time_s"]), name
    assert all(
        change["step_time_s"] < found["step_time_s"]
        for change in found["changes"]
    )
    # Where links cost nothing, nobody waits for them.
    free = {"nodes": [{"devices": GPUS["nodes"][0]["devices"] * 2}]}
    other = folder / "free.json"
    other.write_text(json.dumps(free))
    assert (
        simulate(path, f"--cluster={other}")["step_time_s"]
        < (found["step_time_s"])
    )
    return path


def draw(path, folder):
    """A trace that ends with the step, and a page with all sections."""
    trace, page = folder / "t.json", folder / "p.html"
    found = simulate(path, f"--trace={trace}", f"--html={page}")
    events = json.loads(trace.read_text())["traceEvents"]
    ends = [e["ts"] + e["dur"] for e in events if e["ph"] == "X"]
    assert np.isclose(max(ends), found["step_time_s"] * 1e6)
    counted = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(counted) <= max(d["memory_bytes"] for d in found["devices"])
    text = page.read_text()
    for section in "memory", "schedule", "memory-over-time", "path", "changes":
        assert f'<section id="{section}">' in text, section


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    paths = [
        check("replicated", replicated, folder),
        check("divided", divided, folder),
        check("staged", staged, folder, num_micro_batch=4),
        check("scanned", scanned, folder),
    ]
    table = subprocess.run(
        ["whale-sim", paths[0], "--compare", *paths[1:]],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    print(table)
    draw(paths[2], folder)


if __name__ == "__main__":
    main()
