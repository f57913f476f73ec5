"""Store of immutable artifacts: sides, manifests, commits and migrations."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.base import object_store
from curvote.base.durable import OTHERS_MODE, file_mode, private_folder, sync_folder
from curvote.base.errors import InternalError, UserError
from curvote.base.object_store import ObjectStoreError, is_remote, open_source
from curvote.chain.stage import SHARED
from curvote.pipeline.config.project import Project, is_client_side
from curvote.pipeline.store import locations, tables
from curvote.pipeline.store.tables import Span, Spans, read_spans, shard_spans

if TYPE_CHECKING:
    import pyarrow as pa

    from curvote.chain.stage import Columns, Place
    from curvote.pipeline.store.parquet import TableFile

_SYSTEMS = Path(__file__).parents[2] / "systems"
UNKNOWN_SIDE = "client"  # a stage that no system has any more: closed rather than open


def stage_side(stage: str) -> str:
    """Return the declared side of a stage, by its name."""
    side = _noted_sides.get(stage)
    return _declared_sides().get(stage, UNKNOWN_SIDE) if side is None else side


_noted_sides: dict[str, str] = {}


def _note_sides(project: Project) -> None:
    """Keep what sides stages have, so that `status` need not import every system.

    The note counts for as long as no file of the systems changes.
    """
    if _noted_sides:
        return
    stats = [(p, p.stat()) for p in sorted(_SYSTEMS.rglob("*.py"))]
    files = [(str(path), s.st_mtime_ns, s.st_size) for path, s in stats]
    code = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    path, note = project.state / "sides.json", dict[str, Any]()
    with suppress(OSError, ValueError):
        note = json.loads(path.read_text(encoding="utf-8"))
    if note.get("code") != code:
        note = {"code": code, "sides": _declared_sides()}
        with suppress(OSError):  # who may not write asks the systems each time
            private_folder(path.parent)
            write_json(path, note)
    _noted_sides.update(note["sides"])


@cache
def _declared_sides() -> dict[str, str]:
    from curvote.chain.lookup import all_systems  # a list of runs asks no system

    sides: dict[str, str] = {}
    for stage in (stage for member in all_systems() for stage in member.all_stages):
        if sides.setdefault(stage.name, stage.side) != stage.side:
            raise InternalError(f"stage {stage.name} stands on two sides")
    return sides


MANIFEST = object_store.MANIFEST


@dataclass(frozen=True)
class ArtifactRef:
    """A light reference to an artifact, which tasks pass to each other."""

    stage: str
    key: str
    path: str
    rows: int


class Artifact:
    """A committed artifact: a folder of tables, read one repetition at a time.

    Its manifest says where each repetition stands.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stage, self.key = path.parent.name, path.name
        self._files: dict[str, TableFile] = {}
        self._spans: dict[str, Spans] = {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest, written at commit; torn or missing: UserError."""
        try:
            text = (self.path / MANIFEST).read_text(encoding="utf-8")
            manifest: dict[str, Any] = json.loads(text)
        except ObjectStoreError:
            raise
        except (OSError, ValueError) as error:
            message = f"artifact {self.path} has no readable manifest: {error}"
            raise UserError(message) from None
        return manifest

    @property
    def metadata(self) -> dict[str, Any]:
        """The JSON facts that the stage recorded."""
        facts: dict[str, Any] = self.manifest["facts"]
        return facts

    @property
    def n_rows(self) -> int:
        """The number of rows of all tables together."""
        return sum(entry["rows"] for entry in self.manifest["tables"].values())

    @property
    def ref(self) -> ArtifactRef:
        """A light reference to this artifact."""
        return ArtifactRef(self.stage, self.key, str(self.path), self.n_rows)

    def table(self, name: str) -> pa.Table:
        """Return a whole table."""
        import pyarrow.parquet as pq  # lists of runs read no table

        table: pa.Table = pq.read_table(open_source(self.table_path(name)))
        return table

    def problem(self, *, content: bool) -> str | None:
        """Return what is wrong with the files, by size or by content; None: nothing.

        A table that somebody wrote after the manifest is read in any case: the manifest
        is written last. Where it is sound, as after `cp -r`, the manifest becomes as
        new as the table, so that it is read once. None asks an object store for times.
        """
        sizes = locations.file_sizes(self.path)
        if sizes is None:
            return "missing"
        try:
            entries = self.manifest["tables"]
        except ObjectStoreError:
            raise
        except (UserError, KeyError):
            return "altered (manifest)"
        manifest_path = self.path / MANIFEST
        remote = is_remote(manifest_path)
        manifest_time = newest = 0 if remote else manifest_path.stat().st_mtime_ns
        for name, entry in entries.items():
            path = self.table_path(name)
            if sizes.get(path.name) != entry["bytes"]:
                return f"altered ({path.name})"
            written = 0 if remote else path.stat().st_mtime_ns
            newest = max(newest, written)
            unread = not content and written <= manifest_time
            if not unread:
                from curvote.pipeline.plan.step import file_digest  # status has no plan

                if file_digest(path) != entry["sha256"]:
                    return f"altered ({path.name})"
        if newest > manifest_time:
            with suppress(OSError):  # who may only read it reads the table again
                os.utime(manifest_path, ns=(newest, newest))
        return None

    def table_path(self, table: str) -> Path:
        """Return the path of a table's file."""
        return self.path / f"{table}.parquet"

    def places(self, table: str) -> list[Place]:
        """Return the repetitions a table holds, in order; () is shared."""
        return list(self.spans_by_repetition(table))

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return one repetition's columns; rows shared by all serve every one.

        Where ``only`` names some columns, no others are read.
        """
        spans = self._repetition_spans(table, place)
        return self._table_file(table).columns(spans, only)

    def count(self, table: str, place: Place) -> int:
        """Return the number of shards of one repetition: at least one."""
        rows = sum(span.rows for span in self._repetition_spans(table, place))
        return max(1, -(-rows // tables.SHARD))

    def shards(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield one repetition's columns in order, 65,536 rows at a time.

        Where there is no row there is one shard, which is empty.
        """
        for number in range(self.count(table, place)):
            yield self.shard(table, place, number, only)

    def shard(
        self, table: str, place: Place, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one shard: rows from 65,536 ``number`` on."""
        rows = shard_spans(self._repetition_spans(table, place), number)
        return self._table_file(table).columns(rows, only)

    def _repetition_spans(self, table: str, place: Place) -> list[Span]:
        """Return the spans of one repetition, or those of shared rows."""
        by_place = self.spans_by_repetition(table)
        if SHARED not in by_place and place not in by_place:
            if "places" in self.manifest["tables"][table]:
                raise InternalError(f"{self.stage}: no repetition {place} in {table}")
            raise UserError(
                f"artifact {self.path} was stored by an earlier version, in another"
                " order; run the pipeline again: it will be computed anew."
            )
        return by_place[place if place in by_place else SHARED]

    def spans_by_repetition(self, table: str) -> Spans:
        """Return the spans of each repetition of a table, in order."""
        if table not in self._spans:
            entry = self.manifest["tables"][table]
            self._spans[table] = read_spans(entry, self._table_file(table).group_sizes)
        return self._spans[table]

    def _table_file(self, table: str) -> TableFile:
        from curvote.pipeline.store.parquet import (
            TableFile,
        )  # who reads none needs none

        if table not in self._files:
            self._files[table] = TableFile(self.table_path(table))
        return self._files[table]

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the rows that all repetitions share, 65,536 at a time."""
        yield from self.shards(table, SHARED)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest in a folder; None: there is no readable one."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except ObjectStoreError:
        raise
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def open_artifact(folder: Path) -> Artifact:
    """Return a committed artifact, cached with what this process read of it."""
    stat_result = (folder / MANIFEST).stat()
    return _cached_artifact(folder, stat_result.st_ino, stat_result.st_mtime_ns)


@lru_cache(maxsize=64)
def _cached_artifact(folder: Path, _file: int, _time: int) -> Artifact:
    return Artifact(folder)


def artifact(project: Project, stage: str, key: str) -> Artifact:
    """Return the artifact of a stage and key, which may not exist yet."""
    raw = is_client_side(stage_side(stage))
    root = project.clients if raw else locations.server_store(project)
    return Artifact(root / stage / key)


def stored_artifact(project: Project, stage: str, key: str) -> Artifact:
    """Return the artifact where it lies, without asking any system for its side."""
    client_folder = project.clients / stage / key
    if client_folder.is_dir():
        return Artifact(client_folder)
    return Artifact(locations.server_store(project) / stage / key)


def make_stage_folder(project: Project, stage: str) -> None:
    """Make the folder in which a stage's artifacts are built.

    UserError: they belong on an object store, which takes nothing.
    """
    if is_client_side(stage_side(stage)):
        private_folder(project.clients)
        private_folder(project.clients / stage)
        return
    (project.artifacts / stage).mkdir(parents=True, exist_ok=True)
    root = locations.server_store(project)
    if is_remote(root):
        locations.check_writable(root)


def all_folders(project: Project) -> list[Path]:
    """Return every folder in all stores: artifacts, temporary and set aside."""
    roots = dict.fromkeys((*project.stores, locations.server_store(project)))
    subfolders = (f for root in roots for f in root.glob("*/*"))
    return sorted(folder for folder in subfolders if folder.is_dir())


def checked_artifact(project: Project, stage: str, key: str) -> Artifact:
    """Return an artifact after checking it; altered or missing: UserError."""
    path = artifact(project, stage, key).path
    files = ((file.name, file.stat()) for file in sorted(path.glob("*")))
    stamps = tuple((name, f.st_mtime_ns, f.st_size) for name, f in files)
    committed, problem = _cached_check(path, stamps)
    if problem is not None:
        raise UserError(
            f"artifact {path} is {problem}; it is not used. Run the pipeline again: it"
            " will be computed anew."
        )
    return committed


@lru_cache(maxsize=256)
def _cached_check(
    path: Path, _stamps: tuple[tuple[str, int, int], ...]
) -> tuple[Artifact, str | None]:
    """Return an artifact and its problem; each state of its files is read once."""
    committed = Artifact(path)
    return committed, committed.problem(content=True)


def commit(temporary: Path, target: Path) -> Artifact:
    """Move a finished folder to its final name; an equal existing one wins.

    A different one under the same key is an InternalError: a result did not repeat.
    An altered one is set aside, never deleted.
    """
    existing, ours = Artifact(target), Artifact(temporary)
    state = existing.problem(content=True)
    if state is None:
        if existing.manifest["tables"] != ours.manifest["tables"]:
            raise InternalError(
                f"{existing.stage} {existing.key[:12]}: a second computation gave other"
                f" tables than the stored ones; ours are kept in {temporary}"
            )
        shutil.rmtree(temporary)
        return existing
    if state != "missing":
        target.rename(spare_path(target))
    if is_remote(target):
        locations.upload_artifact(temporary, target)
        shutil.rmtree(temporary)
        return Artifact(target)
    sync_folder(temporary)
    temporary.rename(target)
    sync_folder(target.parent)
    return Artifact(target)


def open_to_readers(published: Path) -> None:
    """Give an artifact the file modes of its stage's folder."""
    if is_remote(published):
        return
    mode = stat.S_IMODE(published.parent.stat().st_mode)
    if stat.S_IMODE(published.stat().st_mode) != mode:
        for file in published.iterdir():
            file.chmod(mode & 0o666)
        published.chmod(mode)


def spare_path(target: Path) -> Path:
    """Return a free name beside ``target`` for an altered folder."""
    count = len(list(target.parent.glob(f".altered-{target.name}-*")))
    return target.parent / f".altered-{target.name}-{count}"


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


def migrate_raw_artifacts(project: Project) -> None:
    """Move raw artifacts into the clients' store, and report it.

    Before anything is looked up: a frozen artifact that were not found would be made
    again. Each is closed to others and moved by one rename; nothing is deleted. What
    came back open to others from a backup is closed, too.
    """
    if project.clients.is_dir():
        try:
            private_folder(project.clients)
        except PermissionError:
            raise UserError(
                f"{project.clients} is open to others and not yours to close; its owner"
                f" runs `chmod 700 {project.clients}`."
            ) from None
    folders = sorted(project.artifacts.glob("*/*"))
    if folders:
        _note_sides(project)
    raw_folders = [folder for folder in folders if _is_raw_folder(folder)]
    for folder in raw_folders:
        _move_folder(project, folder)
    if raw_folders:
        print(
            f"moved {len(raw_folders)} artifacts with raw tables from"
            f" {project.artifacts} to {project.clients}, which you alone can read",
            file=sys.stderr,
        )


def _is_raw_folder(folder: Path) -> bool:
    """Return whether stage or manifest of a folder say that it holds raw data."""
    if not folder.is_dir():
        return False
    side = (read_manifest(folder) or {}).get("side")
    return is_client_side(stage_side(folder.parent.name)) or is_client_side(str(side))


def _move_folder(project: Project, folder: Path) -> None:
    private_folder(project.clients)
    target = private_folder(project.clients / folder.parent.name) / folder.name
    try:
        private_folder(folder)
        for path in folder.rglob("*"):
            mode = path.stat().st_mode
            if mode & OTHERS_MODE:
                path.chmod(mode & ~OTHERS_MODE)
        folder.rename(spare_path(target) if target.exists() else target)
    except FileNotFoundError:
        return  # another process was first
    except OSError as error:
        raise UserError(
            f"{folder} holds raw tables and cannot be moved to {target.parent}"
            f" ({error.strerror}); move it there yourself, then run again."
        ) from error
    sync_folder(target.parent)
    sync_folder(folder.parent)
