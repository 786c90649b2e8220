"""Ctrl-C in a step, in a process of its own."""

import pytest
from processes import run

pytest.importorskip("whale._whale")

INTERRUPTED = """
def interrupted(call):
    "Seconds from Ctrl-C to KeyboardInterrupt."
    sent = []
    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send).start()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    raise AssertionError("no KeyboardInterrupt")
"""


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
print("seconds", interrupted(lambda: step(state, np.float32(np.inf), kept)))
for use in (lambda: np.asarray(state), lambda: step(state, np.float32(8), x)):
    try:
        use()
    except wh.RuntimeError as error:
        print(error)
np.testing.assert_array_equal(kept, x * 2)
state, kept = step(np.zeros(4, np.float32), np.float32(8), kept)
np.testing.assert_array_equal(state, x * 2)
np.testing.assert_array_equal(kept, x * 4)

# It is another thread's step that the main thread waits for.
values = np.zeros(4, np.float32), np.float32(np.inf), x
threading.Thread(target=step, args=values, daemon=True).start()
time.sleep(0.2)
print("seconds", interrupted(lambda: step(*values)))
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
print("seconds", interrupted(lambda: program(x)))
# The next step of this program waits for it, another one's doesn't.
print("seconds", interrupted(lambda: program(x)))
np.testing.assert_array_equal(wh.jit(jnp.negative, cluster=1)(x), -x)
"""
    )
    assert done.stdout.count("seconds") == 2
