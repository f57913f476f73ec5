"""Where a person's ledger, register and outbox stand: one of each for every user.

They must not depend on the working folder: the same command given elsewhere would find
an empty ledger there, and release again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from curvote.errors import UserError

# Where the ledger stood before every user had one: in the working folder.
FORMER: Final = Path("curvote-ledger.sqlite")


def ledger(named: Path | None = None) -> Path:
    """Return the ledger's file: the one that was ``named``, else the user's own.

    UserError: none was named, the user has none yet, and the working folder holds one
    of an earlier curvote, whose releases would be forgotten.
    """
    if named is not None:
        return named.resolve()
    own = _state() / "ledger.sqlite"
    if FORMER.exists() and not own.exists():
        raise UserError(
            f"{FORMER.resolve()} is a ledger of an earlier curvote, and {own} does not"
            " exist yet: starting afresh would forget what was released. Move it there"
            f" (`{_moves(own)}`), or name it: --ledger {FORMER}."
        )
    return own


def _moves(own: Path) -> str:
    """Return the commands that move the former ledger, with its journal if any."""
    there = (end for end in ("", "-wal") if Path(f"{FORMER}{end}").exists())
    return " && ".join(f"mv {FORMER}{end} {own}{end}" for end in there)


def register() -> Path:
    """Return the file that knows which invitations this user has answered."""
    return _state() / "register.sqlite"


def outbox(named: Path | None = None) -> Path:
    """Return the folder for envelopes: the one that was ``named``, or the user's."""
    return (_state() / "outbox" if named is None else named).resolve()


def _state() -> Path:
    """Return the user's folder for state, which nobody else can read.

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
