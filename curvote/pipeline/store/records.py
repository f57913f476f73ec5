"""Records of runs on disk, and an index that can always be rebuilt from them.

It answers what would else need every record. It is brought up to date whenever the
folder changed without it, and made anew where it is lost, damaged or of another
version.
"""

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from curvote.base.durable import journal_paths, private_folder
from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.store.artifacts import write_json

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
        insert = "INSERT OR IGNORE INTO releases VALUES (?, ?, ?, ?, ?)"
        for s in steps:
            reused = bool(s["action"] == "reuse")
            db.execute(insert, (name, s["stage"], s["key"], reused, run))


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
            f" this one reads up to {FORMAT}); update curvote."
        )
    return {"owner": "", "mlflow_run": None, "sequence": 0, "why": "", **content}


def write_record(project: Project, content: Mapping[str, Any]) -> Content:
    """Write a record atomically and return it; a new one gets its number.

    New is what has sequence 0 and an id that is not there yet.
    """
    private_folder(project.state)
    folder = records_folder(project)
    folder.mkdir(exist_ok=True)
    path = folder / f"{content['id']}.json"
    record = {"format": FORMAT, **content}
    with _records_locked(folder):
        highest, stamp = query_index(project, index_state)
        if not record["sequence"] and not path.exists():
            record["sequence"] = highest + 1
        write_json(path, record)
        query_index(project, lambda _: None, (stamp, path))
    return record


def read_record(project: Project, run: str) -> Content | None:
    """Return the record of a run; None: there is no readable one.

    One that a newer curvote wrote is a UserError.
    """
    return parse_record(records_folder(project) / f"{run}.json")


def run_ids(
    project: Project, pipeline: str | None = None, status: str | None = None
) -> list[str]:
    """Return the ids of runs, oldest first."""
    wanted = "(?1 IS NULL OR pipeline = ?1) AND (?2 IS NULL OR status = ?2)"
    return _query_ids(project, f"{wanted} ORDER BY sequence, id", pipeline, status)


def newest_ids(
    project: Project, pipeline: str, status: str | None = None, count: int = 1
) -> list[str]:
    """Return the ids of the latest runs of a pipeline, oldest first."""
    condition = "pipeline = ?1 AND status = ?2" if status else "pipeline = ?1"
    order = f"{condition} ORDER BY sequence DESC, id DESC LIMIT ?3"
    return _query_ids(project, order, pipeline, status, count)[::-1]


def previous_id(project: Project, run: str) -> str | None:
    """Return the id of the pipeline's run before this one."""
    ids = _query_ids(
        project,
        "(pipeline, sequence, id) < (SELECT pipeline, sequence, id FROM runs"
        " WHERE id = ?1) AND pipeline = (SELECT pipeline FROM runs WHERE id = ?1)"
        " ORDER BY sequence DESC, id DESC LIMIT 1",
        run,
    )
    return ids[0] if ids else None


def count_streak(
    project: Project, pipeline: str, statuses: Sequence[str], until: Sequence[str]
) -> int:
    """Return how many runs ended in ``statuses`` since one in ``until``."""
    considered = [*statuses, *until]
    rows = _query_rows(
        project,
        f"SELECT status FROM runs WHERE pipeline = ? AND status IN"  # noqa: S608 - marks
        f" ({', '.join('?' * len(considered))}) ORDER BY sequence DESC, id DESC",
        pipeline,
        *considered,
    )
    return sum(1 for _ in takewhile(lambda row: row[0] in statuses, rows))


def blocked_ids(project: Project, pipeline: str) -> list[str]:
    """Return the ids of waiting runs after the last completed one."""
    return _query_ids(
        project,
        "pipeline = ?1 AND status = 'blocked' AND (sequence, id) > (SELECT"
        " coalesce(max(sequence), -1), coalesce(max(id), '') FROM runs"
        " WHERE pipeline = ?1 AND status = 'completed')",
        pipeline,
    )


def unlogged_ids(project: Project) -> list[str]:
    """Return the ids of completed runs that MLflow does not have, oldest first."""
    unlogged = "status = 'completed' AND logged = 0 ORDER BY sequence, id"
    return _query_ids(project, unlogged)


def last_logged_pipeline(project: Project) -> str | None:
    """Return the pipeline of the latest run that MLflow has."""
    query = "SELECT pipeline FROM runs WHERE logged ORDER BY sequence DESC, id DESC"
    rows = _query_rows(project, f"{query} LIMIT 1")
    return rows[0][0] if rows else None


def pipeline_names(project: Project) -> list[str]:
    """Return the sorted names of the pipelines that ran in this project."""
    query = "SELECT DISTINCT pipeline FROM runs ORDER BY pipeline"
    return [name for (name,) in _query_rows(project, query)]


