"""A wheel in a Debian that has Python and nothing that Whale was built with.

scripts/wheel builds it, debootstrap makes the Debian, pip installs the wheel
there from PyPI, and steps are compiled and run. A failure means that the wheel
misses a library, or finds one of the machine that built it. Long tests only: it
takes a whole build, and needs root and Debian's debootstrap.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 120 << 20
STEP = """
import jax, jax.numpy as jnp, numpy as np, whale as wh

def step(w, x, y):
    loss, grad = jax.value_and_grad(
        lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - 0.1 * grad, loss

wh.set_default_strategy(wh.replicate(4))
w, y = jnp.ones((8, 4)) / 8, jnp.ones((8, 4))
x = jnp.arange(64.).reshape(8, 8) / 64
whale = wh.jit(step, cluster=4, batch_argnums=(1, 2))
for mine, jaxs in zip(whale(w, x, y), jax.jit(step)(w, x, y)):
    np.testing.assert_allclose(mine, jaxs, rtol=1e-6)
inverse = wh.jit(jnp.linalg.inv, cluster=4)
np.testing.assert_allclose(inverse(jnp.eye(3) * 2), jnp.eye(3) / 2)
print("right")
"""


def sources() -> list[str]:
    """The mirrors of this machine, as debootstrap takes one."""
    for path in pathlib.Path("/etc/apt/sources.list.d").glob("*.sources"):
        for line in path.read_text().splitlines():
            if line.startswith("URIs:"):
                return line.split()[1:2]
    return []


@pytest.fixture(scope="module")
def wheel() -> pathlib.Path:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    subprocess.run([ROOT / "scripts" / "wheel"], check=True)
    (path,) = (ROOT / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def debian(
    wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """How a command is run in a Debian where the wheel is installed."""
    if os.geteuid() or not shutil.which("debootstrap"):
        pytest.skip("needs root and Debian's debootstrap")
    root = tmp_path_factory.mktemp("debian")
    subprocess.run(
        [
            "debootstrap",
            "--variant=minbase",
            "--include=ca-certificates,python3-venv",
            "bookworm",
            root,
            *sources(),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name in ("/etc/pip.conf", "/etc/resolv.conf", "/etc/hosts"):
        if os.path.exists(name):
            shutil.copy(name, root / "etc")
    certificates = "/etc/ssl/certs/ca-certificates.crt"
    shutil.copy(certificates, root / certificates[1:])
    shutil.copy(wheel, root / "srv")
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    shared = root / "dev" / "shm"
    shared.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", shared], check=True)
    run = ["chroot", str(root)]
    try:
        subprocess.run([*run, "python3", "-m", "venv", "/srv/env"], check=True)
        subprocess.run(
            [*run, "/srv/env/bin/pip", "install", "-q", f"/srv/{wheel.name}"],
            check=True,
        )
        yield run
    finally:
        subprocess.run(["umount", "-l", root / "proc", shared])
        shutil.rmtree(root, ignore_errors=True)


def test_size_and_name(wheel: pathlib.Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    assert "manylinux" in wheel.name


def test_there_is_no_llvm(debian: list[str]) -> None:
    found = subprocess.run(
        [*debian, "sh", "-c", "ls -d /usr/lib/llvm* /usr/bin/*lld*"],
        capture_output=True,
    )
    assert not found.stdout


def test_steps(debian: list[str]) -> None:
    result = subprocess.run(
        [*debian, "/srv/env/bin/python", "-c", STEP],
        capture_output=True,
        text=True,
    )
    assert result.stdout == "right\n", result.stderr


@pytest.mark.parametrize("tool", ["whale-compile", "whale-run"])
def test_tools(debian: list[str], tool: str) -> None:
    result = subprocess.run(
        [*debian, f"/srv/env/bin/{tool}", "--version"],
        capture_output=True,
        text=True,
    )
    assert not result.returncode and "Whale" in result.stdout, result.stderr
