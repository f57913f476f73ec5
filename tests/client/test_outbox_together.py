"""Messages of many records that are released together: each counts by itself."""

from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.ledger.account import POPULATION
from curvote.ledger.book import Ledger
from curvote.ledger.register import open_books
from curvote.ledger.session import Answer, release_messages
from curvote.wire.envelope import issue_invitations
from tests.client.test_outbox_killed import STEPS
from tests.releasing import Client, Killed, killing, refuse
from tests.rounds import REPORTS

MANY = 5


def _each(client: Client) -> list[bytes]:
    """Release a message of each of some records, all together."""
    answers = [
        Answer(client.draw, invitation, f"r{i}", 1)
        for i, invitation in enumerate(issue_invitations(REPORTS, MANY))
    ]
    with open_books(client.path, client.register) as opened:
        given = {"task": REPORTS, "books": opened, "outbox": client.outbox}
        return [path.read_bytes() for path in release_messages(answers, **given)]


@pytest.mark.parametrize(("where", "name", "after"), [step[:3] for step in STEPS])
def test_releases_together_are_settled_one_by_one(client, where, name, after):
    """Killed at the third call: each record is charged once, and sent once."""
    calls = count(1)
    whole = getattr(where, name)
    killed = killing(whole, after=after)

    def sometimes(*given: Any, **more: Any) -> Any:
        return (killed if next(calls) == 3 else whole)(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, sometimes)
        with suppress(Killed):
            _each(client)
    left = {p.read_bytes() for p in client.outbox.glob("*.json")}
    sent = _each(client)
    assert left <= set(sent)
    assert len(set(sent)) == len({*client.outbox.glob("*.json")}) == MANY
    with Ledger(client.path) as ledger:
        assert ledger.spent(POPULATION).epsilon.tolist() == [1.0] * MANY
        assert sum(entry.counts for entry in ledger.entries()) == MANY
        assert ledger.problems() == []
    assert _each(client) == sent


def test_releases_together_are_all_refused_for_one(client: Client) -> None:
    """Nothing of them is reserved, drawn or written; nor one invitation for two."""
    invited = issue_invitations(REPORTS, 3)
    answers = [Answer(client.draw, each, f"r{i}", 1) for i, each in enumerate(invited)]
    bad = replace(answers[2], draw=refuse)
    with open_books(client.path, client.register) as opened:
        given = {"task": REPORTS, "books": opened, "outbox": client.outbox}
        with pytest.raises(UserError, match="NaN"):
            release_messages([*answers[:2], bad], **given)
        with pytest.raises(UserError, match="used for another"):
            release_messages([*answers, replace(answers[0], sender="r9")], **given)
        assert opened[0].spent(POPULATION).epsilon.tolist() == []
        assert not [*client.outbox.glob("*.json")]
        assert len(release_messages(answers, **given)) == 3
