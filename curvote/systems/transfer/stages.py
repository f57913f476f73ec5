"""Stages of transfer: releases, their combination for the target, and its scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.chain.system import View
from curvote.curves.encoding import Encoding
from curvote.messages.measures import MAJORITY
from curvote.messages.message import ClientData
from curvote.messages.stages import collect, collect_metadata
from curvote.systems.common.models import read_encoding, record_columns
from curvote.systems.transfer import settings
from curvote.systems.transfer.measures import (
    ADAPT_TAR,
    CROSSED,
    STATED_WEIGHTS,
    class_scores,
    score_table,
)
from curvote.systems.transfer.messages import MESSAGES
from curvote.systems.transfer.method.combination import combine
from curvote.systems.transfer.method.model import Model
from curvote.systems.transfer.method.release import Release, check_release
from curvote.systems.transfer.method.task import ASKS, Task

if TYPE_CHECKING:
    from curvote.systems.transfer.model import TransferClassifier


Releases = list[Release]
# What reads the settings that decide how releases are combined.
PARAMS = ("told", "target", "transfer.weights", "transfer.decide", "methods", "seed")
_RELEASE_INPUT = "privatize@"


def joint_task(public: Metadata, params: Params) -> Task:
    """Return the task that asks all servers of a cell."""
    return settings.build_task(public, params["told"], params)


def collect_releases(context: StageContext) -> tuple[Task, Releases]:
    """Return the task and the releases of one repetition of a stage."""
    task_of_all = joint_task(context.inputs["project"].metadata, context.params)
    names = [name for name in context.inputs if name.startswith(_RELEASE_INPUT)]
    return task_of_all, read_releases(
        task_of_all, (context.rows(name, "releases") for name in names)
    )


def count_records(inputs: Inputs) -> int:
    """Return the number of records behind all releases of the first repetition."""
    stage_inputs = (inputs[name] for name in inputs if name.startswith(_RELEASE_INPUT))
    return sum(
        int(stage_input.columns("releases", (0,))["n"].sum())
        for stage_input in stage_inputs
    )


def read_releases(task: Task, tables: Iterable[Columns]) -> Releases:
    """Return the releases of all servers, checked like received ones."""
    return [_read_release(task, rows) for rows in tables if len(rows["n"])]


def _read_release(task: Task, rows: Columns) -> Release:
    """Return one server's release from its table row."""
    server_task = task.for_server(str(rows["server"][0]))
    return check_release(
        server_task, int(rows["n"][0]), rows["values"][0].astype(np.int64)
    )


def combine_method(
    task: Task, releases: Releases, method: str, params: Params
) -> Model:
    """Return the classifier of one method; the majority is the target's."""
    rules = {
        STATED_WEIGHTS.name: params["transfer.weights"],
        MAJORITY.name: ADAPT_TAR.name,
    }
    return combine(
        task,
        releases,
        target=params["target"],
        weights=rules.get(method, method),
        decide=params["transfer.decide"],
    )


def final_model(view: View) -> TransferClassifier:
    """Return the target's classifier of the first repetition."""
    from curvote.systems.transfer.model import TransferClassifier  # scikit-learn

    params = {name: view.setting(name) for name in PARAMS}
    task = joint_task(view.metadata("project"), params)
    server_views = (view.at(server=name) for name in view.setting("names"))
    releases = read_releases(
        task,
        (server_view.columns("privatize", "releases") for server_view in server_views),
    )
    model = combine_method(task, releases, view.setting("methods")[0], params)
    encoding = read_encoding(view).to_json()
    return TransferClassifier(record_columns(view), encoding, model.to_json())


collected_metadata = collect_metadata
collected = collect


def collected_task(inputs: Inputs, params: Params) -> Task:
    """Return the public task of a cell's server."""
    public, server = inputs["project"].metadata, params["server"]
    return settings.build_task(public, {server: params["asked"]}, params)


privatize_task = collected_task


def privatize_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the public task of a server, and its digest."""
    task = collected_task(inputs, params)
    return {"task": task.to_json(), "task_digest": task.digest()}


def privatize(context: StageContext) -> Rows:
    """Return the table ``releases``: the one row of this server."""
    task = Task.from_json(context.metadata["task"])
    client_data = server_records(context)
    (_, noise), *_ = context.noise(1)
    message = MESSAGES[ASKS].draw(task, client_data, noise)
    return {"releases": MESSAGES[ASKS].collect(task, message)}


def server_records(context: StageContext) -> ClientData:
    """Return a server's records to release of, its faults included."""
    params, records = context.params, context.rows("project", "encoded")
    rows = settings.server_rows(context, records)[params["server"]]
    if params["held_out"]:
        _, rows = settings.split_test(context, rows, records, params["held_out"])
    numbers = server_features(context, records)[rows]
    return ClientData(
        numbers, numbers, _reported_labels(context, records["label"][rows])
    )


