"""The store of immutable artifacts: plain Parquet, a manifest, one rename to commit."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curvote.durable import file_mode, sync_folder
from curvote.errors import InternalError, UserError
from curvote.run import places, remote
from curvote.run.plan.fingerprint import of_file
from curvote.run.project import Project, is_raw
from curvote.run.remote import NoAnswerError
from curvote.run.store.sides import side_of
from curvote.run.store.tables import Tables

MANIFEST = remote.MANIFEST


@dataclass(frozen=True)
class ArtifactRef:
    """A light reference to an artifact: what tasks hand to each other."""

    stage: str
    key: str
    path: str
    rows: int


class Artifact(Tables):
    """A committed artifact, read one repetition at a time."""

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Everything recorded at commit; a torn or missing one is a UserError."""
        try:
            text = (self.path / MANIFEST).read_text(encoding="utf-8")
            found: dict[str, Any] = json.loads(text)
        except NoAnswerError:
            raise
        except (OSError, ValueError) as error:
            raise UserError(
                f"artifact {self.path} has no readable manifest: {error}"
            ) from None
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """The JSON facts that the stage recorded."""
        facts: dict[str, Any] = self.manifest["facts"]
        return facts

    @property
    def rows(self) -> int:
        """Rows of all tables together."""
        return sum(entry["rows"] for entry in self.manifest["tables"].values())

    @property
    def ref(self) -> ArtifactRef:
        """A light reference to this artifact."""
        return ArtifactRef(self.stage, self.key, str(self.path), self.rows)

    def holds(self, table: str) -> bool:
        """Say whether the artifact has a table of this name."""
        return table in self.manifest["tables"]

    def table(self, name: str) -> pa.Table:
        """Return a whole table."""
        table: pa.Table = pq.read_table(places.source(self.file_of(name)))
        return table

    def problem(self, *, content: bool) -> str | None:
        """Return what is wrong with the files, by size or by content, or None.

        A table that somebody wrote after the manifest is read in any case: the manifest
        is written last. Where it is sound, as after `cp -r`, the manifest becomes as
        new as the table, so that it is read once. None asks an object store for times.
        """
        there = places.sizes(self.path)
        if there is None:
            return "missing"
        try:
            entries = self.manifest["tables"]
        except NoAnswerError:
            raise
        except (UserError, KeyError):
            return "altered (manifest)"
        own = self.path / MANIFEST
        stated = newest = 0 if places.remote(own) else own.stat().st_mtime_ns
        for name, entry in entries.items():
            path = self.file_of(name)
            if there.get(path.name) != entry["bytes"]:
                return f"altered ({path.name})"
            written = 0 if places.remote(own) else path.stat().st_mtime_ns
            newest = max(newest, written)
            if (content or written > stated) and of_file(path) != entry["sha256"]:
                return f"altered ({path.name})"
        if newest > stated:
            with suppress(OSError):  # who may only read it reads the table again
                os.utime(own, ns=(newest, newest))
        return None


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """Return the manifest in a folder; None where there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except NoAnswerError:
        raise
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def stored(folder: Path) -> Artifact:
    """Return a committed artifact; what this process has read of it stays known."""
    found = (folder / MANIFEST).stat()
    return _stored(folder, found.st_ino, found.st_mtime_ns)


@lru_cache(maxsize=64)
def _stored(folder: Path, _file: int, _time: int) -> Artifact:
    return Artifact(folder)


def artifact(project: Project, stage: str, key: str) -> Artifact:
    """Return the artifact of a stage and key, whether or not it is there yet."""
    return Artifact(_shelf(project, stage) / key)


def _shelf(project: Project, stage: str) -> Path:
    """Return the folder of a stage's artifacts: nothing else decides where it is."""
    return places.shelf(project, stage, raw=is_raw(side_of(stage)))


def make_shelf(project: Project, stage: str) -> None:
    """Make that folder, or the one in which artifacts for an object store are made."""
    places.make_shelf(project, stage, raw=is_raw(side_of(stage)))


def folders(project: Project) -> list[Path]:
    """Return every folder in all roots: artifacts, temporary ones, those set aside."""
    roots = dict.fromkeys((*project.stores, places.served(project)))
    found = (f for root in roots for f in root.glob("*/*"))
    return sorted(folder for folder in found if folder.is_dir())


def sound(project: Project, stage: str, key: str) -> Artifact:
    """Return an artifact that is about to be read; altered or missing: UserError."""
    path = artifact(project, stage, key).path
    files = ((file.name, file.stat()) for file in sorted(path.glob("*")))
    stamps = tuple((name, f.st_mtime_ns, f.st_size) for name, f in files)
    found, problem = _checked(path, stamps)
    if problem is not None:
        raise UserError(
            f"artifact {path} is {problem}; it is not used. Run the pipeline again: it"
            " will be computed anew."
        )
    return found


@lru_cache(maxsize=256)
def _checked(
    path: Path, _stamps: tuple[tuple[str, int, int], ...]
) -> tuple[Artifact, str | None]:
    """Read each file once, as long as it does not change."""
    found = Artifact(path)
    return found, found.problem(content=True)


def commit(temporary: Path, target: Path) -> Artifact:
    """Move a finished folder to its final name; an equal one that is there wins.

    A different one under the same key is an InternalError: a result did not repeat.
    An altered one is set aside, never deleted.
    """
    there, ours = Artifact(target), Artifact(temporary)
    state = there.problem(content=True)
    if state is None:
        if there.manifest["tables"] != ours.manifest["tables"]:
            raise InternalError(
                f"{there.stage} {there.key[:12]}: a second computation gave other"
                f" tables than the stored ones; ours are kept in {temporary}"
            )
        shutil.rmtree(temporary)
        return there
    if state != "missing":
        target.rename(aside(target))
    if places.remote(target):
        places.put(temporary, target)
        shutil.rmtree(temporary)
        return Artifact(target)
    sync_folder(temporary)
    temporary.rename(target)
    sync_folder(target.parent)
    return Artifact(target)


def show(published: Path) -> None:
    """Let those read an artifact who may read its shelf: it was made for its owner."""
    if places.remote(published):
        return
    mode = stat.S_IMODE(published.parent.stat().st_mode)
    if stat.S_IMODE(published.stat().st_mode) != mode:
        for file in published.iterdir():
            file.chmod(mode & 0o666)
        published.chmod(mode)


def aside(target: Path) -> Path:
    """Return a free name beside ``target``, for what is kept but not used."""
    taken = len(list(target.parent.glob(f".altered-{target.name}-*")))
    return target.parent / f".altered-{target.name}-{taken}"


def write_json(path: Path, values: Any) -> None:
    """Write a JSON file whole or not at all, and make it durable."""
    write_text(path, json.dumps(values, indent=1, allow_nan=False))


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write secret rows as JSON Lines, readable by the owner only."""
    text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    write_text(path, text, mode=0o600)


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """Write a text whole or not at all, and make it durable."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    handle = os.open(temporary, flags, mode or file_mode(path.parent))
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
