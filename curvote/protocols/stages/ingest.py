"""Stage ingest: a source becomes the table of clients and their raw curves."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.datasets.registry import DATASETS


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is public about the source: grid, domain, unit, classes, notes."""
    dataset, parameters = _dataset(params)
    return dict(dataset.facts(parameters, _paths(params)))


def one(here: Here) -> Rows:
    """Return the table ``clients``, simulated anew for this repetition."""
    dataset, parameters = _dataset(here.params)
    n, rng = sum(here.params["clients"].values()), here.generator("simulate")
    # Whose clients these are may depend on which repetition it is.
    which = (here.number,) if hasattr(dataset, "servers") else ()
    return {"clients": dataset.clients(parameters, n, rng, *which)}


def pieces(inputs: Inputs, params: Params, facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield the table ``clients`` that all replicates share, some clients at a time."""
    dataset, parameters = _dataset(params)
    if hasattr(dataset, "pieces"):
        for columns in dataset.pieces(parameters, _paths(params)):
            yield {"clients": columns}
        return
    yield {"clients": dataset.clients(parameters, _paths(params))}


def is_simulated(params: Params) -> bool:
    """Say whether the source draws its curves instead of reading them."""
    return bool(_dataset(params)[0].SIMULATED)


def _dataset(params: Params) -> tuple[Any, Any]:
    dataset = import_module(DATASETS[params["source"]["name"]])
    return dataset, dataset.Parameters.model_validate(params["source"])


def _paths(params: Params) -> dict[str, Path]:
    return {name: Path(path) for name, path in params.get("raw.paths", {}).items()}
