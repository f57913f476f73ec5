"""Locations of artifacts: a folder of this machine, or an object store.

An object cannot be renamed and a folder cannot appear there at once. Therefore an
artifact is made in a folder of this machine, its tables are uploaded first and its
manifest last, and one without a manifest is not there (`artifact_exists`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard
from uuid import uuid4

from pyarrow import fs

from curvote.durable import private_folder
from curvote.run.project import Project
from curvote.run.remote import (
    MANIFEST,
    SCHEME,
    ObjectStoreError,
    RemotePath,
    connection,
    store_errors,
)


def server_store(project: Project) -> Path:
    """Return the root of the artifacts on the server's side."""
    try:
        about = project.pipelines_file.stat()
    except OSError:
        return project.artifacts
    location = _stated_location(project, about.st_mtime_ns, about.st_size)
    return project.artifacts if location is None else as_path(location)


@cache
def _stated_location(project: Project, _changed: int, _size: int) -> str | None:
    """Return ``runtime: {artifacts: ...}``, read once for each version."""
    if SCHEME.encode() not in project.pipelines_file.read_bytes():
        return None
    from curvote.run.config.file import PipelinesFile

    return PipelinesFile(project).runtime().artifacts


def stage_folder(project: Project, stage: str, *, raw: bool) -> Path:
    """Return the folder of a stage's artifacts; ``raw``: on the clients' side."""
    return (project.clients if raw else server_store(project)) / stage


def make_stage_folder(project: Project, stage: str, *, raw: bool) -> None:
    """Make the folder in which a stage's artifacts are built.

    UserError: they belong on an object store, which takes nothing.
    """
    if raw:
        private_folder(project.clients)
        private_folder(project.clients / stage)
        return
    (project.artifacts / stage).mkdir(parents=True, exist_ok=True)
    root = server_store(project)
    if is_remote(root):
        check_writable(root)


def as_path(text: str | Path) -> Path:
    """Return the path of a text: on an object store, or of this machine."""
    return RemotePath(text) if str(text).startswith(SCHEME) else Path(text)


def temporary_folder(project: Project, target: Path) -> Path:
    """Return the folder on this machine in which an artifact is built."""
    local = project.artifacts / target.parent.name
    shelf = local if is_remote(target) else target.parent
    return shelf / f".tmp-{target.name}"


def resolve_location(project: Project, text: str) -> Path:
    """Return the path of a text, relative to the project's folder."""
    return as_path(text) if text.startswith(SCHEME) else project.root / text


def artifact_exists(folder: Path) -> bool:
    """Return whether a folder is a committed artifact, which has a manifest."""
    return (folder / MANIFEST).is_file() if is_remote(folder) else folder.is_dir()


def is_remote(path: Path) -> TypeGuard[RemotePath]:
    """Return whether a path is on an object store."""
    return isinstance(path, RemotePath)


def file_sizes(folder: Path) -> dict[str, int] | None:
    """Return the size of each file of an artifact; None: it does not exist."""
    if not is_remote(folder) and not folder.is_dir():
        return None
    by_name = {file.name: file.stat().st_size for file in folder.iterdir()}
    return None if is_remote(folder) and MANIFEST not in by_name else by_name


def open_source(path: Path) -> Any:
    """Return a path or stream from which pyarrow reads a file."""
    return path.open("rb") if is_remote(path) else path


def upload_artifact(folder: Path, target: RemotePath) -> None:
    """Upload a finished folder: first its tables, then its manifest.

    UserError: the object store refuses or does not answer; then nothing counts as
    stored.
    """
    files = sorted(folder.iterdir(), key=lambda file: file.name == MANIFEST)
    with store_errors(target, "write"):
        for file in files:
            if file.name == MANIFEST:
                _refuse_incomplete(target, files[:-1])
            _upload_file(file, f"{target.bucket_key}/{file.name}")


def _refuse_incomplete(target: Path, files: Iterable[Path]) -> None:
    arrived = {
        file_info.name: file_info.stat().st_size for file_info in target.iterdir()
    }
    for file in files:
        if arrived.get(file.name) != file.stat().st_size:
            raise ObjectStoreError(
                f"{target / file.name} did not arrive whole; run again."
            )


def _upload_file(file: Path, name: str) -> None:
    fs.copy_files(
        str(file),
        name,
        source_filesystem=fs.LocalFileSystem(),
        destination_filesystem=connection(),
        use_threads=False,
    )


def delete_folder(path: Path) -> None:
    """Delete a folder; on an object store the manifest goes first."""
    if isinstance(path, RemotePath):
        path.remove()
    else:
        shutil.rmtree(path, ignore_errors=True)


@cache
def check_writable(root: Path) -> None:
    """Write and delete an object, once a process, before anything is computed.

    UserError: there is no such bucket, no right to write, or no answer.
    """
    probe = f"{root / f'.writable-{uuid4().hex}'}".removeprefix(SCHEME)
    with store_errors(root, "write"):
        with connection().open_output_stream(probe) as stream:
            stream.write(b"curvote")
        connection().delete_file(probe)
