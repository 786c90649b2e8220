"""The text to learn, a character a token."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np

TEXT = pathlib.Path(__file__).with_name("alice.txt")


def load() -> tuple[np.ndarray, str]:
    """The text as token numbers, and the characters that they stand for."""
    text = TEXT.read_text(encoding="ascii")
    vocabulary = "".join(sorted(set(text)))
    numbers = {character: n for n, character in enumerate(vocabulary)}
    return np.array([numbers[c] for c in text], np.int32), vocabulary


def batches(
    tokens: np.ndarray, size: int, context: int, seed: int = 0
) -> Iterator[np.ndarray]:
    """Random windows of the text: `size` rows of `context` + 1 tokens."""
    random = np.random.default_rng(seed)
    while True:
        starts = random.integers(0, len(tokens) - context, size)
        yield np.stack([tokens[s : s + context + 1] for s in starts])
