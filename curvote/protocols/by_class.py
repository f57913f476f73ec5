"""What is told of each of several classes: recall, and what is taken for what.

Of two classes nothing is: their one error says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.axis import Settings
from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows
from curvote.chain.tables import TEXT, Table
from curvote.datasets import lookup
from curvote.protocols.measures import RECALL

Places = NDArray[Any]


def several(settings: Settings) -> bool:
    """Say whether a pipeline's source has more than two classes."""
    return len(lookup.classes(settings.source) or ()) > 2


# How many tested clients of a true class were said to be of one; 0 is left out.
CONFUSION: Final = Table(
    "confusion",
    {"true": TEXT, "said": TEXT, "n": "int64"},
    side="client (study)",
    unit="score",
    when=several,
)


def counts(truth: Places, said: Places, n_classes: int) -> NDArray[np.int64]:
    """Return how often each true class (rows) was said to be each (columns), (K, K)."""
    pairs = np.asarray(truth, dtype=np.int64) * n_classes + said
    return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)


def told(
    rows: Rows, method: str, truth: Places, said: Places, classes: Sequence[str]
) -> Rows:
    """Return the tables of a report stage with what is known of each class.

    ``truth`` and ``said`` (n,) are places of the tested clients' ``classes``. Of more
    than two, ``scores`` gets a row ``recall`` of the ``method`` for each class that was
    tested, and there is a table ``confusion``; of two the ``rows`` stay as they are.
    """
    if len(classes) == 2:
        return rows
    matrix, names = counts(truth, said, len(classes)), np.array(classes, dtype=object)
    recalls = _recalls(method, matrix, names)
    return rows | {
        SCORES.name: _joined(rows[SCORES.name], recalls),
        CONFUSION.name: _pairs(matrix, names),
    }


def _recalls(method: str, matrix: NDArray[np.int64], names: Places) -> Columns:
    tested = matrix.sum(axis=1)
    there = tested > 0
    n = int(there.sum())
    return {
        "method": np.full(n, method, dtype=object),
        "metric": np.full(n, RECALL.name, dtype=object),
        "value": np.diag(matrix)[there] / tested[there],
        "group": names[there],
    }


def _joined(scores: Columns, recalls: Columns) -> Columns:
    nobody = np.full(len(scores["value"]), None, dtype=object)
    known = {"group": nobody} | scores
    return {name: np.concatenate([known[name], recalls[name]]) for name in known}


def _pairs(matrix: NDArray[np.int64], names: Places) -> Columns:
    true, said = np.nonzero(matrix)
    return {"true": names[true], "said": names[said], "n": matrix[true, said]}
