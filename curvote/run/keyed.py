"""What may be told of the digest of a file that nobody published.

Whoever knows all rows of a file but one can try every last row against its plain
SHA-256. A digest under a key that stays here (HMAC, RFC 2104) tells them nothing, and
still changes when the file does.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from curvote.durable import OTHERS, owner_folder, sync_folder
from curvote.errors import UserError
from curvote.run.project import Project

BYTES: Final = 32
_PURPOSE: Final = b"curvote: digest of a private file\n"


def keyed(project: Project, digest: str) -> str:
    """Return the HMAC-SHA256 of a digest under the project's key, as 64 hex digits.

    The key is made on first use. UserError: what stands in its place is no key, or
    others may read it; it is never replaced.
    """
    told = hmac.new(_key(project.digest_key), _PURPOSE + digest.encode(), "sha256")
    return told.hexdigest()


def _key(path: Path) -> bytes:
    if not os.path.lexists(path):
        _create(path)
    try:  # a pipe in its place must not keep us waiting
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_size != BYTES:
            raise _refused(path, f"it is no file of {BYTES} bytes")
        if state.st_mode & OTHERS:
            raise _refused(path, f"others may use it (mode {state.st_mode & 0o777:o})")
        return os.read(handle, BYTES)
    finally:
        os.close(handle)


def _create(path: Path) -> None:
    """Make a key, whole or not at all; another process may be first."""
    owner_folder(path.parent)
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        os.link(made, path)
    except FileExistsError:
        return
    finally:
        made.unlink()
    sync_folder(path.parent)


def _refused(path: Path, why: str) -> UserError:
    return UserError(
        f"{path}: {why}. It is the key of all digests of private files that were told;"
        " put its backup in its place, for you alone (chmod 600). Without a backup,"
        " remove it: a new one is made, and studies on your own files are computed"
        " anew. Nothing was changed."
    )
