"""Plans that are given back: unchanged, edited, and edited into nonsense.

Under test: the ``plan`` of `wh.jit` on CPU ranks. A step under any plan that is
taken computes what `jax.jit` computes: all numbers are small integers, so the
results are compared bit for bit. What the plan says is what is decided then. A
plan that cannot be carried out is an error with its line.
"""

import json
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

DEVICES = 4
MICRO_BATCHES = 4


def train_step(params, x):
    """Layers whose products stay small integers, and plain descent."""

    def loss(params):
        y = x
        for weight in params:
            y = jnp.maximum(y @ weight, 0)
        return jnp.sum(y)

    value, grads = jax.value_and_grad(loss)(params)
    return [p - g for p, g in zip(params, grads)], value


def arguments():
    """Weights of -1, 0 and 1, few of them, and a mini-batch of such rows."""
    generator = np.random.default_rng(7)
    weights = [
        generator.integers(-1, 2, (8, 8)).astype(np.float32)
        * (generator.random((8, 8)) < 0.2)
        for _ in range(4)
    ]
    return weights, generator.integers(0, 2, (16, 8)).astype(np.float32)


def jitted(plan=None, strategy=wh.replicate, **config):
    """The step for four ranks, in two stages of two; or split over all."""
    config = {"num_micro_batch": MICRO_BATCHES} | config
    if strategy is wh.replicate:
        config["num_task_graph"] = 2
    wh.init(wh.Config(config))
    wh.set_default_strategy(strategy())
    return wh.jit(train_step, cluster=DEVICES, batch_argnums=1, plan=plan)


@pytest.fixture(scope="module")
def decided():
    """What is decided without a plan."""
    return wh.explain(jitted(), *arguments())


def check(plan, **how):
    """Runs the step under a plan, and returns the plan that was made."""
    weights, batch = arguments()
    step = jitted(plan, **how)
    results = step(weights, batch)
    expected = jax.jit(train_step)(weights, batch)
    for own, other in zip(jax.tree.leaves(results), jax.tree.leaves(expected)):
        np.testing.assert_array_equal(own, other)
    return step.plan


def test_given_back(decided, tmp_path):
    assert check(decided) == decided
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(decided))
    assert check(file) == decided
    assert decided.compare(check(str(file))) == []


def test_decisions_alone_are_enough(decided):
    assert check(decided["decisions"]) == decided


def test_what_is_left_out_is_decided(decided):
    edited = decided.edited(shares=None, pipelines=None)
    assert check(edited)["decisions"] == decided["decisions"]


def random_order(drawn):
    """The steps of a first stage: each backward at some time after its
    forward."""
    steps, forwards, backwards = [], 0, 0
    while backwards < MICRO_BATCHES:
        can_go_on = forwards < MICRO_BATCHES
        if can_go_on and (forwards == backwards or drawn.random() < 0.6):
            steps.append(f"F{forwards}")
            forwards += 1
        else:
            steps.append(f"B{backwards}")
            backwards += 1
    return " ".join(steps)


def shares_in(plan):
    """What devices share out, by these."""
    return {
        str(each["devices"]): each["batch"]
        for each in plan["decisions"]["shares"]
    }


def test_shares_are_taken(decided):
    shares = [
        {"devices": [[0, 1]], "batch": [[1, 3]]},
        {"devices": [[2, 3]], "batch": [[1, 1]]},
    ]
    made = check(decided.edited(shares=shares))
    parts = {
        g["name"]: g["shares"] for g in made["task_graphs"] if "shares" in g
    }
    assert parts == {"stage0": [0.75, 0.25], "stage1": [0.5]}


def test_shares_of_one_stage(decided):
    """The other's are decided."""
    made = check(
        decided.edited(shares=[{"devices": [[0, 1]], "batch": [[1, 3]]}])
    )
    parts = {
        g["name"]: g["shares"] for g in made["task_graphs"] if "shares" in g
    }
    assert parts == {"stage0": [0.25 * 3, 0.25], "stage1": [0.5]}


