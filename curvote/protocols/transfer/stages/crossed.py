"""Stage crossed: how the release of each server alone does on the records of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.transfer import combining, dealing
from curvote.protocols.transfer.measured import class_scores
from curvote.protocols.transfer.methods import ADAPT_TAR
from curvote.protocols.transfer.stages.privatize import server_features
from curvote.protocols.transfer.stages.score import test_rows
from curvote.protocols.transfer.tables import CROSSED


def one(context: StageContext) -> Rows:
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
    task, releases = combining.collect_releases(context)
    records = context.rows("project", "encoded")
    numbers = server_features(context, records)
    server_rows = dealing.server_rows(context, records) | {
        context.params["target"]: test_rows(context)
    }
    all_rows = np.concatenate([*server_rows.values()])
    ends = np.cumsum([0, *map(len, server_rows.values())])
    for server in [release.server for release in releases]:
        params = {**context.params, "target": server}
        model = combining.combine_method(task, releases, ADAPT_TAR.name, params)
        predictions, labels = model.codes(numbers[all_rows]), records["label"][all_rows]
        for tested, low, high in zip(server_rows, ends, ends[1:], strict=False):
            part_predictions, part_labels = predictions[low:high], labels[low:high]
            scores = class_scores(part_labels, part_predictions, len(task.classes))
            yield server, tested, int(high - low), *scores.values()
