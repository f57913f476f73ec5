"""Where a pipeline's raw files are, fetched only when a run asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curvote.datasets import raw
from curvote.datasets.lookup import chosen, module
from curvote.errors import UserError
from curvote.run.config.schema import Pipeline
from curvote.run.keyed import keyed
from curvote.run.project import Project


@dataclass(frozen=True)
class Raw:
    """A raw file that ingest reads; its digest counts, its path does not.

    ``told`` is all that may be told of ``sha256``: itself, or for a file that nobody
    published its keyed digest (`keyed.keyed`).
    """

    name: str
    sha256: str = field(repr=False)
    path: str
    origin: str
    told: str

    @property
    def counted(self) -> dict[str, str]:
        """What stands of the digest in keys and manifests, under its kind."""
        kind = "sha256" if self.told == self.sha256 else "hmac_sha256"
        return {kind: self.told}


@dataclass(frozen=True)
class Absent:
    """The raw files that are not here."""

    names: tuple[str, ...]


def given(source: Mapping[str, Any]) -> bool:
    """Say whether a source reads the user's own file, which nobody published."""
    return bool(getattr(module(source["name"]), "GIVEN", False))


def unpublished(pipeline: Pipeline) -> bool:
    """Say whether records stand behind a pipeline that nobody published."""
    return pipeline.production or given(pipeline.source)


def files_of(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the raw files that the pipeline's source reads."""
    dataset, parameters = chosen(pipeline.source)
    if given(pipeline.source):
        return (str(parameters.path),)
    return tuple(dataset.files(parameters))


def raw_files(
    project: Project, pipeline: Pipeline, *, fetch: bool
) -> tuple[Raw, ...] | Absent:
    """Return the checked raw files of the pipeline's source; none if it is simulated.

    Without ``fetch`` files that are not here are `Absent`; with it, they are fetched.
    """
    dataset, parameters = chosen(pipeline.source)
    if own := own_file(project, pipeline):
        return (_given(project, own),)
    found = {
        name: raw.locate(project.root, name, download=fetch)
        for name in dataset.files(parameters)
    }
    absent = tuple(name for name, file in found.items() if file is None)
    if absent:
        return Absent(absent)
    return tuple(
        _raw(name, file, keyed(project, file.sha256) if pipeline.production else None)
        for name, file in found.items()
        if file is not None
    )


def _raw(name: str, file: raw.RawFile, told: str | None) -> Raw:
    return Raw(name, file.sha256, str(file.path), file.origin, told or file.sha256)


def own_file(project: Project, pipeline: Pipeline) -> Path | None:
    """Return where the user's own file is, None for data of others.

    UserError: it is not there. Nothing of it is read.
    """
    if not given(pipeline.source):
        return None
    _, parameters = chosen(pipeline.source)
    place: Path = project.root / parameters.path
    if not place.is_file():
        beside = "" if parameters.path == str(place) else " in the project's folder"
        raise UserError(f"no file {parameters.path}{beside}.", where=("source", "path"))
    return place


def _given(project: Project, place: Path) -> Raw:
    """Return the user's own file, which nobody publishes."""
    file = raw.RawFile(place, raw.digest(place), "the user's own file")
    return _raw("path", file, keyed(project, file.sha256))
