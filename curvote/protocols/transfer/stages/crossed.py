"""Stage crossed: how the release of each server alone does on the records of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here, Rows
from curvote.protocols.transfer import combining, dealing
from curvote.protocols.transfer.measured import measured
from curvote.protocols.transfer.methods import ADAPT_TAR
from curvote.protocols.transfer.stages.privatize import numbers_of
from curvote.protocols.transfer.stages.score import tested_of
from curvote.protocols.transfer.tables import CROSSED


def one(here: Here) -> Rows:
    """Return the table ``crossed``: a row for each release and each server's records.

    Of the target's records those are tested that were set aside, of others all.
    """
    names = tuple(CROSSED.columns)
    told = list(zip(*_rows(here), strict=True))
    return {CROSSED.name: dict(zip(names, map(_column, told), strict=True))}


def _column(values: tuple[Any, ...]) -> NDArray[Any]:
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def _rows(here: Here) -> Iterator[tuple[Any, ...]]:
    asked, sent = combining.here(here)
    records = here.rows("project", "encoded")
    numbers = numbers_of(here, records)
    held = dealing.held(here, records) | {here.params["target"]: tested_of(here)}
    every = np.concatenate([*held.values()])
    ends = np.cumsum([0, *map(len, held.values())])
    for server in [each.server for each in sent]:
        params = {**here.params, "target": server}
        model = combining.model(asked, sent, ADAPT_TAR.name, params)
        said, labels = model.codes(numbers[every]), records["label"][every]
        for tested, low, high in zip(held, ends, ends[1:], strict=False):
            here_said, here_labels = said[low:high], labels[low:high]
            found = measured(here_labels, here_said, len(asked.classes))
            yield server, tested, int(high - low), *found.values()
