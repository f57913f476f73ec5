"""User's own curves in long format as a data set, and the card of their file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.data import columns
from curvote.data.tables import schema
from curvote.data.tables.card import FileCard, column_cards
from curvote.data.tables.cells import RepeatedRows
from curvote.data.tables.long_rows import LongBlock, LongScan, Parameters


@dataclass
class _CurveCounts:
    """Counts of the usable curves."""

    grid: NDArray[np.float64]
    counts: NDArray[np.int64]
    flat: int = 0
    repeated: RepeatedRows = field(default_factory=RepeatedRows)

    def add(self, block: LongBlock) -> None:
        """Count the curves of a block as they are on the grid."""
        curves = block.segments.interpolate(self.grid)
        self.counts += np.bincount(block.labels, minlength=len(self.counts))
        self.flat += int((curves.min(axis=1) == curves.max(axis=1)).sum())
        self.repeated.add(np.column_stack([curves, block.labels]))

    def repeats(self) -> int:
        """Return how many curves equal an earlier one."""
        first = self.repeated.first_occurrences()
        return 0 if first is None else int((~first).sum())


def curves_card(parameters: Parameters, path: Path) -> FileCard:
    """Return the card of the curves; UserError: violations of the file."""
    scan = LongScan(parameters, path)
    n_classes = len(parameters.classes or (False, True))
    counts = _CurveCounts(parameters.points, np.zeros(n_classes, dtype=np.int64))
    for block in scan.blocks():
        if len(block.ids):
            counts.add(block)
    tally, most = scan.tally, f"{parameters.gaps.most:g} {parameters.unit}"
    lost = tally["clients"] - tally["kept"]
    many = (
        f"{lost:,} of {tally['clients']:,} clients are left out: state a larger"
        " gaps.most or a shorter grid, if that is right for your device."
    )
    level = (
        f"{counts.flat:,} curves hold one value only: a device that was not worn?"
        " They count as clients."
    )
    remarks = ((many, 10 * lost > tally["clients"]), (level, counts.flat))
    return FileCard(
        path=path,
        rows=scan.reader.rows,
        clients=tally["kept"],
        classes=dict(zip(scan.classes, counts.counts.tolist(), strict=True)),
        columns=column_cards([parameters.value], scan.spans),
        repeats=counts.repeats(),
        repeats_are="kept",
        left_out={
            f"a gap above {most}": tally["gap"],
            f"the curve does not reach both ends of the grid within {most}": tally[
                "ends"
            ],
        },
        more=tuple(words for words, applies in remarks if applies),
    )


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
USER_FILE = True  # the file is the user's: no publisher, no entry in sources.toml

files, size, classes = columns.user_file_key, columns.no_size, schema.classes


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
    return columns.facts(
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
    return curves_card(parameters, paths["path"])


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
        yield columns.client_columns(curves, block.labels, block.ids, groups)
        begin += n


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    parts = list(pieces(parameters, paths))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
