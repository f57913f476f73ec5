"""Stage train: a model from public features and codes, which also judge it."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Here, Rows
from curvote.labels.codes import Codes
from curvote.protocols.labels.graphs import learner_of
from curvote.protocols.labels.messages import RECORD
from curvote.protocols.labels.packing import packed
from curvote.protocols.labels.records import Names, codes_of, rows_of, without
from curvote.protocols.labels.training import Learnt, Records, learnt


def one(here: Here) -> Rows:
    """Return ``said``, ``honest``, ``shares`` and, the first time, ``model``."""
    sent = here.rows("privatize", "codes")
    codes = codes_of(here.inputs["privatize"].facts, sent)
    return trained(here, sent[RECORD], codes)


def trained(here: Here, named: Names, codes: Codes) -> Rows:
    """Return the tables of a model from the codes of the records named."""
    features = here.rows("features", "features")
    names, values = features[RECORD], features["values"]
    others = without(names, named)
    records = Records(values[rows_of(names, named)], codes, values[others])
    learner = learner_of(here)
    made = learnt(records, learner, here.params, here.generator("train"))
    return {
        "said": _said(made, names[others], records.others),
        "honest": made.honest(),
        "shares": made.shares(),
        "kept": {"model": packed(made.model) if here.number == 0 else _NOTHING},
    }


_NOTHING = np.empty(0, dtype=object)


def _said(made: Learnt, names: Names, others: np.ndarray) -> Columns:
    """Return what the model says of records without a code, and how sure it is."""
    if not len(others):
        nothing = np.empty(0, dtype=np.int64)
        return {RECORD: names, "place": nothing, "confidence": np.empty(0)}
    said = made.model.predict_both(others)
    sure = said.proba[np.arange(len(others)), said.places]
    return {RECORD: names, "place": said.places, "confidence": sure}
