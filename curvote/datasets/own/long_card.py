"""User's own curves in long format as a data set, and the card of their file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own.examined import FileCard
from curvote.datasets.own.long_parameters import Parameters
from curvote.datasets.own.long_scan import LongBlock, LongScan
from curvote.datasets.own.repeated import RepeatedRows
from curvote.datasets.own.table_card import column_cards


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
        more=_curve_remarks(counts, tally),
    )


def _curve_remarks(counts: _CurveCounts, tally: dict[str, int]) -> tuple[str, ...]:
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
    return tuple(words for words, applies in remarks if applies)
