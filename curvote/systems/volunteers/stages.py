"""Stages of volunteers: alone, joined with reports, or only for coordinates."""

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.encoding import predict_indices
from curvote.learning.volunteers import (
    VolunteerRecords,
    joint_classifier,
    ridge_logistic,
)
from curvote.learning.whitened import whitened_classifier
from curvote.messages.arms import decoding_metadata, directions_of
from curvote.systems.common import study
from curvote.systems.common.models import (
    classifier_columns,
    decision_values,
    ranking_of,
)
from curvote.systems.direct import stages as direct
from curvote.systems.references.stages import majority_error
from curvote.systems.volunteers.messages import HalfWhitened


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
    total = direct.report_mean(context)
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


publish_numbers_metadata = publish_metadata


def publish_numbers(context: StageContext) -> Rows:
    """Return the table ``public_numbers``: a row a volunteer, without a label."""
    clients = study.study_clients(context)
    return {"public_numbers": {"z": clients.z[clients.roles["public"]]}}


privatize_whitened_metadata, privatize_whitened_portions = study.draw_stage_in_portions(
    HalfWhitened()
)


def decode_whitened_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def decode_whitened(context: StageContext) -> Rows:
    """Return the table ``classifier``."""
    numbers = context.rows("publish_numbers", "public_numbers")["z"]
    total = direct.report_mean(context)
    directions = directions_of(context.metadata).whitened
    terms = total, directions, context.metadata["epsilon"], numbers
    return {"classifier": classifier_columns(whitened_classifier(*terms), total.n)}


score_whitened = direct.score


def score_whitened_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the name of the one method."""
    return {"method": "whitened"}
