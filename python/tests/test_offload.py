"""State in the memory of hosts (``offload.level``).

Under test: steps of optax's optimizers on CPU ranks whose state is in the
memory of their hosts, beside `jax.jit`. Parameters and state must be those of
`jax.jit` up to rounding, and what a device holds must be without the state, in
the plan and by the counts of a run. Copies go on beside other work: late
devices, which each step also runs on, would show a wait that is missing.
"""

import json
import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from layers import OPTIMIZERS, arguments, make_step, size_of
from safetensors.numpy import load_file, save_file

import whale as wh

LAYERS, STEPS = 3, 3
BIN = pathlib.Path(__file__).parents[2] / "build" / "bin"
HOST = {"memory_bytes": 1e9, "bandwidth": 1e9}


def hosts(ranks, nodes=1, **changed):
    """A cluster of CPU ranks whose nodes have a host."""
    devices = {"kind": "cpu", "count": ranks // nodes} | changed
    return {"nodes": [{"count": nodes, "devices": [devices], "host": HOST}]}


def offloaded(state):
    """The bytes of what is large enough to leave the devices."""
    return sum(
        leaf.nbytes for leaf in jax.tree.leaves(state) if leaf.nbytes >= 1024
    )


def jitted(
    optimizer,
    cluster,
    config,
    strategy=wh.replicate,
    donate=(0, 1),
    plan=None,
):
    wh.init(wh.Config(config))
    wh.set_default_strategy(strategy())
    return wh.jit(
        make_step(optimizer),
        cluster=cluster,
        batch_argnums=2,
        donate_argnums=donate,
        plan=plan,
    )


def lowered(optimizer, cluster, strategy=wh.replicate, **config):
    """The step, and what it is called with."""
    config = {"offload.level": "state"} | config
    step = jitted(optimizer, cluster, config, strategy)
    return step, arguments(optimizer, LAYERS)


def check_steps(step, given, optimizer):
    """Steps of it beside those of `jax.jit`."""
    params, state, batch = given
    expected = jax.jit(make_step(optimizer))
    own = jax.tree.map(jnp.copy, (params, state))
    other = params, state
    for _ in range(STEPS):
        *own, _ = step(*own, batch)
        *other, _ = expected(*other, batch)
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("donate", [(), 0])
def test_state_that_is_returned_as_it_is(donate):
    """It stays where it is: in the host's memory only if it is donated."""

    def step(state, x):
        grad = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(state["w"])
        mean = 0.9 * state["mean"] + grad * state["mask"]
        return {"w": state["w"] - mean, "mean": mean, "mask": state["mask"]}

    wh.init(wh.Config({"offload.level": "state"}))
    wh.set_default_strategy(wh.replicate())
    own = wh.jit(step, cluster=hosts(1), batch_argnums=1, donate_argnums=donate)
    x = jnp.arange(8.0)[:, None] + jnp.ones(64)
    other = {"w": jnp.ones((64, 64)) / 64, "mean": jnp.zeros((64, 64))}
    other["mask"] = jnp.full((64, 64), 1e-3)
    mine = jax.tree.map(jnp.copy, other)
    for _ in range(STEPS):
        mine, other = own(mine, x), jax.jit(step)(other, x)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(other)):
        np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, ranks):
    optimizer = OPTIMIZERS[name]()
    if name == "adafactor":
        step, given = lowered(optimizer, hosts(ranks))
        with pytest.raises(wh.CompileError, match="no state of an optimizer"):
            step.lower(*given).plan()
        return
    step, given = lowered(optimizer, hosts(ranks))
    check_steps(step, given, optimizer)
    for device in step.plan["devices"]:
        assert device["host_memory_bytes"] == offloaded(given[1])


@pytest.mark.parametrize(
    "strategy, config, cluster",
    [
        (wh.replicate, {"num_micro_batch": 3}, hosts(4)),
        (wh.replicate, {"zero.level": "v0"}, hosts(4, nodes=2)),
        (wh.replicate, {"zero.level": "v2", "num_micro_batch": 2}, hosts(2)),
        (wh.replicate, {"optimizer.num_apply_group": 2}, hosts(2)),
        (wh.replicate, {"optimizer.num_apply_group": 1}, hosts(2)),
        (
            wh.replicate,
            {"num_micro_batch": 4, "num_task_graph": 2},
            hosts(4, nodes=2),
        ),
        (
            lambda: wh.replicate(1),
            {"num_micro_batch": 2, "num_task_graph": 2, "zero.level": "v0"},
            hosts(4),
        ),
        (lambda: wh.split(2), {}, hosts(2)),
        (wh.replicate, {"gradient_checkpoint.type": "auto"}, hosts(2)),
        (wh.replicate, {"communication.bucket_bytes": 0}, hosts(3)),
    ],
)
def test_nests(strategy, config, cluster):
    optimizer = OPTIMIZERS["adam"]()
    step, given = lowered(optimizer, cluster, strategy, **config)
    check_steps(step, given, optimizer)
    kinds = step.plan["collectives"]
    assert kinds["host_to_device"] == kinds["device_to_host"]


