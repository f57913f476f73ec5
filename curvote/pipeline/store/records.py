"""Records of runs: one SQLite file of the project, and what it is asked for.

Earlier versions wrote a JSON file for each run: those are taken over when the file is
opened, and stay as they are. The file has a rollback journal and no write-ahead log: so
it is read on a full or read-only disk, too, and a copy of the one file is whole.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from curvote.base.durable import DurableFile, private_folder
from curvote.base.errors import UserError
from curvote.chain.axis import Cell

if TYPE_CHECKING:
    from curvote.pipeline.config.file import ConfiguredPipeline
    from curvote.pipeline.config.project import Project
    from curvote.pipeline.plan.step import Step

FORMAT: Final = 3  # 1, without a sequence number, and 2 were a JSON file for each run
_JSON_FORMAT: Final = 2
_REQUIRED_KEYS: Final = frozenset(
    {"id", "pipeline", "started", "config", "steps", "status"}
)
# `released_by` is the protocol of a run that releases about records which are here;
# `stamp` is that of the folder of JSON files when it was last taken over.
_SCHEMA: Final = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, pipeline TEXT NOT NULL,
    status TEXT NOT NULL, owner TEXT NOT NULL, started TEXT NOT NULL, finished TEXT,
    mlflow_run TEXT, why TEXT NOT NULL, overrides TEXT NOT NULL, config TEXT NOT NULL,
    replicates INTEGER, released_by TEXT
);
CREATE INDEX in_order ON runs (pipeline, sequence, id);
CREATE INDEX by_end ON runs (pipeline, status, sequence, id);
CREATE INDEX by_status ON runs (status, mlflow_run);
CREATE TABLE steps (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, number INTEGER NOT NULL,
    stage TEXT NOT NULL, cell TEXT NOT NULL, key TEXT NOT NULL, action TEXT NOT NULL,
    reason TEXT NOT NULL, earlier TEXT, PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE headlines (
    run TEXT PRIMARY KEY REFERENCES runs ON DELETE CASCADE, main TEXT NOT NULL,
    stages TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE taken_over (stamp INTEGER NOT NULL);
"""


class RecordsFile(DurableFile):
    """The file of records: every run asks it often, so that only `doctor` reads all."""

    def _is_sound(self, db: sqlite3.Connection, _: Path) -> bool:
        return True


RECORDS: Final = RecordsFile(
    kind="record of runs",
    record="what ran here, and what was released",
    application=0x43565252,
    version=FORMAT,
    schema=_SCHEMA,
    journal="DELETE",
)


def records_path(project: Project) -> Path:
    """Return the path of the records."""
    return project.state / "records.sqlite"


def earlier_files(project: Project) -> list[Path]:
    """Return the JSON files in which earlier versions kept records, sorted."""
    return sorted((project.state / "runs").glob("[!.]*.json"))


