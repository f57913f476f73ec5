"""Records of runs on disk, and queries that their index answers.

The files are the truth. Their order is a number that only grows, never a clock, which
may be set back; records of earlier versions have none and come first, by their ids.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

from curvote.durable import private_folder
from curvote.run.project import Project
from curvote.run.record_index import (
    FORMAT,
    Content,
    index_state,
    parse_record,
    query_index,
    records_folder,
)
from curvote.run.store.artifacts import write_json


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
    return _query_ids(
        project,
        "(?1 IS NULL OR pipeline = ?1) AND (?2 IS NULL OR status = ?2)"
        " ORDER BY sequence, id",
        pipeline,
        status,
    )


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
    return _query_ids(
        project, "status = 'completed' AND logged = 0 ORDER BY sequence, id"
    )


def last_logged_pipeline(project: Project) -> str | None:
    """Return the pipeline of the latest run that MLflow has."""
    rows = _query_rows(
        project,
        "SELECT pipeline FROM runs WHERE logged ORDER BY sequence DESC, id DESC"
        " LIMIT 1",
    )
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
    return {
        (stage, cell): key for stage, cell, key in _query_rows(project, query, pipeline)
    }


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
    """Hold the lock of the records' folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
