"""Stage report of a study: scores by the true labels of tested records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Rows, StageContext
from curvote.datasets import lookup
from curvote.protocols.labels.measured import (
    ScoreRow,
    recall_table,
    reliability_table,
    score_predictions,
    score_table,
)
from curvote.protocols.labels.messages import RECORD, record_names
from curvote.protocols.labels.methods import BAYES, LABELS
from curvote.protocols.labels.records import rows_by_name
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.roles import roles_of_table

Places = NDArray[np.int64]


def one(context: StageContext) -> Rows:
    """Return the tables ``scores``, ``reliability_table`` and ``recall_table``."""
    clients = context.rows("ingest", "clients")
    tested = roles_of_table(clients, context.params, context.number)["test"]
    labels = clients["label"][tested]
    predictions = _tested_predictions(context, record_names(clients)[tested])
    rows = [
        *_model_scores(context, labels, predictions),
        *_bayes_scores(context, clients["curve"][tested], labels),
    ]
    classes = list(context.inputs["ingest"].metadata["classes"])
    return {
        SCORES.name: score_table(rows),
        "reliability": reliability_table(
            predictions["place"] == labels, predictions["confidence"]
        ),
        "recalls": recall_table(labels, predictions["place"], classes),
    }


def _tested_predictions(context: StageContext, names: np.ndarray) -> Columns:
    """Return the server's predictions for the tested records."""
    table = context.rows("train", "said")
    at = rows_by_name(table[RECORD], names)
    return {name: values[at] for name, values in table.items()}


def _model_scores(
    context: StageContext, labels: Places, predictions: Columns
) -> Iterator[ScoreRow]:
    """Yield the scores of the model, and of the class that codes say is largest."""
    right = predictions["place"] == labels
    yield from score_predictions(LABELS.name, labels, predictions["place"])
    bins = reliability_table(right, predictions["confidence"])
    gap = np.abs(bins["confidence"] - bins["accuracy"])
    yield ScoreRow(LABELS.name, "ece", float(bins["n"] @ gap / max(1, len(labels))))
    yield from _honest_scores(context)
    elected = int(np.argmax(context.rows("train", "shares")["share"]))
    yield from score_predictions(MAJORITY.name, labels, np.full(len(labels), elected))


def _honest_scores(context: StageContext) -> Iterator[ScoreRow]:
    table = context.rows("train", "honest")
    for at in np.flatnonzero(table["scoring"] == "accuracy"):
        yield ScoreRow(LABELS.name, "honest", float(table["value"][at]))
        yield ScoreRow(LABELS.name, "honest_error", float(table["se"][at]))


def _bayes_scores(
    context: StageContext, records: np.ndarray, labels: Places
) -> Iterator[ScoreRow]:
    """Yield the scores of the best rule, where the law of the data is known."""
    eta = lookup.eta(context.params["source"])
    if eta is not None:
        yield from score_predictions(BAYES.name, labels, eta(records).argmax(axis=1))
