"""Registry of papers: their packages, the names of reproductions, pipeline files."""

from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import ModuleType

from curvote.base.errors import UserError, did_you_mean, suggest_closest
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import PIPELINES, Project

PAPERS = (
    "curvote.papers.mrma",
    "curvote.papers.dtk",
    "curvote.papers.vec",
    "curvote.papers.qcu",
)


def reproductions() -> dict[str, ModuleType]:
    """Return the paper of each name of `curvote reproduce`.

    It is the module ``entries`` of a package, which holds ``REPRODUCTIONS`` (by name),
    ``compare``, ``laid_out`` and ``agreement``.
    """
    papers = [import_module(f"{wing}.entries") for wing in PAPERS]
    return {name: paper for paper in papers for name in paper.REPRODUCTIONS}


def paper_of(name: str) -> ModuleType:
    """Return the paper that holds ``name``; UserError: unknown name."""
    papers = reproductions()
    if name in papers:
        return papers[name]
    raise UserError(
        f"{name!r} names no table, figure or contest.{did_you_mean(name, papers)}"
        f" There are: {', '.join(papers)}."
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
    raise UserError(f"no pipeline {pipeline!r}.{hint}{_bundled_hint(pipeline)}")


def _bundled_hint(pipeline: str) -> str:
    """Return a hint if curvote bundles a pipeline of that name."""
    bundled = PipelinesFile(Project(Path(str(files("curvote.pipeline"))))).names()
    words = " curvote brings one of that name, for folders without a pipelines.yaml."
    return words if pipeline in bundled else ""


def paper_pipelines() -> set[str]:
    """Return the names of the pipelines that reproductions bring."""
    return {name for file in _paper_files() for name in file.names()}


def _paper_files() -> Iterator[PipelinesFile]:
    for wing in PAPERS:
        place = Project(Path(str(files(wing))))
        if place.pipelines_file.is_file():  # formulas alone take no pipeline
            yield PipelinesFile(place, f"{wing.replace('.', '/')}/{PIPELINES}")
