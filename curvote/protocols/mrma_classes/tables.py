"""System `mrma_classes`: `mrma` of a source with three or more classes."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import Table
from curvote.protocols.mrma.tables import REPORTS

CLASS_REPORTS: Final = Table(
    "class_reports", {**REPORTS.columns, "question": "int64"}, unit="message"
)
