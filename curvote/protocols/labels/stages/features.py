"""Stages of private labels, in their order: features, graph, codes, model, scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.errors import UserError
from curvote.protocols.labels.messages import RECORD, record_names
from curvote.protocols.labels.packing import pack_model

PCA_NAME, STANDARD, AUTO = "pca", "standard", "auto"
_SEED = 0  # what is public may be computed again by everybody


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the source's metadata, and what is done with its features."""
    source = inputs["ingest"].metadata
    done = {
        "scale": is_standardised(source, params["public.scale"]),
        "reduce": params["public.reduce"],
        "size": params["public.size"],
    }
    return {**source, "public": done}


def is_standardised(source: Metadata, option: str) -> bool:
    """Return whether each number is standardised: by itself if they differ in kind."""
    features = source.get("features") or ()
    kinds = {
        (feature["unit"], feature["lower"], feature["upper"]) for feature in features
    }
    return option == STANDARD or (option == AUTO and len(kinds) > 1)


def one(context: StageContext) -> Rows:
    """Return the tables ``features`` and ``reduction``, of all records together."""
    clients, done = context.rows("ingest", "clients"), context.metadata["public"]
    values = clients["curve"].astype(np.float64)
    steps = [*_reduction_steps(values, done)]
    reduction: Any = make_pipeline(*steps) if steps else "passthrough"
    if steps:
        values = reduction.fit_transform(values)
    return {
        "features": {RECORD: record_names(clients), "values": values},
        "reduction": {"model": pack_model(reduction)},
    }


def _reduction_steps(values: Any, done: Metadata) -> Iterator[Any]:
    if done["scale"]:
        yield StandardScaler()
    if done["reduce"] == PCA_NAME:
        _check_component_count(min(values.shape), done["size"], values.shape)
        size = done["size"]
        yield PCA(size, svd_solver="covariance_eigh", random_state=_SEED)


def _check_component_count(most: int, size: int, shape: tuple[int, ...]) -> None:
    if size > most:
        raise UserError(
            f"{size} components of {shape[0]} records with {shape[1]} numbers; at most"
            f" {most} there are.",
            where=("public", "size"),
        )