def ids_before(project: Project, moment: str) -> list[str]:
    """Return the ids of runs that started before an ISO moment, oldest first."""
    return _query_ids(project, "started < ?1 ORDER BY sequence, id", moment)


def steps_used_since(project: Project, moment: str) -> set[tuple[str, str]]:
    """Return (stage, key) of steps planned by runs since an ISO moment."""
    query = "SELECT stage, key FROM used WHERE started >= ?"
    return {(stage, key) for stage, key in _query_rows(project, query, moment)}


def unfinished_runs(project: Project) -> list[tuple[str, str]]:
    """Return (id, owner) of the runs that have not said how they ended."""
    return _query_rows(project, "SELECT id, owner FROM runs WHERE status = 'running'")


def latest_keys(project: Project, pipeline: str) -> dict[tuple[str, str], str]:
    """Return the key that each (stage, cell) had when it was last planned."""
    query = "SELECT stage, cell, key FROM planned WHERE pipeline = ?"
    rows = _query_rows(project, query, pipeline)
    return {(stage, cell): key for stage, cell, key in rows}


def replicate_counts(project: Project, pipeline: str) -> list[int]:
    """Return the numbers of replicates that a pipeline ever had."""
    query = "SELECT replicates FROM counts WHERE pipeline = ? ORDER BY replicates"
    return [count for (count,) in _query_rows(project, query, pipeline)]


def released_steps(project: Project) -> list[tuple[str, str, str, str]]:
    """Return (protocol, stage, key, run) of steps released in production.

    Each (protocol, stage, key) stands here once, with the latest run that tells of it.
    Rounds of envelopes do not count: nothing of theirs is drawn here.
    """
    return _query_rows(
        project,
        "SELECT protocol, stage, key, max(id) FROM releases JOIN runs USING (id)"
        " WHERE reused OR status IN ('completed', 'partial')"
        " GROUP BY protocol, stage, key ORDER BY max(id)",
    )


def _query_ids(project: Project, where: str, *values: object) -> list[str]:
    rows = _query_rows(project, f"SELECT id FROM runs WHERE {where}", *values)  # noqa: S608
    return [name for (name,) in rows]


def _query_rows(project: Project, question: str, *values: object) -> list[Any]:
    folder = records_folder(project)
    if not folder.is_dir():
        return []
    with _records_locked(folder):
        return query_index(project, lambda db: db.execute(question, values).fetchall())


@contextmanager
def _records_locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


_LOCKS: dict[str, IO[bytes]] = {}  # of the runs of this process, by their ids
_MAX_RUNS_BACK = 10**9  # runs; no project has more, and no database counts further


@dataclass(frozen=True)
class RunRecord:
    """One execution of a pipeline.

    ``status`` is running, completed, partial (``--only``), blocked (waits for
    envelopes), failed, interrupted or killed; ``owner`` names the process that runs it.
    ``sequence`` is its place among all runs, whatever the clock says; 0 until it is
    saved, and in the records of earlier versions, which come before all others. ``why``
    is what a failed run said, or what a blocked one waits for; one that could not even
    be planned has no steps.
    """

    id: str
    pipeline: str
    started: str
    overrides: list[str]
    config: dict[str, Any]
    steps: list[dict[str, Any]]
    status: str = "running"
    finished: str | None = None
    mlflow_run: str | None = None
    owner: str = ""
    sequence: int = 0
    why: str = ""

    def stage_keys(self, stage: str) -> list[tuple[Cell, str]]:
        """Return the (cell, key) pairs of one stage."""
        stage_steps = (step for step in self.steps if step["stage"] == stage)
        return [(Cell.from_mapping(step["cell"]), step["key"]) for step in stage_steps]


def record_start(
    project: Project, configured: ConfiguredPipeline, steps: Iterable[Step], owner: str
) -> RunRecord:
    """Write the record of a run that the process ``owner`` is about to start."""
    record = replace(
        _new_record(project, configured.name, owner),
        overrides=list(configured.overrides),
        config=configured.values(),
        steps=[_planned_step(step) for step in steps],
    )
    return save_record(project, record)


def record_refusal(project: Project, pipeline: str, why: str, owner: str) -> RunRecord:
    """Write the record of a run that could not be planned, with the reason."""
    record = save_record(project, _new_record(project, pipeline, owner))
    return record_end(project, record, "failed", why)


def _new_record(project: Project, pipeline: str, owner: str) -> RunRecord:
    started = datetime.now(UTC)
    while read_record(project, _run_id(started)):  # a clock may strike twice
        started += timedelta(microseconds=1)
    moment = started.isoformat(timespec="seconds")
    return RunRecord(_run_id(started), pipeline, moment, [], {}, [], owner=owner)


def _run_id(started: datetime) -> str:
    return f"{started:%Y%m%d-%H%M%S-%f}"


