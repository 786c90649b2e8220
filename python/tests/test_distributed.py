"""Scripts that run in several processes, and `wh.loop`.

Under test: processes that share a step, differ, fail, die or end early. Scripts
run under `whale.launch`, compare themselves with `jax.jit` and NumPy, and are
judged by exit status and messages; no temporary file may be left. A failure
means wrong values, a process that is silently alone, or a job that hangs (the
limit is 120 s). Most cases start several Pythons, each of which imports JAX.
"""

from __future__ import annotations

import os
import pathlib
import re
import socket
import subprocess
import sys
import textwrap
import threading

import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh

ROOT = pathlib.Path(__file__).parents[2]
LIMIT = 120

HEADER = """\
import io, numpy as np, jax, jax.numpy as jnp, os, sys
import whale as wh

wh.init_distributed()
me = wh.process_index()

def train(w, x):
    def loss(w):
        return (jnp.tanh(x @ w) ** 2).mean()
    value, g = jax.value_and_grad(loss)(w)
    return w - 0.1 * g, (value, x @ w)

rng = np.random.default_rng(0)
w = rng.normal(size=(16, 8)).astype(np.float32)
x = rng.normal(size=(24, 16)).astype(np.float32)
cluster = {"nodes": [{"devices": [
    {"kind": "cpu", "count": 3}, {"kind": "cpu", "slowdown": 2.0}]}]}
wh.set_default_strategy(wh.replicate())
step = wh.jit(train, cluster=cluster, batch_argnums=1)
"""


