"""Stage report of a study: how each method does on the target's tested records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.transfer import combining, dealing
from curvote.protocols.transfer.measured import class_scores, score_table
from curvote.protocols.transfer.stages.privatize import server_features

Codes = NDArray[np.int64]


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: error, F1 and balanced accuracy of each method."""
    return score_table(_score_rows(context))


def _score_rows(context: StageContext) -> Iterator[tuple[str, str, float]]:
    """Yield (method, metric, value) of each method on the test records."""
    task, releases = combining.collect_releases(context)
    records = context.rows("project", "encoded")
    tested = test_rows(context)
    numbers, labels = (
        server_features(context, records)[tested],
        records["label"][tested],
    )
    for method in context.params["methods"]:
        predictions = combining.combine_method(
            task, releases, method, context.params
        ).codes(numbers)
        for metric, value in class_scores(
            labels, predictions, len(task.classes)
        ).items():
            yield method, metric, value


def test_rows(context: StageContext) -> Codes:
    """Return the target's rows that are only tested."""
    records, params = context.rows("project", "encoded"), context.params
    target_rows = dealing.server_rows(context, records)[params["target"]]
    tested, _ = dealing.split_test(
        context, target_rows, records, params["transfer.test"]
    )
    return tested