def _planned_step(step: Step) -> dict[str, Any]:
    entry = {
        "stage": step.stage.name,
        "cell": step.cell.to_json(),
        "key": step.key,
        "action": step.reported_action,
        "reason": step.reason,
    }
    return entry | ({"earlier": step.earlier.key} if step.earlier else {})


def record_end(
    project: Project, record: RunRecord, status: str, why: str = ""
) -> RunRecord:
    """Write down how a run ended, and why it failed or waits."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    done = save_record(project, replace(record, status=status, finished=now, why=why))
    if lock := _LOCKS.pop(record.id, None):
        Path(lock.name).unlink(missing_ok=True)
        lock.close()
    return done


def record_killed(project: Project, is_alive: Callable[[str], bool]) -> None:
    """Write down that runs were killed whose processes are gone."""
    for run, owner in unfinished_runs(project):
        there = is_running(project, run, owner, is_alive)
        record = None if there else load_record(project, run)
        if record and record.status == "running":
            record_end(project, record, "killed", "its process was ended")


def is_running(
    project: Project, run: str, owner: str, is_alive: Callable[[str], bool]
) -> bool:
    """Return whether a run's process lives, by its name or by its lock.

    A process in another container has no name here, and its lock is the same.
    """
    if is_alive(owner):
        return True
    try:
        with _lock_path(project, run).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def hold_run_lock(project: Project, run: str) -> None:
    """Hold the lock of a run until it has finished, or this process has ended."""
    place = _lock_path(project, run)
    private_folder(place.parent)
    lock = _LOCKS[run] = place.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_path(project: Project, run: str) -> Path:
    return project.state / "running" / run


def save_record(project: Project, record: RunRecord) -> RunRecord:
    """Store a record; it replaces an earlier state of the same run."""
    return _from_content(write_record(project, asdict(record)))


def load_record(project: Project, run: str) -> RunRecord | None:
    """Return the record of a run; None: there is no readable one."""
    content = read_record(project, run)
    return _from_content(content) if content else None


def load_records(project: Project, pipeline: str | None = None) -> list[RunRecord]:
    """Return all records, oldest first, after reading each file."""
    return read_records(project, lambda: run_ids(project, pipeline))


def read_records(
    project: Project, find_ids: Callable[[], list[str]]
) -> list[RunRecord]:
    """Return the records of ids that the index finds; unreadable ones are left out."""
    loaded_records = [load_record(project, run) for run in find_ids()]
    if None in loaded_records:  # damaged in its place since it was entered
        drop_index(project)
        loaded_records = [load_record(project, run) for run in find_ids()]
    return [record for record in loaded_records if record]


def latest_run(project: Project, pipeline: str) -> RunRecord | None:
    """Return the latest run of a pipeline, however it ended."""
    runs = read_records(project, lambda: newest_ids(project, pipeline))
    return runs[-1] if runs else None


def completed_run(project: Project, pipeline: str, run: str | None = None) -> RunRecord:
    """Return the latest completed run of a pipeline, or the named one.

    A name is a run's id, or NAME~N: the Nth before the latest of the pipeline.
    """
    name, tilde, back = (run or "").partition("~")
    if tilde and name == pipeline and back.isdecimal():
        return earlier_run(project, pipeline, int(back))
    named = load_record(project, run) if run and run == Path(run).name else None
    if named and (named.pipeline, named.status) == (pipeline, "completed"):
        return named
    count = 5 if run else 1
    wanted = pipeline, "completed", count
    done = read_records(project, lambda: newest_ids(project, *wanted))
    if not done:
        message = f"{pipeline} has no completed run; `curvote run {pipeline}` first."
        raise UserError(message)
    if not run:
        return done[-1]
    latest = ", ".join(r.id for r in done)
    raise UserError(f"no completed run {run!r} of {pipeline}. The latest: {latest}.")


def earlier_run(project: Project, pipeline: str, count: int) -> RunRecord:
    """Return the completed run ``count`` before the latest; UserError: none."""
    steps_back = min(count, _MAX_RUNS_BACK)
    wanted = pipeline, "completed", steps_back + 1
    done = read_records(project, lambda: newest_ids(project, *wanted))
    if len(done) > steps_back:
        return done[0]
    if not done:
        return completed_run(project, pipeline)  # says what there is not
    raise UserError(
        f"{pipeline} has {len(done)} completed runs: {pipeline}~{len(done) - 1} is the"
        f" first; `curvote runs {pipeline}` lists them."
    )


def unlogged_runs(project: Project) -> list[RunRecord]:
    """Return the completed runs that MLflow does not have, oldest first."""
    return read_records(project, lambda: unlogged_ids(project))


def _from_content(content: dict[str, Any]) -> RunRecord:
    return RunRecord(**{field.name: content[field.name] for field in fields(RunRecord)})
