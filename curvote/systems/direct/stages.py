"""Stages of `direct` and of its variants: reports, means and scores."""

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from curvote.chain import stage
from curvote.curves.direction import Whitening
from curvote.curves.encoding import predict_indices
from curvote.learning import directions
from curvote.messages import arms
from curvote.messages.stages import study_metadata
from curvote.systems.common import study
from curvote.systems.common.models import (
    classifier_columns,
    decision_values,
    ranking_of,
)
from curvote.systems.direct import messages
from curvote.systems.references.stages import majority_error

privatize_metadata, privatize_portions = study.draw_stage_in_portions(
    messages.Direction()
)


def aggregate_metadata(inputs: stage.Inputs, params: stage.Params) -> stage.Metadata:
    """Return the mechanism, budget and class shares that decoding needs."""
    return decoding_terms(inputs["privatize"].metadata, params)


def decoding_terms(reports: stage.Metadata, params: stage.Params) -> stage.Metadata:
    """Return what decoding needs of reports' metadata, and the stated shares."""
    shares = params["source.balance"]
    balance = {} if shares is None else {"balance": shares}
    return arms.decoding_metadata(reports) | balance


def aggregate(context: stage.StageContext) -> stage.Rows:
    """Return the table ``classifier``: one row."""
    reports = context.shards("privatize", "directions")
    return {"classifier": decode_reports(reports, context.metadata)}


def decode_reports(
    reports: Iterable[stage.Columns], public: stage.Metadata
) -> stage.Columns:
    """Return table ``classifier`` from shards of ``directions`` and what is public."""
    return decode_total(sum_reports(reports), public)


def decode_total(total: directions.ReportMean, public: stage.Metadata) -> stage.Columns:
    """Return table ``classifier`` from the mean of all reports."""
    line = directions.one_round_classifier(
        total, arms.directions_of(public), public["epsilon"], public.get("balance")
    )
    return classifier_columns(line, total.n)


def sum_reports(reports: Iterable[stage.Columns]) -> directions.ReportMean:
    """Return the mean of the reports in the shards of a table ``directions``."""
    return directions.ReportMean.from_shards(shard["direction"] for shard in reports)


score_metadata = study.stated_metadata(method="direct.arm")


def score(context: stage.StageContext) -> stage.Rows:
    """Return the table ``scores``: the arm and the majority; of K > 2 classes more."""
    clients = study.study_clients(context)
    features, truth = clients.features_and_places("rescaled", "test")
    decisions = decision_values(features, context.rows("aggregate", "classifier"))
    errors = {"majority": majority_error(context, clients)}
    predictions = {context.metadata["method"]: predict_indices(decisions)}
    ranking = ranking_of(decisions)
    return study.score_places(context, truth, predictions, errors, ranking)


privatize_first_metadata, privatize_first_portions = study.draw_stage_in_portions(
    messages.FIRST_ROUND
)


def whiten_metadata(inputs: stage.Inputs, params: stage.Params) -> stage.Metadata:
    """Return the mechanism and budget that decoding needs."""
    return arms.decoding_metadata(inputs["privatize"].metadata)


def whiten(context: stage.StageContext) -> stage.Rows:
    """Return the table ``whitening``: a row a coordinate of the second round's z."""
    reports = context.shards("privatize", "directions")
    return {"whitening": whitening_columns(reports, context.metadata)}


def whitening_columns(
    reports: Iterable[stage.Columns], public: stage.Metadata
) -> stage.Columns:
    """Return table ``whitening`` from the shards of the first round's reports."""
    transform = directions.estimate_whitening(
        sum_reports(reports), arms.directions_of(public), public["epsilon"]
    )
    return {"matrix": transform.matrix, "centre": transform.centre}


refine_metadata, refine_portions = study.draw_stage_in_portions(messages.Refinement())


def combine_metadata(inputs: stage.Inputs, params: stage.Params) -> stage.Metadata:
    """Return the mechanism, budget and class shares that decoding needs."""
    return decoding_terms(inputs["refine"].metadata, params)


def combine(context: stage.StageContext) -> stage.Rows:
    """Return the table ``classifier``: one row."""
    first = context.shards("privatize", "directions")
    second = context.shards("refine", "directions")
    whitening = context.rows("whiten", "whitening")
    columns = decode_two_rounds(first, second, whitening, context.metadata)
    return {"classifier": columns}


