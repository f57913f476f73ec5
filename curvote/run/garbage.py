"""Deleting what no run needs any more: only ever when asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from curvote.run import records
from curvote.run.history import loaded
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
    wanted = partial(_kept, project, keep)
    for record in loaded(project, wanted):
        yield from (f"{step['stage']}/{step['key']}" for step in record.steps)


def _kept(project: Project, keep: int) -> list[str]:
    """Return the ids of runs that keep what they planned; nothing here reads a clock.

    The latest completed ones of each pipeline, what runs, and what waits for envelopes
    since then.
    """
    kept = [run for run, _ in records.running(project)]
    for name in records.pipelines(project):
        kept += records.newest(project, name, "completed", keep)
        kept += records.blocked(project, name)
    return kept


def _released(folder: Path) -> bool:
    """What production released, or released from, cannot be made again."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return False
    return bool(json.loads(manifest.read_text(encoding="utf-8")).get("frozen"))


def _key(folder: Path) -> str:
    """A temporary folder of a key that is still planned is kept: it can be resumed."""
    return folder.name.removeprefix(".tmp-")
