"""The version of Whale, and those of JAX that it works with."""

from __future__ import annotations

import warnings

import jax

# Whale's own.
VERSION = "0.1.0"

# What scripts/test-jax-versions has run with, and pyproject.toml allows: from
# this release to the last one of this minor version.
OLDEST, NEWEST = (0, 7, 2), (0, 11)
RANGE = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"


def check(version: tuple[int, ...] | None = None) -> None:
    """Looks whether this version of JAX is one of them.

    Raises:
        ImportError: where it is older.
    """
    version = jax.version.__version_info__ if version is None else version
    name = ".".join(map(str, version))
    if version < OLDEST:
        raise ImportError(f"jax {name} is too old: Whale works with {RANGE}")
    if version[:2] > NEWEST:
        warnings.warn(
            f"Whale was tested with jax {RANGE}, and this is {name}",
            stacklevel=3,
        )


check()
