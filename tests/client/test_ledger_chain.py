"""Caps and settings are entered once; every entry is a link of a chain."""

import multiprocessing
import os
import sqlite3
from contextlib import closing
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger import schema
from curvote.ledger.book import Ledger
from tests.ledgers import ONE, filled, reserve, says
from tests.processes import in_child

FIRST = schema._FORMAT_1


def test_a_cap_is_set_once_and_only_raised(ledger: Ledger) -> None:
    """Another value is refused by name; raising needs both parts, and says so."""
    assert ledger.cap("p") is None
    with pytest.raises(UserError, match="no cap for population 'p'"):
        ledger.reserve("r", ["a"], Budget(0.1), population="p", facts={})
    with pytest.raises(UserError, match="no cap yet"):
        ledger.raise_cap("p", ONE)
    ledger.set_cap("p", ONE)
    ledger.set_cap("p", ONE)
    for other in (Budget(2.0, 1e-6), Budget(0.5, 1e-6), Budget(1.0)):
        with pytest.raises(UserError, match="raise-cap"):
            ledger.set_cap("p", other)
    for lower in (ONE, Budget(0.9, 1e-6), Budget(9.0), Budget(0.9, 1e-5)):
        with pytest.raises(UserError, match="does not raise it"):
            ledger.raise_cap("p", lower)
    assert ledger.cap("p") == ONE
    ledger.raise_cap("p", Budget(2.0, 1e-6))
    assert ledger.cap("p") == Budget(2.0, 1e-6)
    assert ledger.cap("q") is None
    assert ledger.problems() == []


@pytest.mark.parametrize("epsilon", [1e9, 1e13, 1e300])
def test_the_room_above_a_cap_does_not_grow_with_it(ledger, epsilon):
    """One part in 10^12 of a huge cap was room for a second release."""
    ledger.set_cap("p", Budget(epsilon, 1e-4))
    ledger.reserve("r", ["a"], Budget(epsilon), population="p", facts={})
    for more in (Budget(1e-9), Budget(1.0), Budget(epsilon * 1e-13)):
        with pytest.raises(UserError, match="no room"):
            ledger.reserve("s", ["a"], more, population="p", facts={})


def test_a_cap_without_delta_has_room_for_none(ledger: Ledger) -> None:
    """Not even the room that is left for rounding."""
    ledger.set_cap("p", Budget(1.0))
    with pytest.raises(UserError, match="no room"):
        ledger.reserve("r", ["a"], Budget(0.5, 5e-324), population="p", facts={})


def test_a_setting_is_written_once(ledger: Ledger) -> None:
    """Again with the same value: nothing; another one: refused, the first stays."""
    assert ledger.setting("client") is None
    ledger.store_setting("client", "me")
    head = ledger.head()
    ledger.store_setting("client", "me")
    with pytest.raises(UserError, match="client is 'me'"):
        ledger.store_setting("client", "Me")
    assert (ledger.setting("client"), ledger.head()) == ("me", head)
    assert ledger.problems() == []


def test_every_entry_moves_the_head_and_a_ledger_knows_its_own(tmp_path: Path) -> None:
    """An older copy knows the heads up to its own, another ledger knows none."""
    path, heads, copies = tmp_path / "ledger.sqlite", [], []
    for name in ("a", "b"):
        with Ledger(path) as ledger:
            reserve(ledger, name, ["x"])
            heads.append(ledger.head())
            ledger.confirm(name, place="p", digest="d")
            heads.append(ledger.head())
        copies.append(path.read_bytes())
    assert len(set(heads)) == 4
    (tmp_path / "old").write_bytes(copies[0])
    with Ledger(tmp_path / "old") as old, Ledger(path) as new:
        assert [old.knows(head) for head in heads] == [True, True, False, False]
        assert all(map(new.knows, heads))
        assert not new.knows("0" * 64)
    with Ledger(filled(tmp_path / "other")) as other:
        assert not any(map(other.knows, heads))


def test_a_head_tells_nothing_to_who_guesses_its_entry(tmp_path: Path) -> None:
    """The same entries in two ledgers give other heads: each has a key of its own."""
    heads = set()
    for name in ("a", "b"):
        with Ledger(tmp_path / name) as ledger:
            ledger.set_cap("p", ONE)
            heads.add(ledger.head())
    assert len(heads) == 2


def test_problems_finds_a_client_exchanged_for_another(tmp_path: Path) -> None:
    """Numbers and totals agree; only the digest of the ids does not."""
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        reserve(ledger, "r", ["a", "b"])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE clients SET client = 'c' WHERE client = 'b'")
    with Ledger(path) as ledger:
        assert ledger.problems() == ["release r: its entry is not what the chain says"]


def first_format(path: Path, source: Path, *, clients: bool = False) -> Path:
    """Write what ``source`` holds as a ledger of format 1."""
    with closing(FIRST.connect(path)) as db:
        db.execute("ATTACH ? AS new", (str(source),))
        db.execute("DELETE FROM main.totals")
        for table in ("populations", "totals", "clients", "releases", "members"):
            db.execute(f"INSERT INTO main.{table} SELECT * FROM new.{table}")
        if clients:
            db.execute("""UPDATE releases SET facts = '{"outbox": "/o"}'""")
    return path


@pytest.mark.parametrize("clients", [False, True])
def test_a_ledger_of_format_1_is_upgraded_in_place(tmp_path, clients):
    """All it said, a cap from its latest release, and a chain over its entries.

    A client's own releases had their caps from tasks: they leave none behind.
    """
    source = filled(tmp_path / "source")
    path = first_format(tmp_path / "ledger.sqlite", source, clients=clients)
    entries, sums, problems = says(path)
    assert problems == []
    assert sums == says(source)[1]
    if not clients:
        assert entries == says(source)[0]
    with Ledger(path) as ledger:
        assert ledger.cap("p") == (None if clients else ONE)
        head = ledger.head()
        ledger.set_cap("p", ONE)
        reserve(ledger, "more", np.arange(5))
        assert ledger.knows(head)
        assert ledger.problems() == []


def test_an_upgrade_that_fails_changes_nothing(tmp_path, monkeypatch):
    """Stopped at any moment the file is of format 1 still, and is upgraded later."""
    path = first_format(tmp_path / "l", filled(tmp_path / "source"))

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(schema.chain, "adopt_format_1", fails)
        with pytest.raises(KeyboardInterrupt):
            Ledger(path)
    with closing(FIRST.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert says(path)[2] == []


def _upgraded(path: Path, together: Barrier) -> None:
    together.wait()
    with Ledger(path) as ledger:
        assert ledger.cap("p") == ONE
        assert ledger.problems() == []


def test_processes_together_upgrade_once(tmp_path: Path) -> None:
    """Four open a ledger of format 1 in the same moment; the chain begins once."""
    path = first_format(tmp_path / "l", filled(tmp_path / "source"))
    together = multiprocessing.get_context("fork").Barrier(4)
    crowd = [in_child(partial(_upgraded, path, together)) for _ in range(4)]
    assert [os.waitpid(child, 0)[1] for child in crowd] == [0] * 4
    with Ledger(path) as ledger:
        begun = "SELECT count(*) FROM chain WHERE event LIKE '%\"begun\"%'"
        assert ledger._db.execute(begun).fetchone() == (1,)