@pytest.mark.parametrize(
    "strategy, config, cluster",
    [
        (wh.replicate, {"offload.level": "v0"}, hosts(1)),
        (wh.replicate, {}, hosts(2)),
        (wh.replicate, {"zero.level": "v0"}, hosts(2)),
        (wh.replicate, {"zero.level": "v2"}, hosts(2)),
        (wh.replicate, {"optimizer.num_apply_group": 1}, hosts(2)),
        (lambda: wh.split(2), {}, hosts(2)),
        (lambda: wh.replicate(1), {"num_task_graph": 2}, hosts(2)),
    ],
)
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_weights(name, strategy, config, cluster):
    """Weights too, which the forward and the backward fetch."""
    optimizer = optax.sgd(0.1) if name == "sgd" else optax.adam(1e-2)
    if name == "sgd" and config.get("zero.level") == "v0":
        pytest.skip("nothing to share out")
    config = {"offload.level": "weights"} | config
    step, given = lowered(optimizer, cluster, strategy, **config)
    check_steps(step, given, optimizer)
    kinds = step.plan["collectives"]
    both = kinds["host_to_device"]["count"], kinds["device_to_host"]["count"]
    assert both[0] > both[1] >= LAYERS


def test_memory_of_weights():
    """Of many layers a device holds a few, whatever state they have."""
    optimizer = optax.adam(1e-2)
    layers = 12

    def run(config):
        step = jitted(optimizer, hosts(1), config)
        given = arguments(optimizer, layers)
        step(*jax.tree.map(jnp.copy, given))
        return step.stats["ranks"][0], given

    own, given = run({"offload.level": "weights"})
    other, _ = run({})
    state = offloaded(given[:2])
    assert own["host_bytes"] == state
    layer = size_of(given[0]) // layers
    saved = other["peak_bytes"] - own["peak_bytes"]
    assert state - 12 * layer <= saved <= state


def test_micro_batches_keep_weights():
    optimizer = optax.sgd(0.1)
    config = {"offload.level": "weights", "num_micro_batch": 2}
    step, given = lowered(optimizer, hosts(2), **config)
    with pytest.raises(wh.CompileError, match="all micro-batches read it"):
        step.lower(*given).plan()


def test_states_are_made_and_read_where_they_are():
    """By programs of their own, which offload nothing themselves."""
    optimizer = optax.adam(1e-2)
    step, given = lowered(optimizer, hosts(2))

    def init():
        params = arguments(optimizer, LAYERS)[0]
        return params, optimizer.init(params)

    def evaluate(params, state):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(state[0].mu))

    like = step.lower(*given)
    params, state = wh.jit(init, out_like=like)()
    params, state, _ = step(params, state, given[2])
    expected = jax.jit(make_step(optimizer))(*given)
    found = wh.jit(evaluate, in_like=like)(params, state)
    np.testing.assert_allclose(found, evaluate(*expected[:2]), rtol=1e-3)


@pytest.mark.parametrize("donated", [True, False])
def test_memory(donated):
    """What a device holds, in the plan and as it is counted."""
    optimizer = optax.adam(1e-2)

    def run(config):
        donate = (0, 1) if donated else ()
        step = jitted(optimizer, hosts(2), config, donate=donate)
        given = arguments(optimizer, LAYERS)
        step(*jax.tree.map(jnp.copy, given))
        return step, given

    step, given = run({"offload.level": "state"})
    plain, _ = run({})
    state = offloaded(given[1]) * (1 if donated else 2)
    layer = size_of(given[0]) // LAYERS
    for own, other in zip(step.stats["ranks"], plain.stats["ranks"]):
        assert own["host_bytes"] == state
        assert "host_bytes" not in other
        # Moments of two layers are under way, and those that go back.
        saved = other["peak_bytes"] - own["peak_bytes"]
        assert state - 8 * layer <= saved <= state
    for rank, device in zip(step.stats["ranks"], step.plan["devices"]):
        assert rank["peak_bytes"] <= device["peak_memory_bytes"]
        assert device["host_memory_bytes"] == state


