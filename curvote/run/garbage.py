"""Deleting what no run needs any more: when asked, or after the project's retention."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from curvote.run import records
from curvote.run.history import loaded
from curvote.run.places import remove
from curvote.run.project import Project
from curvote.run.record_index import folder_of
from curvote.run.store.artifacts import MANIFEST, folders, manifest_of

PAGE = ("report.html", "figures", "report.json")


@dataclass(frozen=True)
class Limits:
    """How many seconds runs and artifacts stay that nothing needs; None: runs for ever.

    Artifacts without a limit stay for as long as a kept run needs them.
    """

    runs: int | None = None
    artifacts: int | None = None


@dataclass(frozen=True)
class Pile:
    """Files and folders of one kind that may go, and how much room they take."""

    kind: str
    paths: tuple[Path, ...]
    bytes: int

    @classmethod
    def of(cls, kind: str, paths: Iterable[Path]) -> Pile:
        """Return a pile, measured now: afterwards there is nothing to measure."""
        found = tuple(path for path in paths if path.exists())
        return cls(kind, found, sum(map(_size, found)))


@dataclass(frozen=True)
class Kept:
    """What stays, whatever its age: by the index of records, never by a clock."""

    project: Project
    keep: int

    def runs(self) -> list[str]:
        """Return the ids of runs that keep what they planned.

        The latest completed ones of each pipeline, what runs, and what waits for
        envelopes since then.
        """
        kept = [run for run, _ in records.running(self.project)]
        for name in records.pipelines(self.project):
            kept += records.newest(self.project, name, "completed", self.keep)
            kept += records.blocked(self.project, name)
        return kept

    def told(self) -> set[str]:
        """Return the ids of runs whose records stay: of each pipeline the latest, too.

        And those that tell of a release, which a lost ledger would be held against.
        """
        found = set(self.runs())
        for name in records.pipelines(self.project):
            found.update(records.newest(self.project, name))
        return found | {run for *_, run in records.released(self.project)}

    def planned(self) -> Iterator[tuple[str, str]]:
        """Yield (stage, key) of what the kept runs need, or take replicates from."""
        for record in loaded(self.project, self.runs):
            for step in record.steps:
                yield step["stage"], step["key"]
                if "earlier" in step and record.status == "running":
                    yield step["stage"], step["earlier"]


def piles(project: Project, keep: int, limits: Limits) -> list[Pile]:
    """Return what may go, a pile a kind; frozen artifacts never do.

    Artifacts outside the ``keep`` latest completed runs of each pipeline, left-over
    temporary and set-aside folders; where runs have a limit, what is older of records,
    pages, logs and quarantine. A run that is going on keeps what it planned. No ledger
    and no intake is ever looked at.
    """
    kept = Kept(project, keep)
    found = [Pile.of("artifacts", _unneeded(project, kept, limits.artifacts))]
    if limits.runs is None:
        return found
    since = _moment(limits.runs)
    runs = set(records.begun_before(project, _written(since))) - kept.told()
    folder = folder_of(project)
    aged = partial(_aged, since=since)
    return [
        *found,
        Pile.of("records", (folder / f"{run}.json" for run in sorted(runs))),
        Pile.of("pages", aged(_pages(project, runs))),
        Pile.of("logs", aged(_logs(project))),
        Pile.of("quarantine", aged(project.quarantine("").glob("*/*"))),
    ]


def delete(project: Project, pile: Pile) -> None:
    """Delete a pile; what has gone in the meantime is passed over."""
    for path in pile.paths:
        if path.is_dir() and not path.is_symlink():
            remove(path)
        else:
            path.unlink(missing_ok=True)


def _unneeded(project: Project, kept: Kept, limit: int | None) -> Iterator[Path]:
    needed = set(kept.planned())
    every: Iterable[Path] = folders(project)
    if limit is not None:
        since = _moment(limit)
        needed |= records.used_since(project, _written(since))
        every = _aged(every, since=since)
    for folder in every:
        if (folder.parent.name, _key(folder)) not in needed and not _released(folder):
            yield folder


def _logs(project: Project) -> Iterator[Path]:
    for pattern in ("*.log", "*.log.*"):
        yield from sorted(project.state.rglob(pattern))


def _pages(project: Project, gone: set[str]) -> Iterator[Path]:
    """Yield the parts of pages of runs whose records go, or have gone."""
    for stamp in sorted(project.reports.rglob("report.json")):
        run = _drawn_of(stamp)
        if run in gone or records.read(project, run) is None:
            yield from (stamp.parent / part for part in PAGE)


def _drawn_of(stamp: Path) -> str:
    try:
        return str(json.loads(stamp.read_text(encoding="utf-8"))["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _aged(paths: Iterable[Path], *, since: datetime) -> Iterator[Path]:
    """Yield the paths that nothing changed since then; what is gone is passed over."""
    for path in paths:
        if path.exists() and path.stat().st_mtime < since.timestamp():
            yield path


def _moment(seconds: int) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def _written(moment: datetime) -> str:
    """Return a moment as records have theirs, so that texts compare as times do."""
    return moment.isoformat(timespec="seconds")


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _released(folder: Path) -> bool:
    """What production released, or released from, cannot be made again.

    A manifest that cannot be read may be one of those.
    """
    if not (folder / MANIFEST).is_file():
        return False
    manifest = manifest_of(folder)
    return manifest is None or bool(manifest.get("frozen"))


def _key(folder: Path) -> str:
    """A temporary folder of a key that is still planned is kept: it can be resumed."""
    return folder.name.removeprefix(".tmp-").removeprefix(".shards-")
