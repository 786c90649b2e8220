"""The programs that were compiled before, on disk, by what they were made of.

In: a digest of all that a program depends on (its text, cluster and options,
the compiler, the processor). Out: the program directory and what the compiler
said of it, or nothing. Processes share the directory without locks: an entry
appears, and goes, by one rename; what is read is linked or copied to where it
is used first, and compared with the hashes that were written with it, so that
neither a process that ends nor one that tidies up disturbs another. What can't
be read or written is compiled as if there were no cache, and said once.

``WHALE_CACHE_DIR`` says where it is, by default ``whale`` in the user's folder
for caches; empty, there is none. It holds at most ``WHALE_CACHE_BYTES``, by
default 2 GiB; those that were not used for longest go first. Cost: a pass over
the files of an entry.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence

from whale import notices

_MOST_BYTES = 2 << 30
_VERSION = 1
_ENTRY = "entry.json"
_PROGRAM = "program.whale"
_STAGED = "staged-"
# What a process that was killed has left is as old as this.
_STALE_SECONDS = 3600.0
# What the compiler reads besides its input.
_VARIABLES = (
    "CUDA_HOME",
    "CUDA_PATH",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
    "WHALE_LIBDEVICE",
    "WHALE_NVJITLINK",
)


def directory() -> str | None:
    """Where the cache is, or None where there is none."""
    # Who wants each pass checked wants the passes.
    if os.environ.get("WHALE_VERIFY_EACH"):
        return None
    given = os.environ.get("WHALE_CACHE_DIR")
    if given is not None:
        return os.path.abspath(given) if given else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "whale") if os.path.isabs(home) else None


def key_of(parts: Sequence[str], compiler: str) -> str:
    """What a program is found by.

    Args:
        parts: the text, the cluster and the options.
        compiler: the path of the compiler.
    """
    digest = hashlib.blake2b(digest_size=20)
    environment = [f"{v}={os.environ.get(v)}" for v in _VARIABLES]
    for part in (*parts, _identity(compiler), _machine(), *environment):
        digest.update(f"{len(part)} ".encode())
        digest.update(part.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _identity(compiler: str) -> str:
    """Another one for each build of the compiler."""
    try:
        found = os.stat(compiler)
    except OSError:
        return "none"
    return f"{found.st_size} {found.st_mtime_ns}"


@functools.cache
def _machine() -> str:
    """What the compiler finds out about this machine."""
    lines = []
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            # Of the first processor.
            for line in file:
                if not line.strip():
                    break
                if line.startswith(
                    ("model", "flags", "cpu family", "Features")
                ):
                    lines.append(line)
    for path in (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/cpu.max",
    ):
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8") as file:
                lines.append(file.read())
    lines.append(str(os.sysconf("SC_PHYS_PAGES")))
    lines.append(str(len(os.sched_getaffinity(0))))
    return "\n".join(lines)


def fetch(key: str, path: str) -> list[str] | None:
    """Puts a program at `path`, which does not exist.

    Returns:
        what the compiler said of it; None where there is none.
    """
    place = directory()
    if place is None:
        return None
    entry = os.path.join(place, key)
    try:
        said = _read(entry, path)
        # When it was used last.
        with contextlib.suppress(OSError):
            os.utime(os.path.join(entry, _ENTRY))
        return said
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.isdir(entry):
            return None
        _complain(place, f"the entry {key} lacks files and is made anew")
    except (OSError, ValueError, KeyError, TypeError) as error:
        _complain(place, f"the entry {key} is of no use ({error})")
    shutil.rmtree(path, ignore_errors=True)
    _drop(place, entry)
    return None


def _read(entry: str, path: str) -> list[str]:
    with open(os.path.join(entry, _ENTRY), encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_uid not in (os.getuid(), 0):
            raise ValueError("it is another user's")
        index = json.load(file)
    if index["version"] != _VERSION:
        raise ValueError(f"it is of version {index['version']}")
    shutil.copytree(os.path.join(entry, _PROGRAM), path, copy_function=_link)
    if _hashes(path) != index["hashes"]:
        raise ValueError("it is damaged")
    return [str(line) for line in index["said"]]


def _link(source: str, target: str) -> None:
    """A file that is never written again, in a second place."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _hashes(path: str) -> dict[str, str]:
    """The hash of each file below a directory."""
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            place = os.path.join(folder, name)
            with open(place, "rb") as file:
                digest = hashlib.file_digest(file, "blake2b").hexdigest()
            found[os.path.relpath(place, path)] = digest
    return found


