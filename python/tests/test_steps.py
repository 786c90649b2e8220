"""Calls return before their steps have ended."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from processes import ENDLESS, INTERRUPTED, run

import whale as wh

pytest.importorskip("whale._whale")

X = np.arange(8, dtype=np.float32)


def test_results_of_a_step_that_runs():
    """All but their elements is known; reading them waits."""
    run(
        INTERRUPTED
        + ENDLESS
        + """
double = wh.jit(lambda x, y: (x * 2, y + x), cluster=2, donate_argnums=0)
late = endless(x)
after, total = double(late, x)
assert late.is_deleted()
for array in (after, total):
    assert not array.is_ready() and not array.is_deleted()
    assert array.shape == (4,) and array.dtype == np.float32
    assert len(array.placement.indices) == 2
    array.copy_to_host_async()
    assert array.nbytes == 16 and array.devices() and array.sharding
# Steps with other ranks go on.
other = wh.jit(lambda x: x * 2, cluster=2, own_ranks=True)
np.testing.assert_array_equal(other(x), x * 2)

interrupted(lambda: np.asarray(total))
for use in (
    np.asarray,
    jnp.sin,
    repr,
    jax.block_until_ready,
    lambda a: other(a),
    endless,
):
    try:
        use(after)
    except wh.RuntimeError as error:
        assert str(error) == "the run was interrupted", error
    else:
        raise AssertionError("a result of an endless step")
try:
    np.asarray(late)
except wh.RuntimeError as error:
    assert "a program that was interrupted" in str(error), error
else:
    raise AssertionError("a donated array")
"""
    )


@pytest.mark.parametrize(
    "end",
    [
        "late = endless(x)",
        "endless(x)",
        "late = [endless(x) for _ in range(2)]; del endless",
        "late = double(endless(x))",
        "raise SystemExit",
    ],
)
def test_python_may_end_before_its_steps(end):
    done = run(
        ENDLESS
        + "double = wh.jit(lambda x: x * 2, cluster=1)\n"
        + "kept = double(endless(x))\n"
        + end
    )
    assert done.stderr == ""


def test_many_steps_give_the_bits_of_single_ones():
    @jax.jit
    def init(key):
        return {"w": jax.random.normal(key, (16, 16)), "n": jnp.float32(0)}

    def step(state, x):
        with wh.replicate(2):
            grad = jax.grad(lambda w: jnp.sin(x @ w).sum())(state["w"])
        state = {"w": state["w"] - 0.01 * grad, "n": state["n"] + 1}
        return state, grad.sum()

    def train(wait):
        state, sums = init(jax.random.key(0)), []
        batch = np.empty((8, 16), np.float32)
        for number in range(100):
            batch[:] = np.sin(number + np.arange(16))
            state, total = compiled(state, batch)
            sums.append(wait(total))
        return wh.to_jax((state, sums))

    compiled = wh.jit(step, cluster=2, donate_argnums=0, batch_argnums=1)
    expected = train(jax.block_until_ready)
    state, sums = train(lambda total: total)
    assert state["n"] == 100
    jax.tree.map(np.testing.assert_array_equal, (state, sums), expected)


def test_small_steps_of_several_threads():
    """Whoever calls a small step may run it: one at a time."""

    def train(state, x):
        return state + jnp.sin(x) * 0, (state * 0 + x).sum()

    step = wh.jit(train, cluster=1, donate_argnums=0)
    wrong = []

    def call(number):
        state = np.full(64, number, np.float32)
        for turn in range(200):
            x = np.full(64, number + turn % 3, np.float32)
            state, total = step(state, x)
            if turn % 5 == number % 5 and total != 64 * x[0]:
                wrong.append((number, turn, total))
        if (np.asarray(state) != number).any():
            wrong.append((number, state))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_child_goes_on_with_small_steps():
    run(
        """
step = wh.jit(lambda w, x: (w - x @ jnp.sin(x @ w), w.sum()), cluster=1)
w, x = np.eye(8, dtype=np.float32), np.ones((8, 8), np.float32)
for _ in range(20):
    w, total = step(w, x)
kept = np.asarray(w)
after = np.asarray(step(kept, x)[0])
child = os.fork()
for _ in range(5):
    np.testing.assert_array_equal(step(kept, x)[0], after)
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
"""
    )


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_host_arrays_may_change_after_the_call(cluster, make):
    step = wh.jit(
        lambda x, n: jax.lax.fori_loop(0, n, lambda _, x: x, x) + x,
        cluster=cluster,
        donate_argnums=0,
    )
    x = np.ones(1024, np.float32)
    results = []
    for n in (1_000_000, 1, 1):
        # The second waits for the first.
        results.append(step(make(x), np.int32(n)))
        x += 1
    for number, result in enumerate(results, 1):
        np.testing.assert_array_equal(result, np.full_like(x, 2 * number))


def test_costs_are_those_of_the_last_step():
    program = wh.jit(
        lambda x, n: jax.lax.fori_loop(0, n, lambda _, x: x + 1, x), cluster=2
    )
    program = program.lower(X, np.int32(0)).compile()
    result = program(X, np.int32(100_000))
    stats = program.stats
    assert result.is_ready()
    assert stats["step_time_s"] > 0 and len(stats["ranks"]) == 2


def test_calls_of_many_arguments():
    """Of 16 times the arguments, not more than twice that time."""

    def seconds(count):
        step = wh.jit(lambda *xs: [x + 1 for x in xs], cluster=1)
        xs = [np.full(1, i, np.float32) for i in range(count)]
        results = step(*xs)
        assert [float(y[0]) for y in results[::50]] == list(
            range(1, count + 1, 50)
        )
        least = float("inf")
        for _ in range(5):
            begin = time.process_time()
            jax.block_until_ready(step(*xs))
            least = min(least, time.process_time() - begin)
        return least

    assert seconds(1600) < 32 * seconds(100)
