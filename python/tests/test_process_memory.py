"""What a process takes for a program: no more than the plan says.

Under test: the memory and the allocations of whole processes, of one rank and
of two. Preloaded C libraries count allocations; a process may keep, and grow
by, at most 5% and 16 MiB more than the plan's peak, and each later step may
allocate its losses alone. A failure means a leak, or a copy that the plan
doesn't know of. Needs clang-22.
"""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import whale as wh

ROOT = pathlib.Path(__file__).parents[2]

# Notes each large mapping of memory, before it is made.
MAPPINGS = """
#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>
void note(size_t size);
void *mmap(void *p, size_t size, int access, int flags, int file, off_t at) {
  static void *(*next)(void *, size_t, int, int, int, off_t);
  if (!next)
    next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT,
                                                                  "mmap");
  if (size > 1 << 20 && file < 0)
    note(size);
  return next(p, size, access, flags, file, at);
}
"""

# Counts large mappings, in all threads; Python itself maps arenas of 1 MiB.
COUNTER = """
static long count;
long allocations(void) { return __atomic_load_n(&count, __ATOMIC_SEQ_CST); }
void note(size_t size) { __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST); }
"""

RUN = """
import ctypes, sys
import jax, numpy as np
import whale as wh

def resident(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024

def run(path, width, steps):
    program = wh.load(path)
    weights = [np.full((width, width), 1e-3, np.float32) for _ in range(4)]
    x = np.full((width // 2, width), 1e-3, np.float32)
    for step in range(steps):
        weights, loss = program(weights, x, x)
        loss.block_until_ready()
        yield program.stats["ranks"]

count = ctypes.CDLL(None).allocations
count.restype = ctypes.c_long
small, large = sys.argv[1:]
wh.init_distributed()
# Loads the libraries.
list(run(small, 64, 2))
before = resident("VmRSS")
counts = []
for ranks in run(large, 1024, 6):
    counts.append(count())
peak = sum(rank["peak_bytes"] for rank in ranks)
limit = int(1.05 * peak) + (16 << 20)
kept = resident("VmRSS") - before
assert kept <= limit, f"keeps {kept} bytes, planned are {peak}"
grown = resident("VmHWM") - before
assert grown > peak // 2, f"grew by {grown} bytes, planned are {peak}"
# The caller's own arrays. Their copies, made before the call returns, are the
# buffers of the plan.
grown -= (4 * 1024 + 512) * 1024 * 4
assert grown <= limit, f"grew by {grown} bytes, planned are {peak}"
print(*(b - a for a, b in zip(counts[1:], counts[2:])))
"""


# Says what is allocated, in its order.
WITNESS = """
#include <stdio.h>
void note(size_t size) { fprintf(stderr, "takes %zu\\n", size >> 20); }
"""


def build_library(source: str, folder: pathlib.Path) -> pathlib.Path:
    """A library to preload, whose `note` is told of large mappings."""
    (folder / "library.c").write_text(MAPPINGS + source)
    subprocess.run(
        ["clang-22", "-D_GNU_SOURCE", "-shared", "-fPIC"]
        + [str(folder / "library.c"), "-o", str(folder / "library.so")],
        check=True,
    )
    return folder / "library.so"


def test_peaks_are_measured_before_a_step_with_a_trace(
    tmp_path: pathlib.Path,
) -> None:
    """So they take nothing of its time; memory shows what comes first."""
    wh.init(wh.Config({}))
    path = tmp_path / "program.whale"
    x = jax.ShapeDtypeStruct((6 << 20,), jnp.float32)
    wh.jit(lambda x: jnp.diff(jnp.sort(jnp.tanh(x))).max(), cluster=1).lower(
        x
    ).compile().save(path)
    arguments = {"arg0": np.zeros(x.shape, np.float32)}
    safetensors.numpy.save_file(arguments, tmp_path / "in")
    result = subprocess.run(
        ["env", f"LD_PRELOAD={build_library(WITNESS, tmp_path)}"]
        + [str(ROOT / "build" / "bin" / "whale-run"), str(path)]
        + [f"--inputs={tmp_path / 'in'}", f"--outputs={tmp_path / 'out'}"]
        + [f"--trace={tmp_path / 'trace'}"],
        check=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    taken = [
        int(line.split()[1])
        for line in result.stderr.splitlines()
        if line.startswith("takes ")
    ]
    # Two of 16 MiB are copied; the arena of the step is the largest.
    peaks = [at for at, size in enumerate(taken) if 16 <= size < 20]
    assert peaks and peaks[-1] < taken.index(max(taken)), taken


@pytest.mark.parametrize("ranks,processes", [(1, 1), (2, 1), (2, 2)])
def test_process_takes_what_is_planned(
    ranks: int, processes: int, tmp_path: pathlib.Path
) -> None:
    wh.init(wh.Config({}))
    wh.set_default_strategy(wh.replicate())

    def loss(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean((x - y) ** 2)

    def step(
        weights: list[jax.Array], x: jax.Array, y: jax.Array
    ) -> tuple[list[jax.Array], jax.Array]:
        value, grads = jax.value_and_grad(loss)(weights, x, y)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), value

    paths = []
    for width in (64, 1024):
        x = jax.ShapeDtypeStruct((width // 2, width), jnp.float32)
        weights = [jax.ShapeDtypeStruct((width, width), jnp.float32)] * 4
        paths.append(tmp_path / f"{width}.whale")
        wh.jit(
            step, cluster=ranks, donate_argnums=0, batch_argnums=(1, 2)
        ).lower(weights, x, x).compile().save(paths[-1])
    library = build_library(COUNTER, tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for index in range(processes):
        job = {
            "WORLD_SIZE": str(processes),
            "RANK": str(index),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        started.append(
            subprocess.Popen(
                ["env", f"LD_PRELOAD={library}", sys.executable, "-c", RUN]
                + [str(path) for path in paths],
                # What is freed is given back at once, also what oneDNN packs
                # operands into: just below 1 MiB, and in pages of 2 MiB.
                env=os.environ
                | {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)}
                | (job if processes > 1 else {}),
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for process in started:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        counts = [int(word) for word in out.split()]
        # Losses are in what the C library keeps. Parts of x and y, which are
        # host arrays, have the memory of those of the step before.
        assert counts == [0] * 4
