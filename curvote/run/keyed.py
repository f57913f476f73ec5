"""Raw files of a pipeline: keyed digests, and files found or fetched.

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

from curvote.durable import OTHERS_MODE, private_folder, sync_folder
from curvote.errors import UserError
from curvote.run.project import Project

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
            raise _key_error(
                path, f"others may use it (mode {state.st_mode & 0o777:o})"
            )
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
