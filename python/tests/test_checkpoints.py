"""States that are saved under one plan and read under another.

Under test: `wh.Checkpointer`. A state that is trained, saved, restored under
another plan or number of processes and trained on must have the bits of one
that moved in memory; damage, other trees and what JSON cannot hold are errors
that name what is at fault; runs that are killed go on from their last
checkpoint. A failure means lost or altered state.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import textwrap
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from processes import kill_a_child, launch, output_of, run
from processes import launch as start

import whale as wh

pytest.importorskip("whale._whale")

TOOL = pathlib.Path(__file__).parents[2] / "build/bin/whale-checkpoint"

LIMIT = 120


class State(NamedTuple):
    w: dict[str, jax.Array]
    moments: list[jax.Array]
    key: jax.Array
    done: int


def make(width=6):
    rng = np.random.default_rng(0)
    w = {
        "up.w": rng.integers(-3, 4, (4, width)).astype(np.float32),
        "down": rng.integers(-3, 4, (width, 4)).astype(np.float32),
    }
    w = jax.tree.map(jnp.asarray, w)
    moments = [jnp.zeros((4, width), jnp.bfloat16), jnp.zeros((), jnp.int32)]
    return State(w, moments, jax.random.key(7), 0)


X = np.random.default_rng(1).integers(-2, 3, (12, 4)).astype(np.float32)


def trainer(first, second):
    """A step with these scopes around its two products."""

    def step(state, x):
        def loss(w):
            with first():
                h = x @ w["up.w"]
            with second():
                return (h @ w["down"]).sum() / 16

        grads = jax.grad(loss)(state.w)
        # Whole numbers: sums in any order have the same bits.
        w = jax.tree.map(lambda w, g: w - jnp.round(g / 4), state.w, grads)
        key, _ = jax.random.split(state.key)
        moments = [moment + 1 for moment in state.moments]
        return State(w, moments, key, state.done + 1), w["down"].sum()

    return step


UNEVEN = {
    "nodes": [
        {
            "devices": [
                {"kind": "cpu", "count": 2},
                {"kind": "cpu", "slowdown": 2.0},
            ]
        }
    ]
}
plain = trainer(contextlib.nullcontext, contextlib.nullcontext)
PLANS = {
    "alone": lambda: wh.jit(plain, cluster=1),
    "mixed": lambda: wh.jit(
        trainer(wh.replicate, wh.split), cluster=2, batch_argnums=1
    ),
    "uneven": lambda: wh.jit(
        trainer(wh.replicate, wh.replicate), cluster=UNEVEN, batch_argnums=1
    ),
    "sharded": lambda: wh.jit(trainer(wh.split, wh.split), cluster=4),
}


def same_bits(ours, theirs):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        if jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = map(jax.random.key_data, (one, other))
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def steps():
    return {name: plan() for name, plan in PLANS.items()}


@pytest.mark.parametrize(
    "first, second",
    [
        ("mixed", "uneven"),
        ("uneven", "sharded"),
        ("sharded", "alone"),
        ("alone", "mixed"),
    ],
)
def test_trained_on_under_another_plan(steps, tmp_path, first, second):
    checkpointer = wh.Checkpointer(tmp_path)
    assert checkpointer.latest() is None
    state, _ = steps[first](make(), X)
    checkpointer.save(1, state, extra={"row": [1, "two"]})
    assert checkpointer.latest() in (None, 1)
    checkpointer.wait()

    restored = checkpointer.restore(jax.eval_shape(lambda: make()))
    assert checkpointer.extra == {"row": [1, "two"]}
    assert all(isinstance(x, wh.Array) for x in jax.tree.leaves(restored))
    same_bits(restored, state)
    moved, _ = steps[second](state, X)
    after, _ = steps[second](restored, X)
    same_bits(after, moved)
    same_bits(after, jax.jit(plain)(jax.jit(plain)(make(), X)[0], X)[0])


def test_moved_to_another_plan(steps):
    first, second = steps["uneven"], steps["sharded"]
    state, _ = first(make(), X)
    lowered = second.lower(state, X)
    expected = jax.tree.map(
        np.asarray, (state.w, state.moments, jax.random.key_data(state.key))
    )
    kept = state.moments[0]
    moved = wh.move(state, lowered, "state")
    same_bits(
        (moved.w, moved.moments, jax.random.key_data(moved.key)), expected
    )
    assert moved.w["down"].placement.parts != state.w["down"].placement.parts
    with pytest.raises(wh.RuntimeError, match="moved to another program"):
        np.asarray(kept + 1)
    after, _ = second(moved, X)
    back = wh.move(after, first.lower(after, X), 0)
    same_bits(first(back, X)[0], jax.jit(plain)(after_all(3), X)[0])

    # What cannot be moved is where it was.
    with pytest.raises(ValueError, match="has 6 leaves, not 2"):
        wh.move(moved.w, lowered, 0)
    other = moved._replace(done=jnp.zeros(3, jnp.int32))
    with pytest.raises(wh.RuntimeError, match="must have shape"):
        wh.move(other, lowered, 0)


def after_all(count):
    """The state after so many steps but one, by `jax.jit`."""
    state = make()
    for _ in range(count - 1):
        state, _ = jax.jit(plain)(state, X)
    return state


def test_leaves_of_all_kinds(tmp_path):
    tree = {
        "numbers": (3, 2.5, True),
        "numpy": np.arange(6, dtype=np.int16).reshape(2, 3),
        "jax": jnp.ones((2, 0)),
        "half": jnp.full((3,), 1.5, jnp.float16),
        "flag": np.array([True, False]),
        # More bits than JAX keeps by itself.
        "wide": np.array([5_000_000_000, -1], np.int64),
        "large": 5_000_000_001,
        "tenth": 0.1,
        "old": jax.random.PRNGKey(1),
        "keys": jax.random.split(jax.random.key(3, impl="rbg"), 2),
        "none": None,
    }
    checkpointer = wh.Checkpointer(tmp_path / "deep" / "states")
    checkpointer.save(5, tree)
    restored = checkpointer.restore(tree)
    assert restored["numbers"] == (3, 2.5, True)
    assert [type(n) for n in restored["numbers"]] == [int, float, bool]
    assert type(restored["numpy"]) is np.ndarray
    assert restored["wide"].tolist() == [5_000_000_000, -1]
    assert (restored["large"], restored["tenth"]) == (5_000_000_001, 0.1)
    np.testing.assert_array_equal(restored["numpy"], tree["numpy"])
    assert restored["keys"].dtype == tree["keys"].dtype
    for name in ("jax", "half", "flag", "old"):
        np.testing.assert_array_equal(restored[name], tree[name])
    np.testing.assert_array_equal(
        jax.random.key_data(restored["keys"]),
        jax.random.key_data(tree["keys"]),
    )
    # A restored array is an array like others.
    twice = jax.jit(lambda x: x * 2)(restored["half"])
    np.testing.assert_array_equal(twice, np.full(3, 3.0))


def test_other_trees(tmp_path):
    checkpointer = wh.Checkpointer(tmp_path)
    checkpointer.save(1, {"a": jnp.ones(3), "k": jax.random.key(0)})

    def refused(tree, message):
        with pytest.raises(wh.RuntimeError, match=message):
            checkpointer.restore(tree)

    key = jax.random.key(0)
    refused({"a": jnp.ones(3)}, "has 'k', which the tree has not")
    refused({"a": jnp.ones(3), "k": key, "b": 1}, "step 1 has no 'b'")
    refused(
        {"a": jnp.ones(4), "k": key},
        r"'a' is f32\[3\] in the checkpoint, and f32\[4\] in the tree",
    )
    refused({"a": jnp.ones(3, int), "k": key}, r"and i32\[3\] in the tree")
    refused(
        {"a": jnp.ones(3), "k": jax.random.key(0, impl="rbg")},
        "of keys threefry2x32|of keys fry",
    )
    with pytest.raises(wh.RuntimeError, match="step-9"):
        checkpointer.restore({"a": 1}, step=9)


def test_numbers_that_became_arrays(tmp_path):
    checkpointer = wh.Checkpointer(tmp_path)
    step = wh.jit(lambda n, x: (n + 1, x * 2), cluster=1)
    checkpointer.save(1, step(0, np.zeros(3)))
    count, x = checkpointer.restore((0, np.zeros(3)))
    assert (type(count), count, x.dtype) == (int, 1, np.float32)
    with pytest.raises(wh.RuntimeError, match="'0' is i32"):
        checkpointer.restore((0.5, np.zeros(3)))


def test_what_is_saved_outlives_its_checkpointer(tmp_path):
    def train():
        wh.Checkpointer(tmp_path).save(1, np.zeros(1 << 20))

    train()
    pid = os.fork()
    if pid == 0:
        # A child that ends takes nothing with it.
        os._exit(0 if wh.Checkpointer(tmp_path / "own").latest() is None else 1)
    assert os.waitpid(pid, 0)[1] == 0
    for _ in range(6000):
        if wh.Checkpointer(tmp_path).latest() == 1:
            break
        time.sleep(0.01)
    else:
        raise AssertionError("the checkpoint is not complete")


def test_what_cannot_be_saved(tmp_path):
    checkpointer = wh.Checkpointer(tmp_path)
    with pytest.raises(TypeError, match="extra: .*set"):
        checkpointer.save(1, {"a": 1}, extra={1, 2})
    with pytest.raises(TypeError, match="extra: "):
        checkpointer.save(1, {"a": 1}, extra=[float("nan")])
    with pytest.raises(TypeError, match="extra: .*surrogates"):
        checkpointer.save(1, {"a": 1}, extra=["\ud800"])
    with pytest.raises(TypeError, match="extra: the key .* is Whale's own"):
        checkpointer.save(1, {"a": 1}, extra={"whale:integer": "1"})
    for step in (True, 6.9, "7"):
        with pytest.raises(TypeError, match="step must be an integer, got"):
            checkpointer.save(step, {"a": 1})
    for step in (-1, 1 << 63):
        with pytest.raises(ValueError, match="step must be at least 0"):
            checkpointer.save(step, {"a": 1})
    with pytest.raises(TypeError, match="'a.b' is no array"):
        checkpointer.save(1, {"a": {"b": "text"}})
    assert checkpointer.latest() is None
    checkpointer.save(1, {"a": 1})
    with pytest.raises(wh.RuntimeError, match="step 1 is not later than"):
        checkpointer.save(1, {"a": 1})
    for bad in (0, True, 1.5):
        with pytest.raises(ValueError, match="keep must be at least 1"):
            wh.Checkpointer(tmp_path, keep=bad)
        with pytest.raises(ValueError, match="every must be at least 1"):
            wh.Checkpointer(tmp_path, every=bad)
    other = wh.Checkpointer(tmp_path)
    with pytest.raises(wh.RuntimeError, match="another job saves"):
        other.save(2, {"a": 1})


def test_extra_keeps_every_number(tmp_path):
    generator = np.random.default_rng(0)
    extra = {
        "generator": generator.bit_generator.state,
        "numbers": [2**63 - 1, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1],
        "large": 10**400,
        "floats": [0.1, -0.0, 5e-324, 1e300, 1.0],
        "text": ["\0", "\u00e9", "\U0001f40b"],
    }
    checkpointer = wh.Checkpointer(tmp_path)
    checkpointer.save(1, {"a": 1}, extra=extra)
    other = wh.Checkpointer(tmp_path)
    checkpointer.wait()
    other.restore({"a": 1})
    assert other.extra == extra
    assert repr(other.extra["floats"]) == repr(extra["floats"])
    restored = np.random.default_rng(1)
    restored.bit_generator.state = other.extra["generator"]
    assert restored.random() == generator.random()


def test_a_name_that_whole_files_have_for_notes(tmp_path):
    checkpointer = wh.Checkpointer(tmp_path / "states")
    tree = {"__metadata__": np.arange(3)}
    checkpointer.save(1, tree)
    checkpointer.wait()
    restored = checkpointer.restore(tree)["__metadata__"]
    np.testing.assert_array_equal(restored, [0, 1, 2])
    done = subprocess.run(
        [TOOL, "export", tmp_path / "states", "-o", tmp_path / "whole"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "'__metadata__' cannot be exported" in done.stderr
    assert not list((tmp_path / "whole").iterdir())


def test_a_step_is_that_of_its_directory(tmp_path):
    checkpointer = wh.Checkpointer(tmp_path)
    checkpointer.save(5, {"a": 1})
    checkpointer.wait()
    manifest = tmp_path / "step-5" / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(re.sub('"step": 5', '"step": 6', text))
    with pytest.raises(wh.RuntimeError, match="step-5.*step: must be 5"):
        wh.Checkpointer(tmp_path).restore({"a": 1})


def test_names_with_points_are_two(tmp_path):
    checkpointer = wh.Checkpointer(tmp_path)
    tree = {"a.b": 1, "a": {"b": 2}}
    checkpointer.save(1, tree)
    assert checkpointer.restore(tree) == tree


def test_sigterm_saves_and_ends(tmp_path):
    code = f"""
