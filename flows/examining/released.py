"""What was released and taken in: ledger, reservations, witness, rounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from curvote.client.ledger import existing
from curvote.client.ledger_witness import Witness
from curvote.errors import UserError
from curvote.flows.examining.finding import Finding, short
from curvote.flows.examining.stored import going_on
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project
from curvote.run.release import evidence, ledger_check
from curvote.server.intake import Intake
from curvote.server.intake_base import there

RESTORE = (
    "`curvote ledger restore FILE` with the newest backup; nothing is released before"
)


def ledger(project: Project) -> Iterator[Finding]:
    """Hold the ledger against itself, the store, the second copy and the records."""
    if not project.ledger.exists() and not evidence.traces(project):
        return
    found = ledger_check.problems(project)
    if found:
        yield Finding("ledger", "failed", short(found), RESTORE)
    else:
        yield Finding("ledger", "ok", "knows all that was released")


def reservations(project: Project) -> Iterator[Finding]:
    """Look for releases that were begun, and neither confirmed nor given back."""
    book = existing(project.ledger)
    if book is None:
        return
    with book:
        waiting = [e for e in book.entries() if e.state == "reserved"]
    if waiting and not going_on(project):
        words = short([f"{e.release[:12]} of {e.population}" for e in waiting])
        fix = "run its pipeline again: it settles what was begun"
        yield Finding("reservations", "warning", f"not settled: {words}", fix)
    else:
        yield Finding("reservations", "ok", f"{len(waiting)} under way")


def witness(project: Project) -> Iterator[Finding]:
    """Say whether every witness that a pipeline names can be appended to."""
    for path in sorted(_witnesses(project)):
        problem = _unreachable(path)
        if problem:
            words = f"{path}: {problem}"
            fix = "mount it, or allow writing to it: nothing is released without it"
            yield Finding("witness", "failed", words, fix)
        else:
            yield Finding("witness", "ok", f"{path} can be appended to")
            if torn := Witness(path).torn():
                words = f"{path}: lines cannot be read: {torn}"
                fix = (
                    "nothing, if a process was killed while it wrote: the next told the"
                    " same again. Else somebody has altered it: ask who may write to it"
                )
                yield Finding("witness", "warning", words, fix)


def intake(project: Project) -> Iterator[Finding]:
    """Hold the rounds of the intake against the tasks that were published."""
    published = {
        (folder.name, file.name.removesuffix(".task.json"))
        for folder in project.published("x").parent.glob("*")
        for file in folder.glob("*.task.json")
    }
    if not there(project.intake):
        if published:
            words = f"{project.intake} is gone; {len(published)} tasks are published"
            yield Finding("intake", "failed", words, _RETURN)
        return
    with Intake(project.intake) as opened:
        rounds = opened.rounds()
    known = {(r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds}
    asked = {(r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds if not r.closed}
    lost, unsaid = sorted(published - known), sorted(asked - published)
    if lost:
        words = f"published, but in no round: {short([*map('/'.join, lost)])}"
        yield Finding("intake", "failed", words, _RETURN)
    if unsaid:
        words = f"open, but not published: {short([*map('/'.join, unsaid)])}"
        yield Finding("intake", "warning", words, f"`curvote run {unsaid[0][0]}`")
    if not lost and not unsaid:
        yield Finding("intake", "ok", f"{len(rounds)} rounds as published")


_RETURN = "put the intake's latest backup in its place: it knows who has answered"


def _witnesses(project: Project) -> set[Path]:
    file, made = PipelinesFile(project), []
    for name in file.names():
        with suppress(UserError):  # what is wrong there is said by another check
            made.append(file.configured(name).pipeline)
    stated = (pipeline.ledger for pipeline in made)
    return {project.root / each.witness for each in stated if each and each.witness}


def _unreachable(path: Path) -> str | None:
    """Return why nothing can be appended; a file that is not there is not made."""
    if path.exists():
        try:
            path.open("ab").close()
        except OSError as error:
            return error.strerror or str(error)
        return None
    if not path.parent.is_dir():
        return f"the folder {path.parent} is not there"
    return None if os.access(path.parent, os.W_OK) else "its folder cannot be written"
