"""A client's own caps: set once, raised by a command, and numbers that are numbers."""

from dataclasses import replace

import pytest

from curvote.base.privacy import Budget
from curvote.ledger import places
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.wire import signing
from curvote.wire.signing import ServerKey
from curvote.wire.strict_json import canonical_json
from tests.invited import Home, printed, refused, run
from tests.rounds import REPORTS

NUMBERS = ["1" + "0" * 400, "1e400", "-1e400", "NaN", "Infinity", "true", '"1"', "[]"]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("key", ["epsilon", "params", "number"])
def test_a_number_that_is_none_is_a_user_error(home, number, key):
    """In a task whose signature is good: exit 2 and no traceback."""
    asked = REPORTS.to_json()
    value = "@" if key != "params" else {"delta": "@"}
    document = canonical_json({"task": asked | {key: value}, "seal_to": None})
    text = document.replace(b'"@"', number.encode())
    header = signing._task_header(home.server._public)
    (home.root / "task.json").write_bytes(
        signing.sign_payload(header, text, home.server._key.sign)
    )
    home.refusal("report")


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "nan", "inf", "0", "-1"])
def test_a_cap_is_a_finite_number_above_zero(home: Home, number: str) -> None:
    """Given to init or to raise-cap, and nothing is written."""
    assert "cap is" in refused("init", "--cap", number)
    if number != "0":
        assert "delta is" in refused("init", "--cap-delta", number)
    run("init")
    assert "cap" in refused("raise-cap", "--cap", number)
    assert run("init").stdout.count("epsilon 2, delta 0") == 1


def test_a_ledger_is_set_up_once(home: Home, other: ServerKey) -> None:
    """The same again is no error; anything else is refused, and raise-cap is named."""
    mine = ["--name", "Ann", "--cap", "1.5", "--server", other.fingerprint]
    first = run("init", *mine)
    for words in ("Ann", "epsilon 1.5, delta 0", other.fingerprint):
        assert words in first.stdout
    for same in (mine, [], ["--server", other.fingerprint.upper()]):
        assert run("init", *same).stdout == first.stdout
    for less in ("1", "3"):
        assert "raise-cap" in refused("init", "--cap", less)
    assert "raise-cap" in refused("init", "--cap-delta", "1e-5")
    assert "one person has one name" in refused("init", "--name", "ann")
    assert "once and for all" in refused("init", "--server", home.server.fingerprint)
    assert "64 digits" in refused("init", "--server", "abc")
    assert run("init").stdout == first.stdout


def test_a_cap_is_raised_by_a_command_of_its_own(home: Home) -> None:
    """It says from what to what, and the chain of the ledger has a link for it."""
    assert "curvote client init" in refused("raise-cap", "--cap", "3")
    run("init")
    with Ledger(places.ledger_path()) as ledger:
        before = ledger.head()
    for cap in ("2", "1"):
        assert "does not raise it" in refused("raise-cap", "--cap", cap)
    done = run("raise-cap", "--cap", "3", "--cap-delta", "1e-6", "--yes")
    assert "from epsilon 2, delta 0: whoever reads it" in done.stderr
    assert "factor of 7.39" in done.stderr
    assert "to   epsilon 3, delta 1e-06" in done.stderr
    assert "factor of 20.1" in done.stderr
    with Ledger(places.ledger_path()) as ledger:
        assert ledger.head() != before
        assert ledger.knows(before)
        assert ledger.cap(POPULATION) == Budget(3.0, 1e-6)
    home.invite(replace(REPORTS, epsilon=3.0))
    assert printed(home.client("report", "--json"))["left"] == 0