checkpointer = wh.Checkpointer({str(tmp_path)!r}, every=1000)
state = np.float32(0)
for number in range(1, 500):
    state = state + 1
    if number == 7:
        os.kill(os.getpid(), signal.SIGTERM)
    if checkpointer.is_due(number):
        checkpointer.save(number, state)
"""
    with pytest.raises(AssertionError):
        run(code)
    assert wh.Checkpointer(tmp_path).restore(np.float32(0)) == 7


def test_a_script_completes_what_it_saves(tmp_path):
    run(
        f"""
checkpointer = wh.Checkpointer({str(tmp_path)!r})
checkpointer.save(3, np.zeros(1 << 22))
"""
    )
    assert wh.Checkpointer(tmp_path).latest() == 3


# Trains for so many steps in all, each saved, and prints the state.
SCRIPT = """
import os, sys, time, numpy as np, jax, jax.numpy as jnp
import whale as wh

wh.init_distributed()

def train(w, x):
    def loss(w):
        with {strategy}:
            return (x @ w).sum() / 8
    return w - jnp.round(jax.grad(loss)(w)) + 1, w.sum()

step = wh.jit(train, cluster=4, batch_argnums={batch})
checkpointer = wh.Checkpointer({place!r}, keep=2)
w = np.arange(24, dtype=np.float32).reshape(6, 4)
done = checkpointer.latest() or 0
if done:
    w = checkpointer.restore(w)
