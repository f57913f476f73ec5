"""Training on codes: records by their public names, the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Metadata, StageContext
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.task import Task
from curvote.protocols.labels.messages import CODE, PRIOR, RECORD

Index = NDArray[np.int64]
Names = NDArray[Any]


def rows_by_name(names: Names, requested: Names) -> Index:
    """Return the rows of records by name; one that is not there is a UserError."""
    place = {name: row for row, name in enumerate(names)}
    try:
        return np.array([place[name] for name in requested], dtype=np.int64)
    except KeyError as error:
        message = f"a code is about record {error.args[0]!r}, which has no features."
        raise UserError(message) from None


def rows_without_codes(names: Names, coded: Names) -> Index:
    """Return the rows of the records that have no code."""
    coded_names = set(coded)
    rows = [row for row, name in enumerate(names) if name not in coded_names]
    return np.array(rows, dtype=np.int64)


def codes_from_table(
    metadata: Metadata, table: Columns, prior: NDArray[Any] | None = None
) -> Codes:
    """Return the codes of one round's table, with all that is public about them."""
    task = Task.from_json(metadata["task"])
    classes = np.asarray(task.classes, dtype=object)
    return Codes(
        table[CODE], classes, task.epsilon, task.encoder, dict(task.params), prior
    )


def record_priors(context: StageContext, names: Names) -> NDArray[np.float64]:
    """Return the priors of some records, (n, K)."""
    table = context.rows("learn", "priors")
    return np.asarray(table[PRIOR][rows_by_name(table[RECORD], names)])
