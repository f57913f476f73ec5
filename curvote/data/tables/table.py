"""User's own table, CSV or Parquet, one client a row, as a data set.

A feature is a number with public bounds, or a text of public categories, each of which
becomes a number of its own, 0 or 1. A text that is no category is refused: as a row of
zeros, a misspelt category or a new code of the laboratory would pass for data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.data import columns, reader
from curvote.data.columns import ClientColumns, Paths
from curvote.data.tables import card, schema, wide_rows
from curvote.data.tables.card import FileCard
from curvote.data.tables.wide_rows import Parameters

SIMULATED = False
USER_FILE = True  # the file is the user's: no publisher, no entry in sources.toml

files, size, classes = columns.user_file_key, columns.no_size, schema.classes


def width(parameters: Parameters) -> int:
    """Return how many numbers a row has by the pipeline."""
    texts = parameters.categories
    return sum(len(texts.get(name, ("",))) for name in parameters.features)


def facts(parameters: Parameters, paths: Paths) -> dict[str, Any]:
    """Return the public metadata of the file's clients.

    Raises:
        UserError: an unreadable file, or all violations by kind, with their count and
            at most ten rows each; row 1 is the first below the header.
    """
    path = paths["path"]
    survey = wide_rows.survey_table(parameters, path)
    notes = ["The unit of privacy is one row of the table."]
    title = f"Table {path.name}"
    metadata = reader.facts(survey.schema, survey, title, notes, parameters)
    texts = {name: sorted(names) for name, names in parameters.categories.items()}
    return metadata | ({"categories": texts} if texts else {})


def examined(parameters: Parameters, paths: Paths) -> FileCard:
    """Return the card of the file for its owner; UserError: violations."""
    return card.table_card(parameters, paths["path"])


def pieces(parameters: Parameters, paths: Paths) -> Iterator[ClientColumns]:
    """Yield client_id, label, group (n,) and curve (n, p) of at most 65,536 clients.

    Without a column ``id`` a client is named by its row; see `arrow_cells.identify`
    for what a text becomes.
    """
    yield from wide_rows.pieces(parameters, paths["path"])


def members(parameters: Parameters, paths: Paths) -> Iterator[ClientColumns]:
    """Yield client_id and group (n,) of the clients, without curves."""
    yield from wide_rows.members(parameters, paths["path"])


def clients(parameters: Parameters, paths: Paths) -> ClientColumns:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    return columns.join_pieces(pieces(parameters, paths))
