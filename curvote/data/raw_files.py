"""Raw files of published data sets: catalogue, download, checksum, decompression."""

import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from curvote.base import validate
from curvote.base.errors import Problem, UserError
from curvote.base.object_store import arrow_place, is_remote, store_errors
from curvote.base.table_folder import TablePart, table_parts
from curvote.data import lookup

# curvote's own: what data/sources.toml of the repository says, brought along.
_PACKAGED_SOURCES = Path(str(files("curvote.data") / "sources.toml"))
ACCEPTED = "accepted.toml"


@dataclass(frozen=True)
class Variant:
    """A known edition of a file: SHA-256 of its decompressed bytes, and origin."""

    sha256: str
    origin: str


@dataclass(frozen=True)
class Source:
    """One published file: where it is, which editions are known, what it holds.

    ``dataset`` is the data set that checks it. With ``login`` the publisher hands it to
    registered users only; ``derived`` ones have no publisher to fetch them from. Where
    its file is not here, that of the source ``stand_in`` is taken, if there is one.
    """

    name: str
    title: str
    file: str
    url: str
    licence: str
    citation: str
    rows: int
    counts: Mapping[str, int]
    variants: tuple[Variant, ...]
    dataset: str
    login: bool = False
    derived: bool = False
    stand_in: str = ""

    def origin(self, sha256: str) -> str | None:
        """Return the origin of the edition with this digest, None if not listed."""
        origins = {variant.sha256: variant.origin for variant in self.variants}
        return origins.get(sha256)


def catalogue(root: Path | None = None) -> dict[str, Source]:
    """Return all sources by name: of the project at ``root``, else curvote's own."""
    project_file = root / "data" / "sources.toml" if root else None
    path = (
        project_file if project_file and project_file.is_file() else _PACKAGED_SOURCES
    )
    accepted = _accepted_editions(root)
    try:
        sources = {}
        for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            variants = [Variant(**variant) for variant in table.pop("variants")]
            reasons = accepted.get(name, {})
            variants += [Variant(sha256, why) for sha256, why in reasons.items()]
            fields = {"dataset": name, **table, "variants": tuple(variants)}
            sources[name] = Source(name=name, **fields)
        return sources
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path} is no list of sources: {error}.") from error


def _accepted_editions(root: Path | None) -> dict[str, dict[str, str]]:
    """Return the editions that a project's user accepted: {name: {sha: why}}."""
    path = root / "data" / ACCEPTED if root else None
    if path is None or not path.is_file():
        return {}
    # Appended to, so that a name may stand there twice: no single TOML document.
    accepted: dict[str, dict[str, str]] = {}
    for block in path.read_text(encoding="utf-8").split("\n["):
        text = block if block.startswith("[") else f"[{block}"
        for name, table in tomllib.loads(text).items():
            accepted.setdefault(name, {}).update(table)
    return accepted


def find(name: str, root: Path | None = None) -> Source:
    """Return the source ``name``; an unknown name is a UserError."""
    catalog = catalogue(root)
    return catalog[validate.one_of(catalog, source=name)]


BLOCK = 1 << 22
_GZIP_MAGIC = b"\x1f\x8b"


class DamagedError(UserError):
    """The bytes cannot be read at all: empty, truncated, or a wrong checksum."""


def read(path: Path) -> bytes:
    """Return the decompressed bytes of ``path``; gzip is known by its first bytes.

    Raises:
        DamagedError: no such file, no bytes, or a broken gzip stream.
    """
    return b"".join(blocks(path))