for number in range(done, {steps}):
    x = np.full((8, 6), number % 3, np.float32)
    w, total = step(w, x)
    checkpointer.save(number + 1, w, extra=dict(row=number))
    print("step", number + 1, flush=True)
    time.sleep({pause})
checkpointer.wait()
w = wh.gather(w)
if wh.process_index() == 0:
    np.save({result!r}, np.asarray(w))
"""


def script(folder, steps, strategy="wh.replicate()", batch=1, pause=0):
    path = folder / "script.py"
    path.write_text(
        SCRIPT.format(
            strategy=strategy,
            batch=batch,
            steps=steps,
            pause=pause,
            place=str(folder / "states"),
            result=str(folder / "w.npy"),
        )
    )
    return path


def expected(steps):
    w = np.arange(24, dtype=np.float32).reshape(6, 4)
    for number in range(steps):
        w = w - np.full((6, 1), np.round(number % 3)) + 1
    return w


def test_other_numbers_of_processes(tmp_path):
    process = start(script(tmp_path, 2), 2)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    manifest = json.loads(
        (tmp_path / "states" / "step-2" / "manifest.json").read_text()
    )
    assert len(manifest["files"]) == 2
    # Without the parts of which it is made.
    assert sorted(os.listdir(tmp_path / "states" / "step-2")) == [
        "manifest.json",
        "shard-0.safetensors",
        "shard-1.safetensors",
    ]
    process = start(script(tmp_path, 4, "wh.split()", None), 1)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), expected(4))


def kill_one(process, rng):
    """Kills a child of a launcher after some steps; returns how many."""
    steps = int(rng.integers(1, 8))
    for _ in range(steps):
        process.stdout.readline()
    kill_a_child(process, rng)
    return steps


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.long) for n in range(50)]
)
def test_killed_at_any_time(tmp_path, seed):
    """Goes on from the last complete step, with the same bits."""
    rng = np.random.default_rng(seed)
    path = script(tmp_path, 12, pause=0.02)
    process = start(path, 2)
    steps = kill_one(process, rng)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    assert "has ended unexpectedly" in errors or "SIGKILL" in errors
    process = start(path, 2)
    output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    # A save waits for the one before.
    assert 1 <= output.count("step ") <= 12 - (steps - 1)
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), expected(12))


@pytest.mark.long
def test_orbax_in_several_processes(tmp_path):
    """It is told what saves there, and writes no checkpoint."""
    path = tmp_path / "script.py"
    path.write_text(
        f"""
