"""Paths on an object store, with the methods of paths that curvote uses.

Credentials and endpoint are those of the environment (AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL, ...); waiting has an end.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from curvote.base.errors import UserError

if TYPE_CHECKING:
    from pyarrow import fs

MANIFEST: Final = "manifest.json"
SCHEME: Final = "s3://"
# Seconds to connect, and without a byte; attempts where the store is busy or fails.
CONNECT_SECONDS: Final = 5
SILENT_SECONDS: Final = 10
MAX_ATTEMPTS: Final = 3
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
# Digits of a key are no status.
_FORBIDDEN: Final = re.compile(
    r"ACCESS_DENIED|HTTP status 40[13]|INVALID_ACCESS_KEY|SIGNATURE|CREDENT"
)


def _fs() -> Any:
    """Return Arrow's file systems: who has no object store need not wait for them."""
    from pyarrow import fs

    return fs


class ObjectStoreError(UserError):
    """The object store did not do what was asked; its content is unknown."""


class RemotePath(PosixPath):
    """A path on an object store, with the methods of paths that stores use."""

    _info: fs.FileInfo | None = None

    def __str__(self) -> str:
        return SCHEME + self.bucket_key

    @property
    def bucket_key(self) -> str:
        """The bucket and key, without the scheme."""
        return "/".join(self.parts[1:])

    def relative_to(self, *_: Any) -> RemotePath:
        """Return the whole path, as it lies in no folder of this machine."""
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return kind, size and time; of a folder the time of its latest file."""
        info = self._info or _fetch_info(self)
        if info.type == _fs().FileType.NotFound:
            raise FileNotFoundError(2, "there is no such object", str(self))
        mode, size, changed = stat.S_IFREG, info.size, info.mtime_ns
        if info.type == _fs().FileType.Directory:
            times = [file_info.mtime_ns or 0 for file_info in files_below(self)]
            mode, size, changed = stat.S_IFDIR, 0, max(times, default=0)
        seconds = (changed or 0) / 1e9
        return os.stat_result((mode, 0, 0, 1, 0, 0, size or 0, *[seconds] * 3))

    def exists(self) -> bool:
        """Say whether there is a file or, below it, some file."""
        return bool(self._type() != _fs().FileType.NotFound)

    def is_file(self) -> bool:
        """Say whether there is a file of this name."""
        return bool(self._type() == _fs().FileType.File)

    def is_dir(self) -> bool:
        """Say whether some file lies below."""
        return bool(self._type() == _fs().FileType.Directory)

    def is_symlink(self) -> bool:
        """Return False: object stores have no links."""
        return False

    def with_info(self, info: fs.FileInfo) -> RemotePath:
        """Return this path with the information that a listing gave."""
        self._info = info
        return self

    def _type(self) -> Any:
        return (self._info or _fetch_info(self)).type

    def iterdir(self) -> Generator[RemotePath]:
        """Yield what is directly in a folder."""
        yield from self.glob("*")

    def glob(self, pattern: str) -> Generator[RemotePath]:
        """Yield, sorted, the files and folders that match the pattern."""
        patterns = pattern.split("/")
        matches: dict[str, fs.FileInfo] = {}
        for info in files_below(self):
            names = info.path.removeprefix(self.bucket_key + "/").split("/")
            head = names[: len(patterns)]
            if len(head) == len(patterns) and all(map(fnmatchcase, head, patterns)):
                name = "/".join(head)
                is_file = len(names) == len(patterns)
                folder = _fs().FileInfo(name, type=_fs().FileType.Directory)
                matches[name] = info if is_file else folder
        for name, info_found in sorted(matches.items()):
            yield (self / name).with_info(info_found)

    def rglob(self, pattern: str) -> Generator[RemotePath]:
        """Yield the files below a folder whose names match the pattern."""
        for info in files_below(self):
            if fnmatchcase(info.base_name, pattern):
                yield RemotePath(SCHEME + info.path).with_info(info)

    def open(self, mode: str = "rb", *_: Any, **__: Any) -> Any:
        """Open a file, to be read as bytes."""
        with store_errors(self, "read"):
            return connection().open_input_file(self.bucket_key)

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        with store_errors(self, "read"), self.open() as stream:
            content: bytes = stream.read()
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Return the content of a file, as text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def rename(self, target: Any) -> RemotePath:
        """Copy a folder's files to another name, its manifest last, and remove it."""
        with store_errors(target, "write"):
            for info in manifest_last(files_below(self)):
                name = info.path.removeprefix(self.bucket_key)
                connection().copy_file(info.path, target.bucket_key + name)
        self.remove()
        return RemotePath(target)

    def remove(self) -> None:
        """Delete the files below, the manifest first."""
        with store_errors(self, "write"):
            for info in reversed(manifest_last(files_below(self))):
                connection().delete_file(info.path)

    def remove_all(self) -> None:
        """Delete a folder that holds no artifact, in any order."""
        with store_errors(self, "write"):
            connection().delete_dir(self.bucket_key)


