"""Garbage collection: artifacts, records and files that no run needs any more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import MANIFEST, all_folders, read_manifest
from curvote.pipeline.store.locations import TRANSIT, delete_folder

PAGE_PARTS = ("report.html", "figures", "report.json")


@dataclass(frozen=True)
class RetentionLimits:
    """The seconds for which unneeded runs and artifacts stay; None: forever.

    Artifacts without a limit stay for as long as a kept run needs them.
    """

    runs: int | None = None
    artifacts: int | None = None


@dataclass(frozen=True)
class DeletionGroup:
    """Files and folders of one kind, or records of runs, to be deleted; their size."""

    kind: str
    paths: tuple[Path, ...]
    bytes: int
    runs: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.paths) + len(self.runs)

    @classmethod
    def measured(cls, kind: str, paths: Iterable[Path]) -> DeletionGroup:
        """Return a group with its size, measured before deletion."""
        existing = tuple(path for path in paths if path.exists())
        return cls(kind, existing, sum(map(_disk_size, existing)))

    @classmethod
    def of_records(cls, project: Project, runs: Iterable[str]) -> DeletionGroup:
        """Return the group of the records of runs."""
        ids = tuple(runs)
        return cls("records", (), records.record_bytes(project, ids), ids)


def _planning_runs(project: Project, keep: int) -> list[str]:
    """Return the ids of runs whose planned artifacts stay, whatever their age.

    The latest completed ones of each pipeline, what runs, and what waits for envelopes
    since then.
    """
    retained = [run for run, _ in records.unfinished_runs(project)]
    for name in records.pipeline_names(project):
        retained += records.run_ids(project, name, "completed", keep)
        retained += records.blocked_ids(project, name)
    return retained


def _recorded_runs(project: Project, keep: int) -> set[str]:
    """Return the ids of runs whose records stay.

    And those that tell of a release, which a lost ledger would be held against.
    """
    retained = set(_planning_runs(project, keep))
    for name in records.pipeline_names(project):
        retained.update(records.run_ids(project, name, last=1))
    return retained | {run for *_, run in records.released_steps(project)}


def _needed_steps(project: Project, keep: int) -> Iterator[tuple[str, str]]:
    """Yield (stage, key) of the artifacts that the retained runs need."""
    loaded = (records.load_record(project, r) for r in _planning_runs(project, keep))
    for record in filter(None, loaded):
        for step in record.steps:
            yield step["stage"], step["key"]
            if "earlier" in step and record.status == "running":
                yield step["stage"], step["earlier"]


def find_garbage(
    project: Project, keep: int, limits: RetentionLimits
) -> list[DeletionGroup]:
    """Return what may be deleted, by kind; frozen artifacts never are.

    Artifacts outside the ``keep`` latest completed runs of each pipeline, left-over
    temporary and set-aside folders; where runs have a limit, what is older of records,
    pages, logs and quarantine. A run that is going on keeps what it planned. No ledger
    and no intake is ever looked at.
    """
    unneeded = _unneeded_folders(project, keep, limits.artifacts)
    groups = [DeletionGroup.measured("artifacts", unneeded)]
    if limits.runs is None:
        return groups
    since = _time_before(limits.runs)
    earlier = records.ids_before(project, _record_time(since))
    runs = set(earlier) - _recorded_runs(project, keep)
    patterns = ("*.log", "*.log.*")
    logs = (f for pattern in patterns for f in sorted(project.state.rglob(pattern)))
    aged = partial(_older_than, since=since)
    groups.append(DeletionGroup.of_records(project, sorted(runs)))
    by_kind = {
        "pages": aged(_page_files(project, runs)),
        "logs": aged(logs),
        "quarantine": aged(project.quarantine("").glob("*/*")),
    }
    groups += [DeletionGroup.measured(kind, paths) for kind, paths in by_kind.items()]
    return groups


def delete_group(project: Project, pile: DeletionGroup) -> None:
    """Delete a group; what is gone already is skipped."""
    if pile.runs:
        records.delete_records(project, pile.runs)
    for path in pile.paths:
        if path.is_dir() and not path.is_symlink():
            delete_folder(path)
        else:
            path.unlink(missing_ok=True)


def _unneeded_folders(project: Project, keep: int, limit: int | None) -> Iterator[Path]:
    needed = set(_needed_steps(project, keep))
    candidates: Iterable[Path] = all_folders(project)
    if limit is not None:
        since = _time_before(limit)
        needed |= records.steps_used_since(project, _record_time(since))
        candidates = _older_than(candidates, since=since)
    going_on = bool(records.unfinished_runs(project))
    for folder in candidates:
        if going_on and folder.parent.name.startswith(TRANSIT):
            continue
        key = folder.name.removeprefix(".tmp-").removeprefix(".shards-")
        if (folder.parent.name, key) not in needed and not _is_frozen(folder):
            yield folder


def _page_files(project: Project, removed: set[str]) -> Iterator[Path]:
    """Yield the page files of runs whose records are removed."""
    for stamp in sorted(project.reports.rglob("report.json")):
        try:
            run = str(json.loads(stamp.read_text(encoding="utf-8"))["run"])
        except (OSError, ValueError, KeyError, TypeError):
            run = ""
        if run in removed or records.load_record(project, run) is None:
            yield from (stamp.parent / part for part in PAGE_PARTS)


def _older_than(paths: Iterable[Path], *, since: datetime) -> Iterator[Path]:
    for path in paths:
        if path.exists() and path.stat().st_mtime < since.timestamp():
            yield path


def _time_before(seconds: int) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def _record_time(moment: datetime) -> str:
    """Return a time in the form of records, whose order is that of times."""
    return moment.isoformat(timespec="seconds")


def _disk_size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _is_frozen(folder: Path) -> bool:
    """Return whether a folder's artifact is frozen, or has a torn manifest.

    A manifest that cannot be read may be one of those.
    """
    if not (folder / MANIFEST).is_file():
        return False
    manifest = read_manifest(folder)
    return manifest is None or bool(manifest.get("frozen"))
