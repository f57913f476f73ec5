"""Checks of random words: known answers, odd inputs, shared noise, word counts.

Stored studies rest on the map from words to outputs, so it may not change unnoticed. It
is looked at where chance never goes: words next to thresholds, words without their low
or their high half, all zeros, all ones; calls for 1, 5, 17 and 100 clients.

`python -m curvote.audit.pin_answers` writes the known answers anew, for a change of the
map that is meant.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.entropy import SeededEntropy, Words

SEED = 7
SIZES = (1, 5, 17, 100)
_HALF = np.uint64((1 << 32) - 1)
_ALL = np.uint64((1 << 64) - 1)
# Where PrivUnit's float arithmetic may differ between processors: far below it.
DIGITS = 8
ANSWERS_FILE = Path(__file__).with_name("known_answers.csv")


def _read_known_answers() -> dict[str, str]:
    (_, *levels), *rows = csv.reader(
        ANSWERS_FILE.read_text(encoding="utf-8").splitlines()
    )
    return {
        f"{name} {level}": answer
        for name, *row in rows
        for level, answer in zip(levels, row, strict=True)
    }


KNOWN_ANSWERS = _read_known_answers()


class Patterned:
    """A stream in which half of the words have a pattern.

    ``near`` are words that decide: thresholds, of which the neighbours are tried, too.
    """

    def __init__(self, seed: int, near: tuple[int, ...]) -> None:
        self._words = SeededEntropy(seed)
        around = {t + off for t in near for off in (-(1 << 31), -1, 0, 1)}
        edges = sorted(t for t in around if 0 <= t < 1 << 64)
        self._edges = np.array([0, *edges, int(_ALL)], dtype=np.uint64)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        words, which = self._words.words(n).copy(), self._words.words(n)
        kind = which % np.uint64(8)
        edge = self._edges[(which >> np.uint64(8)) % np.uint64(len(self._edges))]
        words = np.where(kind == 0, words & _HALF, words)
        words = np.where(kind == 1, words & ~_HALF, words)
        return np.where(kind == 2, edge, words)


def check_answers(subject: Subject) -> Finding:
    """Compare the answers with the known ones of this claim, if any."""
    expected = KNOWN_ANSWERS.get(answer_key(subject))
    if expected is None or expected == answer_digest(subject):
        return Finding("answers")
    return Finding("answers", "chosen words lead to other outputs than they always did")


def answer_key(subject: Subject) -> str:
    """Return the name under which a subject's answers are known."""
    return f"{subject.stands_for} {subject.budget.epsilon!r}"


def thresholds(part: Any) -> tuple[int, ...]:
    """Return the integers that samplers compare words with."""
    values = (getattr(part, name, None) for name in _THRESHOLDS)
    integers = {value for value in values if isinstance(value, int)}
    parts = (getattr(part, name) for name in _PARTS if hasattr(part, name))
    return tuple(sorted(integers.union(*map(thresholds, parts))))


_THRESHOLDS = ("threshold", "own_threshold", "other_threshold")
_PARTS = ("window", "scalar", "part", "piecewise", "duchi", "label", "features")


def answer_digest(subject: Subject) -> str:
    """Return the digest of the subject's outputs for the chosen words."""
    sha = hashlib.sha256()
    for n in SIZES:
        entropy = Patterned(SEED + n, subject.deciding)
        rng = np.random.Generator(np.random.PCG64DXSM(SEED + n))
        for _ in range(max(1, 40 // n)):
            clients = subject.many(n, rng)
            outputs = subject.view(subject.send(clients, entropy))
            sha.update((np.round(outputs, DIGITS) + 0.0).tobytes())
    return sha.hexdigest()[:16]
