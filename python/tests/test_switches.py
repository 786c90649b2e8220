"""States that go from one plan to another while they are trained.

Under test: `wh.move` and `wh.Checkpointer` in one process and several. For all
pairs of plans, there and back gives the same bits, and a switch those of saving
under one plan and restoring under the other; what cannot be prepared leaves all
with the plan that they have; a run that is killed in a switch goes on from its
last checkpoint. A failure means lost or altered state, or processes that wait
for ever.
"""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
from processes import kill_a_child, launch, output_of

import whale as wh

pytest.importorskip("whale._whale")

PLANS = ("none", "replicate", "split", "pipeline", "uneven", "idle")

# A step under each plan. All numbers are whole: sums in any order have the
# same bits.
PRELUDE = """
import contextlib, json, os, resource, sys
import jax, jax.numpy as jnp, numpy as np
import whale as wh

wh.init_distributed()

def nodes(*slowdowns):
    kinds = [{"kind": "cpu", "slowdown": s} if s > 1 else {"kind": "cpu"}
             for s in slowdowns]
    return {"nodes": [{"devices": kinds}]}

NONE = contextlib.nullcontext
PLANS = {
    "none": (NONE, NONE, 4),
    "replicate": (wh.replicate, wh.replicate, 4),
    "split": (wh.split, wh.split, 4),
    "pipeline": (lambda: wh.replicate(2), lambda: wh.replicate(2), 4),
    "uneven": (wh.split, wh.replicate, nodes(1, 2, 1, 4)),
    "idle": (wh.replicate, wh.split, nodes(1, 1e6, 1, 1)),
}
X = (np.arange(48) % 5 - 2).reshape(12, 4).astype(np.float32)

def make():
    w = {"up": np.arange(24).reshape(4, 6) % 3 - 1,
         "down": np.arange(24).reshape(6, 4) % 4 - 2}
    w = {name: jnp.asarray(value, jnp.float32) for name, value in w.items()}
    return w, jnp.zeros((4, 6), jnp.bfloat16), jax.random.key(7), 0

def trainer(first, second):
    def step(state, x):
        w, moment, key, count = state
        def loss(w):
            with first():
                h = x @ w["up"]
            with second():
                return (h @ w["down"]).sum() / 16
        grads = jax.grad(loss)(w)
        w = jax.tree.map(lambda w, g: w - jnp.round(g / 4), w, grads)
        key, _ = jax.random.split(key)
        return (w, moment + 1, key, count + 1), w["down"].sum()
    return step

def compile_(name):
    first, second, cluster = PLANS[name]
    step = wh.jit(trainer(first, second), cluster=cluster, batch_argnums=1)
    return step, step.lower(make(), X)

def whole(state):
    "The bits of a state, in all processes."
    w, moment, key, count = state
    leaves = [w["up"], w["down"], moment, jax.random.key_data(wh.gather(key)),
              count]
    return [np.asarray(wh.gather(x) if isinstance(x, wh.Array) else x).tobytes()
            for x in leaves]
"""

PAIRS = """
steps = {{name: compile_(name) for name in {plans!r}}}
plain = jax.jit(trainer(NONE, NONE))
after = [make()]
for _ in range(4):
    after.append(plain(after[-1], X)[0])
expected = [whole(state) for state in after]

for number, (a, b) in enumerate({pairs!r}):
    (first, lowered_a), (second, lowered_b) = steps[a], steps[b]
    state, _ = first(make(), X)
    assert whole(state) == expected[1], (a, b)
    checkpointer = wh.Checkpointer({place!r} + f"/{{number}}")
    checkpointer.save(1, state)
    there = wh.move(state, lowered_b, 0)
    assert whole(there) == expected[1], (a, b)
    back = wh.move(there, lowered_a, 0)
    assert whole(back) == expected[1], (a, b)
    # As many steps in each as all of them in one.
    state, _ = first(back, X)
    state, _ = second(wh.move(state, lowered_b, 0), X)
    state, _ = second(state, X)
    assert whole(state) == expected[4], (a, b)
    restored = checkpointer.restore(jax.eval_shape(make))
    state, _ = second(restored, X)
    assert whole(state) == expected[2], (a, b)
    if wh.process_index() == 0:
        print(a, b)
"""


