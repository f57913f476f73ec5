"""Stages of volunteers, alone and joined with reports."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.learning.volunteers import (
    VolunteerRecords,
    joint_classifier,
    ridge_logistic,
)
from curvote.messages.arms import decoding_metadata, directions_of
from curvote.systems.common import study
from curvote.systems.common.models import classifier_columns, predict_places
from curvote.systems.common.study import score_rows, study_clients
from curvote.systems.direct.stages import decode_total, solving_rule, sum_reports
from curvote.systems.direct.stages import score_metadata as of_direct
from curvote.systems.references.stages import majority_error


def publish_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of classes."""
    return {"n_classes": len(inputs["project"].metadata["classes"])}


def publish(context: StageContext) -> Rows:
    """Return the table ``records``: a row a volunteer."""
    clients = study_clients(context)
    volunteers = clients.roles["public"]
    return {
        "public_records": {
            "z": clients.z[volunteers],
            "label": clients.labels[volunteers],
        }
    }


def aggregate_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of classes."""
    return dict(inputs["publish"].metadata)


def aggregate(context: StageContext) -> Rows:
    """Return the table ``classifier``."""
    records = context.rows("publish", "public_records")
    line = ridge_logistic(records["z"], records["label"], context.metadata["n_classes"])
    return {"classifier": classifier_columns(line, len(records["label"]))}


def score(context: StageContext) -> Rows:
    """Return the table ``scores`` of ``volunteers``, by class if many."""
    features, truth = study_clients(context).features_and_places("rescaled", "test")
    predictions = predict_places(features, context.rows("aggregate", "classifier"))
    classes = context.inputs["project"].metadata["classes"]
    rows = score_rows({"volunteers": float(np.mean(predictions != truth))})
    return study.add_class_scores(rows, "volunteers", truth, predictions, classes)


def join_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def join(context: StageContext) -> Rows:
    """Return the tables ``classifier``, of both, and ``reports_alone``."""
    records = context.rows("publish", "public_records")
    total = sum_reports(context.shards("privatize", "directions"))
    vectors = directions_of(context.metadata)
    public = VolunteerRecords.from_records(vectors, records["z"], records["label"])
    line = joint_classifier(total, vectors, context.metadata["epsilon"], public)
    return {
        "classifier": classifier_columns(line, total.n),
        "reports_alone": decode_total(
            total, context.metadata, solving_rule(context.params)
        ),
    }


def score_join_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the name of the method of reports alone: the arm."""
    return of_direct(inputs, params)


def score_join(context: StageContext) -> Rows:
    """Return the table ``scores``: ``joined``, the arm, and the majority."""
    clients = study_clients(context)
    features, truth = clients.features_and_places("rescaled", "test")
    report_predictions = predict_places(
        features, context.rows("aggregate", "reports_alone")
    )
    joined_predictions = predict_places(
        features, context.rows("aggregate", "classifier")
    )
    errors = {
        "majority": majority_error(context, clients),
        context.metadata["method"]: float(np.mean(report_predictions != truth)),
        "joined": float(np.mean(joined_predictions != truth)),
    }
    classes = context.inputs["project"].metadata["classes"]
    return study.add_class_scores(
        score_rows(errors), "joined", truth, joined_predictions, classes
    )
