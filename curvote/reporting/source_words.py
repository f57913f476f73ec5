"""What the report says about the data set, from its public facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.run.config.source import given

NOT_PRIVATE = (
    "Bounds were computed from the clients' data: this run is NOT PRIVATE, whatever its"
    " epsilon. It repeats a publication."
)

QUIET = (
    "The unit of privacy is one client's record. What was counted while the clients'"
    " file was read (rows, repeats, gaps) depends on their data and is not published;"
    " its owner finds it in the manifests of data/clients/ingest."
)


def notes(facts: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """Return what a reader must know: leaks, what the source says, origins.

    Nothing is told that was counted in a file which nobody published, and its digest
    under a key only.
    """
    leak = [NOT_PRIVATE] if config["project"].get("bounds") == "from_data" else []
    own = given(config["source"])
    plain = not own and config.get("mode") != "production"
    said = [QUIET] if own else facts["notes"]
    return [*leak, *said, *_origins(facts, plain=plain)]


def where(facts: dict[str, Any]) -> str:
    """Say what a record consists of."""
    features = facts.get("features")
    if features:
        return f"the features: {', '.join(feature['name'] for feature in features)}"
    a, b = facts["domain"]
    points, unit = len(facts["grid"]), facts["unit"]
    return f"the grid: {points} points from {a:g} to {b:g} ({unit})"


def _origins(facts: dict[str, Any], *, plain: bool) -> Iterator[str]:
    """Name the files; an earlier curvote wrote plain digests of private ones, too."""
    kind, words = ("sha256", "SHA-256") if plain else ("hmac_sha256", "HMAC-SHA-256")
    for file in facts.get("raw", ()):
        digest = f"{words} {file[kind]} " if kind in file else ""
        yield f"Raw file {file['name']}: {digest}({file['origin']})."
