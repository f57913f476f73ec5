"""Stages of two rounds: codes of one half, priors, codes of the other, one model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.base.classes import Classes
from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.messages.stages import task_metadata
from curvote.systems.labels import messages, stages
from curvote.systems.labels.system import cell_learner


def first_round_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task of the first half."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    return task_metadata(messages.first_round_task(classes, params["epsilon"]))


def first_round(context: StageContext) -> Rows:
    """Return the table ``codes`` of the first half."""
    return stages.draw_codes(context, messages.TWO_ROUNDS_MESSAGES[messages.ASKS])


def learn(context: StageContext) -> Rows:
    """Return the table ``priors``, of every record that no code is there of."""
    features = context.rows("features", "features")
    table = context.rows("privatize", "codes")
    names, values = features[messages.RECORD], features["values"]
    other_rows = stages.rows_without_codes(names, table[messages.RECORD])
    codes = stages.codes_from_table(context.inputs["privatize"].metadata, table)
    records = stages.Records(
        values[stages.rows_by_name(names, table[messages.RECORD])],
        codes,
        values[other_rows],
    )
    seed = int(context.generator("learn").integers(2**31))
    classifier = stages.fit_model(records, cell_learner(context), context.params, seed)
    prior = classifier.predict_proba(values[other_rows])
    return {"priors": {messages.RECORD: names[other_rows], messages.PRIOR: prior}}


def second_round_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task of the second half."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    return task_metadata(messages.second_round_task(classes, params["epsilon"]))


def second_round(context: StageContext) -> Rows:
    """Return the table ``codes`` of the second half."""
    kind = messages.TWO_ROUNDS_MESSAGES[messages.LIKELY]
    prior = stages.record_priors(context, stages.sender_names(context, kind))
    return stages.draw_codes(context, kind, {messages.PRIOR: prior})


def train(context: StageContext) -> Rows:
    """Return the tables of stage train; the first round's prior says nothing."""
    early, late = context.rows("privatize", "codes"), context.rows("again", "codes")
    first = stages.codes_from_table(context.inputs["privatize"].metadata, early)
    prior = stages.record_priors(context, late[messages.RECORD])
    second = stages.codes_from_table(context.inputs["again"].metadata, late, prior)
    codes = replace(
        second,
        values=np.concatenate([first.values, second.values]),
        prior=np.concatenate([np.ones((len(first), first.n_classes)), prior]),
    )
    return stages.train_on_codes(
        context, np.concatenate([early[messages.RECORD], late[messages.RECORD]]), codes
    )
