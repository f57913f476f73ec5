"""The ledger on damaged files and failing disks: closed rather than wrong."""

import os
import random
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base import durable
from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from tests.damages import DAMAGES, content
from tests.ledgers import Says, filled, refusal, reserve, says


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a ledger with some releases, closed."""
    return filled(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_what_is_no_ledger_is_refused_and_left_alone(path, damage, said):
    """Never a fresh ledger in its place: the message names the file and the way out."""
    damage(path)
    before = content(path)
    with pytest.raises(UserError, match=said) as raised:
        Ledger(path)
    assert str(path) in str(raised.value)
    assert content(path) == before


def test_creating_a_ledger_never_replaces_one(path, monkeypatch):
    """One that another process made in the same moment is opened instead."""
    before = says(path)
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    assert says(path) == before


def _look(path: Path, found: list[Says]) -> None:
    found.append(says(path))


def test_altered_bytes_are_noticed_or_change_no_sum(path: Path) -> None:
    """Bytes changed anywhere: a UserError, or a line of problems, or the same sums."""
    whole, rng, noticed = path.read_bytes(), random.Random(5), 0
    _, sums, _ = says(path)
    for _ in range(150):
        content = bytearray(whole)
        start = rng.randrange(len(content) - 4)
        content[start : start + 4] = rng.randbytes(4)
        path.write_bytes(content)
        found: list[Says] = []
        message = refusal(partial(_look, path, found))
        noticed += message is not None or found[0][2] != []
        assert message is None or str(path) in message
        assert not found or found[0][2] or found[0][1] == sums
    assert 30 < noticed < 150


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM members WHERE client < 10 AND release = 1", "names 191"),
        ("UPDATE clients SET total = 1 WHERE number < 5", "kept of 4 clients"),
        (
            "UPDATE releases SET state = 'spent', reason = '' WHERE number = 2",
            "kept of",
        ),
        ("UPDATE releases SET cap_epsilon = '0.2' WHERE number = 4", "above its cap"),
        ("UPDATE releases SET epsilon = '0.2' WHERE number = 1", "kept of 200"),
        ("DELETE FROM clients WHERE number = 3", "name what is not there"),
        ("UPDATE clients SET population = 2 WHERE number = 3", "another population"),
        # What the chain does not say: all later links would have to be made anew.
        ("UPDATE releases SET facts = '{}' WHERE number = 1", "release r0"),
        ("UPDATE releases SET reserved = '2020' WHERE number = 1", "release r0"),
        ("UPDATE caps SET epsilon = '100'", "the cap of population 'p'"),
        ("DELETE FROM caps", "the cap of population 'p'"),
        ("INSERT INTO settings VALUES ('client', 'me')", "the settings"),
        ("DELETE FROM chain WHERE number = 3", "chain of entries is broken: 1 of"),
        ("UPDATE chain SET event = event || ' ' WHERE number = 2", "broken: 1 of"),
        ("DELETE FROM chain", "chain of entries is broken"),
        ("DELETE FROM chain WHERE number > 5", "release r"),
    ],
)
def test_problems_finds_what_was_changed_by_hand(path, statement, said):
    """Sound before; afterwards a line that says what is wrong."""
    assert says(path)[2] == []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("INSERT INTO populations VALUES (2, 'q')")
        db.execute(statement)
    with Ledger(path) as ledger:
        assert any(said in line for line in ledger.problems()), ledger.problems()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE releases SET state = 'lost'",
        "UPDATE releases SET digest = NULL",
        "UPDATE releases SET epsilon = '0'",
    ],
)
def test_impossible_states_cannot_be_written(path: Path, statement: str) -> None:
    """The tables themselves refuse them."""
    with (
        closing(sqlite3.connect(path)) as db,
        pytest.raises(sqlite3.IntegrityError),
    ):
        db.execute(statement)


class Failing:
    """A connection whose n-th statement fails, as a disk would make it."""

    def __init__(self, db: sqlite3.Connection, n: int, code: int) -> None:
        self.db, self.left, self.code = db, n, code

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    def execute(self, *words: Any) -> Any:
        """Count down, and fail once."""
        self.left -= 1
        if self.left == -1:
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode = self.code
            raise error
        return self.db.execute(*words)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_FULL, "no space is left"),
        (sqlite3.SQLITE_IOERR_FSYNC, "disk fails"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "cannot be written"),
        (sqlite3.SQLITE_CORRUPT, "damaged"),
    ],
)
def test_a_reservation_that_fails_anywhere_has_written_nothing(path, code, said):
    """At every statement, the last one too; then the same call succeeds."""
    before, n = says(path), 0
    while message := refusal(partial(_with_failure, path, n, code)):
        assert said in message
        assert says(path) == before
        n += 1
    assert n > 10
    assert len(says(path)[0]) == len(before[0]) + 1


def _with_failure(path: Path, n: int, code: int) -> None:
    with closing(Ledger(path)) as ledger:
        ledger._db = Failing(ledger._db, n, code)  # type: ignore[assignment]
        reserve(ledger, "new", np.arange(100, 300))


def test_a_full_or_read_only_disk_is_said_in_words(path: Path) -> None:
    """SQLite's own errors, not injected ones; nothing is written."""
    before = says(path)
    for limit, said in (
        ("PRAGMA max_page_count = 1", "no space is left"),
        ("PRAGMA query_only = ON", "cannot be written"),
    ):
        with Ledger(path) as ledger:
            ledger._db.execute(limit)
            with pytest.raises(UserError, match=said):
                reserve(ledger, "new", np.arange(10_000, 30_000))
    assert says(path) == before


def test_waiting_for_another_process_ends(path, monkeypatch):
    """After the busy time: who is to be waited for, and nothing written."""
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.05)
    with Ledger(path) as first, Ledger(path) as second:
        first._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="another process"):
            reserve(second, "new", ["a"])
        first._db.execute("ROLLBACK")
        reserve(second, "new", ["a"])
