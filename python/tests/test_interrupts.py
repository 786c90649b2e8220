"""Ctrl-C in a step, in a process of its own."""

import pytest
from processes import ENDLESS, INTERRUPTED, run

pytest.importorskip("whale._whale")


def test_ctrl_c_ends_a_step():
    """Donated state is lost and says so; all else goes on working."""
    done = run(
        INTERRUPTED
        + """
def count(state, to, x):
    with wh.replicate(2):
        return jax.lax.while_loop(
            lambda s: s.sum() < to, lambda s: s + x.mean(), state
        ), x * 2

step = wh.jit(count, cluster=2, donate_argnums=0)
x = np.ones(4, np.float32)
state, kept = step(np.zeros(4, np.float32), np.float32(8), x)
lost = step(state, np.float32(np.inf), kept)
print("seconds", interrupted(lambda: jax.block_until_ready(lost)))
for use in (lambda: np.asarray(state), lambda: step(state, np.float32(8), x)):
    try:
        use()
    except wh.RuntimeError as error:
        print(error)
np.testing.assert_array_equal(kept, x * 2)
state, kept = step(np.zeros(4, np.float32), np.float32(8), kept)
np.testing.assert_array_equal(state, x * 2)
np.testing.assert_array_equal(kept, x * 4)

# The main thread's step waits for another thread's, which goes on.
values = np.zeros(4, np.float32), np.float32(np.inf), x
others = []

def run():
    others.append(step(*values)[0])
    others[0].block_until_ready()

threading.Thread(target=run, daemon=True).start()
while not others:
    time.sleep(0.01)
print("seconds", interrupted(lambda: np.asarray(step(*values)[0])))
print("seconds", interrupted(lambda: np.asarray(others[0])))
assert not others[0].is_ready()
"""
    )
    message = "it was donated to a program that was interrupted"
    assert done.stdout.count(message) == 2
    # Python ends while that thread is in its step, without a word.
    assert done.stderr == ""


def test_ctrl_c_in_one_long_instruction():
    """Nobody waits for it: not the caller, and not the end of Python."""
    done = run(
        INTERRUPTED
        + """
n = 2800
step = wh.jit(lambda x: (x + 1, jnp.linalg.eigh(x)[0])[1], cluster=1)
x = np.random.default_rng(0).normal(size=(n, n)).astype(np.float32)
program = step.lower(x).compile()
print("seconds", interrupted(lambda: np.asarray(program(x))))
# The next step of these ranks waits for it, that of a new program doesn't.
print("seconds", interrupted(lambda: np.asarray(program(x))))
np.testing.assert_array_equal(wh.jit(jnp.negative, cluster=1)(x), -x)
"""
    )
    assert done.stdout.count("seconds") == 2


def test_ctrl_c_while_a_call_waits():
    """A call waits where several steps do; they end with it."""
    run(
        INTERRUPTED
        + ENDLESS
        + """
waiting = []
endless(x * np.inf)  # It is compiled, and ends.

def call():
    while True:
        waiting.append(endless(x))

interrupted(call)
assert waiting
for array in waiting:
    try:
        array.block_until_ready()
    except wh.RuntimeError as error:
        assert str(error) == "the run was interrupted"
    else:
        raise AssertionError("a result of an endless step")
np.testing.assert_array_equal(endless(x * np.inf), x * np.inf)
"""
    )


def test_ctrl_c_in_a_loop_that_was_short():
    """A step that the caller's thread runs can be stopped, and others go on."""
    done = run(
        INTERRUPTED
        + """
step = wh.jit(
    lambda x, to: jax.lax.while_loop(lambda x: x < to, lambda x: x + 1, x),
    cluster=1,
)
for _ in range(20):
    assert step(np.float32(0), np.float32(4)) == 4
# In steps of less than its last place a number stays what it is.
print("seconds", interrupted(
    lambda: float(step(np.float32(1e9), np.float32(np.inf)))
))
assert step(np.float32(0), np.float32(4)) == 4
"""
    )
    assert done.stdout.count("seconds") == 1
