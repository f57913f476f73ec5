"""Machine below a project: disk space, file systems and clock; causes of stops."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.parse import urlsplit

from curvote.base.durable import journal_paths, sync_folder
from curvote.base.errors import InternalError, UserError
from curvote.flows import lines
from curvote.ledger.book import open_existing
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """A finding of the doctor: what was checked, its state, and a remedy."""

    check: str
    status: Status
    found: str
    fix: str = ""

    @classmethod
    def of(
        cls, check: str, problem: str, fix: str, sound: str, status: Status = "failed"
    ) -> Finding:
        """Return a problem with its remedy; if it is empty, that all is ``sound``."""
        return cls(check, status, problem, fix) if problem else cls(check, "ok", sound)


Check = Callable[[Project], Iterator[Finding]]


def shorten_list(lines: list[str], max_lines: int = 3) -> str:
    """Return the first lines as one, and the number of further ones."""
    more = f" (and {len(lines) - max_lines} more)" if len(lines) > max_lines else ""
    return "; ".join(lines[:max_lines]) + more


NOT_SOUND = "is no sound database any more"
HALF_MADE = "is half made, or of an older version"
_REVISION = re.compile(r"""^revision(?:: str)? = ["'](\w+)["']""", re.MULTILINE)
_DOWN_REVISION = re.compile(
    r"""^down_revision(?:: [^=]+)? = ["'](\w+)["']""", re.MULTILINE
)
ANSWER_SECONDS = 5.0
_COUNT_TABLES = "SELECT count(*) FROM sqlite_schema"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# Where those listen whose address names no port.
_DEFAULT_PORTS = {
    "http": 80,
    "https": 443,
    "mssql": 1433,
    "mysql": 3306,
    "postgres": 5432,
    "postgresql": 5432,
}


# What an error says of a database elsewhere, in words; files are looked at themselves.
_SERVER_REASONS = {
    "password authentication failed": "refuses the user or the password in it",
    "Connect call failed": "does not answer; start it, or unset the variable",
    "Connection refused": "does not answer; start it, or unset the variable",
    "Name or service not known": "names a machine that is not known",
    "does not exist": "names a database or a user that is not there",
}


@dataclass(frozen=True)
class Database:
    """A database: its owner, its default path, and the variable that names it."""

    owner: str
    package: str
    variable: str
    place: str
    migrations: str
    migrates: bool  # an older database by itself, when it is opened

    def path(self, project: Project) -> Path | None:
        """Return the file, None: the environment names a server."""
        named = os.environ.get(self.variable, "")
        if named and not named.startswith("sqlite"):
            return None
        _, is_file_url, path = named.partition(":///")
        file = path.partition("?")[0].removeprefix("file:")  # SQLite's own addresses
        return Path(file) if is_file_url else project.state / self.place

    def server_problem(self, project: Project, lines: Sequence[str]) -> str | None:
        """Return the problem of a database server, as the owner's ``lines`` have it."""
        if self.path(project) is not None:
            return None
        for line in reversed(lines):
            for sign, words in _SERVER_REASONS.items():
                if sign in line:
                    return f"the database that {self.variable} names {words}"
        return None

    def problem(self, project: Project) -> str | None:
        """Return what is wrong with the database's file; None: nothing."""
        path = self.path(project)
        if path is None or not path.is_file():
            return None
        try:
            if Path(f"{path}-journal").is_file():
                # What a power cut or kill -9 left half written is undone by whoever
                # opens the file for writing; a reader that may not write is refused.
                # The journal of a living writer is left alone.
                url = f"{path.absolute().as_uri()}?mode=rw"
                with closing(sqlite3.connect(url, uri=True)) as db:
                    db.execute(_COUNT_TABLES)
            with closing(open_read_only(path)) as db:
                (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
                (n_tables,) = db.execute(_COUNT_TABLES).fetchone()
                table = f"{_COUNT_TABLES} WHERE name = 'alembic_version'"
                version = None  # of a new one
                if db.execute(table).fetchone()[0]:
                    query = "SELECT version_num FROM alembic_version"
                    (version,) = db.execute(query).fetchone() or [None]
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode in _BUSY  # whoever writes it can read it
            return None if busy else f"cannot be read: {error}"
        except sqlite3.DatabaseError:
            return NOT_SOUND
        if verdict != "ok":
            return NOT_SOUND
        # The revisions that the installed package can read, and the newest.
        readable, earlier = set[str](), set[str]()
        spec = find_spec(self.package) if n_tables else None
        for root in (spec and spec.submodule_search_locations) or []:
            for file in Path(root, self.migrations).glob("*.py"):
                text = file.read_text(encoding="utf-8")
                readable.update(_REVISION.findall(text))
                earlier.update(_DOWN_REVISION.findall(text))
        newest = readable - earlier
        if n_tables and version and version not in readable:
            return f"was written by a newer {self.owner} (revision {version})"
        old = newest and version not in newest and not self.migrates
        return HALF_MADE if old else None

    def problem_and_remedy(self, project: Project, problem: str) -> tuple[str, str]:
        """Return a problem as a sentence, and its remedy."""
        path = self.path(project)
        if problem == NOT_SOUND:
            way = "`curvote doctor --fix` sets it aside; the next run makes a new one"
        elif problem == HALF_MADE:
            way = "`curvote doctor --fix` makes it whole, or sets it aside"
        elif problem.startswith("cannot be read"):
            way = "see who may read and write it, and its folder"
        else:
            way = (
                f"install the {self.owner} that wrote it, or move the file away: what"
                " it shows is told again from the records"
            )
        return f"{self.owner}'s database {path} {problem}", way


PREFECT = Database(
    "Prefect",
    "prefect",
    "PREFECT_API_DATABASE_CONNECTION_URL",
    "prefect/prefect.db",
    "server/database/_migrations/versions/sqlite",
    migrates=True,
)
MLFLOW = Database(
    "MLflow",
    "mlflow",
    "MLFLOW_TRACKING_URI",
    "mlflow.db",
    "store/db_migrations/versions",
    migrates=False,
)
DATABASES = (PREFECT, MLFLOW)


def check_databases(project: Project) -> Iterator[Finding]:
    """Check both databases, files as well as servers."""
    for database in DATABASES:
        check = f"{database.owner} database"
        path = database.path(project)
        if path is None:
            silence = describe_silence(os.environ[database.variable]) or ""
            fix = "start it, or name another address"
            sound = "it answers, or cannot be asked from here"
            yield Finding.of(check, silence, fix, sound)
        elif problem := database.problem(project):
            yield Finding(
                check, "failed", *database.problem_and_remedy(project, problem)
            )
        elif path.is_file():
            yield Finding(check, "ok", f"{path} is sound")


def open_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def set_aside(path: Path) -> Path:
    """Rename a database and its journals, never over anything; return its new name."""
    number = 0
    while (new := path.with_name(f"{path.name}.aside-{number}")).exists():
        number += 1
    path.rename(new)
    for journal in (*journal_paths(path), Path(f"{path}-shm")):
        if journal.exists():
            journal.rename(f"{new}{journal.name.removeprefix(path.name)}")
    return new


def describe_silence(url: str, *, patient: bool = False) -> str | None:
    """Return that nothing listens at an address; None: it answers.

    Or it cannot be asked from here: a socket in a folder, a name, a proxy between.
    ``patient``: what takes long is busy.
    """
    address = urlsplit(url)
    scheme = address.scheme.partition("+")[0]
    host, port = address.hostname, address.port or _DEFAULT_PORTS.get(scheme)
    if not host or not port:
        return None
    from urllib.request import getproxies, proxy_bypass

    if scheme in getproxies() and not proxy_bypass(host):
        return None
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except OSError as error:
        if patient and isinstance(error, TimeoutError):
            return None
        return f"{host}:{port} does not answer ({error.strerror or error})"
    return None


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
        grades = [("space", free, (MIN_BYTES, FEW_BYTES), words)]
        if volume.f_files:  # some file systems count none
            words = f"{where}: {volume.f_favail:,} more files fit"
            limits = MIN_INODES, FEW_INODES
            grades.append(("inodes", volume.f_favail, limits, words))
        for check, value, (failed, warning), words in grades:
            status: Status = "warning" if value < warning else "ok"
            status = "failed" if value < failed else status
            fix = "" if status == "ok" else SPACE_REMEDY
            yield Finding(check, status, words, fix)


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
        journal = folder == _existing_folder(project.state)
        try:
            with TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
                wrong = _missing_ability(Path(scratch), journal=journal)
        except OSError as error:
            wrong = f"{error.strerror or error}"
            if error.errno == errno.ENOSPC:
                wrong = "no space left to try anything"
        where = folder.relative_to(project.root) if folder != project.root else folder
        problem = f"{where}: {wrong}" if wrong else ""
        fix = "put it on a local file system that can be written"
        sound = f"{where}: locks, links and syncs work"
        yield Finding.of("file system", problem, fix, sound)


def check_clock(project: Project) -> Iterator[Finding]:
    """Check that the clock is not behind the latest recorded time."""
    latest = max(_recorded_times(project), default=None)
    if latest is None:
        return
    when, what = latest
    behind, words = (when - datetime.now(UTC)).total_seconds(), ""
    if behind > MAX_CLOCK_LAG:
        hours = behind / 3600
        span = f"{hours:.1f} hours" if hours >= 1 else f"{behind / 60:.0f} minutes"
        span = f"{hours / 24:.0f} days" if hours >= 48 else span
        words = f"{span} behind {what} ({when:%Y-%m-%d %H:%M} UTC)"
    fix = "set the clock; runs keep their order, but not their times"
    yield Finding.of("clock", words, fix, f"after {what}", "warning")


def _volume_folders(project: Project) -> list[Path]:
    """Return one folder for each file system that runs write to."""
    places = (project.state, *project.stores)
    folders = [_existing_folder(place) for place in reversed(places)]
    return sorted({folder.stat().st_dev: folder for folder in folders}.values())


def _existing_folder(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def _format_bytes(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / MIB:.1f} MiB"


def _missing_ability(folder: Path, *, journal: bool) -> str | None:
    first, second = folder / "first", folder / "second"
    with first.open("a") as handle, first.open("a") as other:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return "two processes can hold one lock: it has no locks"
    os.link(first, second)
    second.rename(folder / "three")
    sync_folder(folder)
    if not journal:
        return None
    with closing(sqlite3.connect(folder / "db")) as db:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    return None if mode == "wal" else "it has no write-ahead log"


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
        user_errors = (e for e in _error_chain(error) if isinstance(e, UserError))
        explained = next(user_errors, None) or stop_cause(project, error)
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
    links = [*_error_chain(error)]
    system_errors = (e for e in links if isinstance(e, OSError))
    full = [e for e in system_errors if e.errno in _FULL_ERRORS]
    beside = [path.parent] if path else []
    place = full[0].filename if full else None
    place = place or full_folder(project, MIN_FREE_BYTES, *beside)
    if place or full:
        return UserError(
            f"no space left where {place or project.state} is. What was stored before"
            " is intact; free some space (`curvote gc`) and run the same command to go"
            " on."
        )
    problem = database.problem(project)
    if problem:
        return UserError("; ".join(database.problem_and_remedy(project, problem)) + ".")
    text_lines = [line for link in links for line in str(link).splitlines()]
    if there := database.server_problem(project, text_lines):
        return UserError(f"{there}.")
    url = os.environ.get("PREFECT_API_URL") if error and database is PREFECT else None
    silence = describe_silence(url) if url else None
    return _server_lost(silence) if silence else None


@contextmanager
def server_watched(url: str, ending: Callable[[], None]) -> Iterator[None]:
    """End this process when a server of the user is gone, instead of retrying.

    Nothing is lost by that, as by a kill: the store holds whole artifacts only. Our
    own server is started again. ``ending`` is done before.
    """
    over = threading.Event()

    def watch() -> None:
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

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _server_lost(words: str) -> UserError:
    return UserError(
        f"Prefect's server at {words}. What was stored before is intact; run the same"
        " command to go on."
    )


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        yield error
        links.append(error)
        hidden = getattr(error, "original", None)  # of a `RedactedError`
        error = hidden or error.__cause__ or error.__context__
