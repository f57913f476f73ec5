"""What is counted of a table and told to everybody, however it was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Told(Protocol):
    """What is counted of a table and told: see `tabular.facts`."""

    @property
    def rows(self) -> int:
        """The rows of the whole file."""
        ...

    @property
    def distinct(self) -> int:
        """Those of them that repeat no earlier one."""
        ...

    @property
    def missing(self) -> dict[str, int]:
        """The missing values of each feature."""
        ...

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        ...
