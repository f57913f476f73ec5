"""Questions about several classes that are answered yes or no, as one bit can.

A code (Q, K) of -1/+1 holds a row a question: what a label of each class answers. It is
public, and who answers which question no data decides. Two classes leave one question,
"is it class 1?", so whatever asks by a code asks of two classes as it ever did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.classes import places
from curvote.errors import UserError
from curvote.protocols.message import Known
from curvote.validate import finite

Array = NDArray[np.float64]

_ONE: Final = np.array([[-1.0, 1.0]])


def one_against_rest(n_classes: int) -> Array:
    """Return the code "is it class k?", (K, K): 1 on the diagonal, else -1."""
    return _ONE if n_classes == 2 else 2 * np.eye(n_classes) - 1


def splits(n_classes: int) -> Array:
    """Return the code of the splits into halves, (P - 1, K).

    P is the least power of 2 that is at least K. Question q = 1..P-1 asks whether class
    y has an odd number of ones in q & y: the rows of Sylvester's matrix but the first.
    Over all of them two classes agree as often as any other two, so classes are corners
    of a regular simplex.
    """
    bits = max(n_classes - 1, 1).bit_length()
    ones = np.arange(1, 1 << bits)[:, None] & np.arange(n_classes)
    return np.where(np.bitwise_count(ones) % 2 == 1, 1.0, -1.0)


def answers(code: Array, which: NDArray[Any], labels: NDArray[Any]) -> Array:
    """Return what labels (n,), places of classes, answer to questions ``which`` (n,).

    Questions are taken in turn: the number Q is the first one again. A label that is no
    place is a UserError.
    """
    found: Array = code[np.asarray(which) % len(code), places(labels, code.shape[1])]
    return found


def whole(known: Known, n_classes: int) -> NDArray[np.int64]:
    """Return the labels (n,) of whole records as places; UserError: one is broken."""
    labels, records = places(known.labels, n_classes), finite(z=known.z)
    if labels.shape != (len(records),):
        raise UserError(f"{labels.size} labels for {len(records)} records.")
    return labels


def apart(rows: Columns, n_questions: int) -> list[Columns]:
    """Return the rows about each question, of those that take questions in turn."""
    every = range(n_questions)
    return [{name: own[q::n_questions] for name, own in rows.items()} for q in every]


def in_turn(each: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return what `apart` took apart: (n,) of each question as (n Q,) in turn."""
    return np.stack(each, axis=1).ravel()
