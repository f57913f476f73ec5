"""Tables of text: rows as lines whose columns stand below each other."""

from __future__ import annotations

from collections.abc import Sequence


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of equally many cells as lines."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
