"""Python code in a process of its own, for what a test must survive."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import whale as wh

# Generous: what is waited for takes a few seconds.
_HANGS = 100
_PRELUDE = """
import os, signal, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
import whale as wh

# What hangs is killed, with its children.
signal.alarm(90)
os.register_at_fork(after_in_child=lambda: signal.alarm(60))
"""

# To are before other code.
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
ENDLESS = """
x = np.ones(4, np.float32)
endless = wh.jit(
    lambda x: jax.lax.while_loop(lambda x: x.sum() < jnp.inf, jnp.sin, x),
    cluster=2,
)
"""


def run(code, **environment):
    """Runs Python code that must succeed; with its output."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PRELUDE + code],
        capture_output=True,
        text=True,
        timeout=_HANGS,
        env=os.environ
        | {"PYTHONPATH": os.path.dirname(os.path.dirname(wh.__file__))}
        | environment,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return done


def launch(path, count, *options):
    """A script in so many processes, which the caller waits for."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "whale.launch", f"--nprocs={count}"),
            *(*options, str(path)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.path.dirname(os.path.dirname(wh.__file__))},
    )


def kill_a_child(process, rng):
    """Kills a process of a launcher, soon."""
    time.sleep(float(rng.uniform(0, 0.03)))
    children = pathlib.Path(
        f"/proc/{process.pid}/task/{process.pid}/children"
    ).read_text()
    os.kill(int(rng.choice(children.split())), signal.SIGKILL)


def output_of(process):
    """What a process that must succeed prints until it ends."""
    output, errors = process.communicate(timeout=_HANGS)
    assert process.returncode == 0, errors
    return output
