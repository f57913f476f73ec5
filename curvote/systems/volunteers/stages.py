"""Stages of volunteers, alone and joined with reports."""

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.encoding import predict_indices
from curvote.learning.volunteers import (
    VolunteerRecords,
    joint_classifier,
    ridge_logistic,
)
from curvote.messages.arms import directions_of
from curvote.systems.common import study
from curvote.systems.common.models import (
    classifier_columns,
    decision_values,
    ranking_of,
)
from curvote.systems.direct import stages as direct
from curvote.systems.references.stages import majority_error


def publish_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of classes."""
    return {"n_classes": len(inputs["project"].metadata["classes"])}


def publish(context: StageContext) -> Rows:
    """Return the table ``records``: a row a volunteer."""
    clients = study.study_clients(context)
    rows = clients.roles["public"]
    return {"public_records": {"z": clients.z[rows], "label": clients.labels[rows]}}


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
    clients = study.study_clients(context)
    features, truth = clients.features_and_places("rescaled", "test")
    decisions = decision_values(features, context.rows("aggregate", "classifier"))
    predictions = {"volunteers": predict_indices(decisions)}
    return study.score_places(
        context, truth, predictions, decision=ranking_of(decisions)
    )


# The mechanism and budget that decoding needs.
join_metadata = direct.aggregate_metadata


def join(context: StageContext) -> Rows:
    """Return the tables ``classifier``, of both, and ``reports_alone``."""
    records = context.rows("publish", "public_records")
    total = direct.sum_reports(context.shards("privatize", "directions"))
    vectors = directions_of(context.metadata)
    public = VolunteerRecords.from_records(vectors, records["z"], records["label"])
    line = joint_classifier(total, vectors, context.metadata["epsilon"], public)
    return {
        "classifier": classifier_columns(line, total.n),
        "reports_alone": direct.decode_total(total, context.metadata),
    }


# The method of reports alone: the arm.
score_join_metadata = direct.score_metadata


def score_join(context: StageContext) -> Rows:
    """Return the table ``scores``: ``joined``, the arm, and the majority."""
    clients = study.study_clients(context)
    features, truth = clients.features_and_places("rescaled", "test")
    tables = {context.metadata["method"]: "reports_alone", "joined": "classifier"}
    decisions = {
        method: decision_values(features, context.rows("aggregate", table))
        for method, table in tables.items()
    }
    predictions = {m: predict_indices(values) for m, values in decisions.items()}
    errors = {"majority": majority_error(context, clients)}
    ranking = ranking_of(decisions["joined"])
    return study.score_places(context, truth, predictions, errors, ranking)
