"""Which processes become a job: what they must have in common, what variables
say of them, and who may join.

Processes must end with one equal error where options, bits or programs differ,
and run where they agree; strangers on the port must neither stop a job nor cost
it files. Secrets must be equal and must not be printed. A failure means that a
job mixes other results, can be joined from outside, or never starts.
"""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import time

import numpy as np
import pytest
from jobs import (
    ENDLESS,
    HANG,
    bits,
    command,
    compile_,
    error,
    free_port,
    run,
    start_each,
    torchrun,
)


@pytest.mark.parametrize(
    "option", ["--steps=4", "--check-replicas=2", "--trace={}/trace.json"]
)
def test_other_options(tmp_path: pathlib.Path, option: str) -> None:
    program = compile_(tmp_path, "replicate")
    variables = torchrun(free_port())
    other = [option.format(tmp_path)]
    if not option.startswith("--steps"):
        other.append("--steps=5")
    started = [
        subprocess.Popen(
            command(program, "out", *given),
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | variables[i],
        )
        for i, given in enumerate([["--steps=5"], other])
    ]
    texts = {process.communicate(timeout=HANG)[1] for process in started}
    assert len(texts) == 1, texts
    name = option.partition("=")[0]
    assert texts.pop().startswith(f"error: {name} differs: process 0 has")


@pytest.mark.parametrize(
    ("option", "variable", "what"),
    [
        ("--threads=2", {}, "the number of threads of each rank"),
        (
            "--threads=1",
            {"ONEDNN_MAX_CPU_ISA": "SSE41"},
            "what oneDNN is and the instructions that it uses",
        ),
    ],
)
def test_what_decides_bits(
    tmp_path: pathlib.Path, option: str, variable: dict[str, str], what: str
) -> None:
    program = compile_(tmp_path, "none")
    first, second = torchrun(free_port())
    started = [
        subprocess.Popen(
            command(program, "out", given),
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | variables,
        )
        for given, variables in [
            ("--threads=1", first),
            (option, second | variable),
        ]
    ]
    texts = {process.communicate(timeout=HANG)[1] for process in started}
    assert len(texts) == 1, texts
    assert texts.pop().startswith(f"error: {what} differs: process 0 has ")


def test_variables_of_torchrun(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "split")
    run(program, "one", "--threads=1")
    port = free_port()
    with socket.socket() as launcher:
        launcher.bind(("127.0.0.1", port))
        launcher.listen()
        for result in start_each(program, torchrun(port)):
            assert result.returncode == 0, result.stderr
    assert bits(program, "one") == bits(program, "each")


def test_half_of_the_variables(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    text = error(run(program, "out", WORLD_SIZE="2", MASTER_ADDR="a"))
    assert "RANK is not set, where WORLD_SIZE is" in text
    text = error(run(program, "out", WORLD_SIZE="x"))
    assert "WORLD_SIZE: 'x' is no whole number" in text


def test_another_secret(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    variables = torchrun(free_port(), 2)
    for process, given in enumerate(variables):
        given["WHALE_SECRET"] = f"secret {process}"
    first = subprocess.Popen(
        command(program, "out"), env=os.environ | variables[0]
    )
    try:
        second = run(program, "out", **variables[1])
        assert "another secret" in error(second)
        assert "secret 1" not in second.stderr
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()


def test_a_file_with_the_secret(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    file = tmp_path / "secret"
    file.write_text("do not tell\n")
    variables = [
        given | {"WHALE_SECRET_FILE": str(file)}
        for given in torchrun(free_port())
    ]
    file.chmod(0o640)
    for given in variables:
        text = error(run(program, "out", **given))
        assert "secret: others may read it: chmod 600" in text
    file.chmod(0o600)
    # The same as in the environment.
    del variables[1]["WHALE_SECRET_FILE"]
    variables[1]["WHALE_SECRET"] = "do not tell"
    for result in start_each(program, variables):
        assert result.returncode == 0, result.stderr
    file.unlink()
    text = error(run(program, "out", **variables[0]))
    assert "secret: No such file or directory" in text


def test_a_secret_off_the_loopback(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    for variables in torchrun(free_port()):
        variables["MASTER_ADDR"] = "192.0.2.1"
        text = error(run(program, "out", **variables))
        assert "need a secret" in text and "-x WHALE_SECRET" in text


def test_other_programs(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    programs = [
        compile_(tmp_path / "a", "none"),
        compile_(tmp_path / "b", "split"),
    ]
    started = [
        subprocess.Popen(
            command(program, "out", "--threads=1"),
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | variables,
        )
        for program, variables in zip(
            programs, torchrun(free_port()), strict=True
        )
    ]
    texts = {process.communicate(timeout=HANG)[1] for process in started}
    assert len(texts) == 1, texts
    assert "the program differs: process 0 has" in texts.pop()


def test_strangers(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "split")
    port = free_port()
    variables = torchrun(port)
    first = subprocess.Popen(
        command(program, "out", "--threads=1"), env=os.environ | variables[0]
    )
    try:
        deadline = time.monotonic() + HANG
        random = np.random.default_rng(1)
        for text in b"GET / HTTP/1.0\r\n\r\n", b"", random.bytes(5000):
            while time.monotonic() < deadline:
                try:
                    stranger = socket.create_connection(("127.0.0.1", port + 1))
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            stranger.sendall(text)
            if text:
                stranger.close()
        second = run(program, "out", "--threads=1", **variables[1])
        assert second.returncode == 0, second.stderr
        assert first.wait(timeout=HANG) == 0
        stranger.close()
    finally:
        first.kill()


def open_files(pid: int) -> int:
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def test_a_thousand_strangers(tmp_path: pathlib.Path) -> None:
    program = compile_(tmp_path, "none")
    port = free_port()
    job = [
        subprocess.Popen(
            command(program, "out", ENDLESS),
            env=os.environ | variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        for variables in torchrun(port)
    ]
    try:
        time.sleep(2)
        before = open_files(job[0].pid)
        for i in range(1000):
            with socket.create_connection(("127.0.0.1", port + 1)) as stranger:
                stranger.sendall(bytes(i % 7))
        deadline = time.monotonic() + 15
        while open_files(job[0].pid) > before:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert job[0].poll() is None and job[1].poll() is None
    finally:
        for process in job:
            process.kill()
            process.communicate()
