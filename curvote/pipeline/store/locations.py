"""Locations of artifacts: folders of this machine, and paths on an object store.

Whoever walks the store of artifacts needs no second way: what is there has a path, as
what is in a folder has (`curvote.base.object_store`).
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Final
from uuid import uuid4

from curvote.base.object_store import (
    MANIFEST,
    SCHEME,
    ObjectStoreError,
    RemotePath,
    as_path,
    connection,
    is_remote,
    store_errors,
)
from curvote.pipeline.config.project import Project

# What the name of a run's folder of tables on their way begins with.
TRANSIT: Final = ".run-"


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
    from curvote.pipeline.config.file import PipelinesFile

    return PipelinesFile(project).runtime().artifacts


def temporary_folder(project: Project, target: Path) -> Path:
    """Return the folder on this machine in which an artifact is built."""
    local = project.artifacts / target.parent.name
    shelf = local if is_remote(target) else target.parent
    return shelf / f".tmp-{target.name}"


def artifact_exists(folder: Path) -> bool:
    """Return whether a folder is a committed artifact, which has a manifest."""
    return (folder / MANIFEST).is_file() if is_remote(folder) else folder.is_dir()


def file_sizes(folder: Path) -> dict[str, int] | None:
    """Return the size of each file of an artifact; None: it does not exist."""
    if not is_remote(folder) and not folder.is_dir():
        return None
    by_name = {file.name: file.stat().st_size for file in folder.iterdir()}
    return None if is_remote(folder) and MANIFEST not in by_name else by_name


def upload_artifact(folder: Path, target: RemotePath) -> None:
    """Upload a finished folder: first its tables, then its manifest.

    UserError: the object store refuses or does not answer; then nothing counts as
    stored.
    """
    files = sorted(folder.iterdir(), key=lambda file: file.name == MANIFEST)
    with store_errors(target, "write"):
        for file in files:
            if file.name == MANIFEST:
                arrived = {f.name: f.stat().st_size for f in target.iterdir()}
                for table in files[:-1]:
                    if arrived.get(table.name) != table.stat().st_size:
                        raise ObjectStoreError(
                            f"{target / table.name} did not arrive whole; run again."
                        )
            upload_file(file, target / file.name)


def upload_file(file: Path, target: RemotePath) -> None:
    """Upload a file as one object: whole, or not at all."""
    from pyarrow import fs

    places = fs.LocalFileSystem(), connection()
    with store_errors(target, "write"):
        fs.copy_files(str(file), target.bucket_key, *places, use_threads=False)


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
    probe = RemotePath(root / f".writable-{uuid4().hex}")
    write_object(probe, b"curvote")
    with store_errors(root, "write"):
        connection().delete_file(probe.bucket_key)


def write_object(path: RemotePath, content: bytes) -> None:
    """Write a small object."""
    with (
        store_errors(path.parent, "write"),
        connection().open_output_stream(path.bucket_key) as stream,
    ):
        stream.write(content)
