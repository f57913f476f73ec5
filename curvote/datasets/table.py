"""A user's own table, CSV or Parquet: one client a row, with public bounds.

A feature is a number with public bounds, or a text of public categories, each of which
becomes a number of its own, 0 or 1. A text that is no category is refused: as a row of
zeros, a misspelt category or a new code of the laboratory would pass for data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import frames
from curvote.datasets.own import labelled, table_card, table_scan
from curvote.datasets.own.examined import Examined
from curvote.datasets.own.table_parameters import Parameters
from curvote.datasets.tables import tabular

SIMULATED = False
GIVEN = True  # the file is the user's: no publisher, no entry in sources.toml

files, size, classes = frames.own_file, frames.no_size, labelled.classes


def width(parameters: Parameters) -> int:
    """Return how many numbers a row has by the pipeline."""
    texts = parameters.categories
    return sum(len(texts.get(name, ("",))) for name in parameters.features)


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return what is public about the clients, as plain JSON values; reads the file.

    Raises:
        UserError: an unreadable file, or all violations by kind, with their count and
            at most ten rows each; row 1 is the first below the header.
    """
    path = paths["path"]
    found = table_scan.survey(parameters, path)
    notes = ["The unit of privacy is one row of the table."]
    told = tabular.facts(found.schema, found, f"Table {path.name}", notes, parameters)
    texts = {name: sorted(known) for name, known in parameters.categories.items()}
    return told | ({"categories": texts} if texts else {})


def examined(parameters: Parameters, paths: Mapping[str, Path]) -> Examined:
    """Return the card of the file, for its owner; UserError: all that is wrong."""
    return table_card.examined(parameters, paths["path"])


def pieces(
    parameters: Parameters, paths: Mapping[str, Path]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield client_id, label, group (n,) and curve (n, p) of at most 65,536 clients.

    Without a column ``id`` a client is named by its row; see `arrow_cells.identities`
    for what a text becomes.
    """
    yield from table_scan.pieces(parameters, paths["path"])


def members(
    parameters: Parameters, paths: Mapping[str, Path]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield client_id and group (n,) of the same clients; no curve is made."""
    yield from table_scan.members(parameters, paths["path"])


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    parts = list(pieces(parameters, paths))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
