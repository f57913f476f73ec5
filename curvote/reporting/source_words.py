"""What the report says about the data set, from its public facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NOT_PRIVATE = (
    "Bounds were computed from the clients' data: this run is NOT PRIVATE, whatever its"
    " epsilon. It repeats a publication."
)


def notes(facts: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """Return what a reader must know: leaks, what the source says, origins."""
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