def run(
    folder: pathlib.Path,
    body: str,
    count: int,
    progress_limit: float | None = None,
    leaves: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs a script in so many processes; standard output is the first's.

    They leave no files, unless they leave processes that hold them.
    """
    script = folder / "script.py"
    join = f"init_distributed(progress_limit={progress_limit})"
    header = HEADER.replace("init_distributed()", join)
    script.write_text(header + textwrap.dedent(body))
    scratch = folder / "tmp"
    scratch.mkdir()
    result = subprocess.run(
        [
            *(sys.executable, "-m", "whale.launch", f"--nprocs={count}"),
            *(f"--log-dir={folder / 'log'}", str(script)),
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(scratch)},
    )
    files = [path for path in scratch.rglob("*") if path.is_file()]
    assert leaves or not files
    return result


@pytest.mark.parametrize("count", [2, 4])
def test_a_script(tmp_path: pathlib.Path, count: int) -> None:
    result = run(
        tmp_path,
        """
        lowered = step.lower(w, x)
        (rows,) = lowered.batch_slices(me)
        taken = [lowered.batch_slices(p)[0] for p in range(wh.process_count())]
        every = np.concatenate([np.r_[tuple(part)] for part in taken])
        assert sorted(every) == list(range(24))
        local = np.concatenate([x[part] for part in rows])
        batch = wh.from_local_data(local, lowered, "x")
        assert batch.shape == x.shape and not batch.is_fully_addressable
        new, (loss, y) = step(w, batch)
        for shard in y.addressable_shards:
            assert np.allclose(shard.data, (x @ w)[shard.index], atol=1e-5)
        assert 0 < len(y.addressable_shards) < 4
        try:
            np.asarray(y)
        except wh.RuntimeError as error:
            assert "wh.gather" in str(error)
        else:
            raise AssertionError("read what is not here")
        assert repr(y) == (
            "whale.Array(parts in other processes, shape=(24, 8), "
            "dtype=float32)")
        assert not y.is_fully_replicated and new.is_fully_replicated
        for wrong in -1, wh.process_count(), 1.5:
            try:
                lowered.batch_slices(wrong)
            except IndexError as error:
                assert repr(wrong) in str(error)
            else:
                raise AssertionError("there is no such process")
        assert np.allclose(wh.gather(y), x @ w, atol=1e-5)
        # The same whole in each process.
        again, (_, other) = step(w, x)
        assert np.array_equal(wh.gather(other), wh.gather(y))
        assert np.array_equal(new, again)
        # Of the ranks of this process.
        program, text = lowered.compile(), io.StringIO()
        program(w, x)
        program.profile(text)
        own = text.getvalue().split("rank ")[1].split("time  roofline")[0]
        assert len(own.splitlines()) == 2 + 4 // wh.process_count()
        expected, _ = jax.jit(train)(w, x)
        assert np.allclose(new, expected, atol=1e-5)
        # Another batch size on the same state.
        evaluate = wh.jit(lambda w, x: x @ w, cluster=cluster, batch_argnums=1)
        assert np.allclose(
            wh.gather(evaluate(new, x[:12])), x[:12] @ expected, atol=1e-5)
        print("done", wh.process_count())
        """,
        count,
    )
    assert result.stdout == f"done {count}\n", result.stderr
    assert result.returncode == 0


@pytest.mark.parametrize(
    "other",
    [
        "pass",
        pytest.param("sys.exit()", marks=pytest.mark.long),
        pytest.param("wh.jit(jnp.sin, cluster=2)(x)", marks=pytest.mark.long),
    ],
)
def test_one_process_gathers(tmp_path: pathlib.Path, other: str) -> None:
    result = run(
        tmp_path,
        f"""
        _, (loss, y) = step(w, x)
        if me == 0:
            wh.gather(y)
        else:
            {other}
        """,
        2,
        progress_limit=3,
    )
    assert result.returncode == 1
    assert "has made no progress for 3 seconds" in result.stderr


@pytest.mark.parametrize(
    "arguments, error",
    [
        ("'h:7777'", "how many processes"),
        ("process_index=0", "how many processes"),
        ("process_count=2", "which process"),
        ("progress_limit=float('nan')", "progress_limit: nan"),
        ("progress_limit=-1", "progress_limit: -1"),
    ],
)
def test_nobody_is_silently_alone(arguments: str, error: str) -> None:
    code = f"import whale as wh; wh.init_distributed({arguments})"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    assert result.returncode == 1
    assert error in result.stderr


@pytest.mark.parametrize("count", [1, 2])
def test_evaluating_copies_no_state(tmp_path: pathlib.Path, count: int) -> None:
    result = run(
        tmp_path,
        """
        def peak():
            "Most MiB that were in memory since the last call."
            with open("/proc/self/status") as file:
                text = file.read()
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            return int(text.split("VmHWM:")[1].split()[0]) / 1024

        # 64 MiB on each rank.
        state = np.ones((4096, 4096), np.float32)
        train = wh.jit(lambda w, x: (w * 0.5, x.sum() * w[0, 0]), cluster=2,
                       batch_argnums=1, donate_argnums=0)
        state, _ = train(state, x)
        evaluate = wh.jit(lambda w, x: (w[0, 0] * x).mean(), cluster=2,
                          batch_argnums=1)
        for rows in 24, 12, 6:
            expected = 0.5 * x[:rows].mean()
            # The first time it is compiled.
            for _ in range(2):
                peak()
                before = peak()
                assert np.isclose(evaluate(state, x[:rows]), expected)
                grown = peak() - before
            assert grown < 16, grown
        # The state is still what the next step of training takes over.
        state, value = train(state, x)
        assert np.isclose(value, 0.5 * x.sum(), rtol=1e-4)
        peak()
        before = peak()
        state, value = train(state, x)
        float(value)
        assert peak() - before < 16
        print("done")
        """,
        count,
    )
    assert result.stdout == "done\n", result.stderr


def test_a_saved_program_that_another_process_lacks(
    tmp_path: pathlib.Path,
) -> None:
    result = run(
        tmp_path,
        """
        program = step.lower(w, x).compile()
        if me == 0:
            program.save("here.whale")
        loaded = wh.load("here.whale" if me == 0 else "there.whale")
        for one, other in zip(jax.tree.leaves(program(w, x)),
                              jax.tree.leaves(loaded(w, x))):
            assert np.array_equal(wh.gather(one), wh.gather(other))
        loaded.save(f"again{me}.whale")
        assert sorted(os.listdir(f"again{me}.whale")) == sorted(
            os.listdir("here.whale"))
        print("done")
        """,
        2,
    )
    assert result.stdout == "done\n", result.stderr


def test_steps_of_other_files(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path,
        """
        code = "\\n" * me + "def twice(w): return w * 2"
        exec(compile(code, f"/folder{me}/step.py", "exec"))
        twice = wh.jit(twice, cluster=2)
        assert f"/folder{me}/step.py" in twice.lower(w).as_text()
        assert np.array_equal(twice(w), w * 2)
        """,
        2,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "step",
    [
        "lambda w: w * (2 + me)",
        # The same operations in another scope.
        "(wh.split() if me else wh.replicate())(lambda w: w * 2)",
    ],
)
def test_different_steps(tmp_path: pathlib.Path, step: str) -> None:
    result = run(tmp_path, f"wh.jit({step}, cluster=2)(w)", 2)
    assert result.returncode == 1
    assert "the step differs: process 0 compiles" in result.stderr
    log = (tmp_path / "log" / "process-1.log").read_text()
    assert "the step differs: process 0 compiles" in log


def test_different_batches(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "step(w, x[me:])", 2)
    assert result.returncode == 1
    assert re.search(
        r"the step differs: process 0 compiles 'train' of batch "
        r"float32\[24, 16\] \(.*\), process 1 'train' of batch "
        r"float32\[23, 16\]",
        result.stderr,
    ), result.stderr


def test_a_step_that_cannot_be_compiled(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, "wh.jit(train, cluster={'nodes': 1})(w, x)", 2)
    assert result.returncode == 1
    log = (tmp_path / "log" / "process-1.log").read_text()
    assert "CompileError" in result.stderr and "CompileError" in log


def test_an_exception_in_one_process(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path,
        """
        new, _ = step(w, x)
        if me == 1:
            raise ValueError("no more")
        for _ in range(100000):
            new, (loss, _) = step(new, x)
            float(loss)
        """,
        2,
    )
    assert result.returncode == 1
    assert re.search(
        r"process 1 \(host \S+, pid \d+\): ValueError: no more", result.stderr
    )


@pytest.mark.parametrize("which", [0, 1])
def test_an_exit_of_one_process(tmp_path: pathlib.Path, which: int) -> None:
    """Nobody waits for it, so none of the processes has an error."""
    result = run(
        tmp_path,
        f"""
        new, _ = step(w, x)
        np.asarray(wh.gather(new))
        if me == {which}:
            sys.exit(3)
        """,
        2,
    )
    assert result.returncode == 3
    assert re.fullmatch(
        rf"error: process {which} \(host .*, pid \d+\) "
        r"has ended with status 3\n",
        result.stderr,
    ), result.stderr


def test_other_shapes_of_the_batch(tmp_path: pathlib.Path) -> None:
    """Of two programs that both processes have, each runs another one."""
    result = run(
        tmp_path,
        """
        wide = jnp.concatenate([x, x])
        for batch in x, wide:
            np.asarray(wh.gather(step(w, batch)[0]))
        step(w, wide if me else x)[0].block_until_ready()
        """,
        2,
        progress_limit=8,
    )
    assert result.returncode == 1
    assert re.search(
        r"process 0 \(.*\) runs '\w+' of batch f32\[\d+, \d+\] \(program .*, "
        r"where process 1 \(.*\) runs '\w+' of batch f32\[",
        result.stderr,
    ), result.stderr


def test_a_directory_for_logs_that_is_none(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.touch()
    result = subprocess.run(
        [
            *(sys.executable, "-m", "whale.launch", "--nprocs=2"),
            *("--log-dir=/dev/null", script),
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    assert result.returncode == 2
    assert "error: --log-dir: /dev/null: File exists" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_killed_process(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path,
        """
        new, _ = step(w, x)
        if me == 0:
            os.kill(os.getpid(), 9)
        while True:
            new, _ = step(new, x)
            wh.gather(new)
        """,
        2,
    )
    assert result.returncode == 1
    assert re.search(
        r"process 0 \(host .*, pid \d+\) was ended by signal 9 \(SIGKILL\)",
        result.stderr,
    )
    log = (tmp_path / "log" / "process-1.log").read_text()
    assert re.search(
        r"process 0 \(host .*, pid \d+\), which coordinates the others, has "
        "ended",
        log,
    )


@pytest.mark.long
def test_a_process_that_exits(tmp_path: pathlib.Path) -> None:
    # Without a launcher that would end the other.
    script = tmp_path / "script.py"
    script.write_text(
        HEADER
        + textwrap.dedent(
            """
            new, _ = step(w, x)
            np.asarray(wh.gather(new))
            if me == 1:
                sys.exit(3)
            while True:
                new, (loss, _) = step(new, x)
                float(loss)
            """
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "python"),
        "WHALE_PROCESSES": "2",
        "WHALE_HOST": "127.0.0.1",
        "WHALE_PORT": str(port),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(script)],
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment | {"WHALE_PROCESS": str(process)},
        )
        for process in range(2)
    ]
    texts = [each.communicate(timeout=LIMIT)[1] for each in processes]
    assert processes[0].returncode == 1
    assert re.search(
        r"process 1 \(host .*\) has ended, where rank \d waits in '.*' for ",
        texts[0],
    ), texts


@pytest.mark.long
def test_a_process_that_comes_to_its_end_first(tmp_path: pathlib.Path) -> None:
    # While its steps run on, more slowly than those of the other.
    result = run(
        tmp_path,
        """
        import subprocess
        k = np.eye(256, dtype=np.float32)
        x = np.ones((24, 256), np.float32)
        def step(s, x):
            y = jax.lax.fori_loop(0, 30000, lambda _, y: jnp.tanh(y @ k), x)
            return s + y.sum()
        step = wh.jit(step, cluster=2, batch_argnums=1)
        s = step(np.float32(0), x)
        s.block_until_ready()
        if me == 1:
            pid = os.getpid()
            subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -STOP {pid};"
                                          f"sleep 12; kill -CONT {pid}"])
        for _ in range(3):
            s = step(s, x)
        assert not s.is_ready()
        if me == 0:
            print(float(s) > 0)
        """,
        2,
        progress_limit=60,
    )
    assert result.stdout == "True\n", result.stderr
    assert result.returncode == 0, result.stderr


def test_local_data_of_a_wrong_shape(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path,
        """
        lowered = step.lower(w, x)
        for local, argument in (x, 1), (x[:1, :3], "x"), (w, 0), (x, "y"):
            try:
                wh.from_local_data(local, lowered, argument)
            except (ValueError, TypeError) as error:
                print(error)
        """,
        2,
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "args[1]: process 0 gives float32[24, 16]; its rows are" in lines[0]
    assert "float32[1, 3]" in lines[1]
    assert "args[0] is no part of the batch" in lines[2]
    assert len(lines) == 4 and "'y'" in lines[3]


def test_forks(tmp_path: pathlib.Path) -> None:
    result = run(
        tmp_path,
        """
        import time
        lowered = step.lower(w, x)
        rows = lowered.batch_slices(me)
        new, _ = step(w, x)
        value = np.array(new)
        new, _ = step(w, x)
        new.block_until_ready()
        pid = os.fork()
        if pid == 0:
            # As what loads the rows of its parent does.
            assert wh.process_index() == me and wh.process_count() == 2
            assert lowered.batch_slices(me) == rows
            assert np.array_equal(new, value)
            for use in (lambda: wh.gather(new)), (lambda: step(w, x)):
                try:
                    use()
                except wh.RuntimeError as error:
                    assert f"a child of process {me} (fork)" in str(error)
                else:
                    raise AssertionError("took part")
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        again, _ = step(w, x)
        assert np.array_equal(new, again)
        print("done", flush=True)
        if me == 1:
            # What it leaves behind keeps no connection open.
            if os.fork() == 0:
                time.sleep(10)
                os._exit(0)
            os.kill(os.getpid(), 9)
        while True:
            new, _ = step(new, x)
            wh.gather(new)
        """,
        2,
        leaves=True,
    )
    assert result.stdout == "done\n", result.stderr
    assert re.search(
        r"process 1 \(host .*\) has ended unexpectedly", result.stderr
    )


def test_alone() -> None:
    assert wh.process_index() == 0 and wh.process_count() == 1
    step = wh.jit(lambda x: x + 1, cluster=2, batch_argnums=0)
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    lowered = step.lower(x)
    assert lowered.batch_slices(0) == [[slice(0, 4)]]
    y = step(wh.from_local_data(x, lowered, 0))
    assert y.is_fully_addressable and wh.gather(y) is y
    assert np.array_equal(y, x + 1)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rows_of_a_view(dim: int) -> None:
    from whale.batches import _rows

    shape, view = (6, 4, 10), (2, 3, 4, 5, 2)
    part = (slice(0, 1), slice(1, 3), slice(1, 2), slice(0, 2), slice(0, 2))
    elements = np.arange(240).reshape(view)[part].ravel()
    expected = np.unique(np.unravel_index(elements, shape)[dim])
    assert np.array_equal(_rows(shape, dim, view, part), expected)


def test_loop() -> None:
    step = wh.jit(
        lambda s, x: (s + x.sum(), x * s), cluster=2, donate_argnums=0
    )
    taken = []

    def data():
        for i in range(5):
            taken.append(threading.current_thread().name)
            yield np.full((4,), i, np.float32)

    outputs = [out for _, out in wh.loop(step, jnp.float32(1), data())]
    assert [float(out[0]) for out in outputs] == [0, 1, 10, 39, 100]
    assert set(taken) == {"whale-batches"}


def test_loop_with_an_error() -> None:
    def data():
        yield np.ones(2, np.float32)
        raise ValueError("no more data")

    steps = wh.loop(lambda s, x: (s + 1, x), 0, data())
    assert next(steps)[0] == 1
    with pytest.raises(ValueError, match="no more data"):
        next(steps)
    steps = wh.loop(lambda s, x: (s + 1, x), 0, iter(int, 1))
    next(steps)
    steps.close()


def test_a_wrong_coordinator() -> None:
    for text in "host", ":1", "host:x", "host:70000":
        with pytest.raises(ValueError, match="coordinator"):
            wh.init_distributed(text, 0, 2)


def test_callbacks_are_called_by_the_first_process(tmp_path: pathlib.Path):
    """All processes stop where one raises, and go on with the next step."""
    result = run(
        tmp_path,
        """
        def look(h, total):
            if total > 1e6:
                raise ValueError("too much")
            if total < -1e6:
                sys.exit(4)
            if total > 5e5:
                saved = wh.Checkpointer("saved")
                for call in (
                    lambda: step(w, x), lambda: wh.gather(new), saved.latest
                ):
                    try:
                        call()
                        raise AssertionError("others took part")
                    except wh.RuntimeError as error:
                        assert "the first process alone" in str(error)
                return
            assert me == 0
            np.testing.assert_allclose(h, x @ w, rtol=1e-5, atol=1e-5)
            print("called", flush=True)

        def looked(w, x):
            jax.debug.callback(look, x @ w, x.sum())
            return train(w, x)

        step = wh.jit(looked, cluster=cluster, batch_argnums=1)
        try:
            step(w, x + np.float32(1e6))
            raise AssertionError("the function has not raised")
        except wh.RuntimeError as error:
            assert "script.py:42 raised ValueError: too much" in str(error)
        new, _ = step(w, x)
        step(w, x + np.float32(2e3))
        try:
            step(w, x - np.float32(1e6))
            raise AssertionError("the function has not raised")
        except SystemExit as error:
            assert me == 0 and error.code == 4
        except wh.RuntimeError as error:
            assert me == 1
            assert str(error) == "process 0 raised SystemExit: 4"
        """,
        2,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "called\n"
