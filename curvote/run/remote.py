"""Paths on an object store, through pyarrow's own file system of S3.

Whoever walks the store of artifacts needs no second way: what is there has a path, as
what is in a folder has. Credentials and endpoint are those of the environment
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...); waiting has an end.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PosixPath
from typing import Any, Final

from pyarrow import fs

from curvote.errors import UserError

MANIFEST: Final = "manifest.json"
SCHEME: Final = "s3://"
# Seconds to connect, and without a byte; attempts where the store is busy or fails.
CONNECT: Final = 5
SILENT: Final = 10
ATTEMPTS: Final = 3
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
# Digits of a key are no status.
_FORBIDDEN: Final = re.compile(
    r"ACCESS_DENIED|HTTP status 40[13]|INVALID_ACCESS_KEY|SIGNATURE|CREDENT"
)


class NoAnswerError(UserError):
    """The object store did not do what was asked; nobody knows what it holds."""


class Remote(PosixPath):
    """A path on an object store, with what the store of artifacts does with paths."""

    _known: fs.FileInfo | None = None

    def __str__(self) -> str:
        return SCHEME + self.name_there

    @property
    def name_there(self) -> str:
        """Bucket and key."""
        return "/".join(self.parts[1:])

    def relative_to(self, *_: Any) -> Remote:
        """Return the whole path: it lies below no folder of this machine."""
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return kind, size and time; of a folder the time of its latest file."""
        info = self._known or _info(self)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(2, "there is no such object", str(self))
        mode, size, changed = stat.S_IFREG, info.size, info.mtime_ns
        if info.type == fs.FileType.Directory:
            times = [each.mtime_ns or 0 for each in files_below(self)]
            mode, size, changed = stat.S_IFDIR, 0, max(times, default=0)
        seconds = (changed or 0) / 1e9
        return os.stat_result((mode, 0, 0, 1, 0, 0, size or 0, *[seconds] * 3))

    def exists(self) -> bool:
        """Say whether there is a file or, below it, some file."""
        return bool(self._type() != fs.FileType.NotFound)

    def is_file(self) -> bool:
        """Say whether there is a file of this name."""
        return bool(self._type() == fs.FileType.File)

    def is_dir(self) -> bool:
        """Say whether some file lies below."""
        return bool(self._type() == fs.FileType.Directory)

    def is_symlink(self) -> bool:
        """Say no."""
        return False

    def listed(self, known: fs.FileInfo) -> Remote:
        """Return this path with what a listing says: that spares asking once more."""
        self._known = known
        return self

    def _type(self) -> Any:
        return (self._known or _info(self)).type

    def iterdir(self) -> Generator[Remote]:
        """Yield what is directly in a folder."""
        yield from self.glob("*")

    def glob(self, pattern: str) -> Generator[Remote]:
        """Yield, in order, the files and folders whose names are like the pattern."""
        likes = pattern.split("/")
        found: dict[str, fs.FileInfo] = {}
        for info in files_below(self):
            names = info.path.removeprefix(self.name_there + "/").split("/")
            head = names[: len(likes)]
            if len(head) == len(likes) and all(map(fnmatchcase, head, likes)):
                name = "/".join(head)
                found[name] = info if len(names) == len(likes) else _folder(name)
        for name, known in sorted(found.items()):
            yield (self / name).listed(known)

    def rglob(self, pattern: str) -> Generator[Remote]:
        """Yield the files below a folder whose names are like the pattern."""
        for info in files_below(self):
            if fnmatchcase(info.base_name, pattern):
                yield Remote(SCHEME + info.path).listed(info)

    def open(self, mode: str = "rb", *_: Any, **__: Any) -> Any:
        """Open a file, to be read as bytes."""
        with in_words(self, "read"):
            return connection().open_input_file(self.name_there)

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        with in_words(self, "read"), self.open() as stream:
            content: bytes = stream.read()
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Return the content of a file, as text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def rename(self, target: Any) -> Remote:
        """Copy a folder's files to another name, its manifest last, and remove it."""
        with in_words(target, "write"):
            for info in manifest_last(files_below(self)):
                name = info.path.removeprefix(self.name_there)
                connection().copy_file(info.path, target.name_there + name)
        self.remove()
        return Remote(target)

    def remove(self) -> None:
        """Delete what is below, the manifest first: then the rest is not there."""
        with in_words(self, "write"):
            for info in reversed(manifest_last(files_below(self))):
                connection().delete_file(info.path)


def manifest_last(files: Iterable[fs.FileInfo]) -> list[fs.FileInfo]:
    """Return files of artifacts, each manifest after all tables."""
    return sorted(files, key=lambda info: (info.base_name == MANIFEST, info.path))


def _folder(name: str) -> fs.FileInfo:
    return fs.FileInfo(name, type=fs.FileType.Directory)


def _info(path: Remote) -> fs.FileInfo:
    with in_words(path, "read"):
        return connection().get_file_info(path.name_there)


def files_below(folder: Remote) -> list[fs.FileInfo]:
    """Return the files below a folder; a missing bucket is not an empty one."""
    every = fs.FileSelector(folder.name_there, recursive=True, allow_not_found=True)
    with in_words(folder, "read"):
        found = connection().get_file_info(every)
        if not found:
            _bucket(_endpoint(), folder.parts[1])
    return [info for info in found if info.is_file]


@cache
def _bucket(endpoint: str | None, name: str) -> None:
    """Refuse a bucket that is not there; one that is there is asked for once."""
    if _connected(endpoint).get_file_info(name).type != fs.FileType.Directory:
        raise OSError("NO_SUCH_BUCKET")


def connection() -> fs.S3FileSystem:
    """Return the file system of the endpoint that the environment names."""
    return _connected(_endpoint())


def _endpoint() -> str | None:
    return next((os.environ[n] for n in _ENDPOINTS if os.environ.get(n)), None)


@cache
def _connected(endpoint: str | None) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        connect_timeout=CONNECT,
        request_timeout=SILENT,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,
    )


@contextmanager
def in_words(path: Path, doing: str) -> Iterator[None]:
    """Turn what the object store says into an error that names the next step."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise refusal(error, path, doing) from error


def refusal(error: OSError, path: Path, doing: str = "read") -> NoAnswerError:
    """Return the error in words: what cannot be done, and what to do."""
    said = str(error)
    bucket = str(path).removeprefix(SCHEME).partition("/")[0]
    kept = "What was committed is as it was; afterwards the same command goes on."
    if "NO_SUCH_BUCKET" in said:
        way = f"there is no bucket {bucket}. Create it or correct runtime.artifacts"
    elif _FORBIDDEN.search(said):
        way = (
            f"there is no right to {doing} it. Check AWS_ACCESS_KEY_ID,"
            " AWS_SECRET_ACCESS_KEY and what the bucket allows"
        )
    elif status := re.search(r"HTTP status (\d+)", said):
        way = f"the object store answers {status[1]}. Wait until it is sound again"
    else:
        way = "the object store does not answer. Check the network and AWS_ENDPOINT_URL"
    return NoAnswerError(f"{path}: {way}. {kept}")
