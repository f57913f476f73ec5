"""Reader of published tables: schema, checks, missing values and clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TableCounts(Protocol):
    """Public counts of a table: rows, distinct rows, missing, classes."""

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        ...

    @property
    def distinct(self) -> int:
        """The number of rows that repeat no earlier one."""
        ...

    @property
    def missing(self) -> dict[str, int]:
        """The number of missing values of each feature."""
        ...

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        ...
