"""Stages of two rounds: codes of one half, priors, codes of the other, one model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.base.classes import Classes
from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.messages.stages import task_metadata
from curvote.systems.labels.messages import (
    LIKELY,
    PRIOR,
    RECORD,
    TWO_ROUNDS_MESSAGES,
    first_round_task,
    second_round_task,
)
from curvote.systems.labels.stages import draw_codes, sender_names, train_on_codes
from curvote.systems.labels.system import cell_learner
from curvote.systems.labels.task import ASKS
from curvote.systems.labels.training import (
    Records,
    codes_from_table,
    fit_model,
    record_priors,
    rows_by_name,
    rows_without_codes,
)


def first_round_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task of the first half."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    return task_metadata(first_round_task(classes, params["epsilon"]))


def first_round(context: StageContext) -> Rows:
    """Return the table ``codes`` of the first half."""
    return draw_codes(context, TWO_ROUNDS_MESSAGES[ASKS])


def learn(context: StageContext) -> Rows:
    """Return the table ``priors``, of every record that no code is there of."""
    features, table = (
        context.rows("features", "features"),
        context.rows("privatize", "codes"),
    )
    names, values = features[RECORD], features["values"]
    other_rows = rows_without_codes(names, table[RECORD])
    codes = codes_from_table(context.inputs["privatize"].metadata, table)
    records = Records(
        values[rows_by_name(names, table[RECORD])], codes, values[other_rows]
    )
    seed = int(context.generator("learn").integers(2**31))
    classifier = fit_model(records, cell_learner(context), context.params, seed)
    prior = classifier.predict_proba(values[other_rows])
    return {"priors": {RECORD: names[other_rows], PRIOR: prior}}


def second_round_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task of the second half."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    return task_metadata(second_round_task(classes, params["epsilon"]))


def second_round(context: StageContext) -> Rows:
    """Return the table ``codes`` of the second half."""
    kind = TWO_ROUNDS_MESSAGES[LIKELY]
    prior = record_priors(context, sender_names(context, kind))
    return draw_codes(context, kind, {PRIOR: prior})


def train(context: StageContext) -> Rows:
    """Return the tables of stage train; the first round's prior says nothing."""
    early, late = context.rows("privatize", "codes"), context.rows("again", "codes")
    first = codes_from_table(context.inputs["privatize"].metadata, early)
    prior = record_priors(context, late[RECORD])
    second = codes_from_table(context.inputs["again"].metadata, late, prior)
    codes = replace(
        second,
        values=np.concatenate([first.values, second.values]),
        prior=np.concatenate([np.ones((len(first), first.n_classes)), prior]),
    )
    return train_on_codes(context, np.concatenate([early[RECORD], late[RECORD]]), codes)
