"""Check of odd inputs: refused before a word is drawn, or treated as their twins."""

from __future__ import annotations

import warnings

from curvote.audit.row import Finding
from curvote.audit.subject import OddInput, Subject
from curvote.entropy import SeededEntropy, Words


class WordsRequested(Exception):  # noqa: N818 - an observation, not an error
    """A word of entropy was requested."""


class RefusingEntropy:
    """Entropy that must not be requested."""

    def words(self, n: int) -> Words:
        """Raise WordsRequested for ``n`` words."""
        raise WordsRequested(n)


def check_odd_inputs(subject: Subject, seed: int) -> Finding:
    """Check that odd inputs are refused or give the bytes of their twins."""
    wrong = [
        why
        for odd in subject.odd_inputs()
        if (why := _odd_input_fault(subject, odd, seed))
    ]
    return Finding("inputs", "; ".join(wrong) if wrong else None)


def _odd_input_fault(subject: Subject, odd: OddInput, seed: int) -> str | None:
    with warnings.catch_warnings():
        # What numpy says of odd numbers is no refusal.
        warnings.simplefilter("ignore")
        return (
            None
            if _is_refused(subject, odd)
            else _differs_from_twin(subject, odd, seed)
        )


def _is_refused(subject: Subject, odd: OddInput) -> bool:
    try:
        subject.release(odd.value, RefusingEntropy())
    except (ValueError, TypeError):
        return True
    except WordsRequested:
        return False
    return False  # an empty batch, or a release without noise


def _differs_from_twin(subject: Subject, odd: OddInput, seed: int) -> str | None:
    if odd.twin is None:
        return f"{odd.name} is released"
    try:
        odd_bytes, twin = (
            subject.release(value, SeededEntropy(seed))
            for value in (odd.value, odd.twin)
        )
    except (ValueError, TypeError) as error:
        return f"{odd.name} is refused only after words were drawn ({error})"
    return (
        None
        if odd_bytes == twin
        else f"{odd.name} is not released as what it stands for"
    )