def blocks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of ``path`` in blocks, as `read` joins them."""
    empty = True
    try:
        with path.open("rb") as stream:
            zipped = stream.read(2) == _GZIP_MAGIC
            stream.seek(0)
            source = gzip.GzipFile(fileobj=stream) if zipped else stream
            while block := source.read(BLOCK):
                empty = False
                yield block
    except EOFError as error:
        problem = "is truncated: its gzip stream breaks off."
        raise _damaged_error(path, problem) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _damaged_error(path, f"is damaged: {error}.") from error
    except OSError as error:
        reason = error.strerror or error
        raise DamagedError(f"{path} cannot be read: {reason}.") from error
    if empty:
        raise _damaged_error(path, "is empty.")


def _damaged_error(path: Path, problem: str) -> DamagedError:
    return DamagedError(
        f"{path} {problem} Replace it, or remove it and fetch it again."
    )


MIRROR = "CURVOTE_DATA_MIRROR"
RETRIES = 2
_CONNECTIONS = 16  # at once, of an object store: each waits for some 10 ms
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class RawFile:
    """A checked file: its SHA-256 (of the decompressed bytes) and its origin."""

    path: Path
    sha256: str
    origin: str


def locate(project_root: Path, source: str, *, download: bool = True) -> RawFile | None:
    """Return the checked file of ``source``; None if there is none and no download.

    What stands in for it is taken where the file itself is not here.

    Raises:
        UserError: damaged or altered file, unknown source, or a failed download.
    """
    listed = find(source, project_root)
    if path := find_local(project_root, listed):
        return check_edition(path, listed)
    if listed.stand_in and (
        substitute := locate(project_root, listed.stand_in, download=False)
    ):
        return substitute
    return download_file(project_root, listed) if download else None


def find_local(project_root: Path, source: Source) -> Path | None:
    """Return the copy in data/raw/ or in the mirror folder, None if there is none."""
    folders = [raw_folder(project_root), *_mirror_folder()]
    names = [source.file, f"{source.file}.gz"]
    paths = [folder / name for folder in folders for name in names]
    return next((path for path in paths if path.exists()), None)


def check_edition(path: Path, source: Source) -> RawFile:
    """Return ``path`` as a RawFile if it is a listed or an accepted edition.

    Raises:
        DamagedError: the bytes cannot be read.
        UserError: another edition; says whether its content is the published one, and
            how to accept it then.
    """
    sha256 = digest(path)
    origin = source.origin(sha256)
    if origin is None:
        _check_content(path, source, sha256)
        raise UserError(
            f"{_unlisted_error(path, source, sha256)} its schema, rows and counts are"
            " the published ones, though. To accept it: curvote data fetch"
            f" {source.name} --accept-sha256 {sha256}"
        )
    return RawFile(path, sha256, origin)


def adopt(project_root: Path, name: str, path: Path) -> RawFile:
    """Copy a user's file into data/raw if it is a known edition."""
    source = find(name, project_root)
    checked = check_edition(path, source)
    folder = raw_folder(project_root)
    folder.mkdir(parents=True, exist_ok=True)
    zipped = ".gz" if path.suffix == ".gz" else ""
    with tempfile.TemporaryDirectory(prefix=".adopt-", dir=folder) as scratch:
        copy = Path(shutil.copy(path, scratch))
        place = copy.replace(folder / f"{source.file}{zipped}")
    return RawFile(place, checked.sha256, checked.origin)


def accept_edition(
    project_root: Path, name: str, sha256: str, path: Path | None = None
) -> RawFile:
    """Accept the edition of source ``name`` at ``path``, or the local one.

    UserError: no such file here, ``sha256`` is not its digest, or its content is not
    as published.
    """
    source = find(name, project_root)
    path = path or find_local(project_root, source)
    if path is None:
        raise UserError(f"{source.file} is not here; put it into data/raw first.")
    sha = digest(path)
    if sha != sha256.lower():
        raise UserError(f"the SHA-256 of {path} (decompressed) is {sha}.")
    if source.origin(sha) is None:
        _check_content(path, source, sha)
        record = project_root / "data" / ACCEPTED
        when = datetime.now(UTC).date().isoformat()
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a", encoding="utf-8") as stream:
            stream.write(f'[{name}]\n"{sha}" = "accepted by the user on {when}"\n')
    return check_edition(path, find(name, project_root))


def verify_all(project_root: Path) -> list[dict[str, str | None]]:
    """Return a row {source, file, status, sha256, message} for each source.

    Status is ok, absent, changed (other content than published) or damaged.
    """
    rows: list[dict[str, str | None]] = []
    for source in catalogue(project_root).values():
        path = find_local(project_root, source)
        sha256: str | None = None
        try:
            if path is None:
                status, message = "absent", f"not here; {_how_to_obtain(source)}"
            else:
                raw_file = check_edition(path, source)
                status, sha256, message = "ok", raw_file.sha256, raw_file.origin
        except DamagedError as error:
            status, message = "damaged", str(error)
        except UserError as error:
            status, message = "changed", str(error)
            sha256 = digest(path) if path else None
        result = {"status": status, "sha256": sha256, "message": message}
        file = str(path or source.file)
        rows.append({"source": source.name, "file": file, **result})
    return rows


