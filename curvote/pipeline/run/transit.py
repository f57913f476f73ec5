"""Transit of tables between a run and workers that share nothing with its machine.

All of it passes through one folder on the object store, which the run makes and deletes
again: copies of inputs that lie on the clients' side and are public, and blocks. A
block is one object, which a store keeps whole or not at all; its digest goes another
way, with the worker's answer.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Final
from uuid import uuid4

from curvote.base.errors import InternalError, UserError
from curvote.base.object_store import (
    ObjectStoreError,
    RemotePath,
    is_remote,
    store_errors,
)
from curvote.pipeline.config.project import is_client_side
from curvote.pipeline.plan.step import Step, file_digest
from curvote.pipeline.store import locations
from curvote.pipeline.store.artifacts import Artifact, stage_side

_GREETING: Final = "greeting"
_lock = RLock()  # steps run in threads of one process
_shared: set[str] = set()


def why_here(step: Step) -> str:
    """Return why a step is computed on the machine of its run alone; empty: it is not.

    No worker is given what others must not read, nor asked for a file of this machine.
    """
    sides = [step.stage.side, *(stage_side(name) for name, _ in step.sources.values())]
    if step.release is not None:
        return "a release is drawn, or taken in, here"
    if step.unpublished and (not step.private or any(map(is_client_side, sides))):
        return "clients' tables that nobody published stay here"
    return "files of this machine are read" if step.raw else ""


def describe_places(steps: Iterable[Step], workers: str) -> Iterator[str]:
    """Yield lines that say which stages run where, and why not at the cluster."""
    stages: dict[str, dict[str, None]] = {}
    for step in steps:
        stages.setdefault(why_here(step), {})[step.stage.name] = None
    for reason, names in stages.items():
        place = f"on this machine, since {reason}" if reason else f"at {workers}"
        yield f"{', '.join(names)}: {place}"


@dataclass(frozen=True)
class Parcel:
    """A block on the object store: the object, and the digest of its bytes."""

    url: str
    sha256: str


@dataclass(frozen=True)
class Transit:
    """The folder ``url`` on an object store, of one run and its workers.

    It holds no credentials: everybody takes those of its own environment.
    """

    url: str

    @classmethod
    def below(cls, root: str) -> Transit:
        """Return the folder of a new run, which is empty."""
        return cls(f"{root.rstrip('/')}/{locations.TRANSIT}{uuid4().hex}")

    def open(self) -> None:
        """Write what workers must find; UserError: the store takes nothing."""
        locations.write_object(RemotePath(self.url, _GREETING), self.url.encode())

    def problem(self) -> str:
        """Return why a worker, which calls this, cannot use the folder; empty: it can.

        A bucket of the same name on another store is found by what stands in it.
        """
        try:
            greeting = (RemotePath(self.url, _GREETING)).read_text()
            locations.check_writable(RemotePath(self.url))
        except FileNotFoundError:
            greeting = ""
        except UserError as error:
            return str(error)
        return "" if greeting == self.url else "AWS_ENDPOINT_URL names another store"

    def share_input(self, source: Artifact) -> str:
        """Return the address of an artifact for workers; what lies here is copied."""
        if is_remote(source.path):
            return str(source.path)
        if source.manifest.get("mark") != "public":
            raise InternalError(f"{source.path} is not public: no worker may read it")
        target = RemotePath(self.url, "inputs", source.stage, source.key)
        with _lock:
            if str(target) not in _shared:
                locations.upload_artifact(source.path, target)
                _shared.add(str(target))
        return str(target)

    def send_block(self, block: Path, step: str) -> Parcel:
        """Put a finished block of a step there, as one object."""
        packed = block.with_name(f"{block.name}.tar")
        with tarfile.open(packed, "w") as archive:
            for file in sorted(block.iterdir()):
                archive.add(file, file.name)
        target = RemotePath(self.url, "blocks", step, f"{uuid4().hex}.tar")
        locations.upload_file(packed, target)
        return Parcel(str(target), file_digest(packed))

    def fetch_block(self, parcel: Parcel, folder: Path) -> None:
        """Unpack a block into an empty folder.

        UserError: it is not what the worker sent.
        """
        source, packed = RemotePath(parcel.url), folder / "parcel.tar"
        with store_errors(source, "read"), packed.open("wb") as file:
            shutil.copyfileobj(source.open(), file, 1 << 20)
        if file_digest(packed) != parcel.sha256:
            raise ObjectStoreError(f"{source} did not arrive whole; run again.")
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        packed.unlink()

    def delete_blocks(self, step: str) -> None:
        """Delete the blocks of a step, all of which were fetched."""
        RemotePath(self.url, "blocks", step).remove_all()

    def close(self) -> None:
        """Delete the folder; a store that is away keeps it for `curvote gc`."""
        with _lock:
            _shared.difference_update({s for s in _shared if s.startswith(self.url)})
        with suppress(ObjectStoreError, FileNotFoundError):
            RemotePath(self.url).remove_all()
