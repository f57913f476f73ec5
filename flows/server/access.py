"""Access to a project's server: a secret for its user's processes and browser.

Prefect asks every request for one secret (basic authentication). A run's own server
keeps it in memory; ``curvote serve`` leaves it in a file that its user alone reads.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from curvote.base.errors import UserError

_USER = "curvote"
# What the server's process is given, and what its clients are.
SERVER_VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"
CLIENT_VARIABLE = "PREFECT_API_AUTH_STRING"
_RESTART_HINT = "End `curvote serve` and start it again: that makes a new one."


def new_secret() -> str:
    """Return a fresh ``user:password`` with 256 random bits."""
    return f"{_USER}:{secrets.token_urlsafe(32)}"


def write_secret(path: Path, secret: str) -> None:
    """Write the secret into a new file of mode 0600."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secret}\n")


def read_secret(path: Path) -> str:
    """Return the secret that `write_secret` wrote.

    UserError: it is gone, or not this user's, or others may have read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}). {_RESTART_HINT}"
        ) from None
    with os.fdopen(descriptor) as file:
        about = os.fstat(descriptor)
        if about.st_mode & 0o077 or about.st_uid != os.getuid():
            raise UserError(f"{path} is open to others. {_RESTART_HINT}")
        return file.read().strip()
