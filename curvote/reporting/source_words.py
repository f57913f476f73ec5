"""What the report says about the data set, from its public facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.datasets.lookup import module

NOT_PRIVATE = (
    "Bounds were computed from the clients' data: this run is NOT PRIVATE, whatever its"
    " epsilon. It repeats a publication."
)


QUIET = (
    "What was counted while the clients' file was read (rows, repeats, gaps) depends on"
    " their data and is not published."
)


def notes(facts: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """Return what a reader must know: leaks, what the source says, origins.

    In production nothing is told that was counted in a file which nobody published.
    """
    given = getattr(module(config["source"]["name"]), "GIVEN", False)
    if given and config.get("mode") == "production":
        return [QUIET]
    leak = [NOT_PRIVATE] if config["project"].get("bounds") == "from_data" else []
    return [*leak, *facts["notes"], *_origins(facts)]


def where(facts: dict[str, Any]) -> str:
    """Say what a record consists of."""
    features = facts.get("features")
    if features:
        return f"the features: {', '.join(feature['name'] for feature in features)}"
    a, b = facts["domain"]
    points, unit = len(facts["grid"]), facts["unit"]
    return f"the grid: {points} points from {a:g} to {b:g} ({unit})"


def _origins(facts: dict[str, Any]) -> Iterator[str]:
    for file in facts.get("raw", ()):
        digest = f"SHA-256 {file['sha256']} ({file['origin']})"
        yield f"Raw file {file['name']}: {digest}."
