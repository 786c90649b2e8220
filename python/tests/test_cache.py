"""Programs that were compiled before are found on disk.

Under test: what finds an entry, and what becomes of entries that are damaged,
of another version, or cannot be written. Judged by how often the compiler runs
and by results; the compiler itself is real in one test alone.
"""

import concurrent.futures
import json
import os
import pathlib
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh
from whale import cache

X = np.arange(4, dtype=np.float32)


@pytest.fixture
def place(monkeypatch, tmp_path):
    """Where the cache is."""
    path = tmp_path / "cache"
    monkeypatch.setenv("WHALE_CACHE_DIR", str(path))
    monkeypatch.delenv("WHALE_VERIFY_EACH", raising=False)
    monkeypatch.setattr(cache, "_said", set())
    return path


@pytest.fixture
def compilations(fake, monkeypatch):
    """The texts that were compiled."""
    texts = []

    def compile(text, *args, **options):
        texts.append(text)
        fake.compile(text, *args, **options)
        return ["remark: said when it was compiled"]

    monkeypatch.setattr("whale.compiler.compile", compile)
    return texts


def run(**options):
    """A step as a new process has it: the text says where it is called."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(run_here, **options).result()


def run_here(cluster=1, target="cpu", function=jnp.sin):
    step = wh.jit(lambda x: function(x), cluster=cluster, target=target)
    np.testing.assert_allclose(step(X), function(X), rtol=1e-6)


def entries(place):
    return sorted(p for p in place.iterdir() if not p.name.startswith("."))


def said_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught]


def test_a_program_is_compiled_once(place, compilations, capfd):
    run()
    assert len(compilations) == 1
    first = capfd.readouterr().err
    assert "remark: said when" in first
    run()
    assert len(compilations) == 1 and len(entries(place)) == 1
    assert capfd.readouterr().err == first
    assert cache.usage()[0] == 1


def test_what_makes_another_program(place, compilations, monkeypatch):
    run()
    run(function=jnp.cos)
    run(cluster=2)
    wh.set_default_strategy(wh.replicate())
    run()
    monkeypatch.setattr(cache, "_machine", lambda: "another machine")
    run()
    monkeypatch.setattr(cache, "_identity", lambda path: "another compiler")
    run()
    monkeypatch.setenv("CUDA_HOME", "/elsewhere")
    run()
    assert len(compilations) == len(entries(place)) == 7


def test_a_program_with_kernels(place):
    wh.set_default_strategy(wh.replicate())

    files = []
    for _ in range(2):
        step = wh.jit(jnp.cumsum, cluster=2)
        np.testing.assert_array_equal(step(X), np.cumsum(X))
        step.lower(X).compile().save(place.parent / "saved.whale")
        (entry,) = entries(place)
        files.append((entry / "entry.json").stat().st_ino)
    assert files[0] == files[1]
    # Nothing that is done to the one changes the other.
    saved = wh.load(place.parent / "saved.whale")
    np.testing.assert_array_equal(saved(X), np.cumsum(X))


def cut(entry: pathlib.Path) -> None:
    file = entry / "program.whale" / "manifest.json"
    text = file.read_text()
    file.unlink()
    file.write_text(text[:-9])


def remove(entry: pathlib.Path) -> None:
    (entry / "program.whale" / "manifest.json").unlink()


def forget(entry: pathlib.Path) -> None:
    (entry / "entry.json").unlink()


def age(entry: pathlib.Path) -> None:
    file = entry / "entry.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 0}))


def scribble(entry: pathlib.Path) -> None:
    (entry / "entry.json").write_text("[")


@pytest.mark.parametrize("damage", [cut, remove, forget, age, scribble])
def test_an_entry_of_no_use(place, compilations, damage):
    run()
    (entry,) = entries(place)
    damage(entry)
    (said,) = said_of(run)
    assert f"the cache of programs at {place}: the entry" in said
    assert len(compilations) == 2
    # It is made anew, and what is wrong is said once.
    assert said_of(run) == [] and len(compilations) == 2
    damage(entry)
    assert said_of(run) == [] and len(compilations) == 3


def test_a_place_that_cannot_be_written(place, compilations):
    place.write_text("a file")
    (said,) = said_of(run)
    assert "nothing can be written (" in said
    assert said_of(run) == [] and len(compilations) == 2


def test_a_full_disk(place, compilations, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    (said,) = said_of(run)
    assert "nothing can be written (No space left on device)" in said
    # Nothing half done stays.
    assert entries(place) == []


def test_another_process_was_first(place, compilations, monkeypatch):
    run()
    monkeypatch.setattr(cache, "fetch", lambda key, path: None)
    assert said_of(run) == []
    assert len(entries(place)) == 1


def test_the_least_used_goes(place, compilations, monkeypatch):
    run()
    (first,) = entries(place)
    size = cache.usage()[1]
    run(function=jnp.cos)
    os.utime(first / "entry.json", (1, 1))
    # Being used, it becomes the latest.
    run()
    monkeypatch.setenv("WHALE_CACHE_BYTES", str(2 * size + size // 2))
    run(function=jnp.tan)
    assert len(entries(place)) == 2 and first in entries(place)
    monkeypatch.setenv("WHALE_CACHE_BYTES", "0")
    run(function=jnp.tanh)
    assert entries(place) == []


def test_there_is_none(place, compilations, monkeypatch):
    monkeypatch.setenv("WHALE_CACHE_DIR", "")
    run()
    run()
    monkeypatch.setenv("WHALE_CACHE_DIR", str(place))
    monkeypatch.setenv("WHALE_VERIFY_EACH", "1")
    run()
    assert len(compilations) == 3 and not place.exists()
    assert cache.usage() == (0, 0)
