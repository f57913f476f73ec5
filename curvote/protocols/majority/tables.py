"""System `majority`: noised labels, and the class that they elect."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import Table

LABELS: Final = Table("labels", {"label": "int8"}, unit="message")
ELECTED: Final = Table("elected", {"place": "int64", "n": "int64"}, unit="classifier")
