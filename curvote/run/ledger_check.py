"""The ledger against the store: nothing left unrecorded, nothing recorded is gone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curvote.client.ledger import Entry, Ledger
from curvote.durable import journals
from curvote.run.fingerprint import of_file
from curvote.run.project import Project
from curvote.run.store import MANIFEST

Found = list[tuple[Path, dict[str, Any] | None]]


def existing(path: Path) -> Ledger | None:
    """Open a ledger to look into it; None, and no new file, where there is none."""
    left = os.path.lexists(path) or journals(path)
    return Ledger(path) if left else None


def problems(project: Project) -> list[str]:
    """Return what is wrong with the project's ledger and store, a line each.

    Beyond `Ledger.problems`: what a confirmed release published is where it was put,
    with the manifest that was confirmed (SHA-256), and every private artifact that
    names a release has one in the ledger that counts.
    """
    # The store first: a release that is recorded while we look comes too late for it.
    manifests = _manifests(project)
    ledger = existing(project.ledger)
    if ledger is None:
        return list(_unrecorded(project, manifests, {}))
    with ledger:
        entries = {entry.release: entry for entry in ledger.entries()}
        found = ledger.problems()
    found += (line for entry in entries.values() for line in _moved(project, entry))
    return [*found, *_unrecorded(project, manifests, entries)]


def _manifests(project: Project) -> Found:
    """Return the artifacts with their manifests, None where one cannot be read.

    Temporary folders never left; those set aside as altered may have.
    """
    folders = sorted(project.artifacts.glob("*/*"))
    left = (f for f in folders if f.is_dir() and not f.name.startswith(".tmp-"))
    return [(folder, _manifest(folder)) for folder in left]


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _unrecorded(
    project: Project, manifests: Found, entries: Mapping[str, Entry]
) -> Iterator[str]:
    for folder, manifest in manifests:
        where = folder.relative_to(project.root)
        if manifest is None:
            yield f"{where}: no readable manifest, so nobody knows what it released"
        elif manifest.get("private") is True and "release" in manifest:
            problem = _recorded(manifest["release"], entries)
            if problem:
                yield f"{where}: {problem}"


def _recorded(release: Any, entries: Mapping[str, Entry]) -> str | None:
    """Return what is wrong with the ledger's entry of a manifest's release, or None."""
    name = release.get("id") if isinstance(release, dict) else None
    if not isinstance(name, str):
        return "a release without an id"
    if name not in entries:
        return f"release {name} is not in the ledger"
    if not entries[name].counts:
        return f"release {name} is there, but {entries[name].state} in the ledger"
    return None


def _moved(project: Project, entry: Entry) -> Iterator[str]:
    if entry.place is None:  # not confirmed
        return
    manifest = project.root / entry.place / MANIFEST
    if not manifest.is_file():
        yield f"release {entry.release}: {entry.place} is missing"
    elif of_file(manifest) != entry.digest:
        yield f"release {entry.release}: {entry.place} is not what was confirmed"
