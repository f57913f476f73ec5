"""The intake's file: one of an earlier format becomes one of today's, whole."""

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.intake.store import URL_VARIABLE
from curvote.messages.message import parse_message
from curvote.wire.envelope import Invitation, issue_invitations, seal_message
from curvote.wire.strict_json import canonical_json
from tests import rounds
from tests.damages import content
from tests.rounds import REPORTS, VOTES, payload
from tests.rounds import old as aged

N = 6
# As the first version wrote it: such files are out there.
FORMAT_1 = """
CREATE TABLE rounds (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (id <> ''),
  pipeline TEXT NOT NULL,
  task TEXT NOT NULL,
  digest TEXT NOT NULL,
  needed INTEGER NOT NULL CHECK (needed > 0),
  accepted_digest TEXT
) STRICT;
CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES rounds,
  key TEXT NOT NULL,
  about INTEGER,
  used INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
  row INTEGER PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES rounds,
  payload TEXT NOT NULL
) STRICT;
CREATE INDEX invitations_of ON invitations (round);
CREATE INDEX messages_of ON messages (round);
"""
FORMAT_2 = (
    FORMAT_1
    + """
ALTER TABLE messages ADD COLUMN batch INTEGER CHECK (batch > 0);
"""
)
FORMAT_3 = FORMAT_2 + "ALTER TABLE rounds ADD COLUMN seal TEXT;\n"
FORMAT_4 = (
    FORMAT_3
    + """
ALTER TABLE invitations ADD COLUMN record TEXT;
CREATE INDEX invitations_about ON invitations (round, record)
    WHERE record IS NOT NULL;
"""
)
FORMATS = {1: FORMAT_1, 2: FORMAT_2, 3: FORMAT_3, 4: FORMAT_4}
VERSIONS = pytest.mark.parametrize("version", [*FORMATS])


def old(path: Path, version: int) -> tuple[list[Invitation], str]:
    """Write an old file: reports closed, three votes in; return votes' invitations."""
    reports, votes = (
        [*map(aged, issue_invitations(task, N))] for task in (REPORTS, VOTES)
    )
    batch = ", batch" if version > 1 else ""
    sealed = ", seal" if version > 2 else ""
    record = ", record" if version > 3 else ""
    new = path.with_suffix(".new")
    with Intake(new) as intake:
        for task, invited, came in ((REPORTS, reports, N), (VOTES, votes, 3)):
            given = {"pipeline": "p", "needed": 2, "invitations": invited}
            intake.open_round(task.asks, task=task, **given)
            for k in range(came):
                intake.take(
                    seal_message(invited[k], payload(task, invited[k], k)),
                    parse_message,
                )
        digest = intake.close("report")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(
            f"""PRAGMA journal_mode = WAL;
            PRAGMA application_id = {0x43754969};
            PRAGMA user_version = {version};
            {FORMATS[version]}
            ATTACH '{new}' AS new;
            INSERT INTO rounds SELECT number, id, pipeline, task, digest, needed,
            accepted_digest{sealed} FROM new.rounds;
            INSERT INTO invitations SELECT id, round, key, about, used{record}
            FROM new.invitations;
            INSERT INTO messages SELECT row, round, payload{batch}
            FROM new.messages;"""
        )
    return votes, digest


def schema(path: Path) -> list[tuple[str, str | None]]:
    """Return the tables of a file as they were created, and its format."""
    with closing(sqlite3.connect(path)) as db:
        tables = db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name")
        return [*tables.fetchall(), *db.execute("PRAGMA user_version").fetchall()]


