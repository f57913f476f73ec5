"""Raw files of a pipeline: keyed digests, and files found or fetched.

Whoever knows all rows of a file but one can try every last row against its plain
SHA-256. A digest under a key that stays here (HMAC, RFC 2104) tells them nothing, and
still changes when the file does.
"""

import hmac
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from curvote.base.durable import OTHERS_MODE, private_folder, sync_folder
from curvote.base.errors import UserError
from curvote.base.object_store import as_path
from curvote.chain.lookup import find_system
from curvote.data import raw_files as raw
from curvote.data.lookup import find_dataset, is_remote, resolve_source
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Pipeline

KEY_BYTES: Final = 32
_PURPOSE: Final = b"curvote: digest of a private file\n"


def keyed_digest(project: Project, digest: str) -> str:
    """Return the HMAC-SHA256 of a digest under the project's key, in hex.

    The key is made on first use. UserError: what stands in its place is no key, or
    others may read it; it is never replaced.
    """
    code = hmac.new(_read_key(project.digest_key), _PURPOSE + digest.encode(), "sha256")
    return code.hexdigest()


def _read_key(path: Path) -> bytes:
    if not os.path.lexists(path):
        _create_key(path)
    try:  # a pipe in its place must not keep us waiting
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _key_error(path, error.strerror or str(error)) from error
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_size != KEY_BYTES:
            raise _key_error(path, f"it is no file of {KEY_BYTES} bytes")
        if state.st_mode & OTHERS_MODE:
            mode = f"{state.st_mode & 0o777:o}"
            raise _key_error(path, f"others may use it (mode {mode})")
        return os.read(handle, KEY_BYTES)
    finally:
        os.close(handle)


def _create_key(path: Path) -> None:
    """Create a key file atomically; another process may be first."""
    private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink()
    sync_folder(path.parent)


def _key_error(path: Path, why: str) -> UserError:
    return UserError(
        f"{path}: {why}. It is the key of all digests of private files that were told;"
        " put its backup in its place, for you alone (chmod 600). Without a backup,"
        " remove it: a new one is made, and studies on your own files are computed"
        " anew. Nothing was changed."
    )


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
    return bool(getattr(find_dataset(source["name"]), "USER_FILE", False))


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
    user_file = user_file_path(project, pipeline)
    if user_file:
        own_file = raw.RawFile(user_file, raw.digest(user_file), "the user's own file")
        located: dict[str, raw.RawFile | None] = {"path": own_file}
    else:
        located = {
            name: raw.locate(project.root, name, download=fetch)
            for name in dataset.files(parameters)
        }
    absent = tuple(name for name, file in located.items() if file is None)
    if absent:
        return MissingFiles(absent)
    keyed = pipeline.production or user_file is not None
    return tuple(
        RawInput(
            name,
            file.sha256,
            str(file.path),
            file.origin,
            keyed_digest(project, file.sha256) if keyed else file.sha256,
        )
        for name, file in located.items()
        if file is not None
    )


def stage_files(project: Project, settings: Iterable[Pipeline]) -> tuple[RawInput, ...]:
    """Return the public files that stages of these settings read; absent: UserError."""
    files: dict[str, RawInput] = {}
    for pipeline in settings:
        stages = find_system(pipeline.protocol).all_stages
        for name in {name for stage in stages for name in stage.files(pipeline)}:
            place = project.root / name
            inside = place.resolve().is_relative_to(project.root.resolve())
            if not (inside and place.is_file()):
                raise UserError(f"no file {name} in the project's folder.")
            digest, origin = raw.digest(place), "a public file of the user's"
            files[name] = RawInput(name, digest, str(place), origin, digest)
    return tuple(files.values())


def user_file_path(project: Project, pipeline: Pipeline) -> Path | None:
    """Return the path of the user's own file; None: the source is published.

    UserError: it is not there. Nothing of it is read.
    """
    if not reads_user_file(pipeline.source):
        return None
    _, parameters = resolve_source(pipeline.source)
    place = as_path(parameters.path, project.root)
    if not (place.is_file() or (place.is_dir() and not is_remote(pipeline.source))):
        beside = "" if parameters.path == str(place) else " in the project's folder"
        raise UserError(f"no file {parameters.path}{beside}.", where=("source", "path"))
    return place
