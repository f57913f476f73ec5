"""The intake in PostgreSQL: as in a file, and shared by several services."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.intake import group as intake_group
from curvote.intake import store as intake_postgres
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.intake.store import URL_VARIABLE, store_exists
from curvote.messages.message import message_of, parse_message, parse_messages
from curvote.systems.labels.messages import Task
from curvote.wire.envelope import (
    Invitation,
    issue_invitations,
    issue_record_invitations,
    new_private_key,
    public_key,
    seal_message,
)
from curvote.wire.key_tree import InvitationTree
from curvote.wire.receipt import ReceiptKey
from tests import postgres, rounds
from tests.envelope_service import answered, invite, project, serving
from tests.processes import until
from tests.rounds import REPORTS, payload
from tests.server.test_intake_group import taking
from tests.server.test_intake_sums import answers, direct_task, filled, state
from tests.vectors.envelope import KEY

N = 40
NOWHERE = Path("/nonexistent/intake.sqlite")
WHY = postgres.missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=str(WHY))


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """Run one server for all tests."""
    with postgres.server() as running:
        yield running


@pytest.fixture
def url(server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an empty database of its own, which the environment names."""
    name = f"d{next(NAMES)}"
    execute(server.url, f"CREATE DATABASE {name}")
    own = f"postgresql://postgres:secret-word@127.0.0.1:{server.port}/{name}"
    monkeypatch.setenv(URL_VARIABLE, own)
    return own


NAMES = count()


def execute(url: str, *statements: str) -> list[Any]:
    """Run statements as whoever owns the database; return what the last one finds."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        for each in statements:
            found = db.execute(each)
        return found.fetchall() if found.description else []


def test_a_round_is_what_it_is_in_a_file(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Same outcomes, same batches, same digest; open, folded, closed."""
    key, path = new_private_key(), tmp_path / "intake.sqlite"
    invited = invite(NOWHERE, N, key)
    assert store_exists(NOWHERE)
    context = gone_through(NOWHERE, invited, public_key(key))
    monkeypatch.delenv(URL_VARIABLE)
    with Intake(path) as intake:
        given = {"pipeline": "far", "needed": 1, "seal": key}
        intake.open_round("one-1", task=REPORTS, invitations=invited, **given)
    assert gone_through(path, invited, public_key(key)) == context


def take_in_turn(sent: list[bytes], start: int) -> list[str]:
    """Give every envelope to the intake, four at a time; return why each is refused."""
    reasons = []
    with Intake(NOWHERE) as intake:
        for k in range(start, start + len(sent), 4):
            batch = [sent[(k + j) % len(sent)] for j in range(4)]
            refusals = intake.take_batch(batch, parse_messages)
            reasons += ["" if r is None else r.reason for r in refusals]
    return reasons


def test_three_processes_add_to_one_state(url: str, tmp_path: Path) -> None:
    """Each under a number of its own; merged at the close they are one file's bytes.

    They are processes, as services are: a connection of PostgreSQL is not shared.
    """
    task = direct_task("joint")
    tree = InvitationTree.grow(task, N)
    sent = [seal_message(i, m) for i, m in zip(tree, answers(task, N), strict=True)]
    keep = str(message_of(task).sum_form(task))
    about = {"pipeline": "far", "needed": 1, "invitations": tree, "keep": keep}
    with Intake(NOWHERE) as intake:
        intake.open_round("one-1", task=task, **about)
    with ProcessPoolExecutor(3, get_context("spawn")) as pool:
        parts = pool.map(partial(take_in_turn, sent), (0, 13, 26))
        reasons = [reason for part in parts for reason in part]
    assert Counter(reasons) == {"": N, "used invitation": 2 * N}
    with Intake(NOWHERE) as intake:
        (shared,) = intake.batches("one-1", intake.close("one-1")).values()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(URL_VARIABLE)
        with filled(tmp_path / "alone", task, tree, sent) as alone:
            assert shared.to_text() == state(alone)


def test_tables_of_the_first_format_go_on(url: str) -> None:
    """They are given what is new, and keep their rows."""
    invited = invite(NOWHERE, 3)
    execute(
        url,
        "DROP TABLE sums, marks, leaves",
        "ALTER TABLE rounds DROP COLUMN keep, DROP COLUMN tree, DROP COLUMN merged,"
        " DROP COLUMN receipts",
        "UPDATE curvote_intake SET format = 1",
    )
    with Intake(NOWHERE) as intake:
        for data in answered(invited):
            intake.take(data, parse_message)
        assert intake.round("one-1").keep is None
        assert intake.round("one-1").accepted == 3


