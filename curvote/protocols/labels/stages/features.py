"""Stage features: what everybody knows of each record, the fewer numbers the better."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.errors import UserError
from curvote.protocols.labels.messages import RECORD, names_of
from curvote.protocols.labels.packing import packed

PCA_NAME, STANDARD, AUTO = "pca", "standard", "auto"
_SEED = 0  # what is public may be computed again by everybody


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what the source says of itself, and what is done with it."""
    source = inputs["ingest"].facts
    done = {
        "scale": scaled(source, params["public.scale"]),
        "reduce": params["public.reduce"],
        "size": params["public.size"],
    }
    return {**source, "public": done}


def scaled(source: Facts, asked: str) -> bool:
    """Say whether each number is standardised: by itself where they are not alike."""
    features = source.get("features") or ()
    kinds = {(each["unit"], each["lower"], each["upper"]) for each in features}
    return asked == STANDARD or (asked == AUTO and len(kinds) > 1)


def one(here: Here) -> Rows:
    """Return the tables ``features`` and ``reduction``, of all records together."""
    clients, done = here.rows("ingest", "clients"), here.facts["public"]
    values = clients["curve"].astype(np.float64)
    steps = [*_steps(values, done)]
    reduction: Any = make_pipeline(*steps) if steps else "passthrough"
    if steps:
        values = reduction.fit_transform(values)
    return {
        "features": {RECORD: names_of(clients), "values": values},
        "reduction": {"model": packed(reduction)},
    }


def _steps(values: Any, done: Facts) -> Iterator[Any]:
    if done["scale"]:
        yield StandardScaler()
    if done["reduce"] == PCA_NAME:
        _refuse_more(min(values.shape), done["size"], values.shape)
        size = done["size"]
        yield PCA(size, svd_solver="covariance_eigh", random_state=_SEED)


def _refuse_more(most: int, size: int, shape: tuple[int, ...]) -> None:
    if size > most:
        raise UserError(
            f"{size} components of {shape[0]} records with {shape[1]} numbers; at most"
            f" {most} there are.",
            where=("public", "size"),
        )
