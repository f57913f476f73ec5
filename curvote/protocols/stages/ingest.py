"""Stages that all systems share: ingestion, releases and collection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.datasets.lookup import resolve_source


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return what is public about the source: classes, servers, grid, unit, notes."""
    dataset, parameters = resolve_source(params["source"])
    return dict(dataset.facts(parameters, _raw_paths(params)))


def one(context: StageContext) -> Rows:
    """Return the table ``clients``, simulated anew for this repetition."""
    dataset, parameters = resolve_source(context.params["source"])
    n = dataset.size(parameters)
    if n is None:  # as many as play a role
        n = sum((context.params["clients"] or {}).values())
    # A repetition of one server's clients says which one behind the replicate.
    server = context.place[1:]
    rng = context.generator("simulate")
    return {"clients": dataset.clients(parameters, n, rng, *server)}


def pieces(
    inputs: Inputs, params: Params, metadata: Metadata
) -> Iterator[dict[str, Any]]:
    """Yield the table ``clients`` that all replicates share, some clients at a time."""
    dataset, parameters = resolve_source(params["source"])
    if hasattr(dataset, "pieces"):
        for columns in dataset.pieces(parameters, _raw_paths(params)):
            yield {"clients": columns}
        return
    yield {"clients": dataset.clients(parameters, _raw_paths(params))}


def client_groups(params: Params) -> Iterator[Columns]:
    """Yield id, group and part of all clients, without any curve."""
    dataset, parameters = resolve_source(params["source"])
    if hasattr(dataset, "members"):
        yield from dataset.members(parameters, _raw_paths(params))
        return
    for piece in pieces({}, params, {}):
        clients = piece["clients"]
        names = [name for name in ("client_id", "group", "part") if name in clients]
        yield {name: clients[name] for name in names}


def is_simulated(params: Params) -> bool:
    """Say whether the source draws its curves instead of reading them."""
    return bool(resolve_source(params["source"])[0].SIMULATED)


def _raw_paths(params: Params) -> dict[str, Path]:
    return {name: Path(path) for name, path in params.get("raw.paths", {}).items()}
