"""Machine below a project: disk space, file systems and clock; causes of stops."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from curvote.base.durable import sync_folder
from curvote.base.errors import InternalError, UserError
from curvote.flows import lines
from curvote.flows.databases import PREFECT, Database, Finding, Status, describe_silence
from curvote.ledger.book import open_existing
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records

MIB = 2**20
# Prefect's and MLflow's databases alone take a few MiB; a journal may double them.
MIN_BYTES, FEW_BYTES = 64 * MIB, 1024 * MIB
MIN_INODES, FEW_INODES = 1_000, 10_000
MAX_CLOCK_LAG = 60.0
SPACE_REMEDY = "free some: `curvote gc --dry-run` says what no run needs"


def check_space(project: Project) -> Iterator[Finding]:
    """Check for each file system how many bytes and files still fit."""
    for folder in _volume_folders(project):
        volume = os.statvfs(folder)
        free, size = (n * volume.f_frsize for n in (volume.f_bavail, volume.f_blocks))
        where = folder.relative_to(project.root) if folder != project.root else folder
        words = f"{where}: {_format_bytes(free)} of {_format_bytes(size)} free"
        status = _grade(free, MIN_BYTES, FEW_BYTES)
        yield Finding("space", status, words, "" if status == "ok" else SPACE_REMEDY)
        if volume.f_files:  # some file systems count none
            status = _grade(volume.f_favail, MIN_INODES, FEW_INODES)
            words = f"{where}: {volume.f_favail:,} more files fit"
            yield Finding(
                "inodes", status, words, "" if status == "ok" else SPACE_REMEDY
            )


def full_folder(project: Project, needed: int, *beside: Path) -> Path | None:
    """Return a folder, or one ``beside``, with less room than ``needed``."""
    for folder in (*_volume_folders(project), *map(_existing_folder, beside)):
        volume = os.statvfs(folder)
        if volume.f_bavail * volume.f_frsize < needed:
            return folder
    return None


def check_file_systems(project: Project) -> Iterator[Finding]:
    """Check locks, links, renames and syncs in each file system."""
    for folder in _volume_folders(project):
        wrong = _try_file_system(
            folder, journal=folder == _existing_folder(project.state)
        )
        where = folder.relative_to(project.root) if folder != project.root else folder
        if wrong:
            fix = "put it on a local file system that can be written"
            yield Finding("file system", "failed", f"{where}: {wrong}", fix)
        else:
            yield Finding("file system", "ok", f"{where}: locks, links and syncs work")


def check_clock(project: Project) -> Iterator[Finding]:
    """Check that the clock is not behind the latest recorded time."""
    latest = max(_recorded_times(project), default=None)
    if latest is None:
        return
    when, what = latest
    behind = (when - datetime.now(UTC)).total_seconds()
    if behind > MAX_CLOCK_LAG:
        words = f"{_format_seconds(behind)} behind {what} ({when:%Y-%m-%d %H:%M} UTC)"
        fix = "set the clock; runs keep their order, but not their times"
        yield Finding("clock", "warning", words, fix)
    else:
        yield Finding("clock", "ok", f"after {what}")


def _volume_folders(project: Project) -> list[Path]:
    """Return one folder for each file system that runs write to."""
    places = (project.state, *project.stores)
    folders = {
        _existing_folder(place).stat().st_dev: _existing_folder(place)
        for place in reversed(places)
    }
    return sorted(folders.values())


def _existing_folder(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(
        candidate for candidate in (folder, *folder.parents) if candidate.is_dir()
    )


def _grade(value: float, failed: float, warning: float) -> Status:
    return "failed" if value < failed else "warning" if value < warning else "ok"


def _format_bytes(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / MIB:.1f} MiB"


def _format_seconds(seconds: float) -> str:
    hours = seconds / 3600
    if hours >= 48:
        return f"{hours / 24:.0f} days"
    return f"{hours:.1f} hours" if hours >= 1 else f"{seconds / 60:.0f} minutes"


def _try_file_system(folder: Path, *, journal: bool) -> str | None:
    """Return what a file system cannot do; None: it can do all."""
    try:
        with TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
            return _missing_ability(Path(scratch), journal=journal)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return "no space left to try anything"
        return f"{error.strerror or error}"


def _missing_ability(folder: Path, *, journal: bool) -> str | None:
    first, second = folder / "first", folder / "second"
    first.touch()
    if not _has_locks(first):
        return "two processes can hold one lock: it has no locks"
    os.link(first, second)
    second.rename(folder / "three")
    sync_folder(folder)
    if not journal:
        return None
    with closing(sqlite3.connect(folder / "db")) as db:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    return None if mode == "wal" else "it has no write-ahead log"


def _has_locks(path: Path) -> bool:
    """Return whether a lock that one handle holds is refused to a second one."""
    with path.open("a") as first, path.open("a") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _recorded_times(project: Project) -> Iterator[tuple[datetime, str]]:
    """Yield the times of runs and ledger entries, with what they are of."""
    for record in records.load_records(project):
        for text in filter(None, (record.started, record.finished)):
            yield datetime.fromisoformat(text), f"run {record.id}"
    try:
        ledger = open_existing(project.ledger)
    except UserError:
        return  # another check says so
    if ledger:
        with ledger:
            for entry in ledger.entries():
                when = datetime.fromisoformat(entry.settled or entry.reserved)
                yield when, f"release {entry.release[:12]}"


# What Prefect and MLflow need to write down one run, with SQLite's journals.
MIN_FREE_BYTES = 16 * 2**20
# A server that is looked for so often, so far apart, has gone.
POLL_SECONDS, MAX_MISSES = 5.0, 6
_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def explained_errors(project: Project) -> Iterator[None]:
    """Raise a UserError in place of an error that a user can remedy."""
    try:
        yield
    except (UserError, InternalError):
        raise
    except Exception as error:
        explained = _earlier_user_error(error) or stop_cause(project, error)
        if explained is None:
            raise
        raise explained from error


def stop_cause(
    project: Project,
    error: BaseException | None = None,
    database: Database = PREFECT,
) -> UserError | None:
    """Return what keeps Prefect or MLflow from going on; None: unknown."""
    path = database.path(project)
    full = [
        e
        for e in _error_chain(error)
        if isinstance(e, OSError) and e.errno in _FULL_ERRORS
    ]
    place = full[0].filename if full else None
    place = place or full_folder(
        project, MIN_FREE_BYTES, *([path.parent] if path else [])
    )
    if place or full:
        return UserError(
            f"no space left where {place or project.state} is. What was stored before"
            " is intact; free some space (`curvote gc`) and run the same command to go"
            " on."
        )
    problem = database.problem(project)
    if problem:
        return UserError("; ".join(database.problem_and_remedy(project, problem)) + ".")
    text_lines = [
        line for link in _error_chain(error) for line in str(link).splitlines()
    ]
    if there := database.server_problem(project, text_lines):
        return UserError(f"{there}.")
    url = os.environ.get("PREFECT_API_URL") if error and database is PREFECT else None
    silence = describe_silence(url) if url else None
    if silence:
        return _server_lost(silence)
    return None


@contextmanager
def server_watched(url: str, ending: Callable[[], None]) -> Iterator[None]:
    """End this process when a server of the user is gone, instead of retrying.

    Nothing is lost by that, as by a kill: the store holds whole artifacts only. Our
    own server is started again. ``ending`` is done before.
    """
    over = threading.Event()
    threading.Thread(
        target=_watch_server, args=(url, over, ending), daemon=True
    ).start()
    try:
        yield
    finally:
        over.set()


def _watch_server(url: str, over: threading.Event, ending: Callable[[], None]) -> None:
    missed = 0
    while not over.wait(POLL_SECONDS):
        silence = describe_silence(url, patient=True)
        missed = missed + 1 if silence else 0
        if silence and missed >= MAX_MISSES and not over.is_set():
            lines.write_line(f"curvote: {_server_lost(silence)}", "error")
            try:
                ending()
            finally:
                os._exit(2)


def _server_lost(words: str) -> UserError:
    return UserError(
        f"Prefect's server at {words}. What was stored before is intact; run the same"
        " command to go on."
    )


def _earlier_user_error(error: BaseException) -> UserError | None:
    """Return the UserError within a chain of errors, if there is one."""
    return next((e for e in _error_chain(error) if isinstance(e, UserError)), None)


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
