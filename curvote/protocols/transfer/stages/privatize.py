"""Stages of transfer: privatize, aggregate, report and the train-test matrix."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.message import ClientData
from curvote.protocols.transfer import dealing, stated
from curvote.protocols.transfer.messages import MESSAGES
from curvote.protocols.transfer.stages.collected import task_of
from curvote.representation.encoding import Encoding
from curvote.transfer.task import ASKS, Task


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the public task of a server, and its digest."""
    task = task_of(inputs, params)
    return {"task": task.to_json(), "task_digest": task.digest()}


def one(context: StageContext) -> Rows:
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
    rows = dealing.server_rows(context, records)[params["server"]]
    if params["held_out"]:
        _, rows = dealing.split_test(context, rows, records, params["held_out"])
    numbers = server_features(context, records)[rows]
    return ClientData(
        numbers, numbers, _reported_labels(context, records["label"][rows])
    )


def server_features(context: StageContext, records: Columns) -> np.ndarray:
    """Return the features (n, d) that servers release of."""
    encoding = Encoding.from_json(context.inputs["project"].metadata["encoding"])
    return records["coefficients" if stated.uses_coefficients(encoding) else "z"]


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
