"""Records by their public names: who plays which role, and codes beside features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.task import Task
from curvote.protocols.labels.messages import CODE, PRIOR, RECORD

Index = NDArray[np.int64]
Names = NDArray[Any]


def rows_of(names: Names, wanted: Names) -> Index:
    """Return the rows of records by name; one that is not there is a UserError."""
    place = {name: row for row, name in enumerate(names)}
    try:
        return np.array([place[name] for name in wanted], dtype=np.int64)
    except KeyError as error:
        message = f"a code is about record {error.args[0]!r}, which has no features."
        raise UserError(message) from None


def without(names: Names, coded: Names) -> Index:
    """Return the rows of the records that have no code."""
    known = set(coded)
    rows = [row for row, name in enumerate(names) if name not in known]
    return np.array(rows, dtype=np.int64)


def codes_of(facts: Facts, sent: Columns, prior: NDArray[Any] | None = None) -> Codes:
    """Return what was sent in one round, with all that is public about it."""
    task = Task.from_json(facts["task"])
    classes = np.asarray(task.classes, dtype=object)
    return Codes(
        sent[CODE], classes, task.epsilon, task.encoder, dict(task.params), prior
    )


def priors_of(here: Here, names: Names) -> NDArray[np.float64]:
    """Return the priors of some records, (n, K)."""
    told = here.rows("learn", "priors")
    return np.asarray(told[PRIOR][rows_of(told[RECORD], names)])
