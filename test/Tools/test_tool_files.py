"""What the tools write is whole or not there, whatever ends or stops them.

Under test: programs, results and dumps that are written while tools are killed,
disks are full, or others read and write them. Afterwards the program must run
and give exactly the old or the new result, with no other file beside it, and a
failure must be one error. A failed test means that a user can lose a program,
or read half of one. Needs a C compiler; some tests mount a file system.
"""

from __future__ import annotations

import errno
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

ROOT = pathlib.Path(__file__).parents[2]
BIN = ROOT / "build" / "bin"
# Far more than any of these take.
HANG = 60

STEP = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %c = stablehlo.constant dense<[{0}, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %y = stablehlo.{1} %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""
X = np.arange(4, dtype=np.float32)
C = np.arange(4, dtype=np.float32)
NOTHING = """\
func.func @main() -> tensor<4xi32> {
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  return %0 : tensor<4xi32>
}
"""


def run(*command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    path = BIN / command[0]
    return subprocess.run(
        [path, *command[1:]],
        **{"capture_output": True, "timeout": HANG} | options,
        text=True,
    )


def compile_(
    text: Any, target: Any, *options: str, **more: Any
) -> subprocess.CompletedProcess[str]:
    return run(
        *("whale-compile", text, "--cluster=1", "-o", target), *options, **more
    )


def good(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout


def error(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of a failure."""
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert result.stderr.count("\n") == 1, result.stderr
    assert "error: " in result.stderr
    return result.stderr


@pytest.fixture(scope="module")
def texts(tmp_path_factory: Any) -> pathlib.Path:
    """Texts, the arguments of the steps, and compiled programs of both."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "add.mlir").write_text(STEP.format("0.0", "add"))
    (folder / "multiply.mlir").write_text(STEP.format("0.0", "multiply"))
    (folder / "nothing.mlir").write_text(NOTHING)
    safetensors.numpy.save_file({"arg0": X}, folder / "x")
    for name in ("add", "multiply", "nothing"):
        good(compile_(folder / f"{name}.mlir", folder / f"{name}.whale"))
    return folder


@pytest.fixture(scope="module")
def interposed(tmp_path_factory: Any) -> Callable[..., dict[str, str]]:
    """Makes an environment in which steps fail or end the process."""
    library = tmp_path_factory.mktemp("interpose") / "interpose.so"
    source = pathlib.Path(__file__).parent / "Inputs" / "interpose.c"
    cc = shutil.which("cc") or shutil.which("clang-22")
    assert cc, "no C compiler"
    subprocess.run([cc, "-shared", "-fPIC", "-o", library, source], check=True)

    def make(**what: int) -> dict[str, str]:
        values = {name: str(value) for name, value in what.items()}
        return {**os.environ, "LD_PRELOAD": str(library)} | values

    return make


@pytest.fixture
def place(texts: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a program that adds."""
    shutil.copytree(texts / "add.whale", tmp_path / "p.whale")
    return tmp_path


def what_runs(program: Any, texts: pathlib.Path, **options: Any) -> str:
    out = texts / f"out-{os.getpid()}"
    good(
        run(
            *("whale-run", program, f"--inputs={texts / 'x'}"),
            f"--outputs={out}",
            **options,
        )
    )
    result = safetensors.numpy.load_file(out)["result0"]
    out.unlink()
    for name, expected in (("add", X + C), ("multiply", X * C)):
        if np.array_equal(result, expected):
            return name
    raise AssertionError(result)


def names(folder: pathlib.Path) -> list[str]:
    return sorted(os.listdir(folder))


# Links and what is no program.


def test_a_link_is_followed(texts: Any, place: Any) -> None:
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "link").symlink_to("../p.whale")
    good(compile_(texts / "multiply.mlir", place / "elsewhere" / "link"))
    assert what_runs(place / "p.whale", texts) == "multiply"
    assert (place / "elsewhere" / "link").is_symlink()
    (place / "new").symlink_to("made.whale")
    good(compile_(texts / "add.mlir", f"{place / 'new'}/"))
    assert what_runs(place / "made.whale", texts) == "add"
    (place / "loop").symlink_to("loop")
    assert "loop'" in error(compile_(texts / "add.mlir", place / "loop"))
    assert names(place / "elsewhere") == ["link"]


@pytest.mark.parametrize(
    "kind", ["file", "folder", "extension", "link", "program and notes"]
)
def test_what_is_no_program_stays(texts: Any, tmp_path: Any, kind: str) -> None:
    other = tmp_path / "other"
    if kind == "file":
        other.write_text("precious")
    elif kind == "program and notes":
        good(compile_(texts / "multiply.mlir", other))
        (other / "notes").write_text("precious")
    else:
        other.mkdir()
        name = "manifest.json" if kind == "extension" else "file"
        (other / name).write_text('{"manifest_version": 3}')
    target = other
    if kind == "link":
        target = tmp_path / "link"
        target.symlink_to(other)
    before = [(p, p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file()]
    message = error(compile_(texts / "add.mlir", target))
    assert f"cannot write '{target}': something that is no" in message
    assert before == [
        (p, p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file()
    ]
    assert names(tmp_path) == sorted({"other", target.name})


@pytest.mark.parametrize("name", [".", "manifest.json"])
def test_what_cannot_be_read_stays(texts: Any, place: Any, name: str) -> None:
    program = place / "p.whale"
    mode = (program / name).stat().st_mode
    command = [BIN / "whale-compile", texts / "multiply.mlir", "--cluster=1"]
    if os.getuid() == 0:
        # Who may not read what others have forbidden.
        forget = "--bounding-set=-dac_override,-dac_read_search"
        command = [shutil.which("setpriv"), forget, *command]
    (program / name).chmod(0)
    try:
        message = error(run(*command, "-o", program))
    finally:
        (program / name).chmod(mode)
    assert f"cannot write '{program}': Permission denied" in message
    assert what_runs(program, texts) == "add"


def test_empty_directories_and_own_place(texts: Any, tmp_path: Any) -> None:
    (tmp_path / "p.whale").mkdir()
    good(compile_(texts / "add.mlir", tmp_path / "p.whale"))
    # The directory that the process is in.
    good(compile_(texts / "multiply.mlir", ".", cwd=tmp_path / "p.whale"))
    assert what_runs(tmp_path / "p.whale", texts) == "multiply"
    long = tmp_path / ("n" * 250)
    good(compile_(texts / "add.mlir", long))
    good(compile_(texts / "multiply.mlir", long))
    assert what_runs(long, texts) == "multiply"


# Replacement.


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EINVAL, errno.ENOSYS])
def test_without_exchange(
    texts: Any, place: Any, interposed: Any, code: int
) -> None:
    environment = interposed(NO_EXCHANGE=code)
    good(compile_(texts / "multiply.mlir", place / "p.whale", env=environment))
    assert what_runs(place / "p.whale", texts) == "multiply"
    assert names(place) == ["p.whale"]


def test_death_between_two_renames(
    texts: Any, place: Any, interposed: Any
) -> None:
    program = place / "p.whale"
    (place / "link").symlink_to("p.whale")
    dying = interposed(NO_EXCHANGE=errno.EINVAL, KILL_AT_RENAME=2)
    result = compile_(texts / "multiply.mlir", program, env=dying)
    assert result.returncode == -signal.SIGKILL
    assert not program.exists()
    # Readers find the old program; the next run brings it back.
    assert what_runs(program, texts) == "add"
    assert what_runs(place / "link", texts) == "add"
    result = compile_(texts / "multiply.mlir", program, env=dying)
    assert result.returncode == -signal.SIGKILL
    assert what_runs(program, texts) == "add"
    good(compile_(texts / "multiply.mlir", place / "link"))
    assert what_runs(program, texts) == "multiply"
    assert names(place) == ["link", "p.whale"]


def test_death_after_the_exchange(
    texts: Any, place: Any, interposed: Any
) -> None:
    result = compile_(
        texts / "multiply.mlir",
        place / "p.whale",
        env=interposed(KILL_AFTER_EXCHANGE=1),
    )
    assert result.returncode == -signal.SIGKILL
    assert what_runs(place / "p.whale", texts) == "multiply"
    assert len(names(place)) == 2
    good(compile_(texts / "add.mlir", place / "p.whale"))
    assert names(place) == ["p.whale"]


def test_writers_and_readers_at_once(texts: Any, place: Any) -> None:
    writers = [
        subprocess.Popen(
            "for i in 1 2; do "
            f"{BIN}/whale-compile {texts}/{name}.mlir --cluster=1 "
            f"-o {place}/p.whale || exit 1; done",
            shell=True,
        )
        for name in ("add", "multiply") * 2
    ]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(what_runs(place / "p.whale", texts))
    assert [writer.returncode for writer in writers] == [0] * 4
    assert names(place) == ["p.whale"]


# Signals.


@pytest.fixture
def waiting(
    texts: Any, place: Any, interposed: Any
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts compilations that wait for a signal, half done."""
    started = []

    def start(**options: Any) -> subprocess.Popen[bytes]:
        before = len(names(place))
        process = subprocess.Popen(
            [
                *(BIN / "whale-compile", texts / "multiply.mlir"),
                *("--cluster=1", "-o", place / "p.whale"),
            ],
            env=interposed(WAIT_AT_LINK=1),
            **options,
        )
        started.append(process)
        deadline = time.monotonic() + HANG
        while len(names(place)) == before:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.002)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGTERM", "SIGXCPU"])
def test_signals_leave_nothing(
    texts: Any, place: Any, waiting: Any, name: str
) -> None:
    process = waiting()
    process.send_signal(signal.Signals[name])
    assert process.wait(HANG) == -signal.Signals[name]
    assert names(place) == ["p.whale"]
    assert what_runs(place / "p.whale", texts) == "add"


def test_ignored_signals_stay_ignored(place: Any, waiting: Any) -> None:
    process = waiting(
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG) == -signal.SIGTERM


def test_the_next_run_removes_what_kill_left(
    texts: Any, place: Any, waiting: Any
) -> None:
    dead, living = waiting(), waiting()
    dead.kill()
    dead.wait()
    assert len(names(place)) == 3
    good(compile_(texts / "add.mlir", place / "p.whale"))
    assert len(names(place)) == 2  # The living one's is left alone.
    living.terminate()
    living.wait()
    assert names(place) == ["p.whale"]


def test_another_target_removes_what_kill_left(
    texts: Any, place: Any, waiting: Any
) -> None:
    dead = waiting()
    dead.kill()
    dead.wait()
    # What was moved aside goes back to its own place, also for another one.
    (left,) = [name for name in names(place) if name.startswith(".")]
    shutil.move(place / "p.whale", place / left / "old")
    good(compile_(texts / "multiply.mlir", place / "other.whale"))
    assert names(place) == ["other.whale", "p.whale"]
    assert what_runs(place / "p.whale", texts) == "add"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGXCPU"])
def test_signals_to_whale_run(texts: Any, tmp_path: Any, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [
            *(BIN / "whale-run", texts / "nothing.whale"),
            *("--inputs=/dev/null", f"--outputs={tmp_path / 'out'}"),
            f"--trace={tmp_path / 'pipe'}",
        ]
    )
    # It waits for a reader of the pipe.
    while len(names(tmp_path)) == 1:
        time.sleep(0.002)
    process.send_signal(signal.Signals[name])
    assert process.wait(HANG) == -signal.Signals[name]
    assert names(tmp_path) == ["pipe"]


# Full disks.


@pytest.mark.parametrize("limit", [0, 2000])
def test_limits_of_file_sizes(texts: Any, place: Any, limit: int) -> None:
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    out, dumps = place / "out", place / "dumps"
    for command, file in (
        (("whale-compile", texts / "multiply.mlir", "--cluster=1",
          "-o", place / "p.whale"), "p.whale"),
        (("whale-compile", texts / "multiply.mlir", "--cluster=1",
          "-o", place / "p.whale", f"--dump-phases-to={dumps}"), ""),
        (("whale-run", texts / "add.whale", f"--inputs={texts / 'x'}",
          f"--outputs={out}"), "out"),
        (("whale-run", texts / "add.whale", f"--inputs={texts / 'x'}",
          f"--outputs={out}", f"--trace={place / 'trace'}"), ""),
        (("whale-opt", texts / "add.mlir", "-o", out), "out"),
    ):  # fmt: skip
        result = run(*command, preexec_fn=lower)
        if result.returncode:
            assert "File too large" in error(result)
            assert file in result.stderr
            shutil.rmtree(dumps, ignore_errors=True)
            assert names(place) == ["p.whale"]
        shutil.rmtree(dumps, ignore_errors=True)
        for extra in (out, place / "trace"):
            extra.unlink(missing_ok=True)
        what_runs(place / "p.whale", texts)


@pytest.mark.parametrize("size", [20, 48])
def test_full_disks(texts: Any, tmp_path: Any, size: int) -> None:
    """On a file system of a few KiB, in a namespace of its own."""
    compile_multiply = (
        f"{BIN}/whale-compile {texts}/multiply.mlir --cluster=1 -o p.whale"
    )
    run_program = f"{BIN}/whale-run p.whale --inputs={texts}/x"
    script = f"""
        mount -t tmpfs -o size={size}k none {tmp_path} || exit 77
        cd {tmp_path}
        export TMPDIR={tmp_path}
        cp -r {texts}/add.whale p.whale
        allowed() {{ [ $? -le 1 ] || exit 2; }}
        {compile_multiply}
        allowed
        {compile_multiply} --dump-phases-to=dumps
        allowed
        rm -rf dumps
        {run_program} --outputs=out --trace=trace
        allowed
        rm -f out trace
        [ "$(ls -A)" = p.whale ] || {{ ls -lRA >&2; exit 3; }}
        cat /dev/zero > filled 2> /dev/null
        {compile_multiply}
        [ $? = 1 ] || exit 4
        {run_program} --outputs=out
        [ $? = 1 ] || exit 5
        rm filled
        [ "$(ls -A)" = p.whale ] || exit 6
        {run_program} --outputs=/dev/null
    """
    unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    result = subprocess.run(
        [*unshare, "bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    # `unshare` fails in a chroot too, before it runs anything.
    if result.returncode == 77 or result.stderr.startswith("unshare: "):
        pytest.skip(f"no file system can be mounted: {result.stderr}")
    assert result.returncode == 0, result.stdout + result.stderr
    for line in result.stderr.splitlines():
        assert "error: " in line and "LLVM" not in line, result.stderr
    assert "No space left on device" in result.stderr


def test_a_full_standard_output(texts: Any, tmp_path: Any) -> None:
    add, target = texts / "add.mlir", tmp_path / "p.whale"
    explain = ("--cluster=1", "-o", target, "--explain")
    for command, file in (
        (("whale-compile", add, *explain), "standard output"),
        (("whale-compile", "--help"), "standard output"),
        (("whale-compile", "--version"), "standard output"),
        (("whale-opt", add), "standard output"),
        (("whale-opt", "--help"), "standard output"),
        (("whale-run", "--help"), "standard output"),
        (("whale-opt", add, "-o", "/dev/full"), "'/dev/full'"),
        (("whale-run", texts / "nothing.whale", "--inputs=/dev/null",
          "--outputs=/dev/full"), "/dev/full"),
        (("whale-run", texts / "nothing.whale", "--inputs=/dev/null",
          "--outputs=/dev/stdout"), "/dev/stdout"),
        (("whale-run", texts / "nothing.whale", "--inputs=/dev/null",
          f"--outputs={tmp_path / 'out'}", "--stats=/dev/full"), "/dev/full"),
    ):  # fmt: skip
        with open("/dev/full", "w") as full:
            result = run(
                *command,
                capture_output=False,
                stdout=full,
                stderr=subprocess.PIPE,
            )
        assert file in error(result), command
    assert names(tmp_path) == ["p.whale"]
    result = compile_(add, target, "--dump-phases-to=/dev/full")
    assert "/dev/full" in error(result)


# Destinations of whale-run.


def test_where_outputs_go(texts: Any, tmp_path: Any) -> None:
    def write(path: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        return run(
            *("whale-run", texts / "nothing.whale", "--inputs=/dev/null"),
            f"--outputs={path}",
            **options,
        )

    good(write(tmp_path / "plain"))
    expected = (tmp_path / "plain").read_bytes()
    (tmp_path / "link").symlink_to("made")
    good(write(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "made").read_bytes() == expected
    # What a shell appends to stays, and a pipe is opened once.
    with open(tmp_path / "log", "wb") as log:
        log.write(b"before")
        log.flush()
        good(write("/dev/stdout", capture_output=False, stdout=log))
    assert (tmp_path / "log").read_bytes() == b"before" + expected
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(
        ["cat", tmp_path / "pipe"], stdout=subprocess.PIPE
    )
    good(write(tmp_path / "pipe"))
    assert reader.communicate(timeout=HANG)[0] == expected
    assert "Is a directory" in error(write(tmp_path))
    assert not any("whale" in name for name in names(tmp_path))


def test_outputs_that_are_read(texts: Any, place: Any) -> None:
    shutil.copy(texts / "x", place / "x")
    (place / "link").symlink_to("x")
    before = (place / "x").read_bytes()
    command = ("whale-run", "p.whale", "--inputs=x")
    for options, flag in (
        (("--outputs=x",), "--inputs"),
        (("--outputs=link",), "--inputs"),
        (("--outputs=./p.whale/../x",), "--inputs"),
        (("--outputs=out", "--stats=x"), "--inputs"),
        (("--outputs=d", "--data=d"), "--data"),
        (("--outputs=p.whale/manifest.json",), "the program"),
        (("--outputs=out", "--trace=p.whale/kernels.so"), "the program"),
    ):
        result = run(*command, *options, cwd=place)
        assert f"is the file of {flag} too" in error(result)
    assert (place / "x").read_bytes() == before
    assert names(place) == ["link", "p.whale", "x"]
    good(run(*command, "--outputs=/dev/null", "--stats=/dev/null", cwd=place))


def test_whale_opt_in_place(tmp_path: Any) -> None:
    text, lines = tmp_path / "text.mlir", ["func.func @main(%0: tensor<f32>) {"]
    # Longer than what is read into memory at once.
    for i in range(1000):
        lines.append(f"  %{i + 1} = stablehlo.tanh %{i} : tensor<f32>")
    text.write_text("\n".join([*lines, "  return", "}"]))
    text.chmod(0o640)
    good(run("whale-opt", text, "-o", text))
    assert text.read_text().count("stablehlo.tanh") == 1000
    assert text.stat().st_mode & 0o777 == 0o640
    before = text.read_text()
    assert run("whale-opt", text, "-no-such-pass", "-o", text).returncode == 1
    result = run("whale-opt", text, "-whale-load-cluster=ranks=0", "-o", text)
    assert result.returncode == 1
    assert text.read_text() == before
    assert names(tmp_path) == ["text.mlir"]


# Programs that were put together from others.


@pytest.mark.parametrize("file", ["kernels.so", "constants.bin"])
def test_files_of_another_program(texts: Any, place: Any, file: str) -> None:
    (texts / "other.mlir").write_text(STEP.format("7.0", "multiply"))
    good(compile_(texts / "other.mlir", place / "other.whale"))
    (place / "p.whale" / "checksums.txt").unlink()
    assert what_runs(place / "p.whale", texts) == "add"
    shutil.copy(place / "other.whale" / file, place / "p.whale" / file)
    message = error(
        run(
            *("whale-run", place / "p.whale", f"--inputs={texts / 'x'}"),
            "--outputs=/dev/null",
        )
    )
    assert f"p.whale/{file}: differs from its hash in manifest" in message


# The command line.


@pytest.mark.parametrize("tool", ["whale-compile", "whale-opt", "whale-run"])
def test_versions(tool: str) -> None:
    first, *rest = good(run(tool, "--version")).splitlines()
    assert not rest
    assert first.startswith("Whale 0.") and "(LLVM 22." in first


def test_slowdowns(texts: Any) -> None:
    program = texts / "nothing.whale"
    inputs = ("--inputs=/dev/null", "--outputs=/dev/null")
    for value in ("nan", "-nan", "inf", "-inf", "0.5", "-1", "1e7", "x", "1x"):
        result = run("whale-run", program, *inputs, f"--slowdowns={value}")
        assert f"--slowdowns: '{value}' is no number" in error(result)
    good(run("whale-run", program, *inputs, "--slowdowns=1.5"))


def test_a_program_for_too_many_ranks(tmp_path: Any) -> None:
    text = tmp_path / "many.mlir"
    ranks = ", ".join(map(str, range(4097)))
    text.write_text(
        f"whale.schedule ranks [{ranks}] @rank_class_0(%a: tensor<f32>) "
        "-> tensor<f32> { whale.return %a : tensor<f32> }"
    )
    message = error(compile_(text, tmp_path / "p.whale"))
    assert "for 4097 devices, and a program runs on 4096 at most" in message
