"""Backups of a ledger: consistent copies that are checked before they count."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from curvote.client.ledger import Ledger, open_existing
from curvote.client.ledger_schema import LEDGER
from curvote.durable import journal_paths, sync_folder
from curvote.errors import UserError


def back_up_ledger(ledger: Path, out: Path) -> tuple[int, str]:
    """Copy the ledger to the file ``out``, complete and checked.

    Others may write meanwhile: the copy is of one moment. Its owner alone may read it.
    ``out`` may be an earlier backup of this ledger, which it replaces; anything else of
    that name stays, and is a UserError, as is a ledger that is not sound. Returns the
    place and link of the newest entry that the copy holds.
    """
    if out.exists() and out.samefile(ledger):
        raise UserError(f"{out} is the ledger itself; name a file elsewhere.")
    with (
        LEDGER.errors(out),
        open_existing(ledger) or nullcontext(),  # held open: others may begin to write
        checked_copy(ledger, out.absolute().parent) as copied,
    ):
        with Ledger(copied) as copy:
            top = copy.top()
            _refuse_overwrite(out, copy)
        merge_journal(copied)
        copied.replace(out)
        sync_folder(out.absolute().parent)
    return top


def _refuse_overwrite(out: Path, copy: Ledger) -> None:
    if not os.path.lexists(out):
        return
    try:
        with (
            checked_copy(out, copy.path.parent, deep=False) as copied,
            Ledger(copied) as old,
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
    """Yield a checked copy of a ledger in a temporary folder.

    ``file`` is read only. UserError: it is no ledger, or (``deep``) it is not sound:
    its pages, sums and chain.
    """
    if not file.is_file():
        raise UserError(f"{file}: there is no such file.")
    with TemporaryDirectory(prefix=f".{file.name}-", dir=folder) as temporary:
        copied = Path(temporary) / file.name
        with LEDGER.errors(file):
            _copy_pages(file, copied)
        try:
            with Ledger(copied) as ledger:
                problems = ledger.problems() if deep else []
        except UserError as error:
            raise UserError(str(error).replace(str(copied), str(file))) from None
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise UserError(f"the ledger {file} is not sound: {problems[0]}{more}.")
        yield copied


def _copy_pages(file: Path, target_path: Path) -> None:
    """Copy all pages of a ledger as of one moment, with its journal."""
    still = (
        "" if journal_paths(file) else "&immutable=1"
    )  # then nothing is written beside it
    uri = f"{file.absolute().as_uri()}?mode=ro{still}"
    target_path.touch(mode=0o600)
    with (
        closing(sqlite3.connect(uri, uri=True)) as source,
        closing(sqlite3.connect(target_path)) as target,
    ):
        source.backup(target)


def merge_journal(path: Path) -> None:
    """Merge the journal into the file and flush it to the disk.

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
