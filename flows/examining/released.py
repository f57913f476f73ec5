"""Doctor's checks of releases: ledger, reservations, witnesses and intake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from curvote.client.ledger import open_existing
from curvote.client.ledger_witness import Journal
from curvote.errors import UserError
from curvote.flows.examining.finding import Finding, shorten_list
from curvote.flows.examining.stored import live_runs
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project
from curvote.run.release import evidence, ledger_check
from curvote.server.intake import Intake
from curvote.server.intake_base import store_exists

RESTORE_REMEDY = (
    "`curvote ledger restore FILE` with the newest backup; nothing is released before"
)


def check_ledger(project: Project) -> Iterator[Finding]:
    """Check the ledger against store, second copy and run records."""
    if not project.ledger.exists() and not evidence.find_traces(project):
        return
    problems = ledger_check.ledger_problems(project)
    if problems:
        yield Finding("ledger", "failed", shorten_list(problems), RESTORE_REMEDY)
    else:
        yield Finding("ledger", "ok", "knows all that was released")


def check_reservations(project: Project) -> Iterator[Finding]:
    """Check for releases that were neither confirmed nor cancelled."""
    book = open_existing(project.ledger)
    if book is None:
        return
    with book:
        waiting = [e for e in book.entries() if e.state == "reserved"]
    if waiting and not live_runs(project):
        words = shorten_list([f"{e.release[:12]} of {e.population}" for e in waiting])
        fix = "run its pipeline again: it settles what was begun"
        yield Finding("reservations", "warning", f"not settled: {words}", fix)
    else:
        yield Finding("reservations", "ok", f"{len(waiting)} under way")


def check_witnesses(project: Project) -> Iterator[Finding]:
    """Check that every witness of a pipeline can be appended to."""
    for path in sorted(_witness_paths(project)):
        problem = _append_problem(path)
        if problem:
            words = f"{path}: {problem}"
            fix = "mount it, or allow writing to it: nothing is released without it"
            yield Finding("witness", "failed", words, fix)
        else:
            yield Finding("witness", "ok", f"{path} can be appended to")
            if torn := Journal(path).count_unreadable():
                words = f"{path}: lines cannot be read: {torn}"
                fix = (
                    "nothing, if a process was killed while it wrote: the next told the"
                    " same again. Else somebody has altered it: ask who may write to it"
                )
                yield Finding("witness", "warning", words, fix)


def check_intake(project: Project) -> Iterator[Finding]:
    """Check the intake's rounds against the published tasks."""
    published = {
        (folder.name, file.name.removesuffix(".task.json"))
        for folder in project.published("x").parent.glob("*")
        for file in folder.glob("*.task.json")
    }
    if not store_exists(project.intake):
        if published:
            words = f"{project.intake} is gone; {len(published)} tasks are published"
            yield Finding("intake", "failed", words, _INTAKE_REMEDY)
        return
    with Intake(project.intake) as opened:
        rounds = opened.rounds()
    all_rounds = {(r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds}
    open_rounds = {
        (r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds if not r.closed
    }
    lost, unpublished = sorted(published - all_rounds), sorted(open_rounds - published)
    if lost:
        words = f"published, but in no round: {shorten_list([*map('/'.join, lost)])}"
        yield Finding("intake", "failed", words, _INTAKE_REMEDY)
    if unpublished:
        words = (
            f"open, but not published: {shorten_list([*map('/'.join, unpublished)])}"
        )
        yield Finding("intake", "warning", words, f"`curvote run {unpublished[0][0]}`")
    if not lost and not unpublished:
        yield Finding("intake", "ok", f"{len(rounds)} rounds as published")


_INTAKE_REMEDY = (
    "put the intake's latest backup in its place: it knows who has answered"
)


def _witness_paths(project: Project) -> set[Path]:
    file, pipelines = PipelinesFile(project), []
    for name in file.names():
        with suppress(UserError):  # what is wrong there is said by another check
            pipelines.append(file.configure_pipeline(name).pipeline)
    accounts = (pipeline.ledger for pipeline in pipelines)
    return {
        project.root / account.witness
        for account in accounts
        if account and account.witness
    }


def _append_problem(path: Path) -> str | None:
    """Return why a file cannot be appended to; None: it can."""
    if path.exists():
        try:
            path.open("ab").close()
        except OSError as error:
            return error.strerror or str(error)
        return None
    if not path.parent.is_dir():
        return f"the folder {path.parent} is not there"
    return None if os.access(path.parent, os.W_OK) else "its folder cannot be written"
