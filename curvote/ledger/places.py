"""Paths of a user's ledger, register and outbox.

They must not depend on the working folder: the same command given elsewhere would find
an empty ledger there, and release again.
"""

from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from curvote.base.errors import UserError

# Where the ledger stood before every user had one: in the working folder.
FORMER_LEDGER: Final = Path("curvote-ledger.sqlite")


def ledger_path(named: Path | None = None) -> Path:
    """Return the ledger's path: the ``named`` one, else the user's own.

    UserError: none was named, the user has none yet, and the working folder holds one
    of an earlier curvote, whose releases would be forgotten.
    """
    if named is not None:
        return named.resolve()
    default = _state_folder() / "ledger.sqlite"
    if FORMER_LEDGER.exists() and not default.exists():
        ends = (end for end in ("", "-wal") if Path(f"{FORMER_LEDGER}{end}").exists())
        move = " && ".join(f"mv {FORMER_LEDGER}{end} {default}{end}" for end in ends)
        raise UserError(
            f"{FORMER_LEDGER.resolve()} is a ledger of an earlier curvote, and"
            f" {default} does not exist yet: starting afresh would forget what was"
            f" released. Move it there (`{move}`), or name it: --ledger"
            f" {FORMER_LEDGER}."
        )
    return default


def register_path() -> Path:
    """Return the path of the user's register of invitations."""
    return _state_folder() / "register.sqlite"


def outbox_path(named: Path | None = None) -> Path:
    """Return the folder for envelopes: the ``named`` one, or the user's."""
    return (_state_folder() / "outbox" if named is None else named).resolve()


def _state_folder() -> Path:
    """Return the user's private state folder, created if missing.

    ``$XDG_STATE_HOME/curvote``, or ``~/.local/state/curvote`` (XDG Base Directory
    Specification 0.8).
    """
    folder = user_state_path("curvote", appauthor=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)  # one that was there already
    except OSError as error:
        raise UserError(
            f"{folder}, where your ledger stands: {error.strerror or error}. Make it a"
            " folder that you can write, or name another in XDG_STATE_HOME."
        ) from None
    return folder.resolve()
