"""Raw files of a pipeline's source: keyed digests, and files found or fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curvote.datasets import raw
from curvote.datasets.lookup import module, resolve_source
from curvote.errors import UserError
from curvote.run.config.schema import Pipeline
from curvote.run.keyed import keyed_digest
from curvote.run.project import Project


@dataclass(frozen=True)
class RawInput:
    """A raw file that ingest reads; its digest enters keys, its path does not.

    ``public_digest`` is all that may be told of ``sha256``: itself, or for a file that
    nobody published its keyed digest (`keyed.keyed_digest`).
    """

    name: str
    sha256: str = field(repr=False)
    path: str
    origin: str
    public_digest: str

    @property
    def key_entry(self) -> dict[str, str]:
        """The public digest as keys and manifests hold it, under its kind."""
        kind = "sha256" if self.public_digest == self.sha256 else "hmac_sha256"
        return {kind: self.public_digest}


@dataclass(frozen=True)
class MissingFiles:
    """The raw files of a source that are not on this machine."""

    names: tuple[str, ...]


def reads_user_file(source: Mapping[str, Any]) -> bool:
    """Return whether a source reads the user's own, unpublished file."""
    return bool(getattr(module(source["name"]), "GIVEN", False))


def has_unpublished_records(pipeline: Pipeline) -> bool:
    """Return whether a pipeline reads records that nobody published."""
    return pipeline.production or reads_user_file(pipeline.source)


def raw_file_names(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the names of the raw files that the pipeline's source reads."""
    dataset, parameters = resolve_source(pipeline.source)
    if reads_user_file(pipeline.source):
        return (str(parameters.path),)
    return tuple(dataset.files(parameters))


def raw_files(
    project: Project, pipeline: Pipeline, *, fetch: bool
) -> tuple[RawInput, ...] | MissingFiles:
    """Return the checked raw files of the pipeline's source; none if it is simulated.

    Without ``fetch`` files that are not here are `MissingFiles`; with it, they are
    fetched.
    """
    dataset, parameters = resolve_source(pipeline.source)
    if user_file := user_file_path(project, pipeline):
        return (_user_input(project, user_file),)
    located = {
        name: raw.locate(project.root, name, download=fetch)
        for name in dataset.files(parameters)
    }
    absent = tuple(name for name, file in located.items() if file is None)
    if absent:
        return MissingFiles(absent)
    return tuple(
        _raw_input(
            name,
            file,
            keyed_digest(project, file.sha256) if pipeline.production else None,
        )
        for name, file in located.items()
        if file is not None
    )


def _raw_input(name: str, file: raw.RawFile, public_digest: str | None) -> RawInput:
    return RawInput(
        name, file.sha256, str(file.path), file.origin, public_digest or file.sha256
    )


def user_file_path(project: Project, pipeline: Pipeline) -> Path | None:
    """Return the path of the user's own file; None: the source is published.

    UserError: it is not there. Nothing of it is read.
    """
    if not reads_user_file(pipeline.source):
        return None
    _, parameters = resolve_source(pipeline.source)
    place: Path = project.root / parameters.path
    if not place.is_file():
        beside = "" if parameters.path == str(place) else " in the project's folder"
        raise UserError(f"no file {parameters.path}{beside}.", where=("source", "path"))
    return place


def _user_input(project: Project, place: Path) -> RawInput:
    """Return the user's own file as an input, with a keyed digest."""
    file = raw.RawFile(place, raw.digest(place), "the user's own file")
    return _raw_input("path", file, keyed_digest(project, file.sha256))
