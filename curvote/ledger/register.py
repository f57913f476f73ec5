"""Register of a user's answered invitations, each once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from curvote.base.durable import DurableFile
from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from curvote.ledger.chain import utc_now
from curvote.ledger.queries import DurableBook

# `attempt` is a random name of the one try that answered; `chain` names the ledger and
# its copies, `head` is its newest link then, `ledger` its path. A row is the right to
# draw: two processes cannot both insert it.
_SCHEMA: Final = """
CREATE TABLE answers (
  number INTEGER PRIMARY KEY,
  invitation TEXT NOT NULL UNIQUE CHECK (invitation <> ''),
  attempt TEXT NOT NULL UNIQUE CHECK (attempt <> ''),
  ledger TEXT NOT NULL CHECK (ledger <> ''),
  chain TEXT NOT NULL,
  head TEXT NOT NULL,
  entered TEXT NOT NULL
) STRICT;
"""

REGISTER: Final = DurableFile(
    kind="register",
    record="which invitations were answered, and from which ledger",
    application=0x43755267,  # "CuRg"
    version=1,
    schema=_SCHEMA,
)


class Register(DurableBook):
    """The register in the SQLite file ``path``, created if there is none.

    Any number of processes may use one file. A file that is damaged, foreign or cannot
    be written is a UserError and stays as it is: nothing is released without it.
    """

    FILE = REGISTER

    def check_place(self, ledger: Path) -> None:
        """Refuse a new ledger at a path from which was answered before."""
        newest = self._newest_answer("ledger", str(ledger))
        if newest and not ledger.exists():
            raise UserError(
                f"the ledger {ledger} is gone; on {newest[1]} an invitation was"
                " answered from it. Put it back, or its latest backup: only it knows"
                " what was released."
            )

    def check_ledger(self, ledger: Ledger) -> None:
        """Refuse a ledger that lacks a known answer; import its own answers."""
        self._refuse_older_copy(ledger)
        answered = (entry for entry in ledger.entries() if entry.counts)
        pairs = [
            (str(e.facts["invitation"]), str(e.facts.get("attempt", e.release)))
            for e in answered
            if "invitation" in e.facts
        ]
        with self._transaction("IMMEDIATE"):
            self._insert_answers(pairs, ledger)

    def _refuse_older_copy(self, ledger: Ledger) -> None:
        """Refuse a ledger that lacks the newest answer of its path or chain.

        The second recognises an older copy wherever it stands.
        """
        place = self._newest_answer("ledger", str(ledger.path.resolve()))
        for newest in (place, self._newest_answer("chain", ledger.origin())):
            if newest and not ledger.knows(newest[0]):
                raise UserError(
                    f"the ledger {ledger.path} does not know what was answered from it"
                    f" on {newest[1]}: it is an older copy, or another one. Put the"
                    " newest in its place. Nothing was drawn."
                )

    def knows(self, invitation: str) -> bool:
        """Return whether an ``invitation`` was answered, from any ledger."""
        query = "SELECT 1 FROM answers WHERE invitation = ?"
        return bool(self._query_rows(query, invitation))

    def refuse_answered(self, invitation: str, attempt: str) -> None:
        """Refuse an ``invitation`` that another ``attempt`` answered, from any ledger.

        Its own may stand there already: another process took it in from the ledger.
        """
        rows = self._query_rows(
            "SELECT ledger, entered FROM answers WHERE invitation = ? AND attempt <> ?",
            *(invitation, attempt),
        )
        for place, entered in rows:
            raise UserError(
                f"this invitation was used for another release: on {entered} it was"
                f" answered from the ledger {place}. A second ledger cannot answer it"
                " again. Nothing was drawn."
            )

    def claim(self, invitation: str, attempt: str, ledger: Ledger) -> None:
        """Claim an ``invitation`` before its noise is drawn."""
        with self._transaction("IMMEDIATE"):  # what was checked before may have changed
            self._refuse_older_copy(ledger)
            self.refuse_answered(invitation, attempt)
            self._insert_answers([(invitation, attempt)], ledger)

    def withdraw(self, attempt: str) -> None:
        """Withdraw the claim of an ``attempt`` that was never published."""
        with self._transaction("IMMEDIATE"):
            self._db.execute("DELETE FROM answers WHERE attempt = ?", (attempt,))

    def _insert_answers(self, pairs: Iterable[tuple[str, str]], ledger: Ledger) -> None:
        place = str(ledger.path.resolve())
        rest = place, ledger.origin(), ledger.head(), utc_now()
        self._db.executemany(
            "INSERT OR IGNORE INTO answers VALUES (NULL, ?, ?, ?, ?, ?, ?)",
            ((*pair, *rest) for pair in pairs),
        )

    def _newest_answer(
        self, column: Literal["ledger", "chain"], value: str
    ) -> tuple[str, str] | None:
        """Return the ledger's head at its newest answer, and its time."""
        rows = self._query_rows(
            f"SELECT head, entered FROM answers WHERE {column} = ?"  # noqa: S608 - ours
            " ORDER BY number DESC LIMIT 1",
            value,
        )
        return rows[0] if rows else None


@contextmanager
def open_books(ledger: Path, register: Path) -> Iterator[tuple[Ledger, Register]]:
    """Open a client's ledger together with the user's register.

    UserError: the ledger has forgotten what was answered from it.
    """
    with Register(register) as opened_register:
        opened_register.check_place(ledger)
        with Ledger(ledger) as opened_ledger:
            opened_register.check_ledger(opened_ledger)
            yield opened_ledger, opened_register
