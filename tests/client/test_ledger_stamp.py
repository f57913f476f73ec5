"""Opening a large ledger reads its pages only after a write."""

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.ledger import queries, schema
from curvote.ledger.book import Ledger
from tests.ledgers import filled, reserve


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the ledgers whose pages are checked; all count as large."""
    found: list[Path] = []
    check = schema.check_pages

    def counting(db: object, path: Path) -> bool:
        found.append(path)
        return check(db, path)  # type: ignore[arg-type]

    monkeypatch.setattr(schema, "check_pages", counting)
    monkeypatch.setattr(schema, "SMALLEST_STAMPED", 0)
    monkeypatch.setattr(schema, "_CLOCK_MARGIN", -1.0)
    return found


@pytest.fixture
def path(tmp_path: Path, checks: list[Path]) -> Path:
    """Return a ledger whose pages were checked."""
    made = filled(tmp_path / "ledger.sqlite")
    Ledger(made).close()
    checks.clear()
    return made


def test_pages_are_read_again_only_after_a_write(path, checks):
    """Twenty openings read none; one reservation makes the next opening read all."""
    for _ in range(20):
        Ledger(path).close()
    assert checks == []
    with Ledger(path) as ledger:
        reserve(ledger, "more", ["x"])
        Ledger(path).close()  # what waits in the journal was not checked
        assert len(checks) == 1
    for _ in range(3):
        Ledger(path).close()
    assert len(checks) == 2
    assert schema.stamp_path(path).stat().st_mode & 0o777 == 0o600


def _bytes(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[5 * 4096 : 5 * 4096 + 8] = b"\xff" * 8
    path.write_bytes(content)


def _same_time(path: Path) -> None:
    times = path.stat()
    _bytes(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("alter", [_bytes, _same_time])
def test_altered_bytes_are_noticed_though_it_was_checked(path, checks, alter):
    """Whatever the date of the file says: its change of state has a time of its own."""
    time.sleep(0.02)  # a file system counts time in ticks
    alter(path)
    with pytest.raises(UserError, match="damaged"):
        Ledger(path)
    assert set(checks) == {path}


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"checked": null}', "\xff"])
def test_a_stamp_that_cannot_be_read_is_none(path, checks, said):
    """The pages are checked, and a new one is written."""
    stamp = schema.stamp_path(path)
    stamp.write_text(said, encoding="latin-1")
    Ledger(path).close()
    Ledger(path).close()
    assert len(checks) == 1
    assert json.loads(stamp.read_text())["top"][0] > 1


@pytest.mark.parametrize("days", [-1, schema.STAMP_DAYS + 1])
def test_a_stamp_is_believed_for_a_week(path, checks, days):
    """Nor is one from the future, after a clock was set back."""
    stamp = schema.stamp_path(path)
    said = json.loads(stamp.read_text())
    stamp.write_text(json.dumps(said | {"checked": time.time() - days * 86_400}))
    Ledger(path).close()
    assert len(checks) == 1


def test_a_small_ledger_has_none(tmp_path: Path) -> None:
    """Its pages are read each time."""
    path = filled(tmp_path / "ledger.sqlite")
    Ledger(path).close()
    assert not schema.stamp_path(path).exists()


def test_a_ledger_that_was_just_written_has_none_yet(path, checks, monkeypatch):
    """A write in the same moment as the check might leave the same times."""
    monkeypatch.setattr(schema, "_CLOCK_MARGIN", 60.0)
    with Ledger(path) as ledger:
        reserve(ledger, "more", ["x"])
    for _ in range(2):
        Ledger(path).close()
    assert len(checks) == 2


# ------------------------------------------------------------------ entries and totals
@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a number for each time that all entries are added up again."""
    found: list[int] = []
    honest = queries.find_disagreements

    def counting(db: sqlite3.Connection) -> list[str]:
        found.append(1)
        return honest(db)

    monkeypatch.setattr(queries, "find_disagreements", counting)
    monkeypatch.setattr(schema, "SMALLEST_SUMS", 0)
    return found


def set_back(path: Path) -> None:
    """Give everybody the total that they began with, as no release does."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE clients SET total = 1")
    db.close()


def test_entries_are_added_up_once_until_somebody_else_writes(path, sums):
    """By the first reservation; then by nobody, as long as one writes after another."""
    for name in ("a", "b"):
        with Ledger(path) as ledger:
            reserve(ledger, name, ["x"])
            reserve(ledger, name * 2, ["x"])
            ledger.confirm(name, place="here", digest="00")
    assert len(sums) == 1
    with Ledger(path) as ledger, Ledger(path) as other:
        reserve(ledger, "c", ["x"])
        reserve(other, "d", ["x"])
        reserve(ledger, "e", ["x"])
    assert len(sums) == 3
    assert Ledger(path).problems() == []


@pytest.mark.parametrize("when", ["before", "between", "within"])
def test_totals_that_were_set_back_are_refused(path, sums, when):
    """Before a session, after one that added up, and in the middle of one."""
    with Ledger(path) as ledger:
        if when == "within":
            reserve(ledger, "a", ["x"])
            set_back(path)
        if when == "between":
            reserve(ledger, "a", ["x"])
    if when != "within":
        set_back(path)
    with Ledger(path) as again, pytest.raises(UserError, match="not what was entered"):
        reserve(again, "b", ["x"])
    assert sums
    assert Ledger(path).entry("b") is None


def test_a_session_goes_on_no_further_than_somebody_elses_write(path: Path) -> None:
    """The next reservation sees it, without closing anything."""
    with Ledger(path) as ledger:
        reserve(ledger, "a", ["x"])
        set_back(path)
        with pytest.raises(UserError, match="not what was entered"):
            reserve(ledger, "b", ["x"])


@pytest.mark.parametrize("total", [-1, 999, 2**62])
def test_a_total_that_is_none_is_told(path: Path, total: int) -> None:
    """Whatever number somebody else has written: never a sum, never an error."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE clients SET total = ?", (total,))
        (n,) = db.execute("SELECT count(*) FROM clients").fetchone()
        told = queries.find_disagreements(db)
    assert f"the totals kept of {n} clients are not the sums" in " ".join(told)
