"""Client ids of a file: distinct, and without equal digests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own.arrow_cells import SPELT
from curvote.datasets.own.given import Violations

Integers = NDArray[np.int64]
Marks = NDArray[np.uint32]


class Identifiers:
    """All ids so far: 20 bytes a client."""

    def __init__(self, violations: Violations) -> None:
        self.violations = violations
        self._parts: list[tuple[Integers, Marks, Integers]] = []
        self._length = 0
        self._due = 1

    def add(self, ids: Integers, marks: Marks, rows: Integers) -> None:
        """Add ``ids`` (n,) with their marks and first rows.

        Looks for repetitions whenever the number of ids has doubled: an unsorted file
        is refused long before its end.

        Raises:
            UserError: an id that came back, and whatever else was found before.
        """
        self._parts.append((ids, marks, rows))
        self._length += len(ids)
        if self._length >= self._due:
            self.check()
            self._due = 2 * self._length

    def check(self) -> None:
        """Raise a UserError if an id came back, or if two texts share their digest."""
        if not self._parts:
            return
        ids, marks, rows = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts = [(ids, marks, rows)]
        order = np.argsort(ids, kind="stable")
        same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
        if len(same):
            self._refuse(order[same], order[same + 1], marks, rows)

    def _refuse(
        self, earlier: Integers, later: Integers, marks: Marks, rows: Integers
    ) -> None:
        texts = marks[earlier] != marks[later]
        for what, chosen in (
            (
                "an id comes back after another client's rows; sort the file by id"
                + SPELT,
                ~texts,
            ),
            ("two ids have one 63-bit number; rename one of the two", texts),
        ):
            places = np.sort(rows[later[chosen]])
            self.violations.add(
                what, len(places), ((row, "") for row in places.tolist())
            )
        self.violations.check()
