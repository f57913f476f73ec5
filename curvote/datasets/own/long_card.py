"""The card of a user's curves in long format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own.examined import Examined
from curvote.datasets.own.long_parameters import Parameters
from curvote.datasets.own.long_scan import Block, Scan
from curvote.datasets.own.repeated import Repeated
from curvote.datasets.own.table_card import columns


@dataclass
class _Found:
    """What is counted of the curves that are kept."""

    grid: NDArray[np.float64]
    counts: NDArray[np.int64]
    flat: int = 0
    repeated: Repeated = field(default_factory=Repeated)

    def add(self, block: Block) -> None:
        """Count the curves of a block as they are on the grid."""
        curves = block.segments.on(self.grid)
        self.counts += np.bincount(block.labels, minlength=len(self.counts))
        self.flat += int((curves.min(axis=1) == curves.max(axis=1)).sum())
        self.repeated.add(np.column_stack([curves, block.labels]))

    def repeats(self) -> int:
        """Return how many curves equal an earlier one."""
        first = self.repeated.first()
        return 0 if first is None else int((~first).sum())


def examined(parameters: Parameters, path: Path) -> Examined:
    """Return the card; UserError: all that is wrong with the file."""
    scan = Scan(parameters, path)
    known = len(parameters.classes or (False, True))
    found = _Found(parameters.points, np.zeros(known, dtype=np.int64))
    for block in scan.blocks():
        if len(block.ids):
            found.add(block)
    tally, most = scan.tally, f"{parameters.gaps.most:g} {parameters.unit}"
    return Examined(
        path=path,
        rows=scan.reader.rows,
        clients=tally["kept"],
        classes=dict(zip(scan.classes, found.counts.tolist(), strict=True)),
        columns=columns([parameters.value], scan.spans),
        repeats=found.repeats(),
        repeats_are="kept",
        left_out={
            f"a gap above {most}": tally["gap"],
            f"the curve does not reach both ends of the grid within {most}": tally[
                "ends"
            ],
        },
        more=_more(found, tally),
    )


def _more(found: _Found, tally: dict[str, int]) -> tuple[str, ...]:
    lost = tally["clients"] - tally["kept"]
    many = (
        f"{lost:,} of {tally['clients']:,} clients are left out: state a larger"
        " gaps.most or a shorter grid, if that is right for your device."
    )
    level = (
        f"{found.flat:,} curves hold one value only: a device that was not worn?"
        " They count as clients."
    )
    asked = ((many, 10 * lost > tally["clients"]), (level, found.flat))
    return tuple(words for words, said in asked if said)
