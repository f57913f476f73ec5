"""Stage train: a model from public features and codes, which also score it."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.labels.codes import Codes
from curvote.protocols.labels.graphs import cell_learner
from curvote.protocols.labels.messages import RECORD
from curvote.protocols.labels.packing import pack_model
from curvote.protocols.labels.records import (
    Names,
    codes_from_table,
    rows_by_name,
    rows_without_codes,
)
from curvote.protocols.labels.training import Records, TrainedModel, fit_with_holdout


def one(context: StageContext) -> Rows:
    """Return ``said``, ``honest``, ``shares`` and, the first time, ``model``."""
    table = context.rows("privatize", "codes")
    codes = codes_from_table(context.inputs["privatize"].metadata, table)
    return train_on_codes(context, table[RECORD], codes)


def train_on_codes(context: StageContext, coded_names: Names, codes: Codes) -> Rows:
    """Return the tables of a model from the codes of the named records."""
    features = context.rows("features", "features")
    names, values = features[RECORD], features["values"]
    other_rows = rows_without_codes(names, coded_names)
    records = Records(
        values[rows_by_name(names, coded_names)], codes, values[other_rows]
    )
    learner = cell_learner(context)
    trained_model = fit_with_holdout(
        records, learner, context.params, context.generator("train")
    )
    return {
        "said": _prediction_table(trained_model, names[other_rows], records.unlabelled),
        "honest": trained_model.honest_table(),
        "shares": trained_model.share_table(),
        "kept": {
            "model": pack_model(trained_model.model)
            if context.number == 0
            else _NO_MODEL
        },
    }


_NO_MODEL = np.empty(0, dtype=object)


def _prediction_table(
    trained_model: TrainedModel, names: Names, features: np.ndarray
) -> Columns:
    """Return the model's predictions for records without a code, with confidence."""
    if not len(features):
        nothing = np.empty(0, dtype=np.int64)
        return {RECORD: names, "place": nothing, "confidence": np.empty(0)}
    predictions = trained_model.model.predict_both(features)
    sure = predictions.proba[np.arange(len(features)), predictions.places]
    return {RECORD: names, "place": predictions.places, "confidence": sure}
