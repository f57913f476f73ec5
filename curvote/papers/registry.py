"""Registry of papers: their packages, the names of reproductions, pipeline files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from curvote.base.errors import UserError, did_you_mean, suggest_closest
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import PIPELINES, Project

if TYPE_CHECKING:
    from curvote.papers.reproduction import Entry

PAPERS = (
    "curvote.papers.mrma",
    "curvote.papers.dtk",
    "curvote.papers.vec",
    "curvote.papers.qcu",
)


@cache
def reproductions() -> dict[str, Entry]:
    """Return the entry of each name of `curvote reproduce`, from each entries.toml."""
    from curvote.papers.reproduction import Entry  # a plan compares no tables

    return {
        name: Entry(paper, name, **declared)
        for paper in PAPERS
        for name, declared in tomllib.loads(
            (files(paper) / "entries.toml").read_text(encoding="utf-8")
        ).items()
    }


def find_entry(name: str) -> Entry:
    """Return the entry called ``name``; UserError: unknown name."""
    entries = reproductions()
    if name in entries:
        return entries[name]
    raise UserError(
        f"{name!r} names no table, figure or contest.{did_you_mean(name, entries)}"
        f" There are: {', '.join(entries)}."
    )


def file_of(project: Project, pipeline: str) -> PipelinesFile:
    """Return the file that defines ``pipeline``, the project's first.

    UserError: it stands in none of them.
    """
    names_by_file: list[list[str]] = []
    for file in chain([PipelinesFile(project)], _paper_files()):
        names_by_file.append(list(file.names()))
        if pipeline in names_by_file[-1]:
            return file
    hint = (
        suggest_closest(pipeline, chain(*names_by_file))
        or f" Here: {', '.join(names_by_file[0])}."
    )
    bundled = PipelinesFile(Project(Path(str(files("curvote.pipeline"))))).names()
    if pipeline in bundled:
        hint += (
            " curvote brings one of that name, for folders without a pipelines.yaml."
        )
    raise UserError(f"no pipeline {pipeline!r}.{hint}")


def paper_pipelines() -> set[str]:
    """Return the names of the pipelines that reproductions bring."""
    return {name for file in _paper_files() for name in file.names()}


def _paper_files() -> Iterator[PipelinesFile]:
    for paper in PAPERS:
        place = Project(Path(str(files(paper))))
        if place.pipelines_file.is_file():  # formulas alone take no pipeline
            yield PipelinesFile(place, f"{paper.replace('.', '/')}/{PIPELINES}")
