"""System `direct_one_of`: 1-of-K answers, then a mean for each class."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

NAMED_DIRECTIONS: Final = Table(
    "named_directions", {"named": "int64", "direction": VECTOR}, unit="message"
)