def download_file(project_root: Path, source: Source) -> RawFile:
    """Download into a temporary file, check it, then rename it into place.

    UserError: no network, a file that needs a login, or one that nobody publishes.
    """
    place = f"{raw_folder(project_root)} or the folder named by {MIRROR}"
    if source.derived:
        raise UserError(
            f"{source.file} has no publisher to fetch it from ({source.title}); put it"
            f" into {place}."
        )
    if source.login:
        raise UserError(
            f"{source.file} is handed to registered users only: log in at {source.url},"
            f" download it there and put it into {place}."
        )
    folder = raw_folder(project_root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as scratch:
            raw_file = check_edition(_download_to(source, Path(scratch)), source)
            path = raw_file.path.replace(folder / source.file)
    except UserError:
        raise
    except (OSError, ValueError) as error:  # of requests, pooch, or the file system
        raise UserError(
            f"{source.file} could not be downloaded from {source.url} to {folder}"
            f" ({type(error).__name__}). Put it there by hand, or set {MIRROR} to a"
            f" folder that holds {source.file} or {source.file}.gz."
        ) from error
    return RawFile(path, raw_file.sha256, raw_file.origin)


def raw_folder(project_root: Path) -> Path:
    """Return the folder for files put there by hand or by a download."""
    return project_root / "data" / "raw"


def stamp(path: Path) -> tuple[Any, ...]:
    """Return what changes with the table at ``path``; () if there is none.

    Of a folder these are its files, in JSON with the columns that are not in them, and
    what changes with each: size and times, or on an object store the ETag.
    """
    if not path.exists():
        return ()
    parts = table_parts(path)
    with ThreadPoolExecutor(_CONNECTIONS if is_remote(path) else 1) as pool:
        stamps = [*pool.map(_file_stamp, parts)]
    fixed = [[p.name, *map(repr, sorted(p.constants.items()))] for p in parts]
    return json.dumps(fixed), *stamps


def _file_stamp(part: TablePart) -> tuple[Any, ...]:
    path = part.table / part.name
    if is_remote(path):
        place, name = arrow_place(path)
        with store_errors(part.table, "read"), place.open_input_file(name) as stream:
            return (*sorted(stream.metadata().items()),)
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def digest(path: Path) -> str:
    """Return the SHA-256 of the decompressed bytes of ``path``; it is remembered.

    Of a folder it covers names and SHA-256 of its files, and columns beside them.
    """
    return _cached_digest(path, stamp(path))


@lru_cache
def _cached_digest(path: Path, stamp: tuple[Any, ...]) -> str:
    total = hashlib.sha256()
    if not path.is_dir():
        for block in blocks(path):
            total.update(block)
        return total.hexdigest()
    total.update(f"curvote: a folder of Parquet files\n{stamp[0]}".encode())
    for (name, *_), changes in zip(json.loads(stamp[0]), stamp[1:], strict=True):
        try:
            total.update(_cached_digest(path / name, changes).encode())
        except UserError as error:  # it names the file
            redacted = f"{path}: a file of it cannot be read."
            raise UserError.several([Problem(str(error), redacted=redacted)]) from None
    return total.hexdigest()


def _mirror_folder() -> list[Path]:
    named = os.environ.get(MIRROR)
    if not named:
        return []
    if not Path(named).is_dir():
        raise UserError(f"{MIRROR} is {named!r}, which is not a folder.")
    return [Path(named)]


def _check_content(path: Path, source: Source, sha256: str) -> None:
    try:
        lookup.find_dataset(source.dataset).check(read(path), source)
    except DamagedError:
        raise
    except UserError as error:
        raise UserError(
            f"{_unlisted_error(path, source, sha256)} and its content disagrees:"
            f" {error}"
        ) from error


def _unlisted_error(path: Path, source: Source, sha256: str) -> str:
    listed = ", ".join(variant.sha256 for variant in source.variants) or "none yet"
    return (
        f"{path} is no known edition of {source.file}: its SHA-256 (decompressed) is"
        f" {sha256}, listed: {listed};"
    )


def _how_to_obtain(source: Source) -> str:
    if source.derived:
        return "nobody publishes it in this form"
    if source.login:
        return f"needs a login: {source.url}"
    return f"`curvote data fetch {source.name}` downloads it"


def _download_to(source: Source, folder: Path) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    downloader: Any = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=TIMEOUT_SECONDS
    )
    fetcher = pooch.create(
        path=folder,
        base_url="",
        registry={source.file: None},
        urls={source.file: source.url},
        retry_if_failed=RETRIES,
    )
    return Path(fetcher.fetch(source.file, downloader=downloader))