def server_features(context: StageContext, records: Columns) -> np.ndarray:
    """Return the features (n, d) that servers release of."""
    encoding = Encoding.from_json(context.inputs["project"].metadata["encoding"])
    return records["coefficients" if settings.uses_coefficients(encoding) else "z"]


def _reported_labels(context: StageContext, labels: np.ndarray) -> np.ndarray:
    """Return the labels as this server reports them: a faulty one lies."""
    fault = context.params["fault"]
    k = len(context.inputs["project"].metadata["classes"])
    if fault == "flipped":
        return np.asarray((labels + 1) % k)
    if fault == "random":
        return context.generator("fault").integers(k, size=len(labels))
    return labels


def aggregate_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the joint task, the number of records, and the target.

    The number of records is that of the first repetition.
    """
    task = joint_task(inputs["project"].metadata, params)
    record_count = count_records(inputs)
    return {"task": task.to_json(), "target": params["target"], "about": record_count}


def aggregate(context: StageContext) -> Rows:
    """Return the table ``weights``: a row for each method and server that it weighs."""
    task, releases = collect_releases(context)
    rows = [
        (
            method,
            summary.server,
            summary.weight,
            summary.agreement,
            summary.agreement_se,
        )
        for method in context.params["methods"]
        for summary in combine_method(task, releases, method, context.params).servers
        if summary.weight is not None
    ]
    names = ("method", "server", "weight", "agreement", "agreement_se")
    kinds = (object, object, np.float64, object, object)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        "weights": (
            {
                name: np.array(column, dtype=kind)
                for name, kind, column in zip(names, kinds, columns, strict=True)
            }
        )
    }


Codes = NDArray[np.int64]


def report(context: StageContext) -> Rows:
    """Return the table ``scores``: error, F1 and balanced accuracy of each method."""
    return score_table(_score_rows(context))


def _score_rows(context: StageContext) -> Iterator[tuple[str, str, float]]:
    """Yield (method, metric, value) of each method on the test records."""
    task, releases = collect_releases(context)
    records = context.rows("project", "encoded")
    tested = test_rows(context)
    numbers = server_features(context, records)[tested]
    labels = records["label"][tested]
    for method in context.params["methods"]:
        predictions = combine_method(task, releases, method, context.params).codes(
            numbers
        )
        for metric, value in class_scores(
            labels, predictions, len(task.classes)
        ).items():
            yield method, metric, value


def test_rows(context: StageContext) -> Codes:
    """Return the target's rows that are only tested."""
    records, params = context.rows("project", "encoded"), context.params
    target_rows = settings.server_rows(context, records)[params["target"]]
    tested, _ = settings.split_test(
        context, target_rows, records, params["transfer.test"]
    )
    return tested


def crossed(context: StageContext) -> Rows:
    """Return the table ``crossed``: a row for each release and tested server.

    Of the target's records those are tested that were set aside, of others all.
    """
    names = tuple(CROSSED.columns)
    columns = list(zip(*_crossed_rows(context), strict=True))
    return {CROSSED.name: dict(zip(names, map(_to_column, columns), strict=True))}


def _to_column(values: tuple[Any, ...]) -> NDArray[Any]:
    """Return values as an array of objects or numbers."""
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def _crossed_rows(context: StageContext) -> Iterator[tuple[Any, ...]]:
    """Yield the scores of each server's release on each server's records."""
    task, releases = collect_releases(context)
    records = context.rows("project", "encoded")
    numbers = server_features(context, records)
    server_rows = settings.server_rows(context, records) | {
        context.params["target"]: test_rows(context)
    }
    all_rows = np.concatenate([*server_rows.values()])
    ends = np.cumsum([0, *map(len, server_rows.values())])
    for server in [release.server for release in releases]:
        params = {**context.params, "target": server}
        model = combine_method(task, releases, ADAPT_TAR.name, params)
        predictions, labels = model.codes(numbers[all_rows]), records["label"][all_rows]
        for tested, low, high in zip(server_rows, ends, ends[1:], strict=False):
            part_predictions, part_labels = predictions[low:high], labels[low:high]
            scores = class_scores(part_labels, part_predictions, len(task.classes))
            yield server, tested, int(high - low), *scores.values()
