"""The index of the records of runs: it can always be made anew from them.

It answers what would else need every record. It is brought up to date whenever the
folder changed without it, and made anew where it is lost, damaged or of another
version.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from curvote.chain.axis import Cell
from curvote.durable import journals
from curvote.errors import UserError
from curvote.run.project import Project

FORMAT: Final = 2  # 1 had neither a format nor a sequence number
_INDEX: Final = 2  # `user_version` below
_SCHEMA: Final = """
PRAGMA user_version = 2;
CREATE TABLE state (stamp INTEGER, highest INTEGER NOT NULL);
INSERT INTO state VALUES (NULL, 0);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, sequence INTEGER, pipeline TEXT, status TEXT, owner TEXT,
    logged INTEGER, started TEXT, changed INTEGER, size INTEGER
) WITHOUT ROWID;
CREATE INDEX in_order ON runs (pipeline, sequence, id);
CREATE INDEX by_end ON runs (pipeline, status, sequence, id);
CREATE INDEX by_status ON runs (status, logged);
CREATE TABLE planned (
    pipeline TEXT, stage TEXT, cell TEXT, key TEXT, sequence INTEGER, id TEXT,
    PRIMARY KEY (pipeline, stage, cell)
) WITHOUT ROWID;
CREATE INDEX by_start ON runs (started);
CREATE TABLE used (
    stage TEXT, key TEXT, started TEXT, PRIMARY KEY (stage, key)
) WITHOUT ROWID;
CREATE TABLE counts (
    pipeline TEXT, replicates INTEGER, PRIMARY KEY (pipeline, replicates)
) WITHOUT ROWID;
CREATE TABLE releases (
    protocol TEXT, stage TEXT, key TEXT, reused INTEGER, id TEXT,
    PRIMARY KEY (protocol, stage, key, reused, id)
) WITHOUT ROWID;
"""
_PLANNED: Final = """
INSERT INTO planned VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET key = excluded.key, sequence = excluded.sequence, id = excluded.id
WHERE (excluded.sequence, excluded.id) >= (sequence, id)
"""
_USED: Final = """
INSERT INTO used VALUES (?, ?, ?) ON CONFLICT DO UPDATE
SET started = max(started, excluded.started)
"""
_ALWAYS: Final = frozenset({"id", "pipeline", "started", "config", "steps", "status"})
Content = dict[str, Any]
Stamp = tuple[int, int]
T = TypeVar("T")


def folder_of(project: Project) -> Path:
    """Return where the records are."""
    return project.state / "runs"


def index_of(project: Project) -> Path:
    """Return where their index is."""
    return project.state / "runs.sqlite"


def ask(
    project: Project,
    question: Callable[[sqlite3.Connection], T],
    written: tuple[int | None, Path] | None = None,
) -> T:
    """Ask the index, brought up to date; one that fails is made anew.

    Where none can be written, the disk full or read-only, it is made in memory.
    ``written`` is the stamp before our own change, and the only file that changed.
    """
    path = index_of(project)
    for _ in range(2):
        try:
            return _asked(path, folder_of(project), question, written)
        except sqlite3.DatabaseError:
            forget(project)
    return _asked(":memory:", folder_of(project), question, None)


def _asked(
    path: Path | str,
    folder: Path,
    question: Callable[[sqlite3.Connection], T],
    written: tuple[int | None, Path] | None,
) -> T:
    with closing(_opened(path)) as db, db:
        _refresh(db, folder, written)
        return question(db)


def _opened(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60.0)
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            db.executescript(_SCHEMA)
        elif version != _INDEX:
            raise sqlite3.DatabaseError("an index of another version")
    except BaseException:
        db.close()
        raise
    return db


def standing(db: sqlite3.Connection) -> tuple[int, int | None]:
    """Return the highest number so far, and the folder's stamp that the index knows."""
    stamp, highest = db.execute("SELECT stamp, highest FROM state").fetchone()
    return highest, stamp


def _refresh(
    db: sqlite3.Connection, folder: Path, written: tuple[int | None, Path] | None
) -> None:
    """Enter the records that changed since the index was last brought up to date."""
    stamp = folder.stat().st_mtime_ns
    _, known = standing(db)
    if known == stamp and not written:
        return
    if written and known == written[0] is not None:
        changed = [written[1]]
    else:
        changed = _changed(db, folder)
    for path in changed:
        content = parsed(path)
        if content is not None:
            _enter(db, content, _stamp(path))
    db.execute("UPDATE state SET stamp = ?", (stamp,))


def _changed(db: sqlite3.Connection, folder: Path) -> list[Path]:
    """Return the files that the index does not know as they are; drop those gone."""
    every = "SELECT id, changed, size FROM runs"
    known = {name: (when, size) for name, when, size in db.execute(every)}
    there = {path.stem: path for path in sorted(folder.glob("[!.]*.json"))}
    gone = [(name,) for name in known.keys() - there.keys()]
    db.executemany("DELETE FROM runs WHERE id = ?", gone)
    db.executemany("DELETE FROM releases WHERE id = ?", gone)
    return [p for name, p in there.items() if known.get(name) != _stamp(p)]


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _enter(db: sqlite3.Connection, content: Content, stamp: Stamp) -> None:
    run, order, pipeline = (content[n] for n in ("id", "sequence", "pipeline"))
    kept = content["status"], content["owner"], content["mlflow_run"] is not None
    row = (run, order, pipeline, *kept, content["started"], *stamp)
    db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    steps = content["steps"]
    cells = ((s["stage"], str(Cell.of(s["cell"])), s["key"]) for s in steps)
    db.executemany(_PLANNED, ((pipeline, *each, order, run) for each in cells))
    used = ((s["stage"], s["key"], content["started"]) for s in steps)
    db.executemany(_USED, used)
    db.execute("UPDATE state SET highest = max(highest, ?)", (order,))
    db.execute("DELETE FROM releases WHERE id = ?", (run,))
    config = content["config"]
    if "replicates" in config:  # a run that could not be planned has none
        counts = pipeline, config["replicates"]
        db.execute("INSERT OR IGNORE INTO counts VALUES (?, ?)", counts)
    if config.get("mode") == "production" and not config.get("intake"):
        name = str(config.get("protocol"))
        told = ((name, s["stage"], s["key"], _reused(s), run) for s in steps)
        db.executemany("INSERT OR IGNORE INTO releases VALUES (?, ?, ?, ?, ?)", told)


def _reused(step: Mapping[str, Any]) -> bool:
    return bool(step["action"] == "reuse")


def forget(project: Project) -> None:
    """Drop the index: the next question makes it anew from the records."""
    index = index_of(project)
    # A journal that is left would be played back into the new one.
    for path in (index, *journals(index)):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def parsed(path: Path) -> Content | None:
    """Return the record in a file, in today's form; None where none can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or not found.keys() >= _ALWAYS:
        return None
    if found.get("format", 1) > FORMAT:
        raise UserError(
            f"{path}: a newer curvote wrote this record (format {found['format']}, this"
            f" one reads up to {FORMAT}); update curvote."
        )
    return {"owner": "", "mlflow_run": None, "sequence": 0, "why": "", **found}