@contextmanager
def _opened(project: Project, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
    """Yield the records; where nothing can be written, they are read all the same.

    UserError: they are damaged, of a newer curvote, or to be written and cannot be.
    """
    path = records_path(project)
    with (
        RECORDS.errors(path),
        closing(_connect(project, path, writing=writing)) as db,
        RECORDS.transaction(db, path, "IMMEDIATE" if writing else "DEFERRED"),
    ):
        yield db


def _connect(project: Project, path: Path, *, writing: bool) -> sqlite3.Connection:
    if writing or path.exists() or (project.state / "runs").is_dir():
        with ExitStack() as stack:
            try:
                db = stack.enter_context(closing(RECORDS.connect(path)))
                _take_over(project, db)
            except (UserError, sqlite3.OperationalError):
                if writing:
                    raise
            else:
                stack.pop_all()
                return db
    memory = sqlite3.connect(":memory:", isolation_level=None)
    memory.executescript(_SCHEMA)
    if path.exists():  # a damaged one is refused once more
        with closing(RECORDS.connect(path)) as there:
            there.backup(memory)
    _take_over(project, memory)
    return memory


def _take_over(project: Project, db: sqlite3.Connection) -> None:
    """Enter the runs of JSON files that are not there yet, if the folder changed."""
    folder = project.state / "runs"
    if not folder.is_dir():
        return
    stamp = folder.stat().st_mtime_ns
    if db.execute("SELECT stamp FROM taken_over").fetchone() == (stamp,):
        return
    with RECORDS.transaction(db, records_path(project), "IMMEDIATE"):
        ids = {run for (run,) in db.execute("SELECT id FROM runs")}
        named = [field.name for field in fields(RunRecord)]
        for path in earlier_files(project):
            content = parse_record(path) if path.stem not in ids else None
            if content is not None:
                values = {n: content[n] for n in named if n in content}
                _enter(db, RunRecord(**{"overrides": []} | values))
        db.execute("DELETE FROM taken_over")
        db.execute("INSERT INTO taken_over VALUES (?)", (stamp,))


def parse_record(path: Path) -> dict[str, Any] | None:
    """Return the record in a JSON file of an earlier version; None: it is unreadable.

    One that a newer curvote wrote is a UserError.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or not content.keys() >= _REQUIRED_KEYS:
        return None
    if content.get("format", 1) > _JSON_FORMAT:
        raise UserError(
            f"{path}: a newer curvote wrote this record (format {content['format']},"
            f" this one reads up to {_JSON_FORMAT}); update curvote."
        )
    return content


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


_STEP_KEYS: Final = ("stage", "cell", "key", "action", "reason", "earlier")
_COLUMNS: Final = tuple(f.name for f in fields(RunRecord) if f.name != "steps")
_SELECT_RUNS: Final = f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE "  # noqa: S608
_SELECT_STEPS: Final = (
    f"SELECT {', '.join(_STEP_KEYS)} FROM steps WHERE run = ? ORDER BY number"  # noqa: S608
)
_LATEST: Final = (
    "(?1 IS NULL OR pipeline = ?1) AND (?2 IS NULL OR status = ?2)"
    " ORDER BY sequence DESC, id DESC LIMIT ?3"
)
_SELECT_IDS: Final = f"SELECT id FROM runs WHERE {_LATEST}"  # noqa: S608


def _enter(db: sqlite3.Connection, record: RunRecord) -> None:
    """Enter a run, or its new state, with its steps."""
    config, release = record.config, None
    if config.get("mode") == "production" and not config.get("intake"):
        release = str(config.get("protocol"))
    values = {name: getattr(record, name) for name in _COLUMNS} | {
        "overrides": json.dumps(record.overrides),
        "config": json.dumps(config, allow_nan=False),
        "replicates": config.get("replicates"),
        "released_by": release,
    }
    changes = ", ".join(f"{name} = excluded.{name}" for name in values)
    db.execute(
        f"INSERT INTO runs ({', '.join(values)}) VALUES"  # noqa: S608 - names and marks
        f" ({', '.join('?' * len(values))}) ON CONFLICT (id) DO UPDATE SET {changes}",
        tuple(values.values()),
    )
    db.execute("DELETE FROM steps WHERE run = ?", (record.id,))
    for number, step in enumerate(record.steps):
        entry = step | {"cell": json.dumps(step["cell"])}
        row = record.id, number, *map(entry.get, _STEP_KEYS)
        db.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _records(db: sqlite3.Connection, where: str, *values: object) -> list[RunRecord]:
    """Return the records of the runs of a condition, in its order."""
    run_records = []
    for row in db.execute(_SELECT_RUNS + where, values).fetchall():
        content = dict(zip(_COLUMNS, row, strict=True))
        steps = []
        for entry in db.execute(_SELECT_STEPS, (content["id"],)):
            step = dict(zip(_STEP_KEYS, entry, strict=True))
            step["cell"] = json.loads(step["cell"])
            if step["earlier"] is None:
                del step["earlier"]
            steps.append(step)
        content |= {name: json.loads(content[name]) for name in ("overrides", "config")}
        run_records.append(RunRecord(**content, steps=steps))
    return run_records


def _rows(project: Project, query: str, *values: object) -> list[Any]:
    with _opened(project) as db:
        return db.execute(query, values).fetchall()


def run_ids(
    project: Project,
    pipeline: str | None = None,
    status: str | None = None,
    last: int | None = None,
) -> list[str]:
    """Return the ids of runs, all or the latest ones, oldest first."""
    count = -1 if last is None else last
    rows = _rows(project, _SELECT_IDS, pipeline, status, count)
    return [run for (run,) in reversed(rows)]


def load_records(
    project: Project,
    pipeline: str | None = None,
    status: str | None = None,
    last: int | None = None,
) -> list[RunRecord]:
    """Return the records of runs, all or the latest ones, oldest first."""
    count = -1 if last is None else last
    with _opened(project) as db:
        return _records(db, _LATEST, pipeline, status, count)[::-1]


def load_record(project: Project, run: str) -> RunRecord | None:
    """Return the record of a run; None: there is none."""
    with _opened(project) as db:
        return next(iter(_records(db, "id = ?", run)), None)


def latest_run(project: Project, pipeline: str) -> RunRecord | None:
    """Return the latest run of a pipeline, however it ended."""
    return next(iter(load_records(project, pipeline, last=1)), None)


def save_record(project: Project, record: RunRecord) -> RunRecord:
    """Store a record and return it; it replaces an earlier state of the same run.

    A new one gets its number: one with sequence 0 and an id that is not there yet.
    """
    private_folder(project.state)
    with _opened(project, writing=True) as db:
        row = db.execute("SELECT 1 FROM runs WHERE id = ?", (record.id,)).fetchone()
        if not record.sequence and not row:
            (highest,) = db.execute("SELECT max(sequence) FROM runs").fetchone()
            record = replace(record, sequence=(highest or 0) + 1)
        _enter(db, record)
    return record


def delete_records(project: Project, runs: Sequence[str]) -> None:
    """Delete the records of runs, and their JSON files of earlier versions."""
    with _opened(project, writing=True) as db:
        db.executemany("DELETE FROM runs WHERE id = ?", ((run,) for run in runs))
    for run in runs:
        (project.state / "runs" / f"{run}.json").unlink(missing_ok=True)


def previous_run(project: Project, record: RunRecord) -> RunRecord | None:
    """Return the pipeline's run before this one."""
    before = "pipeline = ? AND (sequence, id) < (?, ?) ORDER BY sequence DESC, id DESC"
    place = record.pipeline, record.sequence, record.id
    with _opened(project) as db:
        return next(iter(_records(db, f"{before} LIMIT 1", *place)), None)


def count_streak(
    project: Project, pipeline: str, statuses: Sequence[str], until: Sequence[str]
) -> int:
    """Return how many runs ended in ``statuses`` since one in ``until``."""
    query = "SELECT status FROM runs WHERE pipeline = ? ORDER BY sequence DESC, id DESC"
    ends = [end for (end,) in _rows(project, query, pipeline)]
    considered = (end for end in ends if end in {*statuses, *until})
    return sum(1 for _ in takewhile(lambda end: end in statuses, considered))


def blocked_ids(project: Project, pipeline: str) -> list[str]:
    """Return the ids of waiting runs after the last completed one."""
    rows = _rows(
        project,
        "SELECT id FROM runs WHERE pipeline = ?1 AND status = 'blocked' AND"
        " (sequence, id) > (SELECT coalesce(max(sequence), -1), coalesce(max(id), '')"
        " FROM runs WHERE pipeline = ?1 AND status = 'completed')",
        pipeline,
    )
    return [run for (run,) in rows]


def unlogged_runs(project: Project) -> list[RunRecord]:
    """Return the completed runs that MLflow does not have, oldest first."""
    unlogged = "status = 'completed' AND mlflow_run IS NULL ORDER BY sequence, id"
    with _opened(project) as db:
        return _records(db, unlogged)


def last_logged_pipeline(project: Project) -> str | None:
    """Return the pipeline of the latest run that MLflow has."""
    rows = _rows(
        project,
        "SELECT pipeline FROM runs WHERE mlflow_run IS NOT NULL"
        " ORDER BY sequence DESC, id DESC LIMIT 1",
    )
    return rows[0][0] if rows else None


def check_records(project: Project) -> int:
    """Return how many records there are, after reading the whole file.

    UserError: it is damaged.
    """
    path = records_path(project)
    with _opened(project) as db:
        if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise RECORDS.damaged_error(path)
        return len(_records(db, "TRUE"))


def pipeline_names(project: Project) -> list[str]:
    """Return the sorted names of the pipelines that ran in this project."""
    query = "SELECT DISTINCT pipeline FROM runs ORDER BY pipeline"
    return [name for (name,) in _rows(project, query)]


def ids_before(project: Project, moment: str) -> list[str]:
    """Return the ids of runs that started before an ISO moment, oldest first."""
    query = "SELECT id FROM runs WHERE started < ? ORDER BY sequence, id"
    return [run for (run,) in _rows(project, query, moment)]


def record_bytes(project: Project, runs: Iterable[str]) -> int:
    """Return what the records of runs take, in bytes of their text."""
    query = (
        "SELECT length(config) + coalesce((SELECT sum(length(stage) + length(cell) +"
        " length(key) + length(reason)) FROM steps WHERE run = id), 0) FROM runs"
        " WHERE id = ?"
    )
    with _opened(project) as db:
        return sum(size for run in runs for (size,) in db.execute(query, (run,)))


def steps_used_since(project: Project, moment: str) -> set[tuple[str, str]]:
    """Return (stage, key) of steps planned by runs since an ISO moment."""
    query = "SELECT stage, key FROM steps JOIN runs ON run = id WHERE started >= ?"
    return {(stage, key) for stage, key in _rows(project, query, moment)}


def unfinished_runs(project: Project) -> list[tuple[str, str]]:
    """Return (id, owner) of the runs that have not said how they ended."""
    return _rows(project, "SELECT id, owner FROM runs WHERE status = 'running'")


def latest_keys(project: Project, pipeline: str) -> dict[tuple[str, str], str]:
    """Return the key that each (stage, cell) had when it was last planned."""
    rows = _rows(
        project,
        "SELECT stage, cell, key, max(printf('%012d', sequence) || run) AS place"
        " FROM steps JOIN runs ON run = id WHERE pipeline = ?"
        " GROUP BY stage, cell ORDER BY place",
        pipeline,
    )
    return {
        (stage, str(Cell.from_mapping(json.loads(cell)))): key
        for stage, cell, key, _ in rows
    }


def replicate_counts(project: Project, pipeline: str) -> list[int]:
    """Return the numbers of replicates that a pipeline's runs had."""
    query = "SELECT DISTINCT replicates FROM runs WHERE pipeline = ? ORDER BY 1"
    rows = _rows(project, query, pipeline)
    return [count for (count,) in rows if count is not None]


def released_steps(project: Project) -> list[tuple[str, str, str, str]]:
    """Return (protocol, stage, key, run) of steps released in production.

    Each (protocol, stage, key) stands here once, with the latest run that tells of it.
    Rounds of envelopes do not count: nothing of theirs is drawn here.
    """
    return _rows(
        project,
        "SELECT released_by, stage, key, max(run) FROM runs JOIN steps ON run = id"
        " WHERE released_by IS NOT NULL AND"
        " (action = 'reuse' OR status IN ('completed', 'partial'))"
        " GROUP BY released_by, stage, key ORDER BY max(run)",
    )


def headline(project: Project, run: str) -> tuple[str, list[str]] | None:
    """Return a run's main number as its page says it, and the stages that score.

    None: nobody has told it yet.
    """
    query = "SELECT main, stages FROM headlines WHERE run = ?"
    return next(
        ((main, json.loads(text)) for main, text in _rows(project, query, run)), None
    )


def keep_headline(project: Project, run: str, main: str, stages: list[str]) -> None:
    """Keep a run's main number beside its record."""
    with _opened(project, writing=True) as db:
        row = run, main, json.dumps(stages)
        db.execute("INSERT OR REPLACE INTO headlines VALUES (?, ?, ?)", row)


_LOCKS: dict[str, IO[bytes]] = {}  # of the runs of this process, by their ids
_MAX_BACK = 10**9  # runs; no project has more, and no database counts further


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
    while load_record(project, _run_id(started)):  # a clock may strike twice
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


def completed_run(project: Project, pipeline: str, run: str | None = None) -> RunRecord:
    """Return the latest completed run of a pipeline, or the named one.

    A name is a run's id, or NAME~N: the Nth before the latest of the pipeline.
    """
    name, tilde, back = (run or "").partition("~")
    if tilde and name == pipeline and back.isdecimal():
        return earlier_run(project, pipeline, int(back))
    named = load_record(project, run) if run else None
    if named and (named.pipeline, named.status) == (pipeline, "completed"):
        return named
    done = load_records(project, pipeline, "completed", 5 if run else 1)
    if not done:
        message = f"{pipeline} has no completed run; `curvote run {pipeline}` first."
        raise UserError(message)
    if not run:
        return done[-1]
    latest = ", ".join(r.id for r in done)
    raise UserError(f"no completed run {run!r} of {pipeline}. The latest: {latest}.")


def earlier_run(project: Project, pipeline: str, count: int) -> RunRecord:
    """Return the completed run ``count`` before the latest; UserError: none."""
    done = load_records(project, pipeline, "completed", min(count, _MAX_BACK) + 1)
    if len(done) > count:
        return done[0]
    if not done:
        return completed_run(project, pipeline)  # says what there is not
    raise UserError(
        f"{pipeline} has {len(done)} completed runs: {pipeline}~{len(done) - 1} is the"
        f" first; `curvote runs {pipeline}` lists them."
    )
