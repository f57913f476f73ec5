"""Where the server's side keeps its artifacts: a folder, or an object store.

An object cannot be renamed and a folder cannot appear there at once. Therefore an
artifact is made in a folder of this machine, its tables are uploaded first and its
manifest last, and one without a manifest is not there (`there`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard
from uuid import uuid4

from pyarrow import fs

from curvote.durable import owner_folder
from curvote.run.project import Project
from curvote.run.remote import (
    MANIFEST,
    SCHEME,
    NoAnswerError,
    Remote,
    connection,
    in_words,
)


def served(project: Project) -> Path:
    """Return the root of the artifacts on the server's side."""
    try:
        about = project.pipelines_file.stat()
    except OSError:
        return project.artifacts
    named = _named(project, about.st_mtime_ns, about.st_size)
    return project.artifacts if named is None else at(named)


@cache
def _named(project: Project, _changed: int, _size: int) -> str | None:
    """Return what ``runtime: {artifacts: ...}`` names, read once a version."""
    if SCHEME.encode() not in project.pipelines_file.read_bytes():
        return None
    from curvote.run.config.file import PipelinesFile

    return PipelinesFile(project).runtime().artifacts


def shelf(project: Project, stage: str, *, raw: bool) -> Path:
    """Return the folder of a stage's artifacts; ``raw``: only clients may read them."""
    return (project.clients if raw else served(project)) / stage


def make_shelf(project: Project, stage: str, *, raw: bool) -> None:
    """Make the folder in which a stage's artifacts are made; ``raw``: its owner's only.

    UserError: they belong on an object store, which takes nothing.
    """
    if raw:
        owner_folder(project.clients)
        owner_folder(project.clients / stage)
        return
    (project.artifacts / stage).mkdir(parents=True, exist_ok=True)
    root = served(project)
    if remote(root):
        ready(root)


def at(text: str | Path) -> Path:
    """Return the path that a text is: on an object store, or of this machine."""
    return Remote(text) if str(text).startswith(SCHEME) else Path(text)


def temporary_of(project: Project, target: Path) -> Path:
    """Return the folder in which an artifact is made: on this machine, in any case."""
    here = project.artifacts / target.parent.name
    shelf = here if remote(target) else target.parent
    return shelf / f".tmp-{target.name}"


def below(project: Project, text: str) -> Path:
    """Return the path that a text is where it does not name the project's folder."""
    return at(text) if text.startswith(SCHEME) else project.root / text


def there(folder: Path) -> bool:
    """Say whether a folder is an artifact's: on an object store, a whole one."""
    return (folder / MANIFEST).is_file() if remote(folder) else folder.is_dir()


def remote(path: Path) -> TypeGuard[Remote]:
    """Say whether a path is on an object store."""
    return isinstance(path, Remote)


def sizes(folder: Path) -> dict[str, int] | None:
    """Return the size of each file of an artifact; None: it is not there."""
    if not remote(folder) and not folder.is_dir():
        return None
    found = {file.name: file.stat().st_size for file in folder.iterdir()}
    return None if remote(folder) and MANIFEST not in found else found


def source(path: Path) -> Any:
    """Return what pyarrow reads a file from."""
    return path.open("rb") if remote(path) else path


def put(folder: Path, target: Remote) -> None:
    """Upload a finished folder: its tables, then, if they arrived whole, its manifest.

    UserError: the object store refuses or does not answer; then nothing counts as
    stored.
    """
    files = sorted(folder.iterdir(), key=lambda file: file.name == MANIFEST)
    with in_words(target, "write"):
        for file in files:
            if file.name == MANIFEST:
                _refuse_others(target, files[:-1])
            _upload(file, f"{target.name_there}/{file.name}")


def _refuse_others(target: Path, files: Iterable[Path]) -> None:
    arrived = {each.name: each.stat().st_size for each in target.iterdir()}
    for file in files:
        if arrived.get(file.name) != file.stat().st_size:
            raise NoAnswerError(
                f"{target / file.name} did not arrive whole; run again."
            )


def _upload(file: Path, name: str) -> None:
    fs.copy_files(
        str(file),
        name,
        source_filesystem=fs.LocalFileSystem(),
        destination_filesystem=connection(),
        use_threads=False,
    )


def remove(path: Path) -> None:
    """Delete a folder; of an artifact on an object store the manifest goes first."""
    if isinstance(path, Remote):
        path.remove()
    else:
        shutil.rmtree(path, ignore_errors=True)


@cache
def ready(root: Path) -> None:
    """Write and delete an object, once a process, before anything is computed.

    UserError: there is no such bucket, no right to write, or no answer.
    """
    probe = f"{root / f'.writable-{uuid4().hex}'}".removeprefix(SCHEME)
    with in_words(root, "write"):
        with connection().open_output_stream(probe) as stream:
            stream.write(b"curvote")
        connection().delete_file(probe)
