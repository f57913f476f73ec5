"""Known answers: what each sampler makes of chosen words, as it always has.

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
PLACE = Path(__file__).with_name("known_answers.csv")


def _known() -> dict[str, str]:
    (_, *levels), *rows = csv.reader(PLACE.read_text(encoding="utf-8").splitlines())
    return {
        f"{name} {level}": answer
        for name, *row in rows
        for level, answer in zip(levels, row, strict=True)
    }


KNOWN = _known()


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


def check(subject: Subject) -> Finding:
    """Compare the answers with the known ones, where any are known for this claim."""
    known = KNOWN.get(key(subject))
    if known is None or known == digest(subject):
        return Finding("answers")
    return Finding("answers", "chosen words lead to other outputs than they always did")


def key(subject: Subject) -> str:
    """Return the name under which a subject's answers are known."""
    return f"{subject.stands_for} {subject.budget.epsilon!r}"


def thresholds(made: Any) -> tuple[int, ...]:
    """Return the integers that samplers compare words with, of all parts."""
    own = (getattr(made, name, None) for name in _THRESHOLDS)
    found = {value for value in own if isinstance(value, int)}
    parts = (getattr(made, name) for name in _PARTS if hasattr(made, name))
    return tuple(sorted(found.union(*map(thresholds, parts))))


_THRESHOLDS = ("threshold", "own_threshold", "other_threshold")
_PARTS = ("window", "scalar", "part", "piecewise", "duchi", "label", "features")


def digest(subject: Subject) -> str:
    """Return the digest of what the subject makes of the chosen words."""
    made = hashlib.sha256()
    for n in SIZES:
        entropy = Patterned(SEED + n, subject.deciding)
        rng = np.random.Generator(np.random.PCG64DXSM(SEED + n))
        for _ in range(max(1, 40 // n)):
            clients = subject.many(n, rng)
            sent = subject.view(subject.send(clients, entropy))
            made.update((np.round(sent, DIGITS) + 0.0).tobytes())
    return made.hexdigest()[:16]
