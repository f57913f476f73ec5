"""Stages of `direct` and of its variants: reports, means and scores."""

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from curvote.chain import stage
from curvote.curves.direction import Whitening
from curvote.curves.encoding import predict_indices
from curvote.learning import directions
from curvote.learning.sums import MessageSums, SumForm
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
    return {"classifier": decode_total(report_mean(context), context.metadata)}


def decode_reports(
    reports: Iterable[stage.Columns], public: stage.Metadata
) -> stage.Columns:
    """Return table ``classifier`` from shards of ``directions`` and what is public."""
    return decode_total(sum_reports(reports, public["epsilon"]), public)


def decode_total(total: directions.ReportMean, public: stage.Metadata) -> stage.Columns:
    """Return table ``classifier`` from the mean of all reports."""
    line = directions.one_round_classifier(
        total, arms.directions_of(public), public["epsilon"], public.get("balance")
    )
    return classifier_columns(line, total.n)


def report_mean(
    context: stage.StageContext, source: str = "privatize"
) -> directions.ReportMean:
    """Return the mean of a stage's reports, of sums where no more was kept of them.

    A release of before there were sums is added as it was then.
    """
    if sums := _kept_sums(context, source):
        return directions.ReportMean.from_sums(sums)
    reports = context.shards(source, "directions")
    return sum_reports(reports, _epsilon_to_add(context, source))


def _kept_sums(context: stage.StageContext, source: str) -> MessageSums | None:
    """Return the sums of a stage's reports; None: each of them is there."""
    public = context.inputs[source].metadata
    form = SumForm.from_text(public.get("keep"))
    return MessageSums(form, public["sums"]) if form else None


def _epsilon_to_add(context: stage.StageContext, source: str) -> float | None:
    public = context.inputs[source].metadata
    earlier = "task" in public and "keep" not in public
    return None if earlier else float(public["epsilon"])


def sum_reports(
    reports: Iterable[stage.Columns], epsilon: float | None
) -> directions.ReportMean:
    """Return the mean of the reports in the shards of a table ``directions``.

    ``epsilon`` is as in `ReportMean.from_shards`.
    """
    shards = (shard["direction"] for shard in reports)
    return directions.ReportMean.from_shards(shards, epsilon)


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
    return {"whitening": whitening_columns(report_mean(context), context.metadata)}


def whitening_columns(
    total: directions.ReportMean, public: stage.Metadata
) -> stage.Columns:
    """Return table ``whitening`` from the mean of the first round's reports."""
    transform = directions.estimate_whitening(
        total, arms.directions_of(public), public["epsilon"]
    )
    return {"matrix": transform.matrix, "centre": transform.centre}


refine_metadata, refine_portions = study.draw_stage_in_portions(messages.Refinement())


def combine_metadata(inputs: stage.Inputs, params: stage.Params) -> stage.Metadata:
    """Return the mechanism, budget and class shares that decoding needs."""
    return decoding_terms(inputs["refine"].metadata, params)


def combine(context: stage.StageContext) -> stage.Rows:
    """Return the table ``classifier``: one row."""
    sums = report_mean(context), report_mean(context, "refine")
    whitening = context.rows("whiten", "whitening")
    return {"classifier": decode_two_rounds(sums, whitening, context.metadata)}


def decode_two_rounds(
    sums: tuple[directions.ReportMean, directions.ReportMean],
    whitening: stage.Columns,
    public: stage.Metadata,
) -> stage.Columns:
    """Return table ``classifier`` from both rounds' means and what is public."""
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
    source, n_classes = "privatize", context.metadata["n_classes"]
    if sums := _kept_sums(context, source):
        total = directions.BlockMeans.from_sums(sums, n_classes)
    else:
        reports = context.shards(source, "named_directions")
        epsilon = _epsilon_to_add(context, source)
        total = _block_means(reports, n_classes, epsilon)
    return {"classifier": _decode_blocks(total, context.metadata)}


def decode_one_of(
    reports: Iterable[stage.Columns], public: stage.Metadata
) -> stage.Columns:
    """Return table ``classifier`` from shards of reports and what is public."""
    total = _block_means(reports, public["n_classes"], public["epsilon"])
    return _decode_blocks(total, public)


def _block_means(
    reports: Iterable[stage.Columns], n_classes: int, epsilon: float | None
) -> directions.BlockMeans:
    answers = ((shard["named"], shard["direction"]) for shard in reports)
    return directions.BlockMeans.from_shards(answers, n_classes, epsilon)


def _decode_blocks(
    total: directions.BlockMeans, public: stage.Metadata
) -> stage.Columns:
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
