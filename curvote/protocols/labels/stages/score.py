"""Stage report of a study: what only the true labels of tested records tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Here, Rows
from curvote.datasets import lookup
from curvote.protocols.labels.measured import (
    Score,
    judged,
    recalls,
    reliability,
    score_table,
)
from curvote.protocols.labels.messages import RECORD, names_of
from curvote.protocols.labels.methods import BAYES, LABELS
from curvote.protocols.labels.records import rows_of
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.roles import played

Places = NDArray[np.int64]


def one(here: Here) -> Rows:
    """Return the tables ``scores``, ``reliability`` and ``recalls``."""
    clients = here.rows("ingest", "clients")
    tested = played(clients, here.params, here.number)["test"]
    labels = clients["label"][tested]
    said = _said(here, names_of(clients)[tested])
    rows = [
        *_scores(here, labels, said),
        *_bayes(here, clients["curve"][tested], labels),
    ]
    classes = list(here.inputs["ingest"].facts["classes"])
    return {
        SCORES.name: score_table(rows),
        "reliability": reliability(said["place"] == labels, said["confidence"]),
        "recalls": recalls(labels, said["place"], classes),
    }


def _said(here: Here, names: np.ndarray) -> Columns:
    """Return what the server said of the tested records."""
    said = here.rows("train", "said")
    at = rows_of(said[RECORD], names)
    return {name: values[at] for name, values in said.items()}


def _scores(here: Here, labels: Places, said: Columns) -> Iterator[Score]:
    """Yield the scores of the model, and of the class that codes say is largest."""
    right = said["place"] == labels
    yield from judged(LABELS.name, labels, said["place"])
    bins = reliability(right, said["confidence"])
    gap = np.abs(bins["confidence"] - bins["accuracy"])
    yield Score(LABELS.name, "ece", float(bins["n"] @ gap / max(1, len(labels))))
    yield from _honest(here)
    elected = int(np.argmax(here.rows("train", "shares")["share"]))
    yield from judged(MAJORITY.name, labels, np.full(len(labels), elected))


def _honest(here: Here) -> Iterator[Score]:
    told = here.rows("train", "honest")
    for at in np.flatnonzero(told["scoring"] == "accuracy"):
        yield Score(LABELS.name, "honest", float(told["value"][at]))
        yield Score(LABELS.name, "honest_error", float(told["se"][at]))


def _bayes(here: Here, records: np.ndarray, labels: Places) -> Iterator[Score]:
    """Yield the scores of the best rule, where the law of the data is known."""
    eta = lookup.eta(here.params["source"])
    if eta is not None:
        yield from judged(BAYES.name, labels, eta(records).argmax(axis=1))
