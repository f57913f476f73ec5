"""Stage privatize: one server releases its noised sums."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.message import Known
from curvote.protocols.transfer import dealing, stated
from curvote.protocols.transfer.messages import MESSAGES
from curvote.protocols.transfer.stages.collected import task_of
from curvote.representation.encoding import Encoding
from curvote.transfer.task import ASKS, Task


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what the server is asked: all of it is public."""
    asked = task_of(inputs, params)
    return {"task": asked.to_json(), "task_digest": asked.digest()}


def one(here: Here) -> Rows:
    """Return the table ``releases``: the one row of this server."""
    task, known = Task.from_json(here.facts["task"]), records_of(here)
    (_, noise), *_ = here.noise(1)
    sent = MESSAGES[ASKS].draw(task, known, noise)
    return {"releases": MESSAGES[ASKS].gather(task, sent)}


def records_of(here: Here) -> Known:
    """Return what the server holds to release of, its faults included."""
    params, records = here.params, here.rows("project", "encoded")
    rows = dealing.held(here, records)[params["server"]]
    if params["held_out"]:
        _, rows = dealing.set_aside(here, rows, records, params["held_out"])
    numbers = numbers_of(here, records)[rows]
    return Known(numbers, numbers, _said(here, records["label"][rows]))


def numbers_of(here: Here, records: Columns) -> np.ndarray:
    """Return the features (n, d) that servers speak of."""
    encoding = Encoding.from_json(here.inputs["project"].facts["encoding"])
    return records["coefficients" if stated.raw(encoding) else "z"]


def _said(here: Here, labels: np.ndarray) -> np.ndarray:
    """Return the labels as this server gives them: one with a fault lies."""
    fault, k = here.params["fault"], len(here.inputs["project"].facts["classes"])
    if fault == "flipped":
        return np.asarray((labels + 1) % k)
    if fault == "random":
        return here.generator("fault").integers(k, size=len(labels))
    return labels
