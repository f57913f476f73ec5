"""The table of noised labels."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import Table

LABELS: Final = Table("labels", {"label": "int8"}, unit="message")
