"""Odd inputs: refused before a word is drawn, or treated as what they stand for."""

from __future__ import annotations

import warnings

from curvote.audit.row import Finding
from curvote.audit.subject import OddInput, Subject
from curvote.entropy import SeededEntropy, Words


class WordsDrawn(Exception):  # noqa: N818 - an observation, not an error
    """A word of entropy was asked for."""


class Untouched:
    """Entropy that must not be touched."""

    def words(self, n: int) -> Words:
        """Tell that ``n`` words were asked for."""
        raise WordsDrawn(n)


def check(subject: Subject, seed: int) -> Finding:
    """Say whether every odd input is refused or gives the bytes of its twin."""
    wrong = [why for odd in subject.odd_inputs() if (why := _fault(subject, odd, seed))]
    return Finding("inputs", "; ".join(wrong) if wrong else None)


def _fault(subject: Subject, odd: OddInput, seed: int) -> str | None:
    with warnings.catch_warnings():
        # What numpy says of odd numbers is no refusal.
        warnings.simplefilter("ignore")
        return None if _refused(subject, odd) else _differs(subject, odd, seed)


def _refused(subject: Subject, odd: OddInput) -> bool:
    try:
        subject.release(odd.given, Untouched())
    except (ValueError, TypeError):
        return True
    except WordsDrawn:
        return False
    return False  # an empty batch, or a release without noise


def _differs(subject: Subject, odd: OddInput, seed: int) -> str | None:
    if odd.twin is None:
        return f"{odd.name} is released"
    try:
        given, twin = (
            subject.release(value, SeededEntropy(seed))
            for value in (odd.given, odd.twin)
        )
    except (ValueError, TypeError) as error:
        return f"{odd.name} is refused only after words were drawn ({error})"
    return (
        None if given == twin else f"{odd.name} is not released as what it stands for"
    )
