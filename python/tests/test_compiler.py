"""What ends the compiler ends neither Python nor its arrays.

Under test: the process of the compiler, and shell scripts in its place that
crash, hang or print half a message. Errors are judged by their text; no file
and no process may be left, and no end may take 20 s. A failure means that a
crash of the compiler loses a user's session, or its cause. One case has a text
of 200,000 operations, another overflows a real stack.
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import whale as wh
from whale import compiler, files

TEXT = """\
module @step {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""
# Generous: nothing here takes a second.
HANGS = 20


def compile_text(path, text=TEXT, cluster="1", target="none", **options):
    """The lines that the compiler said."""
    return compiler.compile(text, cluster, str(path), target=target, **options)


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Puts a shell script in the compiler's place."""
    real = compiler.PATH

    def put(script):
        path = tmp_path / "stand-in"
        path.write_text(f"#!/bin/bash\nreal={real}\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(compiler, "PATH", str(path))

    return put


@pytest.fixture
def temporary_files(monkeypatch, tmp_path):
    """Where temporary files go; nothing may be left there."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(files, "_workspace", lambda: str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    assert not list(place.iterdir())


def test_diagnostics(tmp_path, temporary_files, capfd):
    path = tmp_path / "p.whale"
    with pytest.raises(wh.CompileError) as raised:
        compile_text(path, TEXT.replace("add", "ad"))
    assert str(raised.value).startswith("step.mlir:3:10: error: ")
    assert "\n" not in str(raised.value)
    with pytest.raises(wh.CompileError, match=r"^error: number of ranks: "):
        compile_text(path, cluster="0")
    # Longer than an argument of a command may be, and with all that is special
    # in a response file.
    devices = [{"kind": "cpu"}] * 5_000 + [{"kind": "a \"\\\\ b'"}]
    cluster = json.dumps({"nodes": [{"devices": devices}]}, indent=1)
    assert len(cluster) > 2**17
    with pytest.raises(wh.CompileError, match=r"devices\[5000\].*a \"\\\\ b'"):
        compile_text(path, cluster=cluster)
    assert not path.exists()
    assert capfd.readouterr() == ("", "")


def test_remarks(tmp_path, temporary_files, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    said = "\n".join(
        compile_text("p.whale", explain="all", dump_phases_to="phases")
    )
    assert capfd.readouterr() == ("", "")
    summary, remarks, table = re.split(r"== (?:decisions|task graphs)\n", said)
    assert summary.startswith("== summary\nstep  ")
    assert "\n== memory\nmemory of device 0 (cpu) at the peak: " in summary
    assert all("remark: " in line for line in remarks.split("\n") if line)
    assert table.splitlines()[-1].startswith("collectives of a step: ")
    assert (tmp_path / "p.whale" / "manifest.json").exists()
    assert (tmp_path / "phases" / "00-input.mlir").exists()


@pytest.mark.parametrize(
    "script, message",
    [
        ('echo \'{"pass": "a"}\n{"pass": "b"}\n{"pa\'; kill -SEGV $$',
         r"^error: the compiler was ended by SIGSEGV; the last pass that it "
         r"began is b$"),
        ("kill -KILL $$",
         r"^error: the compiler was ended by SIGKILL \(.*memory is short\)$"),
        ("for i in $(seq 99); do echo line $i >&2; done; exit 3",
         r"^error: the compiler ended with status 3\nline 80\n(.*\n)*line 99$"),
        # Its stack is too small for what it does: a real overflow.
        ("ulimit -s 40; exec $real $*",
         r"^error: the compiler was ended by SIGSEGV; the last pass that it "
         r"began is \S+\n"),
        ("ulimit -v 300000; exec $real $*", r"^error: the compiler "),
    ],
)  # fmt: skip
def test_crashes(tmp_path, temporary_files, stand_in, script, message):
    stand_in(script)
    with pytest.raises(wh.CompileError, match=message):
        compile_text(tmp_path / "p.whale", target="cpu")


def test_no_compiler(tmp_path, temporary_files, monkeypatch):
    monkeypatch.setattr(compiler, "PATH", str(tmp_path / "none"))
    with pytest.raises(wh.WhaleError, match="none.*scripts/setup.sh, or pip"):
        compile_text(tmp_path / "p.whale")


def ended(pid):
    """Waits for the end of a process that is nobody's child here."""
    end = time.monotonic() + HANGS
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")")[-1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def read_when_written(path):
    end = time.monotonic() + HANGS
    while time.monotonic() < end:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().split()
        time.sleep(0.01)
    raise TimeoutError(path)


@pytest.mark.parametrize(
    "trap, grace",
    [("trap 'echo > cleaned' TERM", HANGS), ("trap '' TERM", 0.1)],
)
def test_interrupts(
    tmp_path, temporary_files, stand_in, monkeypatch, trap, grace
):
    """Ctrl-C ends the compiler and what it started, with time to clean up."""
    monkeypatch.setattr(compiler, "_GRACE_SECONDS", grace)
    # The signal may reach what it started, and that its end, before itself.
    stand_in(
        f"cd {tmp_path}; {trap}; sleep 100 & echo $$ $! > pids; wait; "
        "[ -e cleaned ] || sleep 1; exit 1"
    )
    before = signal.getsignal(signal.SIGINT)

    def interrupt():
        read_when_written(tmp_path / "pids")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        compile_text(tmp_path / "p.whale")
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert (tmp_path / "cleaned").exists() == ("echo" in trap)
    for pid in read_when_written(tmp_path / "pids"):
        assert ended(pid)


def test_interrupts_while_it_starts(
    tmp_path, temporary_files, stand_in, monkeypatch
):
    """What has begun already is ended, too."""
    stand_in(f"echo $$ > {tmp_path}/pid; sleep 100")
    start = subprocess.Popen

    def interrupted(*args, **options):
        process = start(*args, **options)
        read_when_written(tmp_path / "pid")
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_text(tmp_path / "p.whale")
    (pid,) = read_when_written(tmp_path / "pid")
    assert ended(pid)


def test_the_compiler_ends_with_python(tmp_path):
    """Also where Python is killed."""
    (tmp_path / "long.mlir").write_text(
        TEXT.replace(
            "    return %y",
            "".join(
                f"    %{i} = stablehlo.add %x, %x : tensor<4xf32>\n"
                for i in range(200_000)
            )
            + "    return %y",
        )
    )
    code = f"""
import os, signal, subprocess, sys
from whale import compiler
run = subprocess.Popen
def start(*args, **options):
    process = run(*args, **options)
    print(process.pid, flush=True)
    return process
subprocess.Popen = start
text = open({str(tmp_path / "long.mlir")!r}).read()
compiler.compile(text, "1", {str(tmp_path / "p.whale")!r}, target="none")
"""
    python = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env=os.environ
        | {
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": os.path.dirname(os.path.dirname(wh.__file__)),
        },
    )
    pid = python.stdout.readline().decode().strip()
    python.kill()
    python.wait(HANGS)
    assert ended(pid)
    assert not (tmp_path / "p.whale").exists()


def test_other_threads_compile(tmp_path):
    """Each waits for a compiler of its own."""
    x = np.arange(4, dtype=np.float32)
    results = {}

    def run(factor):
        results[factor] = np.asarray(wh.jit(lambda x: x * factor, cluster=1)(x))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for factor, result in results.items():
        np.testing.assert_array_equal(result, x * factor)
    assert len(results) == 3
