"""Tests of first_steps.py: which steps it checks, and when."""

from __future__ import annotations

import os
import threading
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import first_steps
import jax
import jax.numpy as jnp
import late_devices
import numpy as np
from first_steps import Step

import whale as wh


def add(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a key, too, whose words are no numbers."""
    return state + x, jax.random.fold_in(jax.random.key(1), 2)


def train(w: jax.Array, x: jax.Array) -> jax.Array:
    """Two stages, of which each computes while the other does."""
    with wh.replicate(1, name="front"):
        x = jnp.tanh(x @ w)
    with wh.replicate(1, name="back"):
        return jnp.tanh(x @ w).sum()


def program(ranks: int) -> wh.Program:
    step = wh.jit(add, cluster=ranks, donate_argnums=0)
    return step.lower(X, X).compile()


X = np.ones(4, np.float32)
checks: list[Step] = []


def check(step: Step) -> None:
    """Reads what there is, and runs another program, which is not checked."""
    assert step.program.rank_count == 2
    np.testing.assert_array_equal(step.values[1], np.ones(4))
    np.testing.assert_array_equal(step.result[0], 2 * np.ones(4))
    program(2)(X, X)
    checks.append(step)


# The first step of two is checked before its result is gone.
with first_steps.checked(check, late_devices.Tally().check):
    two, x = program(2), X.copy()
    state, _ = two(X, x)
    # What was given is what is checked, whatever becomes of it.
    x += 5
    assert not checks
    program(1)(X, X)
    two(X, X)
    assert not checks
    state, _ = two(state, X)
    assert len(checks) == 1
    two(state, X)
    # The others at the end.
    program(2)(X, X)
    assert len(checks) == 1
assert len(checks) == 2 and checks[1].program is not two


# A thread that is in a check leaves others alone.
def check_beside(step: Step) -> None:
    if not checks:
        checks.append(step)
        thread = threading.Thread(target=lambda: program(2)(X, X))
        thread.start()
        thread.join()


checks.clear()
seen = late_devices.Tally()
with first_steps.checked(check_beside, seen.check):
    two = program(2)
    two(two(X, X)[0], X)
    assert seen.programs == 1, seen
assert seen.programs == 2, seen

# Steps that fail, or whose results are gone, are for the test.
with first_steps.checked(check):
    two = program(2)
    try:
        two(X, "x")
    except TypeError:
        pass
    else:
        raise AssertionError("an argument of another type")
    for result in jax.tree.leaves(two(X, X)):
        result.delete()


# What a check finds is raised.
def refuse(step: Step) -> None:
    raise late_devices.Failure("refused")


def failure_of(*checks: first_steps.Check) -> Any:
    try:
        with first_steps.checked(*checks):
            program(2)(X, X)
    except late_devices.Failure as error:
        return str(error)
    return None


assert failure_of(refuse) == "refused"
assert failure_of() is None

# Where there is anything to move, it is.
tally = late_devices.Tally()
wh.init(wh.Config({"num_micro_batch": 4}))
with first_steps.checked(tally.check):
    wh.jit(jax.grad(train), cluster=2, batch_argnums=1)(np.eye(4), np.eye(4))
wh.init()
with first_steps.checked(tally.check):
    program(2)(X, X)
assert tally.moved > 0, tally
assert str(tally) == f"{tally.moved} transfers moved in 2 programs"
