"""Stage ingest: a source becomes the table of clients and their raw curves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.datasets.lookup import chosen


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what is public about the source: classes, servers, grid, unit, notes."""
    dataset, parameters = chosen(params["source"])
    return dict(dataset.facts(parameters, _paths(params)))


def one(here: Here) -> Rows:
    """Return the table ``clients``, simulated anew for this repetition."""
    dataset, parameters = chosen(here.params["source"])
    n = dataset.size(parameters)
    if n is None:  # as many as play a role
        n = sum((here.params["clients"] or {}).values())
    # A repetition of one server's clients says which one behind the replicate.
    server = here.place[1:]
    rng = here.generator("simulate")
    return {"clients": dataset.clients(parameters, n, rng, *server)}


def pieces(inputs: Inputs, params: Params, facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield the table ``clients`` that all replicates share, some clients at a time."""
    dataset, parameters = chosen(params["source"])
    if hasattr(dataset, "pieces"):
        for columns in dataset.pieces(parameters, _paths(params)):
            yield {"clients": columns}
        return
    yield {"clients": dataset.clients(parameters, _paths(params))}


def members(params: Params) -> Iterator[Columns]:
    """Yield client_id, group and, where there is one, part of all clients: no curve."""
    dataset, parameters = chosen(params["source"])
    if hasattr(dataset, "members"):
        yield from dataset.members(parameters, _paths(params))
        return
    for piece in pieces({}, params, {}):
        clients = piece["clients"]
        names = [name for name in ("client_id", "group", "part") if name in clients]
        yield {name: clients[name] for name in names}


def is_simulated(params: Params) -> bool:
    """Say whether the source draws its curves instead of reading them."""
    return bool(chosen(params["source"])[0].SIMULATED)


def _paths(params: Params) -> dict[str, Path]:
    return {name: Path(path) for name, path in params.get("raw.paths", {}).items()}
