"""A year of weekly windows: nobody spends more than their own cap, whatever happens."""

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from curvote.base.errors import UserError
from curvote.cli.client.answer import AnsweringOwner, Holdings, ServerQuestion
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.ledger import places, session
from curvote.ledger.account import POPULATION, AccountOptions, open_account
from curvote.ledger.book import Ledger
from curvote.ledger.register import Register, open_books
from curvote.messages.message import parse_message
from curvote.systems.monitor.messages import TASK_SETTINGS, make_task
from curvote.wire.envelope import Invitation, issue_invitations
from curvote.wire.signing import ServerKey
from tests.releasing import Killed, killing

WEEKS, PEOPLE, ASKED, CAP = 52, 40, 10, 3
TERMS: Final = dict.fromkeys(TASK_SETTINGS) | {"question": "right", "bins": 1}
STEPS: Final[list[tuple[Any, str, bool]]] = [
    (Ledger, "reserve", True),
    (Register, "claim", True),
    (session, "seal_message", True),
    (Path, "rename", False),
    (Path, "rename", True),
    (Ledger, "confirm", False),
]


class Year:
    """A server with a real intake, people with ledgers of their own, and bad luck."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, *, forgets: bool) -> None:
        self.root, self.patch, self.forgets = root, patch, forgets
        self.key, self.luck = ServerKey.at(root / "server.key"), random.Random(7)
        self.accepted, self.outcomes = Counter[int](), Counter[str]()

    def live(self, weeks: int) -> None:
        """Ask a panel each week, which takes turns far more often than the cap."""
        pending: list[tuple[int, Path, Path]] = []
        for week in range(1, weeks + 1):
            task = replace(
                make_task(TERMS, 1.0, week), closes=f"2026-01-01T00:{week:02}"
            )
            invited = issue_invitations(task, ASKED, self.key.fingerprint)
            signed, asked = self.root / f"{week}.task.json", []
            signed.write_bytes(self.key.sign({"task": task.to_json(), "seal_to": None}))
            with Intake(self.root / "intake.sqlite") as intake:
                more: dict[str, Any] = {"pipeline": "watch", "needed": 1, "task": task}
                intake.open_round(f"watch-{week}", invitations=invited, **more)
            for place, invitation in enumerate(invited):
                person = (week * ASKED + place) % PEOPLE
                asked.append((person, signed, self.keep(invitation)))
            late = [each for each in asked if self.luck.random() < 0.2]
            for each in [*pending, *(each for each in asked if each not in late)]:
                self.answer(*each)
            pending = late

    def keep(self, invitation: Invitation) -> Path:
        """Write an invitation, as a person has it."""
        path = self.root / f"{invitation.id}.invitation.json"
        path.write_text(json.dumps(invitation.to_json()))
        return path

    def answer(self, person: int, task: Path, invitation: Path) -> None:
        """Let one person answer, die of it now and then, try again, and send twice."""
        home = self.root / f"person-{person}"
        self.patch.setenv("XDG_STATE_HOME", str(home))
        if self.forgets:
            shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            with open_books(places.ledger_path(), places.register_path()) as (book, _):
                open_account(book, AccountOptions(epsilon=CAP, server=None))
        holdings = Holdings(
            *(invitation, None, None, None, None, None, None, False),
            *("yes", self.luck.choice(["yes", "no"])),
        )
        outbox = places.outbox_path()
        owner = AnsweringOwner(places.ledger_path(), outbox, None, anew=False, yes=True)
        question = ServerQuestion.from_files("answer", task, holdings)
        if self.luck.random() < 0.3:
            where, name, after = self.luck.choice(STEPS)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(where, name, killing(getattr(where, name), after=after))
                try:
                    owner.answer(question, holdings)
                except Killed:
                    self.outcomes["killed"] += 1
                except UserError:  # no room: it died of nothing
                    pass
            if name == "confirm" and self.luck.random() < 0.5:  # carried away unsent
                shutil.rmtree(outbox, ignore_errors=True)
        for _ in range(self.luck.choice([1, 2])):
            try:
                data = Path(owner.answer(question, holdings)["envelope"]).read_bytes()
                with Intake(self.root / "intake.sqlite") as intake:
                    intake.take(data, parse_message)
                self.accepted[person] += 1
            except RefusedEnvelope as refused:
                self.outcomes[refused.reason] += 1
            except UserError as error:
                known = "no room", "nobody knows whether", "not there any more"
                (words,) = (text for text in known if text in str(error))
                self.outcomes[words] += 1

    def check(self) -> None:
        """Nobody is above the cap, by the intake's count and by their own ledgers."""
        assert max(self.accepted.values()) <= CAP, "above the cap"
        for person in range(PEOPLE):
            path = self.root / f"person-{person}" / "curvote" / "ledger.sqlite"
            with Ledger(path) as ledger:
                (spent,) = ledger.spent(POPULATION).epsilon
            assert self.accepted[person] <= spent <= CAP


@pytest.mark.parametrize("forgets", [False, True], ids=["ledgers", "forgetful"])
def test_a_year_is_within_every_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    """Kills in the middle, late and repeated answers, 520 questions of 120 allowed.

    The broken twin, whose clients forget what they spent, is caught by the same count.
    """
    year = Year(tmp_path, monkeypatch, forgets=forgets)
    year.live(20 if forgets else WEEKS)
    if forgets:
        with pytest.raises(AssertionError, match="above the cap"):
            year.check()
        return
    year.check()
    assert sum(year.accepted.values()) > 0.9 * CAP * PEOPLE
    reasons = {"killed", "used invitation", "no room", "nobody knows whether"}
    assert reasons <= {*year.outcomes}, year.outcomes
