"""Scores by class: recall and confusion of more than two classes.

Of two classes nothing is: their one error says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows
from curvote.chain.tables import TEXT, Table
from curvote.datasets import lookup
from curvote.protocols.measures import RECALL

Places = NDArray[Any]


def has_many_classes(settings: PipelineSettings) -> bool:
    """Say whether a pipeline's source has more than two classes."""
    return len(lookup.classes(settings.source) or ()) > 2


# How many tested clients of a true class were said to be of one; 0 is left out.
CONFUSION: Final = Table(
    "confusion",
    {"true": TEXT, "said": TEXT, "n": "int64"},
    side="client (study)",
    unit="score",
    when=has_many_classes,
)


def confusion_counts(
    truth: Places, predictions: Places, n_classes: int
) -> NDArray[np.int64]:
    """Return counts (K, K) of each true class (rows) by predicted class."""
    pairs = np.asarray(truth, dtype=np.int64) * n_classes + predictions
    return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)


def add_class_scores(
    rows: Rows, method: str, truth: Places, predictions: Places, classes: Sequence[str]
) -> Rows:
    """Return the tables of a report stage with scores of each class added.

    ``truth`` and ``predictions`` (n,) are places of the tested clients' ``classes``. Of
    more than two, ``scores`` gets a row ``recall`` of the ``method`` for each class
    that was tested, and there is a table ``confusion``; of two the ``rows`` stay as
    they are.
    """
    if len(classes) == 2:
        return rows
    matrix, names = (
        confusion_counts(truth, predictions, len(classes)),
        np.array(classes, dtype=object),
    )
    recalls = _recall_columns(method, matrix, names)
    return rows | {
        SCORES.name: _append_recalls(rows[SCORES.name], recalls),
        CONFUSION.name: _confusion_columns(matrix, names),
    }


def _recall_columns(method: str, matrix: NDArray[np.int64], names: Places) -> Columns:
    tested = matrix.sum(axis=1)
    was_tested = tested > 0
    n = int(was_tested.sum())
    return {
        "method": np.full(n, method, dtype=object),
        "metric": np.full(n, RECALL.name, dtype=object),
        "value": np.diag(matrix)[was_tested] / tested[was_tested],
        "group": names[was_tested],
    }


def _append_recalls(scores: Columns, recalls: Columns) -> Columns:
    no_group = np.full(len(scores["value"]), None, dtype=object)
    columns = {"group": no_group} | scores
    return {name: np.concatenate([columns[name], recalls[name]]) for name in columns}


def _confusion_columns(matrix: NDArray[np.int64], names: Places) -> Columns:
    true, predicted = np.nonzero(matrix)
    return {"true": names[true], "said": names[predicted], "n": matrix[true, predicted]}