def test_state_goes_between_plans():
    """What one step has in the host another takes on the device, and back."""
    optimizer = optax.adam(1e-2)
    first, (params, state, batch) = lowered(optimizer, hosts(2))
    first.lower(params, state, batch).compile()
    second = jitted(optimizer, 4, {"zero.level": "v0"})
    expected = jax.jit(make_step(optimizer))
    own = jax.tree.map(jnp.copy, (params, state))
    other = params, state
    for step in (first, second, first):
        *own, _ = step(*own, batch)
        *other, _ = expected(*other, batch)
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize(
    "optimizer, cluster, why",
    [
        (optax.sgd(0.1), hosts(2), "not only the optimizer reads it"),
        (optax.adam(0.1), 2, "node 'local' has no 'host' in the cluster file"),
        (
            optax.adam(0.1),
            {
                "nodes": [
                    {
                        "name": "small",
                        "devices": [{"kind": "cpu", "count": 2}],
                        "host": {"memory_bytes": 3e4, "bandwidth": 1e9},
                    }
                ]
            },
            "the host of node 'small' lacks 19.2 kB: it has 30.0 kB and needs "
            "49.2 kB for the state of its 2 devices",
        ),
    ],
)
def test_errors(optimizer, cluster, why):
    step, given = lowered(optimizer, cluster)
    with pytest.raises(wh.CompileError) as error:
        step.lower(*given).plan()
    assert why in str(error.value)
    assert str(error.value).split(": error: ")[0].count(":") == 2


def test_levels():
    with pytest.raises(ValueError, match="must be one of 'state', 'weights'"):
        wh.Config({"offload.level": "v7"})


def run_steps(folder, program, arrays, count, *options):
    """What whale-run makes of so many steps, and its statistics."""
    save_file(arrays, folder / "in.safetensors")
    subprocess.run(
        [
            BIN / "whale-run",
            program,
            f"--inputs={folder}/in.safetensors",
            f"--outputs={folder}/out.safetensors",
            f"--stats={folder}/stats.json",
            f"--steps={count}",
            *options,
        ],
        check=True,
    )
    stats = json.loads((folder / "stats.json").read_text())
    return load_file(folder / "out.safetensors"), stats


def test_saved_programs(tmp_path):
    """Steps of whale-run, from a checkpoint too, and over an emulated link:
    what two ranks of a node copy takes its time on the link that they share."""
    optimizer = optax.adam(1e-2)
    step, given = lowered(optimizer, hosts(2))
    program = tmp_path / "step.whale"
    step.lower(*given).compile().save(program)
    leaves = jax.tree.leaves(given)
    arrays = {f"arg{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    whole, _ = run_steps(tmp_path, program, arrays, 4)
    state, batch = given[:2], given[2]
    expected = jax.jit(make_step(optimizer))
    for _ in range(4):
        *state, _ = expected(*state, batch)
    for i, leaf in enumerate(jax.tree.leaves(state)):
        np.testing.assert_allclose(
            whole[f"result{i}"], leaf, rtol=2e-3, atol=2e-5
        )

    saved = f"--checkpoint-dir={tmp_path}/saved"
    run_steps(tmp_path, program, arrays, 2, saved, "--checkpoint-every=1")
    for options in ((saved, "--resume"), ("--nprocs=2",)):
        found, _ = run_steps(tmp_path, program, arrays, 4, *options)
        for name, array in whole.items():
            np.testing.assert_array_equal(found[name], array)

    network = hosts(2)
    bytes_copied = 2 * 2 * offloaded(given[1])
    network["nodes"][0]["host"] = HOST | {"bandwidth": bytes_copied / 0.3}
    path = tmp_path / "network.json"
    path.write_text(json.dumps(network))
    found, stats = run_steps(tmp_path, program, arrays, 4, f"--network={path}")
    for name, array in whole.items():
        np.testing.assert_array_equal(found[name], array)
    assert stats["step_time_s"] >= 0.3
    for rank in stats["ranks"]:
        copies = rank["collectives"]["host_to_device"]
        assert copies["bytes_received"] == offloaded(given[1])


def test_plans():
    """A plan says which state is in the memory of hosts, and is carried out."""
    optimizer = optax.adam(1e-2)
    step, given = lowered(optimizer, hosts(2))
    decided = wh.explain(step, *given)
    moments = jax.tree.leaves(given[1][0].mu) + jax.tree.leaves(given[1][0].nu)
    large = [leaf.nbytes for leaf in moments if leaf.nbytes >= 1024]
    chosen = decided["decisions"]["offloaded"]
    assert len(chosen) == len(large) == 2 * LAYERS

    def planned(numbers, level="state"):
        plan = decided["decisions"] | {"offloaded": numbers}
        config = {"offload.level": level} if level else {}
        return jitted(optimizer, hosts(2), config, plan=plan)

    fewer = planned(chosen[1:3])
    check_steps(fewer, given, optimizer)
    assert fewer.plan["decisions"]["offloaded"] == chosen[1:3]
    for device in fewer.plan["devices"]:
        assert device["host_memory_bytes"] == sum(large[1:3])
    for numbers, level, why in (
        ([0], "state", "argument 0 cannot be in the memory of hosts: not only"),
        ([999], "state", "argument 999 cannot be in the memory of hosts: the"),
        (chosen, None, "decisions.offloaded: needs offload.level"),
    ):
        with pytest.raises(wh.CompileError, match=why):
            planned(numbers, level).lower(*given).plan()