def test_a_shared_database_keeps_leaves_as_a_file_does(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Same receipts and tree, rewritten with the other rows."""
    key, salts, trees = ReceiptKey.of_round(KEY, REPORTS.digest()), [b"s" * 32] * 5, []
    invited = issue_invitations(REPORTS, 5)
    sent = answered(invited)
    about = {"pipeline": "far", "needed": 1, "invitations": invited, "receipts": key}
    for _ in range(2):
        with Intake(tmp_path / "intake.sqlite") as intake:
            intake.open_round("one-1", task=REPORTS, **about)
            assert not any(intake.take_batch(sent, parse_messages, salts))
            intake.tidy()
            assert None not in intake.receipts(sent, salts)
            intake.close("one-1")
            trees.append(intake.roots("far"))
        monkeypatch.delenv(URL_VARIABLE, raising=False)
    assert url
    assert trees[0] == trees[1]
    assert trees[0][0][2] == 5


def gone_through(path: Path, invited: list[Invitation], to: str) -> list[Any]:
    """Fill a round, fold it in twice, close it; return all that it tells."""
    sent = [seal_message(i, payload(REPORTS, i, k), to) for k, i in enumerate(invited)]
    odd = [b"nothing", *answered(invited[:1]), sent[0], sent[0][:-9]]
    with Intake(path) as intake:
        told = intake.take_batch([*odd, *sent[:20]], parse_messages)
        first = intake.fold("one-1", 5)
        intake.take_batch(sent[20:30], parse_messages)
        assert intake.fold("one-1", 15) == first
        last = intake.close("one-1")
        assert intake.round("one-1").batches == (20, 10)
        assert [*map(len, rounds.kept(intake, "one-1", last))] == [20, 10]
        assert [*map(len, rounds.kept(intake, "one-1", first))] == [20]
        assert intake.seal("one-1") is None
        with pytest.raises(RefusedEnvelope, match="no key of an open round"):
            intake.take(sent[31], parse_message)
        with pytest.raises(UserError, match="Did you mean 'one-1'"):
            intake.close("one-2")
    return [first, last, [each and (each.reason, str(each)) for each in told]]


def test_two_services_accept_each_envelope_once(url: str, tmp_path: Path) -> None:
    """Every envelope to both, at the same time, over HTTP."""
    sent = answered(invite(NOWHERE, N))
    place = project(tmp_path / "p")
    with (
        serving(place) as one,
        serving(place) as two,
        ThreadPoolExecutor(8) as pool,
    ):
        both = [pool.submit(each.send, data) for data in sent for each in (one, two)]
        statuses = [each.result().status for each in both]
        assert sorted(statuses) == [200] * N + [201] * N
        assert (one.end(), two.end()) == (0, 0)
        assert "secret-word" not in one.log.read_text()
    with Intake(NOWHERE) as intake:
        assert intake.round("one-1").accepted == N
    assert not place.intake.exists()


def test_many_writers_wait_for_each_other_and_never_for_ever(url: str) -> None:
    """The same envelopes in any order, while rounds are folded: one order of locks."""
    sent = answered(invite(NOWHERE, N))

    def take(turn: int) -> int:
        with Intake(NOWHERE) as intake:
            mine = sent[::-1] if turn % 2 else sent
            parts = [mine[k : k + 9] for k in range(0, N, 9)]
            told = [
                each for p in parts for each in intake.take_batch(p, parse_messages)
            ]
            intake.fold("one-1", 3)
            return told.count(None)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, range(4))) == N


def test_a_round_that_two_open_at_once_is_opened_once(url: str) -> None:
    """The other finds it there, or is told to run again."""
    invited = issue_invitations(REPORTS, N)

    def begin(_: int) -> str:
        with Intake(NOWHERE) as intake:
            given = {"pipeline": "far", "needed": 1, "invitations": invited}
            try:
                intake.open_round("one-1", task=REPORTS, **given)
            except UserError as error:
                return str(error)[-40:]
            return "opened"

    with ThreadPoolExecutor(4) as pool:
        told = {*pool.map(begin, range(4))}
    assert "opened" in told
    assert all("run again" in each for each in told - {"opened"})
    with Intake(NOWHERE) as intake:
        assert intake.round("one-1").issued == N


def test_no_row_tells_with_which_it_came(url: str) -> None:
    """Once whoever took messages in has left: one transaction wrote all rows anew."""
    sent = answered(invite(NOWHERE, N))
    tables = ("invitations", "messages")
    with Intake(NOWHERE) as intake:
        for data in sent[:10]:
            intake.take(data, parse_message)
        for table in tables:  # until then each message shares a mark with its own
            rows = execute(url, f"SELECT count(DISTINCT xmin::text) FROM {table}")
            assert rows[0][0] >= 10
    marks = {execute(url, f"SELECT DISTINCT xmin::text FROM {t}")[0] for t in tables}
    assert len(marks) == 1
    for table in tables:
        found = execute(url, f"SELECT * FROM {table} ORDER BY ctid")
        assert found == sorted(found, key=lambda row: row[0])
        assert execute(url, f"SELECT DISTINCT xmin::text FROM {table}")[1:] == []
    columns = execute(
        url,
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_name = 'messages'",
    )
    assert {name for (name,) in columns} == {"row", "round", "payload", "batch"}


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["UPDATE curvote_intake SET format = 9"], "format 9, this one reads 3"),
        (["DROP TABLE messages"], "other tables"),
        (["ALTER TABLE rounds DROP COLUMN seal"], "other tables"),
        (["DROP TABLE curvote_intake"], "other tables"),
        (["UPDATE rounds SET task = '{'"], "damaged"),
    ],
)
def test_what_is_no_intake_is_refused(
    url: str, statements: list[str], said: str
) -> None:
    """Newer, cut or foreign tables: never filled, never replaced."""
    invite(NOWHERE, 2)
    execute(url, *statements)
    with pytest.raises(UserError, match=said) as caught:
        opened_and_used()
    assert "secret-word" not in str(caught.value)


def opened_and_used() -> None:
    """Do what everybody does first."""
    with Intake(NOWHERE) as intake:
        intake.rounds()
        intake.take(b"nothing", parse_message)


@pytest.mark.parametrize(
    "setting",
    [
        "log_statement = 'all'",
        "log_duration = 'on'",
        "log_min_duration_statement = '250ms'",
        "log_min_duration_sample = '0'",
        "log_transaction_sample_rate = '0.5'",
    ],
)
def test_a_server_that_keeps_times_is_refused(
    server: postgres.Server, url: str, setting: str
) -> None:
    """Statements with their values in the server's log, all or some, or their times."""
    name = url.rpartition("/")[2]
    execute(server.url, f"ALTER DATABASE {name} SET {setting}")
    with pytest.raises(UserError, match=setting.replace("'", "")):
        Intake(NOWHERE)


def test_what_its_server_does_by_default_makes_no_difference(
    server: postgres.Server, url: str
) -> None:
    """An answer waits for the disk; nobody reads what was there before a rewrite."""
    name = url.rpartition("/")[2]
    wanted = {
        "synchronous_commit": ("off", "on"),
        "default_transaction_isolation": ("repeatable read", "read committed"),
    }
    for setting, (odd, _) in wanted.items():
        execute(server.url, f"ALTER DATABASE {name} SET {setting} = '{odd}'")
    with Intake(NOWHERE) as intake:
        for setting, (_, own) in wanted.items():
            assert intake._base.rows(f"SHOW {setting}") == [(own,)]


def test_no_text_of_a_client_spoils_a_transaction(url: str) -> None:
    """The name of a record that no database can hold, beside good envelopes."""
    task = Task(("no", "yes"), 1.0)
    odd, fine = issue_record_invitations(task, ["p-1", "p-2"], "0" * 64)
    drawn = task.noise().randomize(np.zeros(1, dtype=np.int64), SeededEntropy(0))
    code = drawn[0].tolist()
    sent = [
        seal_message(each, {"record": name, "code": code})
        for each, name in ((odd, "p\0"), (fine, fine.record))
    ]
    with Intake(NOWHERE) as intake:
        given = {"pipeline": "far", "needed": 1, "invitations": [odd, fine]}
        intake.open_round("one-1", task=task, **given)
        first, second = intake.take_batch(sent, parse_messages)
    assert (first.reason, second) == ("impossible message", None)


def test_a_database_that_goes_away_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half way: who waits is told so; when it is back the same envelopes come in."""
    monkeypatch.setattr(intake_group, "PROBE_SECONDS", 0.1)
    with postgres.server() as own:
        monkeypatch.setenv(URL_VARIABLE, own.url)
        sent = answered(invite(NOWHERE, N))
        with taking(NOWHERE) as group:
            assert group.put(sent[:10]).result(30) == [None] * 10
            own.stop()
            with pytest.raises(intake_group.IntakeUnavailable):
                group.put(sent).result(30)
            assert "cannot be reached" in group.problem
            own.start()
            assert until(lambda: not group.problem, 60)
            told = group.put(sent).result(30)
        assert [each and each.reason for each in told] == (
            ["used invitation"] * 10 + [None] * (N - 10)
        )


def test_one_who_keeps_rows_for_long_is_not_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the busy time: who is to be waited for; the envelope is good later."""
    import psycopg

    monkeypatch.setattr(intake_postgres, "BUSY_SECONDS", 1)
    (data, *_) = answered(invite(NOWHERE, 2))
    with Intake(NOWHERE) as intake:
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM rounds FOR UPDATE")
            with pytest.raises(UserError, match="others have kept it"):
                intake.take(data, parse_message)
        intake.take(data, parse_message)


def test_a_refused_password_is_said_by_its_variable(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words, not as a server that is away; neither password nor user is named."""
    import psycopg

    def refused(*_: object, **__: object) -> None:
        raise psycopg.OperationalError(
            'connection failed: FATAL:  password authentication failed for user "me"'
        )

    monkeypatch.setattr(psycopg, "connect", refused)
    with pytest.raises(UserError, match="the password that CURVOTE_INTAKE_URL") as told:
        Intake(NOWHERE)
    assert "secret-word" not in str(told.value)
