"""What `reproduce` does before it compares: fetch all files, run the pipelines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from typing import Any

from curvote.datasets import raw, sources
from curvote.errors import Problem, UserError
from curvote.flows import running
from curvote.reproduce.entry import Reproduction
from curvote.reproduce.lookup import file_of
from curvote.run.config.schema import Pipeline
from curvote.run.config.source import Absent, files_of, raw_files
from curvote.run.history import RunRecord
from curvote.run.project import Project


def completed_runs(
    project: Project, entry: Reproduction, given: dict[str, Any]
) -> list[RunRecord]:
    """Run the pipelines of ``entry`` and return what is known of the runs.

    ``given`` is what the user set of replicates, seed, engine and workers. Standard
    output stays free: whatever a run prints goes to standard error.
    """
    given = given | {"replicates": given["replicates"] or entry.replicates}
    fixed = {name: given[name] for name in ("replicates", "seed")}
    asked = [
        file_of(project, name).configured(name, **fixed).pipeline
        for name in entry.pipelines
    ]
    with redirect_stdout(sys.stderr):
        _fetch(project, entry, asked)
        return list(_runs(project, entry, given))


def _runs(
    project: Project, entry: Reproduction, given: dict[str, Any]
) -> Iterator[RunRecord]:
    n = len(entry.pipelines)
    for rank, name in enumerate(entry.pipelines, start=1):
        if n > 1:
            print(f"{name} ({rank} of {n})", file=sys.stderr, flush=True)
        yield running.completed_run(project, {"pipeline": name, **given})


def _fetch(project: Project, entry: Reproduction, asked: Iterable[Pipeline]) -> None:
    """Fetch all files before the first run: what cannot be had is told at once."""
    problems: list[Problem] = []
    absent: list[str] = []
    for pipeline in {files_of(pipeline): pipeline for pipeline in asked}.values():
        try:
            raw_files(project, pipeline, fetch=True)
        except UserError as error:
            problems += error.problems
            absent += _absent(project, pipeline)
    if absent:
        problems.append(Problem(_what_to_put(project, entry, dict.fromkeys(absent))))
    if problems:
        raise UserError.several(problems)


def _absent(project: Project, pipeline: Pipeline) -> tuple[str, ...]:
    try:
        found = raw_files(project, pipeline, fetch=False)
    except UserError:  # a file is here, but damaged: that has been told
        return ()
    return found.names if isinstance(found, Absent) else ()


def _what_to_put(project: Project, entry: Reproduction, names: Iterable[str]) -> str:
    known = sources.catalogue(project.root)
    files = ", ".join(f"{known[name].file} ({known[name].url})" for name in names)
    return (
        f"{entry.name} needs {files}: put them into {raw.raw_folder(project.root)} or"
        f" a folder that {raw.MIRROR} names, then repeat the command."
    )
