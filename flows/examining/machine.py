"""The machine below a project: room, what its file systems can do, and its clock."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from curvote.client.ledger import existing
from curvote.durable import sync_folder
from curvote.errors import UserError
from curvote.flows.examining.finding import Finding, Status
from curvote.run import history
from curvote.run.project import Project

MIB = 2**20
# Prefect's and MLflow's databases alone take a few MiB; a journal may double them.
TOO_LITTLE, LITTLE = 64 * MIB, 1024 * MIB
TOO_FEW, FEW = 1_000, 10_000
LATE_SECONDS = 60.0
SPACE = "free some: `curvote gc --dry-run` says what no run needs"


def space(project: Project) -> Iterator[Finding]:
    """Say for each file system how much room is left, in bytes and in files."""
    for folder in _apart(project):
        told = os.statvfs(folder)
        free, size = (n * told.f_frsize for n in (told.f_bavail, told.f_blocks))
        where = folder.relative_to(project.root) if folder != project.root else folder
        words = f"{where}: {_amount(free)} of {_amount(size)} free"
        status = _graded(free, TOO_LITTLE, LITTLE)
        yield Finding("space", status, words, "" if status == "ok" else SPACE)
        if told.f_files:  # some file systems count none
            status = _graded(told.f_favail, TOO_FEW, FEW)
            words = f"{where}: {told.f_favail:,} more files fit"
            yield Finding("inodes", status, words, "" if status == "ok" else SPACE)


def scarce(project: Project, needed: int, *beside: Path) -> Path | None:
    """Return a folder of the project, or one beside it, with less room than that."""
    for folder in (*_apart(project), *map(_there, beside)):
        told = os.statvfs(folder)
        if told.f_bavail * told.f_frsize < needed:
            return folder
    return None


def file_systems(project: Project) -> Iterator[Finding]:
    """Really lock, link, rename and sync in each; a journal where the state is."""
    for folder in _apart(project):
        wrong = _tried(folder, journal=folder == _there(project.state))
        where = folder.relative_to(project.root) if folder != project.root else folder
        if wrong:
            fix = "put it on a local file system that can be written"
            yield Finding("file system", "failed", f"{where}: {wrong}", fix)
        else:
            yield Finding("file system", "ok", f"{where}: locks, links and syncs work")


def clock(project: Project) -> Iterator[Finding]:
    """Say whether the clock is behind the last thing that was written down."""
    told = max(_times(project), default=None)
    if told is None:
        return
    when, what = told
    behind = (when - datetime.now(UTC)).total_seconds()
    if behind > LATE_SECONDS:
        words = f"{_length(behind)} behind {what} ({when:%Y-%m-%d %H:%M} UTC)"
        fix = "set the clock; runs keep their order, but not their times"
        yield Finding("clock", "warning", words, fix)
    else:
        yield Finding("clock", "ok", f"after {what}")


def _apart(project: Project) -> list[Path]:
    """Return one folder for each file system that runs write to."""
    places = (project.state, *project.stores)
    folders = {_there(place).stat().st_dev: _there(place) for place in reversed(places)}
    return sorted(folders.values())


def _there(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def _graded(found: float, failed: float, warning: float) -> Status:
    return "failed" if found < failed else "warning" if found < warning else "ok"


def _amount(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / MIB:.1f} MiB"


def _length(seconds: float) -> str:
    hours = seconds / 3600
    if hours >= 48:
        return f"{hours / 24:.0f} days"
    return f"{hours:.1f} hours" if hours >= 1 else f"{seconds / 60:.0f} minutes"


def _tried(folder: Path, *, journal: bool) -> str | None:
    """Return what the file system of a folder cannot do, None: it can do all."""
    try:
        with TemporaryDirectory(prefix=".doctor-", dir=folder) as made:
            return _lacking(Path(made), journal=journal)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return "no space left to try anything"
        return f"{error.strerror or error}"


def _lacking(folder: Path, *, journal: bool) -> str | None:
    one, two = folder / "first", folder / "second"
    one.touch()
    if not _locks(one):
        return "two processes can hold one lock: it has no locks"
    os.link(one, two)
    two.rename(folder / "three")
    sync_folder(folder)
    if not journal:
        return None
    with closing(sqlite3.connect(folder / "db")) as db:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    return None if mode == "wal" else "it has no write-ahead log"


def _locks(path: Path) -> bool:
    """Say whether a lock that one handle holds is refused to a second one."""
    with path.open("a") as first, path.open("a") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _times(project: Project) -> Iterator[tuple[datetime, str]]:
    """Yield what was written down when: runs, and entries of the ledger."""
    for record in history.load_all(project):
        for text in filter(None, (record.started, record.finished)):
            yield datetime.fromisoformat(text), f"run {record.id}"
    try:
        ledger = existing(project.ledger)
    except UserError:
        return  # another check says so
    if ledger:
        with ledger:
            for entry in ledger.entries():
                when = datetime.fromisoformat(entry.settled or entry.reserved)
                yield when, f"release {entry.release[:12]}"
