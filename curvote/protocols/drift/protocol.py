"""Reports, and how far they lie from the records: the chain as data."""

from __future__ import annotations

from typing import Any

from curvote.protocols.mrma.protocol import REPORTS, releases_reports
from curvote.protocols.stage import Release, Stage

MESSAGES: dict[str, Any] = {}
PRODUCTION: tuple[Stage, ...] = ()

STAGES = (
    REPORTS,
    Stage(
        "report",
        "curvote.protocols.drift.score",
        inputs=("ingest", "privatize"),
        axes=("epsilon",),
        params=("epsilon", "label", "drift.at", "replicates"),
        tables=("scores",),
        side="client (study)",
    ),
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the one message of each client, its report, in words."""
    return releases_reports(config, d)
