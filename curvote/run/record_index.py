"""Records of runs on disk, and an index that can always be rebuilt from them.

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
from curvote.durable import journal_paths
from curvote.errors import UserError
from curvote.run.project import Project

FORMAT: Final = 2  # 1 had neither a format nor a sequence number
_INDEX_VERSION: Final = 2  # `user_version` below
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
_INSERT_PLANNED: Final = """
INSERT INTO planned VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET key = excluded.key, sequence = excluded.sequence, id = excluded.id
WHERE (excluded.sequence, excluded.id) >= (sequence, id)
"""
_INSERT_USED: Final = """
INSERT INTO used VALUES (?, ?, ?) ON CONFLICT DO UPDATE
SET started = max(started, excluded.started)
"""
_REQUIRED_KEYS: Final = frozenset(
    {"id", "pipeline", "started", "config", "steps", "status"}
)
Content = dict[str, Any]
Stamp = tuple[int, int]
T = TypeVar("T")


def records_folder(project: Project) -> Path:
    """Return the folder of the records."""
    return project.state / "runs"


def index_path(project: Project) -> Path:
    """Return the path of the index."""
    return project.state / "runs.sqlite"


def query_index(
    project: Project,
    question: Callable[[sqlite3.Connection], T],
    written: tuple[int | None, Path] | None = None,
) -> T:
    """Return the answer of the updated index; a failing one is rebuilt.

    Where none can be written, the disk full or read-only, it is made in memory.
    ``written`` is the stamp before our own change, and the only file that changed.
    """
    path = index_path(project)
    for _ in range(2):
        try:
            return _query_updated(path, records_folder(project), question, written)
        except sqlite3.DatabaseError:
            drop_index(project)
    return _query_updated(":memory:", records_folder(project), question, None)


def _query_updated(
    path: Path | str,
    folder: Path,
    question: Callable[[sqlite3.Connection], T],
    written: tuple[int | None, Path] | None,
) -> T:
    with closing(_open_index(path)) as db, db:
        _update_index(db, folder, written)
        return question(db)


def _open_index(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60.0)
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            db.executescript(_SCHEMA)
        elif version != _INDEX_VERSION:
            raise sqlite3.DatabaseError("an index of another version")
    except BaseException:
        db.close()
        raise
    return db


def index_state(db: sqlite3.Connection) -> tuple[int, int | None]:
    """Return the highest sequence number, and the folder's stamp in the index."""
    stamp, highest = db.execute("SELECT stamp, highest FROM state").fetchone()
    return highest, stamp


def _update_index(
    db: sqlite3.Connection, folder: Path, written: tuple[int | None, Path] | None
) -> None:
    """Enter the records that changed since the index was last updated."""
    stamp = folder.stat().st_mtime_ns
    _, indexed_stamp = index_state(db)
    if indexed_stamp == stamp and not written:
        return
    if written and indexed_stamp == written[0] is not None:
        changed = [written[1]]
    else:
        changed = _changed_files(db, folder)
    for path in changed:
        content = parse_record(path)
        if content is not None:
            _index_record(db, content, _file_stamp(path))
    db.execute("UPDATE state SET stamp = ?", (stamp,))


def _changed_files(db: sqlite3.Connection, folder: Path) -> list[Path]:
    """Return the files that differ from the index; drop removed ones."""
    query = "SELECT id, changed, size FROM runs"
    indexed = {name: (when, size) for name, when, size in db.execute(query)}
    present = {path.stem: path for path in sorted(folder.glob("[!.]*.json"))}
    removed = [(name,) for name in indexed.keys() - present.keys()]
    db.executemany("DELETE FROM runs WHERE id = ?", removed)
    db.executemany("DELETE FROM releases WHERE id = ?", removed)
    return [p for name, p in present.items() if indexed.get(name) != _file_stamp(p)]


def _file_stamp(path: Path) -> Stamp:
    stat_result = path.stat()
    return stat_result.st_mtime_ns, stat_result.st_size


def _index_record(db: sqlite3.Connection, content: Content, stamp: Stamp) -> None:
    run, order, pipeline = (content[n] for n in ("id", "sequence", "pipeline"))
    state = content["status"], content["owner"], content["mlflow_run"] is not None
    row = (run, order, pipeline, *state, content["started"], *stamp)
    db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    steps = content["steps"]
    cells = ((s["stage"], str(Cell.from_mapping(s["cell"])), s["key"]) for s in steps)
    db.executemany(_INSERT_PLANNED, ((pipeline, *cell, order, run) for cell in cells))
    used = ((s["stage"], s["key"], content["started"]) for s in steps)
    db.executemany(_INSERT_USED, used)
    db.execute("UPDATE state SET highest = max(highest, ?)", (order,))
    db.execute("DELETE FROM releases WHERE id = ?", (run,))
    config = content["config"]
    if "replicates" in config:  # a run that could not be planned has none
        counts = pipeline, config["replicates"]
        db.execute("INSERT OR IGNORE INTO counts VALUES (?, ?)", counts)
    if config.get("mode") == "production" and not config.get("intake"):
        name = str(config.get("protocol"))
        releases = ((name, s["stage"], s["key"], _is_reused(s), run) for s in steps)
        db.executemany(
            "INSERT OR IGNORE INTO releases VALUES (?, ?, ?, ?, ?)", releases
        )


def _is_reused(step: Mapping[str, Any]) -> bool:
    return bool(step["action"] == "reuse")


def drop_index(project: Project) -> None:
    """Drop the index; the next query rebuilds it from the records."""
    index = index_path(project)
    # A journal that is left would be played back into the new one.
    for path in (index, *journal_paths(index)):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def parse_record(path: Path) -> Content | None:
    """Return the record in a file, in today's form; None: it is unreadable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or not content.keys() >= _REQUIRED_KEYS:
        return None
    if content.get("format", 1) > FORMAT:
        raise UserError(
            f"{path}: a newer curvote wrote this record (format {content['format']},"
            " this"
            f" one reads up to {FORMAT}); update curvote."
        )
    return {"owner": "", "mlflow_run": None, "sequence": 0, "why": "", **content}
