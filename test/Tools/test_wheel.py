"""A wheel in a Debian that has Python and nothing that Whale was built with.

scripts/wheel builds it, debootstrap makes the Debian, pip installs the wheel
there from PyPI, and steps, tutorials and ports of scripts are run. A failure
means that the wheel misses a library or a program, or finds one of the machine
that built it. Long tests only: it takes a whole build, and needs root and
Debian's debootstrap.
"""

from __future__ import annotations

import os
import pathlib
import re
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


class Debian:
    """A folder with a Debian in it, as minimal as one with pip can be."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
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
        certificates = "/etc/ssl/certs/ca-certificates.crt"
        for name in ("/etc/pip.conf", "/etc/resolv.conf", "/etc/hosts"):
            if os.path.exists(name):
                shutil.copy(name, root / "etc")
        shutil.copy(certificates, root / certificates[1:])
        for path in pathlib.Path("/etc/apt/apt.conf.d").glob("99*"):
            shutil.copy(path, root / "etc/apt/apt.conf.d")

    def mount(self) -> None:
        subprocess.run(
            ["mount", "-t", "proc", "proc", self.root / "proc"], check=True
        )
        shared = self.root / "dev" / "shm"
        shared.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", shared], check=True)

    def remove(self) -> None:
        for name in ("proc", "dev/shm"):
            subprocess.run(["umount", "-l", self.root / name], check=False)
        # What is still mounted there is not ours to remove.
        subprocess.run(["rm", "-rf", "--one-file-system", self.root])

    def copy(self, *names: str) -> None:
        """Copies files and folders of the repository to /srv/repo."""
        for name in names:
            place = self.root / "srv" / "repo" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / name, place)

    def run(
        self, *command: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in /srv, with a network and little else."""
        kept = (
            "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY"
            " PIP_CERT PIP_INDEX_URL PIP_DEFAULT_TIMEOUT SSL_CERT_FILE"
        )
        given = {
            "HOME": "/root",
            "DEBIAN_FRONTEND": "noninteractive",
            "LANG": "C.UTF-8",
            "PATH": "/srv/env/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        given |= {
            name: os.environ[name]
            for name in kept.split()
            if name in os.environ
        }
        return subprocess.run(
            ["chroot", self.root, "env", "-C", "/srv", *command],
            env=given | variables,
            capture_output=True,
            text=True,
        )

    def check(self, *command: str, **variables: str) -> str:
        """What a command prints that must succeed."""
        result = self.run(*command, **variables)
        assert not result.returncode, result.stdout + result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debian]:
    """A Debian with an environment for Python in /srv/env."""
    if os.geteuid() or not shutil.which("debootstrap"):
        pytest.skip("needs root and Debian's debootstrap")
    made = Debian(tmp_path_factory.mktemp("debian"))
    try:
        made.mount()
        made.check("python3", "-m", "venv", "/srv/env")
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def installed(debian: Debian, wheel: pathlib.Path) -> Debian:
    """The same with the wheel in it, and the versions that are tested."""
    debian.copy("requirements.txt", "scripts/requirements-full.txt")
    shutil.copy(wheel, debian.root / "srv")
    debian.check(*PIP, f"/srv/{wheel.name}")
    return debian


CONSTRAINTS = (
    "/srv/repo/requirements.txt",
    "/srv/repo/scripts/requirements-full.txt",
)
PIP = (
    *("pip", "install", "-q", "--disable-pip-version-check"),
    *(f"--constraint={path}" for path in CONSTRAINTS),
)


def test_build_says_what_is_missing(debian: Debian) -> None:
    """There is neither a compiler nor LLVM: one message says so."""
    debian.copy("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md")
    debian.copy("cmake", "pyproject.toml", "scripts/debian-packages.txt")
    result = debian.run("pip", "install", "--no-deps", "/srv/repo")
    said = result.stdout + result.stderr
    assert result.returncode and "Whale's build lacks" in said, said
    assert said.count("CMake Error") == 1, said
    assert " clang-22 " in said and " libmlir-22-dev " in said, said


def test_older_libc(debian: Debian, wheel: pathlib.Path) -> None:
    """The wheel says which glibc it needs, and pip refuses it on others."""
    (version,) = re.findall(r"manylinux_2_(\d+)_", wheel.name)
    place = debian.root / "srv" / "older"
    place.mkdir()
    (place / "_manylinux.py").write_text(
        "def manylinux_compatible(major, minor, architecture):\n"
        f"    return (major, minor) < (2, {version})\n"
    )
    shutil.copy(wheel, place)
    result = debian.run(
        *("pip", "install", "--no-deps", f"/srv/older/{wheel.name}"),
        PYTHONPATH="/srv/older",
    )
    assert result.returncode
    (said,) = re.findall("^ERROR: .*", result.stderr, re.MULTILINE)
    assert wheel.name in said and "not a supported wheel" in said


def test_size_and_name(wheel: pathlib.Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    assert "manylinux" in wheel.name


def test_there_is_no_llvm(installed: Debian) -> None:
    found = installed.run("sh", "-c", "ls -d /usr/lib/llvm* /usr/bin/*lld*")
    assert not found.stdout


def test_steps(installed: Debian) -> None:
    assert installed.check("python", "-c", STEP) == "right\n"
    assert "/srv/env/" in installed.check("python", "-m", "whale", "info")


@pytest.mark.parametrize(
    "tool",
    ["whale-compile", "whale-run", "whale-sim", "whale-checkpoint"],
)
def test_tools(installed: Debian, tool: str) -> None:
    assert "Whale" in installed.check(tool, "--version")


def test_tutorials(installed: Debian) -> None:
    """The commands of all pages, and the scripts that are ported."""
    # All else is installed by the pages.
    installed.check(*PIP, "pytest")
    installed.copy("conftest.py", "pyproject.toml")
    installed.copy("docs/tutorials", "examples/ports")
    tests = [f"python/tests/test_{name}.py" for name in ("tutorials", "ports")]
    installed.copy(*tests)
    # What messages the sources have is no question of the wheel.
    said = installed.check(
        *("env", "-C", "/srv/repo", "python", "-m", "pytest"),
        *("-k", "not messages", *tests),
        WHALE_TEST_FULL="1",
        WHALE_TEST_INSTALLS="1",
        PIP_CONSTRAINT=" ".join(CONSTRAINTS),
    )
    assert " passed" in said and "skipped" not in said, said
