"""Fixtures of the Python tests."""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# The verifier runs after every pass.
os.environ.setdefault("WHALE_VERIFY_EACH", "1")
HERE = os.path.dirname(__file__)
sys.path[:0] = [HERE, os.path.join(HERE, "../../test/Executable")]

import first_steps  # noqa: E402
import late_devices  # noqa: E402
import pytest  # noqa: E402
import relaunch  # noqa: E402

import whale as wh  # noqa: E402

# What a test's report says of how late its devices were.
LATE = "late devices"


@pytest.fixture(autouse=True)
def fresh():
    """Every test starts as a process does."""
    wh.init()
    yield
    wh.init()


@pytest.fixture(autouse=True)
def on_ranks(request):
    """What a test runs on N ranks gives the same bits on late devices, and with
    --full in several processes."""
    tally = late_devices.Tally()

    def relaunched(step):
        relaunch.check_step(step.program, step.values, step.result)

    checks = [tally.check]
    if relaunch.IS_FULL:
        checks.append(relaunched)
    with first_steps.checked(*checks):
        yield
    if tally.programs:
        request.node.user_properties.append((LATE, str(tally)))


def pytest_terminal_summary(terminalreporter):
    """A line for each test that ran on N ranks."""
    if lines := [
        f"{report.nodeid}: {tally}"
        for report in terminalreporter.getreports("")
        if report.when == "teardown"
        for name, tally in report.user_properties
        if name == LATE
    ]:
        terminalreporter.section(LATE)
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture
def fake(monkeypatch):
    """Puts the stand-in for the extension and the compiler in their places."""
    import fake_extension

    monkeypatch.setattr("whale.native.extension", lambda: fake_extension)
    monkeypatch.setattr("whale.compiler.compile", fake_extension.compile)
    return fake_extension
