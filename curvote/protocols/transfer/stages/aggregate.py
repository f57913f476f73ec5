"""Stage aggregate: how much each server counts, by each rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.transfer import combining


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the joint task, the number of records, and the target.

    The number of records is that of the first repetition.
    """
    task = combining.joint_task(inputs["project"].metadata, params)
    record_count = combining.count_records(inputs)
    return {"task": task.to_json(), "target": params["target"], "about": record_count}


def one(context: StageContext) -> Rows:
    """Return the table ``weights``: a row for each method and server that it weighs."""
    task, releases = combining.collect_releases(context)
    rows = [
        (
            method,
            summary.server,
            summary.weight,
            summary.agreement,
            summary.agreement_se,
        )
        for method in context.params["methods"]
        for summary in combining.combine_method(
            task, releases, method, context.params
        ).servers
        if summary.weight is not None
    ]
    return {"weights": _weight_columns(rows)}


def _weight_columns(rows: list[tuple[Any, ...]]) -> Columns:
    """Return rows of weights as columns."""
    names = ("method", "server", "weight", "agreement", "agreement_se")
    kinds = (object, object, np.float64, object, object)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: np.array(column, dtype=kind)
        for name, kind, column in zip(names, kinds, columns, strict=True)
    }
