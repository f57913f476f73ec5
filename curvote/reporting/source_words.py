"""Sentences of the report, from the data alone and for any reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.run.config.source import reads_user_file

NOT_PRIVATE = (
    "Bounds were computed from the clients' data: this run is NOT PRIVATE, whatever its"
    " epsilon. It repeats a publication."
)

PRIVATE_FILE_NOTE = (
    "The unit of privacy is one client's record. What was counted while the clients'"
    " file was read (rows, repeats, gaps) depends on their data and is not published;"
    " its owner finds it in the manifests of data/clients/ingest."
)


def source_notes(facts: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return notes on the data: leaks, the source's own notes, origins.

    Nothing is told that was counted in a file which nobody published, and its digest
    under a key only.
    """
    bounds = config.get("project", {}).get("bounds")
    leak = [NOT_PRIVATE] if bounds == "from_data" else []
    user_file = reads_user_file(config["source"])
    plain = not user_file and config.get("mode") != "production"
    text_notes = [PRIVATE_FILE_NOTE] if user_file else facts.get("notes", ())
    return [*leak, *text_notes, *_file_origins(facts, plain=plain)]


def record_word(facts: Mapping[str, Any]) -> str:
    """Return the word for one record: the source's own, if it has one."""
    if "record" in facts:
        return str(facts["record"])
    return "curve" if "grid" in facts and not facts.get("features") else "record"


def _file_origins(facts: Mapping[str, Any], *, plain: bool) -> Iterator[str]:
    """Yield a sentence on each raw file: digest and origin."""
    kind, words = ("sha256", "SHA-256") if plain else ("hmac_sha256", "HMAC-SHA-256")
    for file in facts.get("raw", ()):
        digest = f"{words} {file[kind]} " if kind in file else ""
        yield f"Raw file {file['name']}: {digest}({file['origin']})."
