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
from curvote.pipeline.store.locations import delete_folder
from curvote.pipeline.store.records import read_records, records_folder

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
    """Files and folders of one kind to be deleted, with their size."""

    kind: str
    paths: tuple[Path, ...]
    bytes: int

    @classmethod
    def measured(cls, kind: str, paths: Iterable[Path]) -> DeletionGroup:
        """Return a group with its size, measured before deletion."""
        existing = tuple(path for path in paths if path.exists())
        return cls(kind, existing, sum(map(_disk_size, existing)))


@dataclass(frozen=True)
class RetainedRuns:
    """The runs that stay, whatever their age, by the index of records."""

    project: Project
    keep: int

    def planning_runs(self) -> list[str]:
        """Return the ids of runs whose planned artifacts stay.

        The latest completed ones of each pipeline, what runs, and what waits for
        envelopes since then.
        """
        retained = [run for run, _ in records.unfinished_runs(self.project)]
        for name in records.pipeline_names(self.project):
            retained += records.newest_ids(self.project, name, "completed", self.keep)
            retained += records.blocked_ids(self.project, name)
        return retained

    def recorded_runs(self) -> set[str]:
        """Return the ids of runs whose records stay.

        And those that tell of a release, which a lost ledger would be held against.
        """
        retained = set(self.planning_runs())
        for name in records.pipeline_names(self.project):
            retained.update(records.newest_ids(self.project, name))
        return retained | {run for *_, run in records.released_steps(self.project)}

    def needed_steps(self) -> Iterator[tuple[str, str]]:
        """Yield (stage, key) of the artifacts that the retained runs need."""
        for record in read_records(self.project, self.planning_runs):
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
    retained = RetainedRuns(project, keep)
    unneeded = _unneeded_folders(project, retained, limits.artifacts)
    groups = [DeletionGroup.measured("artifacts", unneeded)]
    if limits.runs is None:
        return groups
    since = _time_before(limits.runs)
    earlier = records.ids_before(project, _record_time(since))
    runs = set(earlier) - retained.recorded_runs()
    patterns = ("*.log", "*.log.*")
    logs = (f for pattern in patterns for f in sorted(project.state.rglob(pattern)))
    aged = partial(_older_than, since=since)
    folder = records_folder(project)
    by_kind = {
        "records": (folder / f"{run}.json" for run in sorted(runs)),
        "pages": aged(_page_files(project, runs)),
        "logs": aged(logs),
        "quarantine": aged(project.quarantine("").glob("*/*")),
    }
    groups += [DeletionGroup.measured(kind, paths) for kind, paths in by_kind.items()]
    return groups


def delete_group(project: Project, pile: DeletionGroup) -> None:
    """Delete a group; what is gone already is skipped."""
    for path in pile.paths:
        if path.is_dir() and not path.is_symlink():
            delete_folder(path)
        else:
            path.unlink(missing_ok=True)


def _unneeded_folders(
    project: Project, retained: RetainedRuns, limit: int | None
) -> Iterator[Path]:
    needed = set(retained.needed_steps())
    candidates: Iterable[Path] = all_folders(project)
    if limit is not None:
        since = _time_before(limit)
        needed |= records.steps_used_since(project, _record_time(since))
        candidates = _older_than(candidates, since=since)
    for folder in candidates:
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
        if run in removed or records.read_record(project, run) is None:
            yield from (stamp.parent / part for part in PAGE_PARTS)


def _older_than(paths: Iterable[Path], *, since: datetime) -> Iterator[Path]:
    """Yield the existing paths that did not change since then."""
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
