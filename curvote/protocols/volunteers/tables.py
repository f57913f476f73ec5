"""The table of public records: volunteers gave them away, labels and all."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import VECTOR, Table

RECORDS: Final = Table(
    "public_records", {"z": VECTOR, "label": "int64"}, side="public", unit="record"
)
