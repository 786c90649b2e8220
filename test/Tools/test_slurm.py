"""Programs under srun, in a Slurm cluster of one host that a test starts.

It needs Debian's slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins (for
``--mpi=pmix``) and munge, and root.

Results must have the bits of one process, with PMIx and with WHALE_HOST; a
killed task must be named, and all must end within 10 s. A failure means that
Whale misreads what Slurm says of tasks and cores. Long tests only; the daemons
are started once.
"""

from __future__ import annotations

import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from jobs import (
    ENDLESS,
    HANG,
    bits,
    command,
    compile_,
    has_ended,
    is_whale_run,
    run,
)

pytestmark = pytest.mark.long

CONFIGURATION = """\
ClusterName=whale
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def pid_of(path: pathlib.Path) -> int:
    """What a daemon has written; it may take a moment."""
    limit = time.monotonic() + HANG
    while not path.exists() or not path.read_text().strip():
        assert time.monotonic() < limit
        time.sleep(0.1)
    return int(path.read_text())


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A controller, a node and an authentication daemon of their own."""
    needed = ["slurmctld", "slurmd", "munged", "srun"]
    if os.geteuid() != 0 or not all(map(shutil.which, needed)):
        pytest.skip("Slurm needs root, slurmctld, slurmd, slurm-client, munge")
    folder = tmp_path_factory.mktemp("slurm")
    # munged refuses to listen below a folder that others cannot enter.
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    controller, node = free_ports(2)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname(),
            folder=folder,
            controller=controller,
            node=node,
        )
    )
    for name in "spool", "state":
        (folder / name).mkdir()
    daemons = {
        "munge": [
            *("munged", "--force", f"--socket={folder}/munge.sock"),
            *(f"--key-file={key}", f"--pid-file={folder}/munge.pid"),
            *(f"--log-file={folder}/munge.log",),
            *(f"--seed-file={folder}/munge.seed",),
        ],
        "slurmctld": ["slurmctld", "-f", str(configuration)],
        "slurmd": ["slurmd", "-f", str(configuration)],
    }
    os.environ["SLURM_CONF"] = str(configuration)
    started = []
    try:
        for name, arguments in daemons.items():
            subprocess.run(arguments, check=True, timeout=HANG)
            started.append(pid_of(folder / f"{name}.pid"))
        limit = time.monotonic() + HANG
        while "idle" not in subprocess.run(
            ["sinfo", "--noheader"], capture_output=True, text=True
        ).stdout.replace("idle*", ""):
            assert time.monotonic() < limit
            time.sleep(0.2)
        yield
    finally:
        for pid in reversed(started):
            os.kill(pid, signal.SIGTERM)
        limit = time.monotonic() + 20
        while not all(map(has_ended, started)) and time.monotonic() < limit:
            time.sleep(0.1)
        del os.environ["SLURM_CONF"]


def has_pmix() -> bool:
    plugins = subprocess.run(
        ["srun", "--mpi=list"], capture_output=True, text=True
    )
    return "pmix" in plugins.stdout + plugins.stderr


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("way", ["pmix", "WHALE_HOST"])
def test_same_bits(
    slurm: None, tmp_path: pathlib.Path, way: str, count: int
) -> None:
    if way == "pmix" and not has_pmix():
        pytest.skip("this Slurm has no PMIx")
    program = compile_(tmp_path, "replicate", n=1500)
    options = ["--steps=3", "--threads=1"]
    assert run(program, "one", *options).returncode == 0
    environment = dict(os.environ)
    if way == "WHALE_HOST":
        [port] = free_ports(1)
        environment |= {"WHALE_HOST": "127.0.0.1", "WHALE_PORT": str(port)}
    result = subprocess.run(
        [
            *("srun", "--mpi=pmix" if way == "pmix" else "--mpi=none"),
            *("-n", str(count), *command(program, "many", *options)),
        ],
        capture_output=True,
        text=True,
        timeout=HANG,
        env=environment,
    )
    assert result.returncode == 0, result.stderr
    assert bits(program, "one") == bits(program, "many")


def test_fewer_cores_than_ranks(slurm: None, tmp_path: pathlib.Path) -> None:
    if not has_pmix():
        pytest.skip("this Slurm has no PMIx")
    program = compile_(tmp_path, "none")
    result = subprocess.run(
        [
            *("srun", "--mpi=pmix", "-n", "2", "--cpus-per-task=1"),
            *command(program, "out", "--threads=1"),
        ],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert result.returncode != 0
    lines = {
        line for line in result.stderr.splitlines() if line.startswith("error:")
    }
    assert len(lines) == 1 and "SLURM_CPUS_PER_TASK" in lines.pop()


def test_scancel_ends_all(slurm: None, tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "replicate")
    [port] = free_ports(1)
    with subprocess.Popen(
        ["srun", "--job-name=endless", "-n", "4"]
        + command(program, "out", ENDLESS),
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"WHALE_HOST": "127.0.0.1", "WHALE_PORT": str(port)},
    ) as job:
        time.sleep(3)
        assert job.poll() is None
        subprocess.run(["scancel", "--name=endless"], check=True)
        job.communicate(timeout=HANG)
        assert job.returncode != 0


def tasks(program: pathlib.Path) -> dict[int, int]:
    """The processes that run a program, by their numbers."""
    found = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if not is_whale_run(int(place.name)):
                continue
            words = (place / "cmdline").read_text().split("\0")
            variables = (place / "environ").read_text().split("\0")
        except OSError:
            continue  # It has ended.
        for variable in variables:
            name, _, value = variable.partition("=")
            if name == "SLURM_PROCID" and str(program) in words:
                found[int(value)] = int(place.name)
    return found


@pytest.mark.parametrize("victim", [0, 2])
def test_a_process_dies(
    slurm: None, tmp_path: pathlib.Path, victim: int
) -> None:
    program = compile_(tmp_path, "replicate")
    [port] = free_ports(1)
    with subprocess.Popen(
        ["srun", "-n", "4", *command(program, "out", ENDLESS)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"WHALE_HOST": "127.0.0.1", "WHALE_PORT": str(port)},
    ) as job:
        limit = time.monotonic() + HANG
        while len(processes := tasks(program)) < 4:
            assert job.poll() is None and time.monotonic() < limit
            time.sleep(0.1)
        time.sleep(2)
        os.kill(processes[victim], signal.SIGKILL)
        killed = time.monotonic()
        while not all(map(has_ended, processes.values())):
            assert time.monotonic() - killed < 10
            time.sleep(0.1)
        _, text = job.communicate(timeout=HANG)
    assert job.returncode != 0
    assert f"process {victim} (host " in text, text
