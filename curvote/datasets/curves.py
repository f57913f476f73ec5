"""User's own curves in long format, one measurement a row, as a data set.

Each client's measurements are joined by straight lines and read off on a public grid.
Whoever measured too rarely is left out and counted. The file is read a block at a time,
so that its size does not matter; one client's rows must follow each other.

Times are numbers in ``unit``, or date-times (``unit`` is then s, min, h or d): these
count from the midnight before a client's first measurement, on the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import frames
from curvote.datasets.own import labelled, long_card
from curvote.datasets.own.examined import FileCard
from curvote.datasets.own.long_parameters import Parameters
from curvote.datasets.own.long_scan import LongScan

__all__ = [
    "Parameters",
    "clients",
    "examined",
    "facts",
    "files",
    "pieces",
    "size",
    "width",
]

SIMULATED = False
GIVEN = True  # the file is the user's: no publisher, no entry in sources.toml

files, size, classes = frames.user_file_key, frames.no_size, labelled.classes


def width(parameters: Parameters) -> int:
    """Return how many grid points a curve has by the pipeline."""
    return parameters.grid.points


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return the public metadata of the file's curves.

    ``gaps`` counts all clients, and those left out for a long ``gap`` or because they
    do not reach the ``ends`` of the grid.

    Raises:
        UserError: everything that is wrong with the file, at once.
    """
    scan = LongScan(parameters, paths["path"])
    k = len(parameters.classes or "no")
    counts = sum(np.bincount(b.labels, minlength=k) for b in scan.blocks())
    lower, upper = parameters.bounds
    return frames.facts(
        np.asarray(counts).tolist(),
        scan.classes,
        title=f"Curves of {paths['path'].name}",
        grid=parameters.points.tolist(),
        domain=[parameters.grid.start, parameters.grid.stop],
        unit=parameters.unit,
        bounds={"lower": lower, "upper": upper, "why": "stated by the user"},
        gaps={"most": parameters.gaps.most, **scan.tally},
        notes=scan.notes(),
    )


def examined(parameters: Parameters, paths: Mapping[str, Path]) -> FileCard:
    """Return the card of the file for its owner; UserError: violations."""
    return long_card.curves_card(parameters, paths["path"])


def pieces(
    parameters: Parameters, paths: Mapping[str, Path]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield client_id, label, group (n,) and curve (n, T) of at most 65,536 clients.

    Raises:
        UserError: at the first block after which nothing of the file can be used; with
            everything that is wrong, at the latest at the end.
    """
    begin = 0
    for block in LongScan(parameters, paths["path"]).blocks():
        n = len(block.ids)
        if not n:
            continue
        curves, groups = (
            block.segments.interpolate(parameters.points),
            np.arange(n) + begin,
        )
        yield frames.client_columns(curves, block.labels, block.ids, groups)
        begin += n


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    parts = list(pieces(parameters, paths))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