def script(folder, text):
    path = folder / "script.py"
    path.write_text(PRELUDE + text)
    return path


# With --full all pairs; else some, in which each plan is left and reached.
SOME = [("uneven", "idle"), ("idle", "pipeline"), ("pipeline", "uneven")]
ALL = [(a, b) for a in PLANS for b in PLANS if a != b]


@pytest.mark.parametrize(
    "processes, pairs",
    [
        (2, SOME),
        *(
            pytest.param(count, ALL[part::3], marks=pytest.mark.long)
            for count in (1, 2, 4)
            for part in range(3)
        ),
    ],
)
def test_there_and_back(tmp_path, processes, pairs):
    plans = sorted({plan for pair in pairs for plan in pair})
    place = str(tmp_path)
    path = script(tmp_path, PAIRS.format(plans=plans, pairs=pairs, place=place))
    output = output_of(launch(path, processes))
    assert output.splitlines() == [" ".join(pair) for pair in pairs]


def test_what_is_no_step():
    with pytest.raises(TypeError, match="lowered must be a step, .* got int"):
        wh.move([np.ones(2)], 3)


REFUSALS = """
def refused(state, lowered, message):
    try:
        wh.move(state, lowered, 0)
    except wh.RuntimeError as error:
        assert message in str(error), error
    else:
        raise AssertionError("moved")

def grow(state):
    with wh.split():
        return [w + 1 for w in state], jnp.tanh(state[0] @ state[1]).sum()

def same(state):
    return [w + 1 for w in state], state[0].sum()

large = [np.full((2048, 2048), n, np.float32) for n in range(2)]
one, two = wh.jit(grow, cluster=4), wh.jit(same, cluster=2)
state, _ = one(large)
lowered = two.lower(large)
lowered.compile()
if wh.process_index() == 1:
    # No room for 32 MiB more.
    size = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size + (8 << 20), -1))
refused(state, lowered, "cannot allocate")
if wh.process_index() == 1:
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
state, _ = one(state)
# Another program in one process.
third = wh.jit(grow, cluster=2).lower(large)
third.compile()
own = lowered if wh.process_index() else third
refused(state, own, "process 1 moves other arrays than process 0")
state, total = one(state)
for number, w in enumerate(wh.move(state, lowered, 0)):
    assert (np.asarray(wh.gather(w)) == number + 3).all()
print("all right", flush=True)
"""


def test_what_cannot_be_prepared(tmp_path):
    """All raise one error, and go on with what they have."""
    assert output_of(launch(script(tmp_path, REFUSALS), 2)) == "all right\n"


FAULTS = """
from whale import distributed

def refused(call, message):
    "What one process cannot do, none does; each says why."
    said = "nothing"
    try:
        call()
    except (ValueError, TypeError, wh.RuntimeError) as error:
        said = str(error)
    for each in distributed.all_gather("said", said.encode()):
        assert message in each.decode(), each

def same(state):
    return {{"w": state["w"] + 1}}

is_bad = wh.process_index() == 1
step = wh.jit(same, cluster=2)
state = step({{"w": np.ones((4, 4), np.float32)}})
lowered = step.lower(state)
gone = step(state)
if is_bad:
    gone["w"].delete()
refused(lambda: wh.move(gone, lowered, 0), "deleted")
text = {{"w": "text"}}
refused(lambda: wh.move(text if is_bad else state, lowered, 0), "no array")
none = {{}}
refused(lambda: wh.move(none if is_bad else state, lowered, 0), "leaves, not 0")
refused(lambda: wh.move(state, lowered, 7 if is_bad else 0), "argument 7")

checkpointer = wh.Checkpointer({place!r})
checkpointer.save(1, state)
checkpointer.wait()
refused(lambda: checkpointer.save(2, text if is_bad else state), "no array")
extra = {{1}} if is_bad else {{}}
refused(lambda: checkpointer.save(2, state, extra), "extra: ")
refused(lambda: checkpointer.save(3 if is_bad else 2, state), "step to save")
more = {{"v": state["w"], "w": state["w"]}}
wide = step({{"w": np.ones((4, 5), np.float32)}})
for other, ours, theirs in (
    (more, "the tensor 'w'", "the tensor 'v' there"),
    (wide, "f32[4,4]", "f32[4,5]"),
):
    refused(
        lambda: checkpointer.save(2, other if is_bad else state),
        f"process 0 has {{ours}}, process 1 has {{theirs}}",
    )
like = {{"w": jax.ShapeDtypeStruct((4, 5 if is_bad else 4), jnp.float32)}}
refused(lambda: checkpointer.restore(like), "f32[4, 5] in the tree")
assert checkpointer.latest() == 1
restored = wh.move(checkpointer.restore(state), lowered, 0)
assert (np.asarray(wh.gather(restored["w"])) == 2).all()
assert (np.asarray(wh.gather(wh.move(state, lowered, 0)["w"])) == 2).all()
print("all right", flush=True)
"""


