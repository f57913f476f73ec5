"""Runs of a reproduction: files are fetched first, then pipelines are run."""

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
from curvote.run.config.source import MissingFiles, raw_file_names, raw_files
from curvote.run.history import RunRecord
from curvote.run.project import Project


def run_reproduction(
    project: Project, entry: Reproduction, options: dict[str, Any]
) -> list[RunRecord]:
    """Run the pipelines of ``entry``; return their records.

    ``options`` is what the user set of replicates, seed, engine and workers. Standard
    output stays free: whatever a run prints goes to standard error.
    """
    options = options | {"replicates": options["replicates"] or entry.replicates}
    fixed = {name: options[name] for name in ("replicates", "seed")}
    pipelines = [
        file_of(project, name).configure_pipeline(name, **fixed).pipeline
        for name in entry.pipelines
    ]
    with redirect_stdout(sys.stderr):
        _fetch_files(project, entry, pipelines)
        return list(_run_each(project, entry, options))


def _run_each(
    project: Project, entry: Reproduction, options: dict[str, Any]
) -> Iterator[RunRecord]:
    n = len(entry.pipelines)
    for rank, name in enumerate(entry.pipelines, start=1):
        if n > 1:
            print(f"{name} ({rank} of {n})", file=sys.stderr, flush=True)
        yield running.run_to_completion(project, {"pipeline": name, **options})


def _fetch_files(
    project: Project, entry: Reproduction, pipelines: Iterable[Pipeline]
) -> None:
    """Fetch all files before the first run; report missing ones together."""
    problems: list[Problem] = []
    absent: list[str] = []
    for pipeline in {
        raw_file_names(pipeline): pipeline for pipeline in pipelines
    }.values():
        try:
            raw_files(project, pipeline, fetch=True)
        except UserError as error:
            problems += error.problems
            absent += _missing_names(project, pipeline)
    if absent:
        problems.append(
            Problem(_describe_missing(project, entry, dict.fromkeys(absent)))
        )
    if problems:
        raise UserError.several(problems)


def _missing_names(project: Project, pipeline: Pipeline) -> tuple[str, ...]:
    try:
        files = raw_files(project, pipeline, fetch=False)
    except UserError:  # a file is here, but damaged: that has been told
        return ()
    return files.names if isinstance(files, MissingFiles) else ()


def _describe_missing(
    project: Project, entry: Reproduction, names: Iterable[str]
) -> str:
    catalogue = sources.catalogue(project.root)
    files = ", ".join(
        f"{catalogue[name].file} ({catalogue[name].url})" for name in names
    )
    return (
        f"{entry.name} needs {files}: put them into {raw.raw_folder(project.root)} or"
        f" a folder that {raw.MIRROR} names, then repeat the command."
    )