def decode_two_rounds(
    first: Iterable[stage.Columns],
    second: Iterable[stage.Columns],
    whitening: stage.Columns,
    public: stage.Metadata,
) -> stage.Columns:
    """Return table ``classifier`` from both rounds' shards and what is public."""
    sums = sum_reports(first), sum_reports(second)
    transform = Whitening(whitening["matrix"], whitening["centre"])
    ways = arms.directions_of(public), public["epsilon"], public.get("balance")
    line = directions.two_round_classifier(sums, transform, *ways)
    return classifier_columns(line, sums[0].n + sums[1].n)


privatize_one_of_metadata, privatize_one_of_portions = study.draw_stage_in_portions(
    messages.NamedDirection()
)


combine_one_of_metadata = aggregate_metadata


def combine_one_of(context: stage.StageContext) -> stage.Rows:
    """Return the table ``classifier``."""
    reports = context.shards("privatize", "named_directions")
    return {"classifier": decode_one_of(reports, context.metadata)}


def decode_one_of(
    reports: Iterable[stage.Columns], public: stage.Metadata
) -> stage.Columns:
    """Return table ``classifier`` from shards of reports and what is public."""
    answers = ((shard["named"], shard["direction"]) for shard in reports)
    total = directions.BlockMeans.from_shards(answers, public["n_classes"])
    vectors = arms.directions_from_params(public["d"], public["params"])
    ways = vectors, public["epsilon"], public.get("balance")
    return classifier_columns(directions.one_of_classifier(total, *ways), total.n)


GRADIENT_MESSAGE: Final = messages.Gradient()


descend_metadata = partial(study_metadata, GRADIENT_MESSAGE)


def descend(context: stage.StageContext) -> stage.Rows:
    """Return the table ``gradients``: those of each round in random order.

    Who is in which batch follows from the roles, which everybody knows.
    """
    task = study.study_task(context, GRADIENT_MESSAGE)
    clients, params = study.study_clients(context), context.params
    current, batches = messages.task_gradients(task), []
    rows = GRADIENT_MESSAGE.senders.rows(clients.roles)
    parts = np.array_split(rows, params["sgd.rounds"])
    for number, batch in enumerate(parts, start=1):
        order = context.generator("shuffle", block=number).permutation(len(batch))
        data, round_task = (
            clients.data_of(batch[order]),
            messages.task_at(task, current.coef),
        )
        # One stream for each round, which stands where others have blocks of clients.
        noise = stage.block_noise(params["seed"], context.stage, context.number, number)
        noised_columns = GRADIENT_MESSAGE.draw(round_task, data, noise)
        table = GRADIENT_MESSAGE.collect(round_task, noised_columns)
        batches.append({"round": np.full(len(batch), number), **table})
        reports = table["gradient"]
        current = directions.gradient_step(
            current, reports, task.epsilon, params["sgd.rate"]
        )
    return {
        "gradients": {k: np.concatenate([s[k] for s in batches]) for k in batches[0]}
    }


def aggregate_gradients_metadata(
    inputs: stage.Inputs, params: stage.Params
) -> stage.Metadata:
    """Return the public parameters of the descent."""
    public = inputs["descend"].metadata
    names = ("d", "n_classes", "epsilon", "params")
    return {name: public[name] for name in names} | {"rate": params["sgd.rate"]}


def aggregate_gradients(context: stage.StageContext) -> stage.Rows:
    """Return the table ``classifier``: one row, or one for each class."""
    reports, public = context.rows("descend", "gradients"), context.metadata
    start_coef = messages.start_coefficients(public["d"], public["n_classes"])
    gradients = messages.gradients_from_params(
        public["d"], public["params"] | {"coef": start_coef}
    )
    iterates = []
    for number in np.unique(reports["round"]).tolist():
        batch = reports["gradient"][reports["round"] == number]
        gradients = directions.gradient_step(
            gradients, batch, public["epsilon"], public["rate"]
        )
        iterates.append(gradients)
    line = directions.average_iterates(iterates).line()
    return {"classifier": classifier_columns(line, len(reports["round"]))}


score_gradients = score


def score_gradients_metadata(
    inputs: stage.Inputs, params: stage.Params
) -> stage.Metadata:
    """Return the name of the one method."""
    return {"method": "sgd"}
