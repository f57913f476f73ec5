"""Stage ingest: a source becomes the table of clients and their raw curves."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from curvote.datasets.registry import DATASETS
from curvote.entropy import generator
from curvote.protocols.stage import Facts, Inputs, Params, Tables


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is public about the source: grid, domain, unit, classes, notes."""
    dataset, parameters = _dataset(params)
    return dict(dataset.facts(parameters, _raw(params)))


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``clients``: simulated anew, or the one table all share."""
    dataset, parameters = _dataset(params)
    if not dataset.SIMULATED:
        return {"clients": [dataset.clients(parameters, _raw(params))]}
    n = sum(params["clients"].values())
    return {
        "clients": [
            dataset.clients(parameters, n, _rng(params, replicate))
            for replicate in replicates
        ]
    }


def _dataset(params: Params) -> tuple[Any, Any]:
    dataset = import_module(DATASETS[params["source"]["name"]])
    return dataset, dataset.Parameters.model_validate(params["source"])


def _raw(params: Params) -> Path | None:
    path = params.get("raw.path")
    return Path(path) if path else None


def _rng(params: Params, replicate: int) -> Any:
    return generator(params["seed"], "ingest", "simulate", replicate)
