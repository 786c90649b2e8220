"""What tools inherit from whoever starts them: limits, signals, odd names.

In: a small program. Out: exit statuses and messages where there are few file
handles or little address space, where the parent ignores the ends of its
children, and where a path has a `%`. A failure means a launcher that waits for
ever, a process that ends without an error, or a file in the wrong place.
"""

from __future__ import annotations

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from jobs import BIN, HANG, ROOT, command, compile_, free_port


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return compile_(tmp_path_factory.mktemp("program"), "replicate")


def start(
    arguments: list[str], prepare: Callable[[], None], **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=HANG,
        preexec_fn=prepare,
        env=os.environ | environment,
    )


def ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def test_ends_of_children_that_are_ignored(
    program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ran = start(command(program, "ran", "--nprocs=2"), ignore_children)
    assert ran.returncode == 0, ran.stderr
    compiled = start(
        [
            *(str(BIN / "whale-compile"), str(program.parent / "step.mlir")),
            *("--cluster=1", "-o", str(tmp_path / "p.whale")),
        ],
        ignore_children,
    )
    assert compiled.returncode == 0, compiled.stderr
    script = tmp_path / "script.py"
    # Python's compiler is a child as well.
    script.write_text(
        "import sys, whale as wh\n"
        "assert float(wh.jit(lambda x: x + 1, cluster=1)(1.0)) == 2\n"
        "sys.exit(3)"
    )
    launched = start(
        [sys.executable, "-m", "whale.launch", "--nprocs=1", str(script)],
        ignore_children,
        PYTHONPATH=str(ROOT / "python"),
    )
    assert launched.returncode == 3
    assert "has ended with status 3" in launched.stderr


@pytest.mark.parametrize("name", ["100%", "%%%%", "a%20b.whale"])
def test_a_percent_sign_in_a_path(
    program: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    place = tmp_path / name
    place.mkdir()
    step = program.parent / "step.mlir"
    outputs = [place / "p.whale", tmp_path / f"{name}.whale"]
    for output, scratch in [*zip(outputs, [None, None]), (outputs[0], place)]:
        done = subprocess.run(
            [BIN / "whale-compile", step, "--cluster=1", "-o", output],
            capture_output=True,
            text=True,
            timeout=HANG,
            env=os.environ | ({"TMPDIR": str(scratch)} if scratch else {}),
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        assert (output / "kernels.so").stat().st_size > 0
    assert os.listdir(place) == ["p.whale"]
    assert sorted(os.listdir(tmp_path)) == sorted([name, f"{name}.whale"])


def test_a_process_that_ends_before_it_joins(tmp_path: pathlib.Path) -> None:
    """The first process is told by the launcher, here that of another host."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "if os.environ['WHALE_PROCESS'] == '1':\n"
        "    sys.exit(3)\n"
        "import whale as wh\n"
        "wh.init_distributed()\n"
    )
    port = free_port()
    hosts = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "whale.launch", "--nprocs=1"),
                *(f"--coordinator=127.0.0.1:{port}", f"--node={host}/2"),
                str(script),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        )
        for host in range(2)
    ]
    # Not the five minutes that processes wait for one that is missing.
    said = [host.communicate(timeout=HANG)[1] for host in hosts]
    # A launcher knows the status of its own processes.
    assert [host.returncode for host in hosts] == [1, 3]
    assert re.search(
        r"process 1 \(host .*, pid \d+\) has not joined: it has ended with "
        "status 3",
        said[0],
    ), said[0]
    assert "has ended with status 3" in said[1]


def test_a_process_whose_end_is_seen_last(tmp_path: pathlib.Path) -> None:
    """What the others say of it is not the reason."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, time\n"
        "if os.environ['WHALE_PROCESS'] == '1':\n"
        "    sys.exit('RuntimeError: process 0 is lost')\n"
        "time.sleep(1)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    launched = start(
        [sys.executable, "-m", "whale.launch", "--nprocs=2", str(script)],
        lambda: None,
        PYTHONPATH=str(ROOT / "python"),
    )
    assert launched.returncode == 1
    assert re.fullmatch(
        r"error: process 0 \(host .*, pid \d+\) was ended by signal 9 "
        r"\(SIGKILL\)\n",
        launched.stderr,
    ), launched.stderr


def few_handles(count: int, most: int | None = None) -> Callable[[], None]:
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, most or count))

    return lower


@pytest.mark.parametrize("count", [8, 12, 14, 18, 24, 30, 34, 48])
def test_few_file_handles(program: pathlib.Path, count: int) -> None:
    result = start(command(program, "out", "--nprocs=3"), few_handles(count))
    if count < 40:
        assert re.fullmatch("error: .*\n", result.stderr), result.stderr
    assert result.returncode == (1 if count < 40 else 0)
    # Where it could not open its files, UCX would end by an assertion.
    is_told = "for 3 processes, needs 24 open files" in result.stderr
    assert is_told == (18 <= count < 40), result.stderr
    assert not list(program.parent.glob(".*"))


def test_a_limit_of_file_handles_that_can_be_raised(
    program: pathlib.Path,
) -> None:
    result = start(command(program, "out", "--nprocs=3"), few_handles(24, 100))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("count", [6, 8, 10, 14])
def test_a_compiler_with_few_file_handles(
    program: pathlib.Path, tmp_path: pathlib.Path, count: int
) -> None:
    step = program.parent / "step.mlir"
    result = start(
        [
            *(str(BIN / "whale-compile"), str(step), "--cluster=1"),
            *("-o", str(tmp_path / "p.whale")),
        ],
        few_handles(count),
    )
    assert result.returncode in (0, 1)
    assert result.stderr.count("error: ") == result.returncode
    left = ["p.whale"] if result.returncode == 0 else []
    assert os.listdir(tmp_path) == left


@pytest.mark.parametrize("megabytes", [110, 150, 165, 250, 400, 700])
def test_little_address_space(program: pathlib.Path, megabytes: int) -> None:
    def lower() -> None:
        limit = megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    for options in [[], ["--nprocs=2"]]:
        result = start(command(program, "out", "--threads=4", *options), lower)
        assert result.returncode in (0, 1), (result.returncode, result.stderr)
        if result.returncode:
            assert "error: " in result.stderr, result.stderr
        if megabytes < 160:
            assert result.stderr == (
                f"error: the limit of address space (ulimit -v) is {megabytes} "
                "MiB: it must be at least 160 MiB\n"
            )