def test_faults_of_one_process(tmp_path):
    """All raise what one finds in its own arguments, and go on."""
    path = script(tmp_path, FAULTS.format(place=str(tmp_path / "saved")))
    assert output_of(launch(path, 2)) == "all right\n"


# Moves to another plan and back in each step, and saves.
SWITCHING = """
step, lowered = compile_("pipeline")
other, to_other = compile_("uneven")
checkpointer = wh.Checkpointer({place!r}, keep=2)
done = checkpointer.latest() or 0
state = make()
if done:
    state = checkpointer.restore(state)
for number in range(done, {steps}):
    print("step", number, flush=True)
    for _ in range(8):
        state = wh.move(state, to_other, 0)
        state = wh.move(state, lowered, 0)
    state, total = (step if number % 2 else other)(state, X)
    checkpointer.save(number + 1, state)
checkpointer.wait()
bits = [leaf.hex() for leaf in whole(state)]
if wh.process_index() == 0:
    plain = make()
    for _ in range({steps}):
        plain, _ = jax.jit(trainer(NONE, NONE))(plain, X)
    print(json.dumps([bits, [leaf.hex() for leaf in whole(plain)]]))
"""


@pytest.mark.parametrize(
    "seed",
    [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 50))],
)
def test_killed_in_a_switch(tmp_path, seed):
    """Goes on from the last complete step, with the same bits."""
    rng = np.random.default_rng(seed)
    steps = 6
    place = str(tmp_path / "states")
    path = script(tmp_path, SWITCHING.format(place=place, steps=steps))
    process = launch(path, 2)
    before = int(rng.integers(1, steps))
    for _ in range(before):
        process.stdout.readline()
    kill_a_child(process, rng)
    _, errors = process.communicate(timeout=100)
    assert process.returncode != 0
    assert "has ended unexpectedly" in errors or "SIGKILL" in errors
    output = output_of(launch(path, 2)).splitlines()
    # A save waits for the one before.
    assert 1 <= len(output) - 1 <= steps - max(before - 2, 0)
    bits, expected = json.loads(output[-1])
    assert bits == expected


def test_a_full_disk(tmp_path):
    """One error; the last complete checkpoint is still there."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path],
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system cannot be mounted")
    try:
        checkpointer = wh.Checkpointer(tmp_path / "states")
        state = np.arange(150_000, dtype=np.float32)
        checkpointer.save(1, state)
        checkpointer.wait()
        checkpointer.save(2, state + 1)
        with pytest.raises(
            wh.RuntimeError, match="shard-0.safetensors.*No space left"
        ):
            checkpointer.wait()
        assert checkpointer.latest() == 1
        np.testing.assert_array_equal(checkpointer.restore(state), state)
        found = sorted(os.listdir(tmp_path / "states"))
        assert found == [".lock", "step-1"]
        # What fits is saved again.
        checkpointer.save(2, state[:1000])
        checkpointer.wait()
        assert checkpointer.latest() == 2
        del checkpointer
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