def manifest_last(files: Iterable[fs.FileInfo]) -> list[fs.FileInfo]:
    """Return files of artifacts, each manifest after all tables."""
    return sorted(files, key=lambda info: (info.base_name == MANIFEST, info.path))


def _fetch_info(path: RemotePath) -> fs.FileInfo:
    with store_errors(path, "read"):
        return connection().get_file_info(path.bucket_key)


def files_below(folder: RemotePath) -> list[fs.FileInfo]:
    """Return the files below a folder; a missing bucket is not an empty one."""
    selector = _fs().FileSelector(
        folder.bucket_key, recursive=True, allow_not_found=True
    )
    with store_errors(folder, "read"):
        infos = connection().get_file_info(selector)
        if not infos:
            _check_bucket(_s3_endpoint(), folder.parts[1])
    return [info for info in infos if info.is_file]


@cache
def _check_bucket(endpoint: str | None, name: str) -> None:
    """Refuse a missing bucket; an existing one is checked once."""
    if _s3_file_system(endpoint).get_file_info(name).type != _fs().FileType.Directory:
        raise OSError("NO_SUCH_BUCKET")


def connection() -> fs.S3FileSystem:
    """Return the file system of the endpoint that the environment names."""
    return _s3_file_system(_s3_endpoint())


def _s3_endpoint() -> str | None:
    return next((os.environ[n] for n in _ENDPOINTS if os.environ.get(n)), None)


@cache
def _s3_file_system(endpoint: str | None) -> fs.S3FileSystem:
    return _fs().S3FileSystem(
        endpoint_override=endpoint,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=SILENT_SECONDS,
        retry_strategy=_fs().AwsStandardS3RetryStrategy(max_attempts=MAX_ATTEMPTS),
        allow_delayed_open=True,
    )


@contextmanager
def store_errors(path: Path, doing: str) -> Iterator[None]:
    """Translate errors of the object store into errors with a next step."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise store_error(error, path, doing) from error


def store_error(error: OSError, path: Path, doing: str = "read") -> ObjectStoreError:
    """Return an error of the object store in words, with a remedy."""
    text = str(error)
    bucket = str(path).removeprefix(SCHEME).partition("/")[0]
    if "NO_SUCH_BUCKET" in text:
        remedy = f"there is no bucket {bucket}. Create it or correct its name"
    elif _FORBIDDEN.search(text):
        remedy = (
            f"there is no right to {doing} it. Check AWS_ACCESS_KEY_ID,"
            " AWS_SECRET_ACCESS_KEY and what the bucket allows"
        )
    elif status := re.search(r"HTTP status (\d+)", text):
        remedy = f"the object store answers {status[1]}. Wait until it is sound again"
    else:
        remedy = (
            "the object store does not answer. Check the network and AWS_ENDPOINT_URL"
        )
    return ObjectStoreError(
        f"{path}: {remedy}. What was committed is as it was; afterwards the same"
        " command goes on."
    )


def as_path(text: str | Path, folder: Path = Path()) -> Path:
    """Return the path of a text: on an object store, or of this machine."""
    return RemotePath(text) if str(text).startswith(SCHEME) else folder / text


def is_remote(path: Path) -> TypeGuard[RemotePath]:
    """Return whether a path is on an object store."""
    return isinstance(path, RemotePath)


def open_source(path: Path) -> Any:
    """Return a path or stream from which pyarrow reads a file."""
    return path.open("rb") if is_remote(path) else path


def arrow_place(path: Path) -> tuple[fs.FileSystem, str]:
    """Return Arrow's file system of a path, and its name there."""
    if is_remote(path):
        return connection(), path.bucket_key
    return _fs().LocalFileSystem(), str(path)


def open_bytes(path: Path) -> Any:
    """Open a file, here or away, as Python reads bytes and lines."""
    return io.BufferedReader(path.open()) if is_remote(path) else path.open("rb")
