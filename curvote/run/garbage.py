"""Deleting what no run needs any more: only ever when asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from curvote.run.history import load_all
from curvote.run.project import Project
from curvote.run.store.artifacts import MANIFEST, folders


@dataclass(frozen=True)
class Freed:
    """How much was deleted, or would be."""

    folders: int
    bytes: int


def collect(project: Project, *, keep: int, dry_run: bool) -> Freed:
    """Delete artifacts outside the ``keep`` latest completed runs of each pipeline.

    Left-over temporary and set-aside folders go too. A run that is going on keeps what
    it planned.
    """
    needed = set(_needed(project, keep))
    unused = [
        folder
        for folder in folders(project)
        if f"{folder.parent.name}/{_key(folder)}" not in needed
        and not _released(folder)
    ]
    size = sum(f.stat().st_size for folder in unused for f in folder.rglob("*"))
    if not dry_run:
        for folder in unused:
            shutil.rmtree(folder)
    return Freed(len(unused), size)


def _needed(project: Project, keep: int) -> Iterator[str]:
    records = load_all(project)
    for name in {record.pipeline for record in records}:
        mine = [r for r in records if r.pipeline == name]
        done = [r for r in mine if r.status == "completed"][-keep:]
        going_on = [r for r in mine if r.status in ("running", "blocked")]
        for record in [*done, *going_on]:
            yield from (f"{step['stage']}/{step['key']}" for step in record.steps)


def _released(folder: Path) -> bool:
    """What production released, or released from, cannot be made again."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return False
    return bool(json.loads(manifest.read_text(encoding="utf-8")).get("frozen"))


def _key(folder: Path) -> str:
    """A temporary folder of a key that is still planned is kept: it can be resumed."""
    return folder.name.removeprefix(".tmp-")
