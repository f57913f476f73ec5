"""What the report says about the data set, from its public facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def notes(facts: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know: leaks, what the source says, origins.

    Nothing is told that was counted in a file which nobody published, and its digest
    under a key only.
    """
    bounds = config.get("project", {}).get("bounds")
    leak = [NOT_PRIVATE] if bounds == "from_data" else []
    own = given(config["source"])
    plain = not own and config.get("mode") != "production"
    said = [QUIET] if own else facts.get("notes", ())
    return [*leak, *said, *_origins(facts, plain=plain)]


def record_of(facts: Mapping[str, Any]) -> str:
    """Return the word for one record: the source's own, if it has one."""
    if "record" in facts:
        return str(facts["record"])
    return "curve" if "grid" in facts and not facts.get("features") else "record"


def _origins(facts: Mapping[str, Any], *, plain: bool) -> Iterator[str]:
    """Name the files; an earlier curvote wrote plain digests of private ones, too."""
    kind, words = ("sha256", "SHA-256") if plain else ("hmac_sha256", "HMAC-SHA-256")
    for file in facts.get("raw", ()):
        digest = f"{words} {file[kind]} " if kind in file else ""
        yield f"Raw file {file['name']}: {digest}({file['origin']})."