def test_a_cut_of_what_is_not_cut(decided):
    wh.init(wh.Config({"num_micro_batch": MICRO_BATCHES}))
    wh.set_default_strategy(wh.replicate())
    plan = decided.edited(devices=None, shares=None, pipelines=None)
    step = wh.jit(train_step, cluster=DEVICES, batch_argnums=1, plan=plan)
    with pytest.raises(wh.CompileError, match="not cut automatically"):
        wh.explain(step, *arguments())


SPLIT = {"strategy": wh.split}


@pytest.fixture(scope="module")
def splits():
    """What is decided where parameters are split."""
    return wh.explain(jitted(**SPLIT), *arguments())


def test_splits_given_back(splits):
    assert splits["decisions"]["splits"] and splits["decisions"]["sums"]
    assert check(splits, **SPLIT) == splits


@pytest.mark.parametrize("sums", ["scattered", "whole"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_splits_are_taken(splits, dimension, sums):
    edited = splits.edited(
        splits=[
            each | {"dimension": dimension}
            for each in splits["decisions"]["splits"]
        ],
        sums=sums,
    )
    made = check(edited, **SPLIT)
    for name in ("splits", "sums"):
        assert made["decisions"][name] == edited["decisions"][name]
    # Argument 0 is the first weight.
    weight = made["arguments"][0]["placement"]
    assert f"split {dimension} " in weight


@pytest.mark.parametrize(
    "edit, message",
    [
        ({"dimension": 2}, "can be split along dimension"),
        ({"grains": 3}, "can be split along dimension"),
        ({"gathered": True}, "can be split along dimension"),
        ({"arguments": [0]}, "has nothing for argument 1"),
        ({"arguments": [0, 0]}, "argument 0 is there twice"),
        ({"arguments": [99]}, "argument 99 is no parameter of a split"),
    ],
)
def test_splits_that_cannot_be(splits, edit, message):
    first, *others = splits["decisions"]["splits"]
    edited = splits.edited(splits=[first | edit, *others])
    with pytest.raises(
        wh.CompileError,
        match=rf"plan.json:\d+:\d+: error: decisions.splits: .*{message}",
    ):
        wh.explain(jitted(edited, **SPLIT), *arguments())


def test_plans_are_not_followed_in_part(decided, splits):
    """What a step has no use for is told, not dropped."""
    edited = decided.edited(
        recomputed=[{"devices": [[0, 1]], "operations": [0]}]
    )
    with pytest.raises(wh.CompileError, match="needs gradient_checkpoint"):
        wh.explain(jitted(edited), *arguments())

    def sharded(x):
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
        named = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        return jax.lax.with_sharding_constraint(x, named) * 2

    wh.init()
    x = jnp.ones(4)
    plan = wh.explain(sharded, x, cluster=1)
    for part in ({"splits": splits["decisions"]["splits"]}, {"sums": "whole"}):
        step = wh.jit(sharded, cluster=1, plan=plan.edited(**part))
        with pytest.raises(wh.CompileError, match="plan.json:.*: error: "):
            wh.explain(step, x)


def test_splits_where_nothing_is_split(decided):
    edited = decided.edited(
        splits=[{"arguments": [0], "dimension": 0, "grains": 8}]
    )
    with pytest.raises(wh.CompileError, match="no parameter of a split"):
        wh.explain(jitted(edited), *arguments())
    with pytest.raises(wh.CompileError, match="no task graph is split"):
        wh.explain(jitted(decided.edited(sums="whole")), *arguments())


@pytest.mark.parametrize("seed", range(4))
def test_random_edits(decided, seed):
    drawn = random.Random(seed)
    ids = list(range(DEVICES))
    drawn.shuffle(ids)
    groups = drawn.choice([[[[0, 1]], [[2, 3]]], [[[0], [1]], [[2], [3]]]])
    devices = {
        f"stage{i}": [[ids[d] for d in group] for group in lists]
        for i, lists in enumerate(groups)
    }
    cuts = decided["decisions"]["cuts"]
    edited = decided.edited(
        devices=devices,
        cuts=[0, drawn.randint(1, cuts[1] + 3)],
        shares=[
            {
                "devices": lists,
                "batch": [
                    [drawn.randint(1, 9) for _ in group] for group in lists
                ],
            }
            for lists in devices.values()
        ],
        pipelines=[
            {
                "kind": "1f1b",
                "stages": [
                    random_order(drawn),
                    " ".join(f"F{i} B{i}" for i in range(MICRO_BATCHES)),
                ],
            }
        ],
    )
    made = check(edited)
    for name in ("devices", "cuts", "pipelines"):
        assert made["decisions"][name] == edited["decisions"][name]
    assert shares_in(made) == shares_in(edited)
    assert decided.compare(made)


@pytest.mark.parametrize(
    "edit, message",
    [
        ({"cuts": [0, 10**6]}, "begins with operation 1000000 of"),
        ({"devices": {"stage0": [[0]], "stage1": [[9]]}}, "device 9 of a"),
        (
            {"devices": {"stage0": [[0, 1]], "stage1": [[1, 2]]}},
            "device 1 is one of 'stage0'",
        ),
        ({"devices": {"stage0": [[0]]}}, "has none for task graph 'stage1'"),
        (
            {"shares": [{"devices": [[0, 3]], "batch": [[1, 1]]}]},
            "no task graph is on these devices",
        ),
        (
            {"pipelines": [{"kind": "gpipe", "stages": ["F0 B0", "F0 B0"]}]},
            "the steps of 'gpipe' are others",
        ),
        (
            {"pipelines": [{"kind": "gpipe", "stages": ["F0"]}]},
            "has 1 stages, and the step has 2",
        ),
        (
            {"devices": {"stage0": [[0], [1]], "stage1": [[2]]}},
            "has 1 repetitions, and 'stage0' has 2",
        ),
        (
            {"cuts": None, "devices": {"stage0": [[0, 1, 2, 3]]}},
            "has none for task graph 'stage1'",
        ),
        (
            {"shares": [{"devices": [[0, 1]], "batch": [[1, 1]]}] * 2},
            "these devices have shares above",
        ),
        ({"step": "0"}, "is the plan of another step"),
        ({"cluster": "0"}, "is a plan for another cluster"),
        ({"version": 9}, "expected version 1, found 9"),
        ({"stages": []}, "unknown field"),
    ],
)
def test_nonsense_is_an_error(decided, edit, message):
    with pytest.raises(
        wh.CompileError, match=rf"plan.json:\d+:\d+: error: .*{message}"
    ):
        wh.explain(jitted(decided.edited(**edit)), *arguments())


def test_a_step_is_known_by_all_that_it_does():
    """Also where operations and types are the same."""
    x, y = jnp.ones(4), jnp.ones(4)
    plan = wh.explain(lambda x, y: x - y * 2, x, y, cluster=2)
    for other in (
        lambda x, y: y - x * 2,
        lambda x, y: x - y * 3,
        lambda x, y: y * 2 - x,
    ):
        step = wh.jit(other, cluster=2, plan=plan)
        with pytest.raises(wh.CompileError, match="plan of another step"):
            wh.explain(step, x, y)


def test_what_follows_is_not_edited(decided):
    edited = wh.Plan(decided | {"task_graphs": []})
    with pytest.raises(wh.CompileError, match="task_graphs: follows from"):
        wh.explain(jitted(edited), *arguments())


def test_no_plan(tmp_path):
    with pytest.raises(TypeError, match="plan: expected a plan"):
        wh.jit(train_step, plan=3)
    with pytest.raises(ValueError, match="plan: cannot read"):
        jitted(plan=tmp_path / "none.json")(*arguments())
