"""Where a name stands: the wing of a reproduction, the file of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import ModuleType

from curvote.errors import UserError, closest, did_you_mean
from curvote.reproduce.registry import WINGS
from curvote.run.config.file import PipelinesFile
from curvote.run.project import PIPELINES, Project


def reproductions() -> dict[str, ModuleType]:
    """Return the wing of each name that `curvote reproduce` takes.

    A wing holds ``REPRODUCTIONS`` (by name), ``compare``, ``laid_out``, ``agreement``.
    """
    wings = map(import_module, WINGS)
    return {name: wing for wing in wings for name in wing.REPRODUCTIONS}


def wing_of(name: str) -> ModuleType:
    """Return the wing that reproduces ``name``; an unknown one is a UserError."""
    known = reproductions()
    if name in known:
        return known[name]
    raise UserError(
        f"{name!r} names no table, figure or contest.{did_you_mean(name, known)}"
        f" There are: {', '.join(known)}."
    )


def file_of(project: Project, pipeline: str) -> PipelinesFile:
    """Return the file that says what ``pipeline`` is: the project's before a wing's.

    UserError: it stands in none of them.
    """
    known: list[list[str]] = []
    for file in _files(project):
        known.append(list(file.names()))
        if pipeline in known[-1]:
            return file
    hint = closest(pipeline, chain(*known)) or f" Here: {', '.join(known[0])}."
    raise UserError(f"no pipeline {pipeline!r}.{hint}{_brought(pipeline)}")


def _brought(pipeline: str) -> str:
    """Say where a pipeline of curvote's own is to be had, if it is one."""
    own = PipelinesFile(Project(Path(str(files("curvote.run"))))).names()
    words = " curvote brings one of that name, for folders without a pipelines.yaml."
    return words if pipeline in own else ""


def pipelines_of_wings() -> set[str]:
    """Return the names of the pipelines that reproductions bring."""
    return {name for file in _wings() for name in file.names()}


def _files(project: Project) -> Iterator[PipelinesFile]:
    yield PipelinesFile(project)
    yield from _wings()


def _wings() -> Iterator[PipelinesFile]:
    for wing in WINGS:
        place = Project(Path(str(files(wing))))
        if place.pipelines_file.is_file():  # formulas alone take no pipeline
            yield PipelinesFile(place, f"{wing.replace('.', '/')}/{PIPELINES}")
