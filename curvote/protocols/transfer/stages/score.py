"""Stage report of a study: how each method does on the target's tested records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here, Rows
from curvote.protocols.transfer import combining, dealing
from curvote.protocols.transfer.measured import measured, score_table
from curvote.protocols.transfer.stages.privatize import numbers_of

Codes = NDArray[np.int64]


def one(here: Here) -> Rows:
    """Return the table ``scores``: error, F1 and balanced accuracy of each method."""
    return score_table(_measured(here))


def _measured(here: Here) -> Iterator[tuple[str, str, float]]:
    asked, sent = combining.here(here)
    records = here.rows("project", "encoded")
    tested = tested_of(here)
    numbers, labels = numbers_of(here, records)[tested], records["label"][tested]
    for method in here.params["methods"]:
        said = combining.model(asked, sent, method, here.params).codes(numbers)
        for metric, value in measured(labels, said, len(asked.classes)).items():
            yield method, metric, value


def tested_of(here: Here) -> Codes:
    """Return the rows of the target that are only tested."""
    records, params = here.rows("project", "encoded"), here.params
    own = dealing.held(here, records)[params["target"]]
    tested, _ = dealing.set_aside(here, own, records, params["transfer.test"])
    return tested
