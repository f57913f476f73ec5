"""Stage privatize where a server's release came by envelope."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.encoding import Encoding
from curvote.messages.message import ClientData
from curvote.messages.stages import collect, collect_metadata
from curvote.systems.transfer import allocation, settings, target
from curvote.systems.transfer.measures import (
    ADAPT_TAR,
    CROSSED,
    class_scores,
    score_table,
)
from curvote.systems.transfer.messages import MESSAGES
from curvote.systems.transfer.method.task import ASKS, Task

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
    task, client_data = (
        Task.from_json(context.metadata["task"]),
        server_records(context),
    )
    (_, noise), *_ = context.noise(1)
    message = MESSAGES[ASKS].draw(task, client_data, noise)
    return {"releases": MESSAGES[ASKS].collect(task, message)}


def server_records(context: StageContext) -> ClientData:
    """Return a server's records to release of, its faults included."""
    params, records = context.params, context.rows("project", "encoded")
    rows = allocation.server_rows(context, records)[params["server"]]
    if params["held_out"]:
        _, rows = allocation.split_test(context, rows, records, params["held_out"])
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
    fault, k = (
        context.params["fault"],
        len(context.inputs["project"].metadata["classes"]),
    )
    if fault == "flipped":
        return np.asarray((labels + 1) % k)
    if fault == "random":
        return context.generator("fault").integers(k, size=len(labels))
    return labels


def aggregate_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the joint task, the number of records, and the target.

    The number of records is that of the first repetition.
    """
    task = target.joint_task(inputs["project"].metadata, params)
    record_count = target.count_records(inputs)
    return {"task": task.to_json(), "target": params["target"], "about": record_count}


def aggregate(context: StageContext) -> Rows:
    """Return the table ``weights``: a row for each method and server that it weighs."""
    task, releases = target.collect_releases(context)
    rows = [
        (
            method,
            summary.server,
            summary.weight,
            summary.agreement,
            summary.agreement_se,
        )
        for method in context.params["methods"]
        for summary in target.combine_method(
            task, releases, method, context.params
        ).servers
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
    task, releases = target.collect_releases(context)
    records = context.rows("project", "encoded")
    tested = test_rows(context)
    numbers, labels = (
        server_features(context, records)[tested],
        records["label"][tested],
    )
    for method in context.params["methods"]:
        predictions = target.combine_method(
            task, releases, method, context.params
        ).codes(numbers)
        for metric, value in class_scores(
            labels, predictions, len(task.classes)
        ).items():
            yield method, metric, value


def test_rows(context: StageContext) -> Codes:
    """Return the target's rows that are only tested."""
    records, params = context.rows("project", "encoded"), context.params
    target_rows = allocation.server_rows(context, records)[params["target"]]
    tested, _ = allocation.split_test(
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
    task, releases = target.collect_releases(context)
    records = context.rows("project", "encoded")
    numbers = server_features(context, records)
    server_rows = allocation.server_rows(context, records) | {
        context.params["target"]: test_rows(context)
    }
    all_rows = np.concatenate([*server_rows.values()])
    ends = np.cumsum([0, *map(len, server_rows.values())])
    for server in [release.server for release in releases]:
        params = {**context.params, "target": server}
        model = target.combine_method(task, releases, ADAPT_TAR.name, params)
        predictions, labels = model.codes(numbers[all_rows]), records["label"][all_rows]
        for tested, low, high in zip(server_rows, ends, ends[1:], strict=False):
            part_predictions, part_labels = predictions[low:high], labels[low:high]
            scores = class_scores(part_labels, part_predictions, len(task.classes))
            yield server, tested, int(high - low), *scores.values()