def store(key: str, path: str, said: Sequence[str]) -> None:
    """Keeps the program at `path`, with what the compiler said of it."""
    place = directory()
    if place is None:
        return
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        with _staged(place) as staged:
            # Files that the program is run from may be linked: neither side
            # writes them again.
            shutil.copytree(
                path, os.path.join(staged, _PROGRAM), copy_function=_link
            )
            index = {
                "version": _VERSION,
                "hashes": _hashes(path),
                "said": list(said),
            }
            with open(
                os.path.join(staged, _ENTRY), "w", encoding="utf-8"
            ) as file:
                json.dump(index, file)
            # Another process may have made the same one.
            with contextlib.suppress(FileExistsError):
                _rename(staged, os.path.join(place, key))
        _tidy(place)
    except OSError as error:
        # What copies many files says what became of each.
        why = error.strerror or str(error)
        if isinstance(error, shutil.Error) and error.args[0]:
            why = error.args[0][0][2]
        _complain(place, f"nothing can be written ({why})")


def _rename(source: str, target: str) -> None:
    try:
        os.rename(source, target)
    except OSError:
        if os.path.isdir(target):
            raise FileExistsError(target) from None
        raise


@contextlib.contextmanager
def _staged(place: str) -> Iterator[str]:
    """An empty directory in the cache, removed if it is still there then."""
    staged = tempfile.mkdtemp(prefix=_STAGED, dir=place)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _drop(place: str, entry: str) -> None:
    """Removes an entry, for all processes at once."""
    with contextlib.suppress(OSError):
        with _staged(place) as staged:
            _rename(entry, os.path.join(staged, "dropped"))


def _tidy(place: str) -> None:
    """Removes the entries beyond what the cache may hold."""
    entries = []
    for item in os.scandir(place):
        with contextlib.suppress(OSError):
            if item.name.startswith(_STAGED):
                if time.time() - item.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(item.path, ignore_errors=True)
                continue
            used = os.stat(os.path.join(item.path, _ENTRY)).st_mtime
            entries.append((used, _size(item.path), item.path))
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries):
        if total <= most_bytes():
            break
        _drop(place, entry)
        total -= size


def most_bytes() -> int:
    """How much the cache may hold."""
    given = os.environ.get("WHALE_CACHE_BYTES", "")
    return int(given) if given.isdecimal() else _MOST_BYTES


def _size(path: str) -> int:
    return sum(
        os.lstat(os.path.join(folder, name)).st_size
        for folder, _, names in os.walk(path)
        for name in names
    )


def usage() -> tuple[int, int]:
    """How many programs the cache holds, and how many bytes they take."""
    place = directory()
    if place is None or not os.path.isdir(place):
        return 0, 0
    sizes = []
    for item in os.scandir(place):
        with contextlib.suppress(OSError):
            if os.path.isfile(os.path.join(item.path, _ENTRY)):
                sizes.append(_size(item.path))
    return len(sizes), sum(sizes)


_said: set[str] = set()


def _complain(place: str, what: str) -> None:
    """Warns, once for each directory."""
    if place in _said:
        return
    _said.add(place)
    # Nobody has asked for the one in the home directory.
    if "WHALE_CACHE_DIR" in os.environ or "entry" in what:
        notices.warn(
            f"the cache of programs at {place}: {what}; the step is compiled "
            "all the same. WHALE_CACHE_DIR says where it is, or that there is "
            "none if it is empty"
        )
