"""Codes of yes-no questions that tell several classes apart.

A code (Q, K) of -1/+1 holds a row a question: what a label of each class answers. It is
public, and who answers which question no data decides. Two classes leave one question,
"is it class 1?", so whatever asks by a code asks of two classes as it ever did.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import class_indices
from curvote.base.errors import UserError
from curvote.base.validate import finite
from curvote.chain.stage import Columns
from curvote.messages.message import ClientData

Array = NDArray[np.float64]

_TWO_CLASS_CODE: Final = np.array([[-1.0, 1.0]])


def one_against_rest_code(n_classes: int) -> Array:
    """Return the code "is it class k?", (K, K): 1 on the diagonal, else -1."""
    return _TWO_CLASS_CODE if n_classes == 2 else 2 * np.eye(n_classes) - 1


def halving_code(n_classes: int) -> Array:
    """Return the code of the splits into halves, (P - 1, K).

    P is the least power of 2 that is at least K. Question q = 1..P-1 asks whether class
    y has an odd number of ones in q & y: the rows of Sylvester's matrix but the first.
    Over all of them two classes agree as often as any other two, so classes are corners
    of a regular simplex.
    """
    bits = max(n_classes - 1, 1).bit_length()
    ones = np.arange(1, 1 << bits)[:, None] & np.arange(n_classes)
    return np.where(np.bitwise_count(ones) % 2 == 1, 1.0, -1.0)


def answer_questions(code: Array, which: NDArray[Any], labels: NDArray[Any]) -> Array:
    """Return the answers (n,) of labels to questions ``which`` (n,).

    Questions are taken in turn: the number Q is the first one again. A label that is no
    place is a UserError.
    """
    result: Array = code[
        np.asarray(which) % len(code), class_indices(labels, code.shape[1])
    ]
    return result


def complete_labels(data: ClientData, n_classes: int) -> NDArray[np.int64]:
    """Return the labels (n,) as places; refuse broken records."""
    labels, records = class_indices(data.labels, n_classes), finite(z=data.z)
    if labels.shape != (len(records),):
        raise UserError(f"{labels.size} labels for {len(records)} records.")
    return labels


def split_questions(rows: Columns, n_questions: int) -> list[Columns]:
    """Return the rows about each question, of questions taken in turn."""
    questions = range(n_questions)
    return [
        {name: values[q::n_questions] for name, values in rows.items()}
        for q in questions
    ]


def interleave_questions(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays (n,) of Q questions as one (n Q,), in turn."""
    return np.stack(parts, axis=1).ravel()
