"""Fixtures of the Python tests."""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# The verifier runs after every pass.
os.environ.setdefault("WHALE_VERIFY_EACH", "1")
HERE = os.path.dirname(__file__)
sys.path[:0] = [HERE, os.path.join(HERE, "../../test/Executable")]

import pytest  # noqa: E402
import relaunch  # noqa: E402

import whale as wh  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    """Every test starts as a process does."""
    wh.init()
    yield
    wh.init()


@pytest.fixture(autouse=relaunch.IS_FULL)
def in_processes():
    """What a test runs on N ranks gives the same bits in several processes."""
    with relaunch.each_program():
        yield


@pytest.fixture
def fake(monkeypatch):
    """Puts the stand-in for the extension and the compiler in their places."""
    import fake_extension

    monkeypatch.setattr("whale.native.extension", lambda: fake_extension)
    monkeypatch.setattr("whale.compiler.compile", fake_extension.compile)
    return fake_extension