import os
import numpy as np, orbax.checkpoint
import whale as wh

wh.init_distributed()

def double(x):
    with wh.split():
        return 2 * x, x.sum()

for leaf in wh.jit(double, cluster=2)(np.ones((4, 4), np.float32)):
    try:
        with orbax.checkpoint.StandardCheckpointer() as checkpointer:
            checkpointer.save({str(tmp_path / "step")!r}, {{"leaf": leaf}})
    except wh.RuntimeError as error:
        print("refused:", error, flush=True)
# Threads of orbax may wait for what failed.
os._exit(0)
"""
    )
    output = output_of(launch(path, 2))
    assert output.count("refused: orbax cannot save") == 2, output
    assert output.count("save it with wh.Checkpointer") == 2
    assert not (tmp_path / "step").exists()


@pytest.mark.long
def test_restarts(tmp_path):
    path = script(tmp_path, 12, pause=0.02)
    process = start(path, 2, "--restarts=2")
    kill_one(process, np.random.default_rng(1))
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    assert "has ended unexpectedly" in errors
    assert "starting all processes again: attempt 2 of 3" in errors
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), expected(12))


def test_restarts_of_several_hosts(tmp_path):
    path = script(tmp_path, 12, pause=0.02)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hosts = [
        start(
            *(path, 1, "--restarts=3"),
            *(f"--coordinator=127.0.0.1:{port}", f"--node={node}/2"),
        )
        for node in range(2)
    ]
    kill_one(hosts[0], np.random.default_rng(2))
    for host in hosts:
        _, errors = host.communicate(timeout=LIMIT)
        assert host.returncode == 0, errors
        assert "attempt 2 of 4" in errors
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), expected(12))


def test_moves_between_processes(tmp_path):
    """Unlike layouts and views, in one exchange; errors leave all in place."""
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            """
            import numpy as np, jax, jax.numpy as jnp
            import whale as wh

            wh.init_distributed()

            def step(state, strategy):
                with strategy():
                    x = {k: v + 1 for k, v in state.items()}
                    return x, x["a"].sum()

            def make(strategy, ranks):
                return wh.jit(
                    lambda state: step(state, strategy), cluster=ranks
                )

            first, second = make(wh.replicate, 4), make(wh.split, 3)
            state = {
                "a": np.arange(60, dtype=np.float32).reshape(6, 10),
                "b": np.arange(7, dtype=np.int32),
            }
            one, _ = first(state)
            two = wh.move(one, second.lower(one), 0)
            assert two["a"].placement.ranks == (0, 1, 2)
            three, total = second(two)
            four, _ = first(wh.move(three, first.lower(three), "state"))
            for name in state:
                whole = np.asarray(wh.gather(four[name]))
                np.testing.assert_array_equal(whole, state[name] + 3)
            # One process has another array.
            bad = dict(four)
            if wh.process_index() == 1:
                bad["b"] = np.zeros(3, np.int32)
            try:
                wh.move(bad, second.lower(four), 0)
            except (wh.RuntimeError, ValueError) as error:
                assert "process 1" in str(error), error
            else:
                raise AssertionError("moved what does not fit")
            five, _ = first(four)
            whole = np.asarray(wh.gather(five["a"]))
            np.testing.assert_array_equal(whole, state["a"] + 4)
            print("all right")
            """
        )
    )
    process = start(path, 2)
    output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors
    assert output == "all right\n"


def test_a_directory_that_is_not_shared(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            f"""
            import numpy as np, whale as wh
            wh.init_distributed()
            place = {str(tmp_path)!r} + "/" + str(wh.process_index())
            wh.Checkpointer(place).save(1, np.ones(3))
            """
        )
    )
    process = start(path, 2)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "checkpoints need a directory that all processes share" in errors
