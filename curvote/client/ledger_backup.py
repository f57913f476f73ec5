"""Copies of a ledger: made while others write, checked before they count as one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from curvote.client.ledger import Ledger, existing
from curvote.client.ledger_schema import LEDGER
from curvote.durable import journals, sync_folder
from curvote.errors import UserError


def backup(ledger: Path, out: Path) -> tuple[int, str]:
    """Copy the ledger to the file ``out``, whole and checked, or not at all.

    Others may write meanwhile: the copy is of one moment. Its owner alone may read it.
    ``out`` may be an earlier backup of this ledger, which it replaces; anything else of
    that name stays, and is a UserError, as is a ledger that is not sound. Returns the
    place and link of the newest entry that the copy holds.
    """
    if out.exists() and out.samefile(ledger):
        raise UserError(f"{out} is the ledger itself; name a file elsewhere.")
    with (
        LEDGER.errors(out),
        existing(ledger) or nullcontext(),  # held open: others may begin to write
        checked_copy(ledger, out.absolute().parent) as made,
    ):
        with Ledger(made) as copy:
            top = copy.top()
            _refuse_to_replace(out, copy)
        make_whole(made)
        made.replace(out)
        sync_folder(out.absolute().parent)
    return top


def _refuse_to_replace(out: Path, copy: Ledger) -> None:
    if not os.path.lexists(out):
        return
    try:
        with (
            checked_copy(out, copy.path.parent, deep=False) as made,
            Ledger(made) as old,
        ):
            earlier = old.origin() == copy.origin() and copy.knows(old.head())
    except UserError:
        earlier = False
    if not earlier:
        raise UserError(
            f"{out} is there and no earlier backup of this ledger: it stays as it is."
            " Name another file."
        )


@contextmanager
def checked_copy(file: Path, folder: Path, *, deep: bool = True) -> Iterator[Path]:
    """Yield a copy of a ledger in a folder of its own inside ``folder``.

    ``file`` is read only. UserError: it is no ledger, or (``deep``) it is not sound:
    its pages, sums and chain.
    """
    if not file.is_file():
        raise UserError(f"{file}: there is no such file.")
    with TemporaryDirectory(prefix=f".{file.name}-", dir=folder) as own:
        made = Path(own) / file.name
        with LEDGER.errors(file):
            _copy(file, made)
        try:
            with Ledger(made) as ledger:
                found = ledger.problems() if deep else []
        except UserError as error:
            raise UserError(str(error).replace(str(made), str(file))) from None
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise UserError(f"the ledger {file} is not sound: {found[0]}{more}.")
        yield made


def _copy(file: Path, made: Path) -> None:
    """Copy all pages as of one moment, those in its journal included."""
    still = (
        "" if journals(file) else "&immutable=1"
    )  # then nothing is written beside it
    uri = f"{file.absolute().as_uri()}?mode=ro{still}"
    made.touch(mode=0o600)
    with (
        closing(sqlite3.connect(uri, uri=True)) as source,
        closing(sqlite3.connect(made)) as target,
    ):
        source.backup(target)


def make_whole(path: Path) -> None:
    """Make the file all there is of a ledger, without a journal, and durable.

    UserError: what its journal holds cannot be written into it.
    """
    with LEDGER.errors(path):
        with closing(sqlite3.connect(path, timeout=0)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
