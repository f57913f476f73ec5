"""System `volunteers`: public records, and one regression on them."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

RECORDS: Final = Table(
    "public_records", {"z": VECTOR, "label": "int64"}, side="public", unit="record"
)
