"""Records of runs on disk, and what their index answers without reading them all.

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

from curvote.durable import owner_folder
from curvote.run.project import Project
from curvote.run.record_index import (
    FORMAT,
    Content,
    ask,
    folder_of,
    parsed,
    standing,
)
from curvote.run.store.artifacts import write_json


def write(project: Project, content: Mapping[str, Any]) -> Content:
    """Write a record whole or not at all and return it; a new one gets its number.

    New is what has sequence 0 and an id that is not there yet.
    """
    owner_folder(project.state)
    folder = folder_of(project)
    folder.mkdir(exist_ok=True)
    path = folder / f"{content['id']}.json"
    made = {"format": FORMAT, **content}
    with _locked(folder):
        highest, stamp = ask(project, standing)
        if not made["sequence"] and not path.exists():
            made["sequence"] = highest + 1
        write_json(path, made)
        ask(project, lambda _: None, (stamp, path))
    return made


def read(project: Project, run: str) -> Content | None:
    """Return the record of a run; None where there is none that can be read.

    One that a newer curvote wrote is a UserError.
    """
    return parsed(folder_of(project) / f"{run}.json")


def ids(
    project: Project, pipeline: str | None = None, status: str | None = None
) -> list[str]:
    """Return the ids of runs, oldest first."""
    return _names(
        project,
        "(?1 IS NULL OR pipeline = ?1) AND (?2 IS NULL OR status = ?2)"
        " ORDER BY sequence, id",
        pipeline,
        status,
    )


def newest(
    project: Project, pipeline: str, status: str | None = None, count: int = 1
) -> list[str]:
    """Return the ids of the latest runs of a pipeline, oldest first."""
    wanted = "pipeline = ?1 AND status = ?2" if status else "pipeline = ?1"
    order = f"{wanted} ORDER BY sequence DESC, id DESC LIMIT ?3"
    return _names(project, order, pipeline, status, count)[::-1]


def before(project: Project, run: str) -> str | None:
    """Return the id of the run of the same pipeline that was begun before this one."""
    found = _names(
        project,
        "(pipeline, sequence, id) < (SELECT pipeline, sequence, id FROM runs"
        " WHERE id = ?1) AND pipeline = (SELECT pipeline FROM runs WHERE id = ?1)"
        " ORDER BY sequence DESC, id DESC LIMIT 1",
        run,
    )
    return found[0] if found else None


def in_a_row(
    project: Project, pipeline: str, statuses: Sequence[str], until: Sequence[str]
) -> int:
    """Return how many runs ended in ``statuses`` since one that ended in ``until``."""
    every = [*statuses, *until]
    found = _rows(
        project,
        f"SELECT status FROM runs WHERE pipeline = ? AND status IN"  # noqa: S608 - marks
        f" ({', '.join('?' * len(every))}) ORDER BY sequence DESC, id DESC",
        pipeline,
        *every,
    )
    return sum(1 for _ in takewhile(lambda row: row[0] in statuses, found))


def blocked(project: Project, pipeline: str) -> list[str]:
    """Return the ids of runs that wait for envelopes, and none completed since."""
    return _names(
        project,
        "pipeline = ?1 AND status = 'blocked' AND (sequence, id) > (SELECT"
        " coalesce(max(sequence), -1), coalesce(max(id), '') FROM runs"
        " WHERE pipeline = ?1 AND status = 'completed')",
        pipeline,
    )


def unlogged(project: Project) -> list[str]:
    """Return the ids of completed runs that MLflow does not have, oldest first."""
    return _names(project, "status = 'completed' AND logged = 0 ORDER BY sequence, id")


def last_logged(project: Project) -> str | None:
    """Return the pipeline of the latest run that MLflow has."""
    found = _rows(
        project,
        "SELECT pipeline FROM runs WHERE logged ORDER BY sequence DESC, id DESC"
        " LIMIT 1",
    )
    return found[0][0] if found else None


def pipelines(project: Project) -> list[str]:
    """Return the names of the pipelines that ran here, sorted."""
    wanted = "SELECT DISTINCT pipeline FROM runs ORDER BY pipeline"
    return [name for (name,) in _rows(project, wanted)]


def begun_before(project: Project, moment: str) -> list[str]:
    """Return the ids of runs that were begun before an ISO moment, oldest first."""
    return _names(project, "started < ?1 ORDER BY sequence, id", moment)


def used_since(project: Project, moment: str) -> set[tuple[str, str]]:
    """Return (stage, key) of what a run begun since an ISO moment planned."""
    wanted = "SELECT stage, key FROM used WHERE started >= ?"
    return {(stage, key) for stage, key in _rows(project, wanted, moment)}


def running(project: Project) -> list[tuple[str, str]]:
    """Return (id, owner) of the runs that have not said how they ended."""
    return _rows(project, "SELECT id, owner FROM runs WHERE status = 'running'")


def latest_keys(project: Project, pipeline: str) -> dict[tuple[str, str], str]:
    """Return the key that each (stage, cell) had when it was last planned."""
    wanted = "SELECT stage, cell, key FROM planned WHERE pipeline = ?"
    return {(stage, cell): key for stage, cell, key in _rows(project, wanted, pipeline)}


def counts(project: Project, pipeline: str) -> list[int]:
    """Return how many replicates a pipeline ever had, each number once."""
    wanted = "SELECT replicates FROM counts WHERE pipeline = ? ORDER BY replicates"
    return [count for (count,) in _rows(project, wanted, pipeline)]


def released(project: Project) -> list[tuple[str, str, str, str]]:
    """Return (protocol, stage, key, run) of what production made, or found made.

    Each (protocol, stage, key) stands here once, with the latest run that tells of it.
    Rounds of envelopes do not count: nothing of theirs is drawn here.
    """
    return _rows(
        project,
        "SELECT protocol, stage, key, max(id) FROM releases JOIN runs USING (id)"
        " WHERE reused OR status IN ('completed', 'partial')"
        " GROUP BY protocol, stage, key ORDER BY max(id)",
    )


def _names(project: Project, where: str, *values: object) -> list[str]:
    found = _rows(project, f"SELECT id FROM runs WHERE {where}", *values)  # noqa: S608
    return [name for (name,) in found]


def _rows(project: Project, question: str, *values: object) -> list[Any]:
    folder = folder_of(project)
    if not folder.is_dir():
        return []
    with _locked(folder):
        return ask(project, lambda db: db.execute(question, values).fetchall())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder of records: it is there as long as they are, unlike the index."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
