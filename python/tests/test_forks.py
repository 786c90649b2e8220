"""What a child of `os.fork` may do with the programs of its parent."""

import pytest
from processes import run

import whale as wh

pytest.importorskip("whale._whale")


def test_forks(tmp_path):
    """A child runs programs, compiles others, and leaves its parent's alone."""
    run(
        """
import multiprocessing
step = wh.jit(lambda s, x: (s + x @ x, x.sum()), cluster=2, donate_argnums=0)
x = np.ones((64, 64), np.float32)

# JAX lowers loops with threads of its own.
def twice(x):
    return jax.lax.fori_loop(0, 2, lambda _, x: jnp.tanh(x @ x), x), x.sum()

wh.jit(twice, cluster=2).lower(x)
program = step.lower(x, x).compile()
state, total = jax.block_until_ready(program(x, x))

def child(state):
    state, total = program(state, x)
    np.testing.assert_array_equal(state, x * 129)
    total = wh.jit(lambda x: twice(x)[1] + 1, cluster=2)(x)
    np.testing.assert_array_equal(total, 4097)

pid = os.fork()
if pid == 0:
    child(state)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7

fork = multiprocessing.get_context("fork")
process = fork.Process(target=child, args=(state,))
process.start()
process.join()
assert process.exitcode == 0

# While a step runs: its ranks are the parent's.
loop = wh.jit(
    lambda x: jax.lax.while_loop(lambda x: x.sum() < jnp.inf, jnp.sin, x),
    cluster=2,
    own_ranks=True,
)

def wait():
    loop(x).block_until_ready()

threading.Thread(target=wait, daemon=True).start()
lost = loop(x)
pid = os.fork()
if pid == 0:
    for use in (lost.block_until_ready, lambda: program(lost, x)):
        try:
            use()
        except wh.RuntimeError as error:
            assert "wait for its results before the fork" in str(error)
        else:
            raise AssertionError("a result of the parent's step")
    del lost
    child(state)
    sys.exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 8

np.testing.assert_array_equal(program(state, x)[0], x * 129)
program.save(os.environ["SAVED"])
sys.stdout.flush()
os._exit(0)
""",
        SAVED=str(tmp_path / "saved.whale"),
    )
    assert wh.load(tmp_path / "saved.whale").rank_count == 2
