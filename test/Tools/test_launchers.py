"""The same program under launchers of others, and on several hosts.

Results must have the bits of one process, under mpirun with UCX and with MPI,
and on hosts that are namespaces with links of their own; whoever dies or is cut
off must be named, and all must end in time. A failure means wrong bits, or jobs
that hang, between machines. Needs mpirun; tests on hosts need root and
iproute2, or are skipped. Slowed links and waits for deaths take seconds each.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from jobs import (
    ENDLESS,
    FOUR_HOSTS,
    HANG,
    MPIRUN,
    ROOT,
    bits,
    command,
    compile_,
    descendants,
    has_ended,
    run,
)

PORT = 47291
TWO_HOSTS = """{"nodes": [{"count": 2,
  "devices": [{"kind": "cpu", "count": 2}]}]}"""
# Nothing that is sent ends before it is received.
NO_EAGER_SENDS = {
    f"OMPI_MCA_btl_{name}_eager_limit": "128"
    for name in ("self", "vader", "sm", "tcp")
}


@pytest.mark.parametrize("transport", ["ucx", "mpi"])
def test_collectives_under_mpirun(transport: str) -> None:
    test = ROOT / "build" / "unittests" / "ProcessesTest"
    result = subprocess.run(
        [*MPIRUN, "3", str(test), transport],
        capture_output=True,
        text=True,
        timeout=HANG,
        env=os.environ | NO_EAGER_SENDS,
    )
    assert result.stdout == "292 scenarios, 0 wrong ranks\n", result.stderr
    assert result.returncode == 0


@pytest.mark.parametrize("transport", ["ucx", "mpi"])
@pytest.mark.parametrize("strategy", ["replicate", "split"])
def test_same_bits_under_mpirun(
    tmp_path: pathlib.Path, strategy: str, transport: str
) -> None:
    program = compile_(tmp_path, strategy, n=1500)
    assert run(program, "one", "--steps=3", "--threads=1").returncode == 0
    options = ["--steps=3", "--threads=1", f"--transport={transport}"]
    for count in 2, 4:
        result = subprocess.run(
            [*MPIRUN, str(count), *command(program, "many", *options)],
            capture_output=True,
            text=True,
            timeout=HANG,
            env=os.environ | NO_EAGER_SENDS,
        )
        assert result.returncode == 0, result.stderr
        assert bits(program, "one") == bits(program, "many")


def test_mpi_needs_its_launcher(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    result = run(program, "out", "--nprocs=2", "--transport=mpi")
    assert result.returncode == 1
    assert "MPI has 1 processes, the job has 2" in result.stderr


def test_two_launchers(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    result = subprocess.run(
        [*MPIRUN, "2", *command(program, "out", "--nprocs=2")],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert result.returncode == 1
    assert "error: --nprocs: 2 processes have been started" in result.stderr


@pytest.mark.parametrize("transport", ["ucx", "mpi"])
def test_a_process_of_mpirun_dies(
    tmp_path: pathlib.Path, transport: str
) -> None:
    program = compile_(tmp_path, "replicate")
    options = [ENDLESS, f"--transport={transport}"]
    with subprocess.Popen(
        [*MPIRUN, "3", *command(program, "out", *options)],
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        time.sleep(3)
        processes = descendants(job.pid)
        assert len(processes) == 3
        os.kill(processes[1], signal.SIGKILL)
        _, text = job.communicate(timeout=15)
    assert job.returncode != 0
    # Said by mpirun, unless another process has ended with its error before.
    assert "signal 9" in text or f"pid {processes[1]}" in text, text
    limit = time.monotonic() + 5
    while not all(map(has_ended, processes)):
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_srun_without_pmix(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    result = run(program, "out", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="1")
    assert result.returncode == 1
    assert "srun --mpi=pmix" in result.stderr


class Hosts:
    """Four hosts: namespaces with names, addresses and links of their own,
    which meet in the bridge of a fifth."""

    def __init__(self, exits: contextlib.ExitStack, interface: str) -> None:
        self.interface = interface
        self.names = [f"host{i}" for i in range(4)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(4)]
        self.spaces = []
        for name in [*self.names, "switch"]:
            space = subprocess.Popen(
                ["unshare", "-n", "-u", "sh", "-c", f"hostname {name}; read x"],
                stdin=subprocess.PIPE,
            )
            exits.callback(space.wait)
            exits.callback(space.kill)
            self.spaces.append(space.pid)
        time.sleep(0.2)
        self.do(4, "ip link add br0 type bridge")
        self.do(4, "ip link set br0 up")
        for i in range(4):
            self.do(
                4,
                f"ip link add port{i} type veth peer name {interface}"
                f" netns {self.spaces[i]}",
            )
            self.do(4, f"ip link set port{i} master br0")
            self.do(4, f"ip link set port{i} up")
            self.do(i, f"ip address add {self.addresses[i]}/24 dev {interface}")
            self.do(i, f"ip link set {interface} up")
            self.do(i, "ip link set lo up")

    def enter(self, host: int) -> list[str]:
        return ["nsenter", "-t", str(self.spaces[host]), "-n", "-u"]

    def do(self, host: int, command: str) -> None:
        subprocess.run([*self.enter(host), *command.split()], check=True)

    def rename(self, old: str, new: str) -> None:
        """The interface of each host."""
        for host in range(4):
            self.do(host, f"ip link set {old} down")
            self.do(host, f"ip link set {old} name {new}")
            self.do(host, f"ip link set {new} up")

    def start(
        self, program: pathlib.Path, *options: str, each: int = 1
    ) -> list[subprocess.Popen[str]]:
        """An agent on each host, with as many of the four processes each."""
        environment = os.environ | {"WHALE_SECRET": secrets.token_hex()}
        return [
            subprocess.Popen(
                [
                    *self.enter(host),
                    *command(program, "hosts", "--threads=1", *options),
                    f"--nprocs={each}",
                    f"--coordinator={self.addresses[0]}:{PORT}",
                    f"--node={host}/{4 // each}",
                    f"--log-dir={program.parent / 'log'}",
                ],
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for host in range(4 // each)
        ]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    if os.geteuid() != 0 or not shutil.which("tc"):
        pytest.skip("hosts of their own need root and iproute2")
    probe = subprocess.run(["unshare", "-n", "-u", "true"], check=False)
    if probe.returncode != 0:
        pytest.skip("namespaces cannot be made here")
    # UCX looks for interfaces there, which are those of the machine.
    listed: list[str] = []
    with contextlib.suppress(OSError):
        listed = sorted(set(os.listdir("/sys/class/net")) - {"lo"})
    with contextlib.ExitStack() as exits:
        yield Hosts(exits, (listed or ["eth0"])[0])


def ends(job: list[subprocess.Popen[str]], seconds: float) -> list[str]:
    """What the processes have printed; all must have failed in time."""
    texts = []
    limit = time.monotonic() + seconds
    for process in job:
        try:
            _, text = process.communicate(timeout=limit - time.monotonic())
        finally:
            process.kill()
        assert process.returncode == 1
        texts.append(text)
    return texts


def test_four_hosts(tmp_path: pathlib.Path, hosts: Hosts) -> None:
    program = compile_(tmp_path, "replicate", n=1500, devices=FOUR_HOSTS)
    assert run(program, "one", "--steps=3", "--threads=1").returncode == 0
    for i in range(4):
        hosts.do(
            i,
            f"tc qdisc add dev {hosts.interface} root"
            " tbf rate 400mbit burst 64k latency 1s",
        )
    # Links are limited by the kernel, and have a latency by emulation.
    network = tmp_path / "network.json"
    slow = json.loads(FOUR_HOSTS) | {
        "network": {"bandwidth": 1e12, "latency": 0.02}
    }
    network.write_text(json.dumps(slow))
    stats = tmp_path / "stats.json"
    options = [f"--network={network}", f"--stats={stats}"]
    for process in hosts.start(program, "--steps=3", *options):
        _, text = process.communicate(timeout=HANG)
        assert process.returncode == 0, text
    # In an all-reduce of many bytes each rank's part goes to it, and its sum
    # back.
    assert json.loads(stats.read_text())["step_time_s"] >= 2 * 0.02
    for i in range(4):
        hosts.do(i, f"tc qdisc del dev {hosts.interface} root")
    assert bits(program, "one") == bits(program, "hosts")


@pytest.mark.parametrize("transport", ["ucx", "mpi"])
def test_mpirun_on_four_hosts(
    tmp_path: pathlib.Path, hosts: Hosts, transport: str
) -> None:
    program = compile_(tmp_path, "replicate", n=1500, devices=FOUR_HOSTS)
    assert run(program, "one", "--steps=3", "--threads=1").returncode == 0
    # It starts its daemons by what is called as rsh is: with a host, a command.
    agent = tmp_path / "agent"
    cases = [
        f'{address}) exec {shlex.join(hosts.enter(host))} sh -c "$*" ;;\n'
        for host, address in enumerate(hosts.addresses)
    ]
    agent.write_text(
        f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{''.join(cases)}esac\n"
    )
    agent.chmod(0o700)
    # Names of these hosts say no addresses.
    given = [*("-x", "WHALE_HOST=" + hosts.addresses[0]), "-x", "WHALE_SECRET"]
    for secret in {"WHALE_SECRET": secrets.token_hex()}, {}:
        result = subprocess.run(
            [
                *(*hosts.enter(0), *MPIRUN, "4"),
                *("--host", ",".join(hosts.addresses)),
                *(given if secret else given[:2]),
                *command(program, "many", "--steps=3", "--threads=1"),
                f"--transport={transport}",
            ],
            capture_output=True,
            text=True,
            timeout=HANG,
            env=os.environ | secret | {"OMPI_MCA_plm_rsh_agent": str(agent)},
        )
        if secret:
            assert result.returncode == 0, result.stderr
            assert bits(program, "one") == bits(program, "many")
        else:
            assert result.returncode == 1
            assert "need a secret" in result.stderr


def test_a_process_of_another_host_dies(
    tmp_path: pathlib.Path, hosts: Hosts
) -> None:
    program = compile_(tmp_path, "replicate", devices=FOUR_HOSTS)
    job = hosts.start(program, ENDLESS)
    time.sleep(2)
    [process] = descendants(job[2].pid)
    os.kill(process, signal.SIGKILL)
    texts = ends(job, 12)
    assert "process 2 (host host2" in texts[0]
    assert texts[0] == texts[1] == texts[3]
    # Nobody is left on its host to hear of that.
    place = f"host host2, pid {process}"
    assert (
        texts[2]
        == f"error: process 2 ({place}) was ended by signal 9 (SIGKILL)\n"
    )


@pytest.mark.parametrize(
    ("limit", "seconds"),
    # Without a limit, connections with the first process see it themselves.
    [(3, 3 + 5), pytest.param(0, 20 + 5, marks=pytest.mark.long)],
)
def test_a_dropped_link(
    tmp_path: pathlib.Path, hosts: Hosts, limit: int, seconds: float
) -> None:
    program = compile_(tmp_path, "replicate", devices=FOUR_HOSTS)
    job = hosts.start(program, ENDLESS, f"--progress-limit={limit}")
    time.sleep(2)
    try:
        hosts.do(4, "ip link set port3 down")
        texts = ends(job[:3], seconds)
        assert "process 3 (host host3" in texts[0]
        assert "cannot be reached" in texts[0]
        # It cannot know more than that the others do not answer.
        ends(job[3:], 30)
    finally:
        for process in job:
            process.kill()
        hosts.do(4, "ip link set port3 up")


def test_interfaces_that_are_not_listed(
    tmp_path: pathlib.Path, hosts: Hosts
) -> None:
    # UCX has shared memory alone then, in which no other host wakes anybody.
    program = compile_(tmp_path, "replicate", n=1500, devices=TWO_HOSTS)
    assert run(program, "one", "--steps=100", "--threads=1").returncode == 0
    hosts.rename(hosts.interface, "unlisted")
    try:
        for process in hosts.start(program, "--steps=100", each=2):
            _, text = process.communicate(timeout=HANG)
            assert process.returncode == 0, text
    finally:
        hosts.rename("unlisted", hosts.interface)
    assert bits(program, "one") == bits(program, "hosts")


def test_devices_of_a_node_on_two_hosts(
    tmp_path: pathlib.Path, hosts: Hosts
) -> None:
    program = compile_(tmp_path, "replicate")
    texts = ends(hosts.start(program), 30)
    assert len(set(texts)) == 1
    assert "ranks 0 and 1 are devices of node 0" in texts[0]
