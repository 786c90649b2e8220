"""Ranks in several processes give the bits of ranks in one, and an end of one
process ends all with one error.

Bits are compared for 1 to 4 processes. A process that is killed or stopped must
be named in the error, all must end, and no shared memory or file may be left. A
failure means wrong results, a hang, or leftovers that fill a machine. Deaths at
random moments have numbered seeds: one for each launcher, or fifty with --full.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import numpy as np
import pytest
import safetensors.numpy
import trace_rules
from jobs import (
    BIN,
    ENDLESS,
    HANG,
    MPIRUN,
    bits,
    command,
    compile_,
    descendants,
    error,
    free_port,
    has_ended,
    is_whale_run,
    number_of,
    run,
    runs_steps,
    start_each,
    torchrun,
)


@pytest.mark.parametrize("strategy", ["replicate", "split", "none"])
def test_same_bits(tmp_path: pathlib.Path, strategy: str) -> None:
    # Larger than one chunk of an all-reduce.
    program = compile_(tmp_path, strategy, n=3000)
    one = run(program, "one", "--steps=3", "--threads=1")
    assert one.returncode == 0, one.stderr
    for count in 1, 2, 3, 4:
        many = run(
            *(program, "many", "--steps=3", "--threads=1"),
            f"--nprocs={count}",
            f"--stats={tmp_path / 'stats.json'}",
        )
        assert many.returncode == 0, many.stderr
        assert not many.stdout and not many.stderr
        assert bits(program, "one") == bits(program, "many")


def test_stats_of_all_ranks(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate", n=3000)
    stats, moved = [], []
    for count in 1, 4:
        path = tmp_path / f"{count}.json"
        run(program, "out", f"--stats={path}", f"--nprocs={count}")
        ranks = json.loads(path.read_text())["ranks"]
        moved.append(
            [
                rank["collectives"]["all_reduce"].pop(which)
                for rank in ranks
                for which in ("bytes_sent", "bytes_received")
            ]
        )
        stats.append(
            [
                (rank["argument_bytes"], rank["flops"], rank["collectives"])
                for rank in ranks
            ]
        )
    assert stats[0] == stats[1] and len(stats[0]) == 4
    # Processes send the sum, a number of four bytes, whole to three others.
    for one, many in zip(*moved, strict=True):
        assert one <= many <= one + 3 * 4


def test_profile_of_all_ranks(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate", n=3000)
    lines, counts = [], []
    for count in 1, 4:
        result = run(program, "out", "--profile", f"--nprocs={count}")
        assert result.returncode == 0, result.stderr
        head, _, tables = result.stdout.partition("\nrank ")
        assert ", 4 ranks" in head
        rows, table = tables.splitlines()[1:5], tables.splitlines()[6:]
        computing = [float(row.split()[1]) for row in rows]
        assert len(computing) == 4 and all(computing)
        # The kinds of each line, and how often a rank ran them.
        counts.append(
            sorted(line.partition(" (")[2] for line in table if " (" in line)
        )
        lines.append(len(table))
    assert lines[0] == lines[1] and counts[0] == counts[1]


def test_trace_of_all_ranks(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate")
    names = []
    for count in 1, 2:
        path = tmp_path / f"{count}.json"
        result = run(program, "out", f"--trace={path}", f"--nprocs={count}")
        assert result.returncode == 0, result.stderr
        events = json.loads(path.read_text())["traceEvents"]
        assert {event["pid"] for event in events} == {0, 1, 2, 3}
        trace_rules.check(events, arrows=False)
        names.append(sorted(event["name"] for event in events))
    assert names[0] == names[1]


PIPELINE = """\
module attributes {whale.config = {num_micro_batch = 4 : i64}} {
  func.func @main(%v: tensor<8x8xf32>, %w: tensor<8x8xf32>,
                  %x: tensor<16x8xf32> {whale.batch_dim = 0 : i64})
      -> tensor<16x8xf32> {
    %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
      {whale.strategy = #whale.replicate<devices = 1, name = "front">}
      : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      loc("jit(f)/whale:replicate:1:0:front/dot"("model.py":3:1))
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      {whale.strategy = #whale.replicate<devices = 1, name = "back">}
      : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      loc("jit(f)/whale:replicate:1:1:back/dot"("model.py":3:1))
    return %1 : tensor<16x8xf32>
  }
}
"""


def test_traces_name_micro_batch_and_scope(tmp_path: pathlib.Path) -> None:
    text, program = tmp_path / "step.mlir", tmp_path / "step.whale"
    text.write_text(PIPELINE)
    subprocess.run(
        [BIN / "whale-compile", text, "--cluster=2", "-o", program],
        check=True,
        timeout=HANG,
    )
    safetensors.numpy.save_file(
        {
            f"arg{i}": np.ones((rows, 8), dtype=np.float32)
            for i, rows in enumerate((8, 8, 16))
        },
        tmp_path / "in.safetensors",
    )
    result = run(program, "out", f"--trace={tmp_path / 'trace.json'}")
    assert result.returncode == 0, result.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    trace_rules.check(events, arrows=True)
    for rank, scope in enumerate(("0:front", "1:back")):
        bars = [
            (
                event["args"]["micro_batch"],
                event["name"],
                event["args"]["scope"],
            )
            for event in events
            if event["pid"] == rank and "micro_batch" in event.get("args", {})
        ]
        # A stage's one kernel, which both stages share.
        expected = "dot (model.py:3)", f"jit(f)/whale:replicate:1:{scope}"
        assert bars == [(moment, *expected) for moment in range(4)], events


@pytest.mark.parametrize("here", [0, 2])
def test_a_program_that_others_lack(tmp_path: pathlib.Path, here: int) -> None:
    program = compile_(tmp_path, "split")
    assert run(program, "one", "--threads=1").returncode == 0
    # Each process looks for the program below its own folder.
    folders = [tmp_path / f"host{process}" for process in range(4)]
    for folder in folders:
        folder.mkdir()
    os.rename(program, folders[here] / "step.whale")
    arguments = command(pathlib.Path("step.whale"), "sent", "--threads=1")
    inputs = tmp_path / "in.safetensors"
    arguments[2:4] = [f"--inputs={inputs}", f"--outputs={tmp_path / 'sent'}"]
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    started = [
        subprocess.Popen(
            arguments,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | variables | {"TMPDIR": str(scratch)},
        )
        for folder, variables in zip(
            folders, torchrun(free_port(), 4), strict=True
        )
    ]
    texts = {process.communicate(timeout=HANG)[1] for process in started}
    assert not list(scratch.iterdir())
    if here == 0:
        assert texts == {""}
        assert (tmp_path / "sent").read_bytes() == bits(program, "one")
    else:
        assert texts == {
            "error: step.whale: process 0 has no such program directory\n"
        }


def test_too_many_processes(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    assert "there are 5 processes for 4 ranks" in error(
        run(program, "out", "--nprocs=5")
    )


def test_late_devices(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate")
    result = run(program, "out", "--nprocs=2", WHALE_TEST_LATE="1")
    assert error(result) == (
        "error: WHALE_TEST_LATE: late devices are for ranks of one process, "
        "this job has 2\n"
    )


def test_an_error_in_all_processes(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    (tmp_path / "in.safetensors").unlink()
    result = run(program, "out", "--nprocs=3", f"--log-dir={tmp_path / 'log'}")
    first = error(result)
    assert "in.safetensors" in first
    for process in 1, 2:
        log = (tmp_path / "log" / f"process-{process}.log").read_text()
        assert log == first


def test_a_file_that_one_process_lacks(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    started = []
    for process, variables in enumerate(torchrun(free_port(), 4)):
        arguments = command(program, "out", "--threads=1")
        if process == 2:
            arguments[2] = f"--inputs={tmp_path / 'missing'}"
        started.append(
            subprocess.Popen(
                arguments,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | variables,
            )
        )
    texts = {process.communicate(timeout=HANG)[1] for process in started}
    assert len(texts) == 1
    place = f"host {socket.gethostname()}, pid {started[2].pid}"
    assert texts.pop().startswith(
        f"error: process 2 ({place}): {tmp_path / 'missing'}: "
    )


def test_a_directory_for_logs_that_is_none(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    result = run(program, "out", "--nprocs=2", "--log-dir=/dev/null")
    assert error(result) == "error: /dev/null: Not a directory\n"


def test_no_permission_to_write(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    arguments = command(program, "out", ENDLESS, "--nprocs=3")
    # Also root cannot make a file there.
    arguments[3] = "--outputs=/proc/self/out.safetensors"
    logs = tmp_path / "log"
    result = subprocess.run(
        [*arguments, f"--log-dir={logs}"],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    first = error(result)
    assert "/proc/self/out.safetensors" in first
    for process in 1, 2:
        assert (logs / f"process-{process}.log").read_text() == first


def test_more_ranks_than_cores_asked_for(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    port = free_port()
    variables = [
        {
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_PROCID": str(process),
            "SLURM_CPUS_PER_TASK": "1",
            "WHALE_HOST": "127.0.0.1",
            "WHALE_PORT": str(port),
        }
        for process in range(2)
    ]
    texts = {error(result) for result in start_each(program, variables)}
    assert len(texts) == 1
    assert (
        "process 0 runs 2 ranks of 1 threads, but srun was asked for 1 cores"
        in texts.pop()
    )


def test_many_more_ranks_than_cores(tmp_path: pathlib.Path) -> None:
    # Eight ranks for each core, with the limit of a real run; the steps are too
    # short for it to be anything but ten seconds.
    cores = len(os.sched_getaffinity(0))
    ranks = 8 * cores
    devices = json.dumps(
        {"nodes": [{"devices": [{"kind": "cpu", "count": ranks}]}]}
    )
    program = compile_(tmp_path, "replicate", devices=devices)
    one = run(program, "one", "--steps=20", "--threads=1")
    many = run(
        *(program, "many", "--steps=20", "--threads=1"), f"--nprocs={ranks}"
    )
    assert one.returncode == 0 and many.returncode == 0, many.stderr
    assert bits(program, "one") == bits(program, "many")


class Running:
    """A job of four processes that never ends by itself."""

    def __init__(self, program: pathlib.Path, *options: str) -> None:
        self.agent = subprocess.Popen(
            command(program, "out", ENDLESS, "--nprocs=4", *options),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes: list[int] = []
        # Well into the steps, however long that takes on a busy machine.
        limit = time.monotonic() + HANG
        while len(self.processes) < 4 or not all(
            map(runs_steps, self.processes)
        ):
            assert self.agent.poll() is None and time.monotonic() < limit
            time.sleep(0.05)
            self.processes = self.children()

    def children(self) -> list[int]:
        """By their number, once each runs the program."""
        pid = self.agent.pid
        path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        found = {
            number_of(int(child)): int(child)
            for child in path.read_text().split()
        }
        return [found[number] for number in sorted(found) if number >= 0]

    def end(self) -> str:
        _, text = self.agent.communicate(timeout=HANG)
        assert self.agent.returncode == 1
        for process in self.processes:
            assert not pathlib.Path(f"/proc/{process}").exists()
        assert text.count("\n") == 1, text
        return text


@pytest.fixture
def endless(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield compile_(tmp_path, "replicate")


@pytest.mark.parametrize("process", [0, 1, 3])
def test_a_process_dies(endless: pathlib.Path, process: int) -> None:
    job = Running(endless)
    os.kill(job.processes[process], signal.SIGKILL)
    text = job.end()
    if process == 0:
        place = f"host {socket.gethostname()}, pid {job.processes[0]}"
        assert (
            text
            == f"error: process 0 ({place}) was ended by signal 9 (SIGKILL)\n"
        )
    else:
        assert f"process {process}" in text


def test_a_process_stops(endless: pathlib.Path) -> None:
    job = Running(endless, "--progress-limit=1")
    os.kill(job.processes[2], signal.SIGSTOP)
    text = job.end()
    assert "process 2 (host " in text
    assert "has given no sign of life for 3 seconds" in text
    assert "rank " in text


def test_the_first_process_stops(endless: pathlib.Path) -> None:
    # It cannot say so itself: what another one has printed is shown.
    job = Running(endless, "--progress-limit=1")
    os.kill(job.processes[0], signal.SIGSTOP)
    text = job.end()
    assert text.startswith("error: process 0 (host ")
    assert "which coordinates the others, has given no sign of life" in text
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
)
def test_a_signal_ends_all(endless: pathlib.Path, number: int) -> None:
    job = Running(endless)
    job.agent.send_signal(number)
    job.agent.communicate(timeout=HANG)
    assert job.agent.returncode == -number
    for process in job.processes:
        assert not pathlib.Path(f"/proc/{process}").exists()
    # They end by themselves, and remove what they were to write.
    assert not list(endless.parent.glob(".*"))


def start_deadly(
    program: pathlib.Path, launcher: str, scratch: pathlib.Path
) -> list[subprocess.Popen[str]]:
    """Four processes that never end, or the one that has started them."""
    environments: list[dict[str, str]] = [{}]
    arguments = command(program, "out", ENDLESS)
    if launcher == "whale-run":
        arguments.append("--nprocs=4")
    elif launcher == "mpirun":
        arguments = [*MPIRUN, "4", *arguments]
    else:
        environments = torchrun(free_port(), 4)
    return [
        subprocess.Popen(
            arguments,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment | {"TMPDIR": str(scratch)},
        )
        for environment in environments
    ]


def ucx_files() -> list[str]:
    return [
        name
        for name in os.listdir("/dev/shm")
        if name.startswith(("ucx_shm_", f".whale-{os.geteuid()}."))
    ]


def test_deaths_while_processes_connect(endless: pathlib.Path) -> None:
    """Also of the launcher: nobody is left who could clean up."""
    for moment in range(4, 20, 4):
        job = subprocess.Popen(
            command(endless, "out", ENDLESS, "--nprocs=4"),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(moment / 100)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(HANG)
    # Another launcher's children may still be ending.
    deadline = time.monotonic() + HANG
    assert run(endless, "out", "--nprocs=2").returncode == 0
    while ucx_files() and time.monotonic() < deadline:
        time.sleep(0.1)
        assert run(endless, "out", "--nprocs=2").returncode == 0
    assert not ucx_files()


LAUNCHERS = ["whale-run", "mpirun", "torchrun"]
# One of each with scripts/test, fifty with --full.
DEATHS = [
    pytest.param(launcher, seed, marks=[] if seed == 0 else [pytest.mark.long])
    for seed in range(50)
    for launcher in LAUNCHERS
]


def shared_memory() -> set[str]:
    """Names of pieces that no process uses."""
    names = set(os.listdir("/dev/shm"))
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text()
        except OSError:
            continue  # It has ended.
        names = {name for name in names if name not in text}
    return names


@pytest.mark.parametrize(("launcher", "seed"), DEATHS)
def test_random_deaths(endless: pathlib.Path, launcher: str, seed: int) -> None:
    before = shared_memory()
    scratch = endless.parent / "tmp"
    scratch.mkdir()
    random = np.random.default_rng([seed, LAUNCHERS.index(launcher)])
    job = start_deadly(endless, launcher, scratch)
    try:
        processes = [process.pid for process in job]
        limit = time.monotonic() + HANG
        while len(processes) < 4:
            assert time.monotonic() < limit
            time.sleep(0.05)
            processes = [
                pid for pid in descendants(job[0].pid) if is_whale_run(pid)
            ]
        # From the start of the processes to well into the steps. Who dies
        # before it has joined the others is seen by a launcher alone.
        time.sleep(random.uniform(0, 2.5))
        while launcher == "torchrun" and not all(map(runs_steps, processes)):
            assert time.monotonic() < limit
            time.sleep(0.1)
        victim = int(random.integers(4))
        os.kill(processes[victim], signal.SIGKILL)
        killed = time.monotonic()
        texts = [process.communicate(timeout=20)[1] for process in job]
        while not all(map(has_ended, processes)):
            assert time.monotonic() - killed < 10
            time.sleep(0.05)
        assert time.monotonic() - killed < 10
    finally:
        for process in job:
            process.kill()
    # On a busy machine mpirun kills those that are slow to end; what these
    # leave a later run removes.
    if launcher == "mpirun" and shared_memory() - before:
        later = run(endless, "later", "--steps=1", "--nprocs=2")
        assert later.returncode == 0, later.stderr
    # Other tests make and remove pieces at the same time.
    while left := shared_memory() - before:
        assert time.monotonic() - killed < 20, left
        time.sleep(0.1)
    assert not [path for path in scratch.rglob("*") if path.is_file()]
    # The victim of a launcher that ends the others at once may be named by the
    # launcher alone.
    named = {f"process {victim}", f"process rank {victim} with PID"}
    others = [text for i, text in enumerate(texts) if i != victim]
    for text in others if launcher == "torchrun" else texts:
        assert any(name in text for name in named), texts


@pytest.mark.parametrize("strategy", ["replicate", "split"])
def test_equal_replicas(tmp_path: pathlib.Path, strategy: str) -> None:
    program = compile_(tmp_path, strategy)
    for count in 1, 4:
        result = run(
            *(program, "out", "--steps=5", "--check-replicas=2"),
            f"--nprocs={count}",
        )
        assert result.returncode == 0, result.stderr


def test_different_replicas(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate")
    inputs = safetensors.numpy.load_file(tmp_path / "in.safetensors")
    inputs["arg0"][7, 3] += 1
    safetensors.numpy.save_file(inputs, tmp_path / "other.safetensors")
    started = []
    for name, variables in zip(["in", "other"], torchrun(free_port())):
        arguments = command(program, "out", "--steps=5", "--check-replicas=2")
        arguments[2] = f"--inputs={tmp_path / name}.safetensors"
        started.append(
            subprocess.Popen(
                arguments,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | variables,
            )
        )
    texts = {process.communicate(timeout=HANG)[1] for process in started}
    assert texts == {
        "error: after step 2, result0: the replicas of ranks 0 and 2 differ\n"
    }
