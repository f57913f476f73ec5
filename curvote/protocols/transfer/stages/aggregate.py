"""Stage aggregate: how much each server counts, by each rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.transfer import combining


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what all were asked, about how many records, and who wants a classifier.

    The number of records is that of the first repetition.
    """
    asked = combining.task(inputs["project"].facts, params)
    about = combining.about(inputs)
    return {"task": asked.to_json(), "target": params["target"], "about": about}


def one(here: Here) -> Rows:
    """Return the table ``weights``: a row for each method and server that it weighs."""
    asked, sent = combining.here(here)
    rows = [
        (method, one.server, one.weight, one.agreement, one.agreement_se)
        for method in here.params["methods"]
        for one in combining.model(asked, sent, method, here.params).servers
        if one.weight is not None
    ]
    return {"weights": _columns(rows)}


def _columns(rows: list[tuple[Any, ...]]) -> Columns:
    names = ("method", "server", "weight", "agreement", "agreement_se")
    kinds = (object, object, np.float64, object, object)
    told = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: np.array(column, dtype=kind)
        for name, kind, column in zip(names, kinds, told, strict=True)
    }