@VERSIONS
def test_an_old_file_goes_on(tmp_path: Path, version: int) -> None:
    """Closed rounds keep their sets, open ones go on; the file is as a fresh one."""
    path = tmp_path / "intake.sqlite"
    votes, digest = old(path, version)
    with Intake(path) as intake:
        closed, still_open = intake.rounds()
        assert (closed.batches, closed.waiting) == ((N,), 0)
        assert intake.close("report") == intake.folded("report") == digest
        (kept,) = rounds.kept(intake, "report", digest)
        sent = [payload(REPORTS, votes[0], k) for k in range(N)]
        assert sorted(map(canonical_json, kept)) == sorted(map(canonical_json, sent))
        assert (still_open.batches, still_open.waiting) == ((), 3)
        with pytest.raises(RefusedEnvelope, match="used before"):
            intake.take(seal_message(votes[0], payload(VOTES, votes[0])), parse_message)
        intake.take(seal_message(votes[3], payload(VOTES, votes[3])), parse_message)
        assert intake.fold("vote", 4)
        assert intake.round("vote").batches == (4,)
    fresh = tmp_path / "fresh.sqlite"
    Intake(fresh).__exit__()
    assert schema(path) == schema(fresh)


@VERSIONS
def test_many_may_find_the_old_file_at_once(tmp_path: Path, version: int) -> None:
    """One of them changes it; all go on."""
    path = tmp_path / "intake.sqlite"
    old(path, version)

    def accepted(_: int) -> list[int]:
        with Intake(path) as intake:
            return [each.accepted for each in intake.rounds()]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(accepted, range(8))) == [[N, 3]] * 8


@VERSIONS
def test_a_damaged_old_file_is_refused_and_kept(tmp_path: Path, version: int) -> None:
    """It is checked as the old file it is, before anything is changed."""
    path = tmp_path / "intake.sqlite"
    old(path, version)
    os.truncate(path, path.stat().st_size - 1)
    before = content(path)
    with pytest.raises(UserError, match="damaged"):
        Intake(path)
    assert content(path) == before


def test_folding(tmp_path: Path) -> None:
    """A batch has the least or more; the set's name does not depend on the batches."""
    votes, names = issue_invitations(VOTES, N), []
    sent = [seal_message(each, payload(VOTES, each, k)) for k, each in enumerate(votes)]
    for place, cuts in (("a", (1, 3, 6)), ("b", (6,))):
        with Intake(tmp_path / place) as intake:
            given = {"pipeline": "p", "needed": 1, "invitations": votes}
            intake.open_round("vote", task=VOTES, **given)
            assert intake.fold("vote", 1) is intake.folded("vote") is None
            for start, end in zip((0, *cuts), cuts, strict=False):
                for data in sent[start:end]:
                    intake.take(data, parse_message)
                earlier = intake.folded("vote")
                assert intake.fold("vote", end - start + 1) == earlier
                name = intake.fold("vote", end - start)
                assert name != earlier
                assert name == intake.folded("vote") == intake.fold("vote", 1)
                sizes = [len(batch) for batch in rounds.kept(intake, "vote", name)]
                assert sum(sizes) == end
                if earlier:
                    assert sum(map(len, rounds.kept(intake, "vote", earlier))) == start
            names.append(name)
            assert not intake.round("vote").closed
            assert intake.close("vote") == name
    assert names[0] == names[1]
    assert not list(tmp_path.glob("*-wal"))


NOWHERE = Path("/nonexistent/intake.sqlite")


def test_an_address_that_names_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong with it, its password is not said."""
    for url in ("nonsense secret-word", "postgresql://a:secret-word@127.0.0.1:1/x"):
        monkeypatch.setenv(URL_VARIABLE, url)
        with pytest.raises(UserError) as caught:
            Intake(NOWHERE)
        assert "secret-word" not in str(caught.value)


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In an interpreter that has none."""
    monkeypatch.setenv(URL_VARIABLE, "postgresql://a@127.0.0.1:1/x")
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path\n"
        "from curvote.base.errors import UserError\n"
        "from curvote.intake.box import Intake\n"
        "try: Intake(Path('x'))\n"
        "except UserError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "curvote[postgres]" in done.stdout
