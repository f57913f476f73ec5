"""Stage features: what everybody knows of each record, the fewer numbers the better."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.errors import UserError
from curvote.protocols.labels.messages import RECORD, names_of
from curvote.protocols.labels.packing import packed

PCA_NAME = "pca"
_SEED = 0  # what is public may be computed again by everybody


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what the source says of itself, and what is done with it."""
    done = {"reduce": params["public.reduce"], "size": params["public.size"]}
    return {**inputs["ingest"].facts, "public": done}


def one(here: Here) -> Rows:
    """Return the tables ``features`` and ``reduction``, of all records together."""
    clients, params = here.rows("ingest", "clients"), here.params
    values = clients["curve"].astype(np.float64)
    reduction: Any = "passthrough"
    if params["public.reduce"] == PCA_NAME:
        reduction = _fitted(values, params["public.size"])
        values = reduction.transform(values)
    return {
        "features": {RECORD: names_of(clients), "values": values},
        "reduction": {"model": packed(reduction)},
    }


def _fitted(values: Any, size: int | None) -> PCA:
    most = min(values.shape)
    if size is not None and size > most:
        raise UserError(
            f"{size} components of {values.shape[0]} records with"
            f" {values.shape[1]} numbers; at most {most} there are.",
            where=("public", "size"),
        )
    return PCA(size, svd_solver="covariance_eigh", random_state=_SEED).fit(values)
