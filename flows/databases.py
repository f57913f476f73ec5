"""Findings of `curvote doctor`, and checks of the databases that a run needs."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from curvote.base.durable import journal_paths
from curvote.pipeline.config.project import Project

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """A finding of the doctor: what was checked, its state, and a remedy."""

    check: str
    status: Status
    found: str
    fix: str = ""


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
            roll_back(path)
            with closing(open_read_only(path)) as db:
                (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
                version = _alembic_revision(db)
                n_tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[
                    0
                ]
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode in _BUSY  # whoever writes it can read it
            return None if busy else f"cannot be read: {error}"
        except sqlite3.DatabaseError:
            return NOT_SOUND
        if verdict != "ok":
            return NOT_SOUND
        return self._version_problem(version) if n_tables else None

    def _version_problem(self, version: str | None) -> str | None:
        """Return why the owner would not open a revision; None: it would."""
        readable, newest = self._known_revisions()
        if version and version not in readable:
            return f"was written by a newer {self.owner} (revision {version})"
        old = newest and version not in newest and not self.migrates
        return HALF_MADE if old else None

    def _known_revisions(self) -> tuple[set[str], set[str]]:
        """Return the revisions that the installed package can read; the newest."""
        spec = find_spec(self.package)
        roots = (spec.submodule_search_locations if spec else None) or []
        files = (f for root in roots for f in Path(root, self.migrations).glob("*.py"))
        texts = [file.read_text(encoding="utf-8") for file in files]
        readable = {name for text in texts for name in _REVISION.findall(text)}
        return readable, readable - {
            name for text in texts for name in _DOWN_REVISION.findall(text)
        }

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
            silence = describe_silence(os.environ[database.variable])
            yield (
                Finding(check, "failed", silence, "start it, or name another address")
                if silence
                else Finding(check, "ok", "it answers, or cannot be asked from here")
            )
        elif problem := database.problem(project):
            problem_text, fix = database.problem_and_remedy(project, problem)
            yield Finding(check, "failed", problem_text, fix)
        elif path.is_file():
            yield Finding(check, "ok", f"{path} is sound")


def open_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def roll_back(path: Path) -> None:
    """Undo what a power cut or kill -9 left half written.

    The journal of a dead writer is played back by whoever opens the file for writing; a
    reader that may not write is refused. One of a living writer is left alone.
    """
    if Path(f"{path}-journal").is_file():
        url = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(url, uri=True)) as db:
            db.execute("SELECT count(*) FROM sqlite_schema")


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


def _alembic_revision(db: sqlite3.Connection) -> str | None:
    """Return the revision of a database that alembic keeps; None: a new one."""
    query = "SELECT count(*) FROM sqlite_schema WHERE name = 'alembic_version'"
    if not db.execute(query).fetchone()[0]:
        return None
    row = db.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def describe_silence(url: str, *, patient: bool = False) -> str | None:
    """Return that nothing listens at an address; None: it answers.

    Or it cannot be asked from here: a socket in a folder, a name, a proxy between.
    ``patient``: what takes long is busy.
    """
    address = urlsplit(url)
    scheme = address.scheme.partition("+")[0]
    host, port = address.hostname, address.port or _DEFAULT_PORTS.get(scheme)
    if not host or not port or _is_behind_proxy(scheme, host):
        return None
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except OSError as error:
        if patient and isinstance(error, TimeoutError):
            return None
        return f"{host}:{port} does not answer ({error.strerror or error})"
    return None


def _is_behind_proxy(scheme: str, host: str) -> bool:
    from urllib.request import getproxies, proxy_bypass

    return scheme in getproxies() and not proxy_bypass(host)
