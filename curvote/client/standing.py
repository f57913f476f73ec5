"""What a client's ledger says about its owner: name, cap, server, what is spent.

Name, cap and server are written once, by `curvote client init` or at the first release.
None of them ever comes from a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from curvote import validate
from curvote.client.ledger import Ledger
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_cohort import Clients, names
from curvote.client.words import said
from curvote.errors import UserError
from curvote.privacy import Budget

POPULATION: Final = "self"
NAME: Final = "me"
HOUSE: Final = Budget(2.0)  # the cap of whoever never named one

# Names of the ledger's settings that are written once.
_OWNER: Final = "client"
_SERVER: Final = "server"
_CALLED: Final = "called"
_RECORDS: Final = "records"


@dataclass(frozen=True)
class Standing:
    """Where a client stands: its name, cap and server, and what it has spent.

    ``chosen`` is false where ``cap`` is the house's and not written down yet.
    ``server`` is the fingerprint of the only server that is answered, None before the
    first. ``spent`` is its own, or the most that was about any one of its records.
    ``records`` says how its tables name their records, and ``called`` under what name
    it is asked for them; None: it never was.
    """

    name: str
    cap: Budget
    chosen: bool
    server: str | None
    spent: Amount
    called: str | None = None
    records: str | None = None

    @classmethod
    def of(cls, ledger: Ledger, name: str | None = None) -> Standing:
        """Read it from the ledger of client ``name``, None: its owner; write nothing.

        UserError: ``name`` is not its owner, or nobody knows who that is.
        """
        name = _owner(ledger) if name is None else _named(ledger, name)
        cap = ledger.cap(POPULATION)
        spent = ledger.most_spent(POPULATION, [name])
        chosen = cap is not None
        known = (ledger.setting(each) for each in (_CALLED, _RECORDS))
        own = name, cap or HOUSE, chosen, ledger.setting(_SERVER)
        return cls(*own, spent, *known)

    def about(self, ledger: Ledger, records: Clients) -> Standing:
        """Return where the records with these ids stand."""
        return replace(self, spent=ledger.most_spent(POPULATION, records))

    def write(self, ledger: Ledger) -> None:
        """Write name, cap and server down for ever; UserError: others stand there."""
        ledger.settle_once(_OWNER, self.name)
        ledger.set_up(POPULATION, self.cap)
        once = {_SERVER: self.server, _CALLED: self.called, _RECORDS: self.records}
        for setting, value in once.items():
            if value is not None:
                ledger.settle_once(setting, value)

    def has_room(self, budget: Budget) -> bool:
        """Say whether the cap holds one more release."""
        return self.spent.plus(Amount.of(budget)).within(Amount.of(self.cap))

    def left(self, after: Budget | None = None) -> tuple[float, float]:
        """Return the epsilon and delta that are left, ``after`` one more release."""
        gone = self.spent if after is None else self.spent.plus(Amount.of(after))
        epsilon, delta = Amount.of(self.cap).minus(gone).floats()
        return max(epsilon, 0.0), max(delta, 0.0)


@dataclass(frozen=True)
class Wanted:
    """What `curvote client init` was given; None: as it stands, or as the house has it.

    ``server`` is a fingerprint of 64 hex digits, capital or small.
    """

    name: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    server: str | None = None


def begin(ledger: Ledger, wanted: Wanted) -> Standing:
    """Set a ledger up, once, and return where its owner stands.

    UserError, and nothing is written: a name, cap or server other than what stands.
    """
    now = Standing.of(ledger, wanted.name)
    then = replace(
        now,
        cap=_changed(now.cap, wanted.epsilon, wanted.delta),
        server=_fingerprint(wanted.server) or now.server,
        chosen=True,
    )
    _refuse_change(now, then)
    then.write(ledger)
    return then


def refuse_strangers(ledger: Ledger, records: Sequence[str]) -> None:
    """Refuse records most of which are new while known ones are gone: UserError.

    Ids that another program wrote, or of another column, would give the same people a
    second budget; nobody but the owner can know that they are others.
    """
    n, known = len(records), ledger.n_spent(POPULATION)
    there = ledger.overlap(POPULATION, records)
    new, gone = n - there, known - there
    if 2 * new > n and gone and gone >= min(new, known / 2):
        raise UserError(
            f"{new} of {n} records are new to your ledger, while {gone} of its {known}"
            " known ones are gone: if these are the same people under other ids, name"
            " them as before. Only if they are other people: --new-people. Nothing was"
            " drawn."
        )


def raised(
    ledger: Ledger, epsilon: float, delta: float | None
) -> tuple[Budget, Budget]:
    """Return the cap that holds and the one to come; None: delta stays.

    UserError: there is no cap yet, or the new one is not above it.
    """
    now = ledger.cap(POPULATION)
    if now is None:
        raise UserError("there is no cap to raise: `curvote client init` sets it.")
    wanted = _changed(now, epsilon, delta)
    if wanted == now or wanted.epsilon < now.epsilon or wanted.delta < now.delta:
        raise UserError(
            f"the cap is {said(now.epsilon, now.delta)};"
            f" {said(wanted.epsilon, wanted.delta)} does not raise it."
        )
    return now, wanted


def _changed(cap: Budget, epsilon: float | None, delta: float | None) -> Budget:
    return Budget(
        cap.epsilon if epsilon is None else validate.positive(cap=epsilon),
        cap.delta if delta is None else delta,
    )


def _fingerprint(given: str | None) -> str | None:
    if given is None:
        return None
    found = given.strip().lower()
    if len(found) != 64 or set(found) - set("0123456789abcdef"):
        raise UserError(
            f"server is {given!r}; a fingerprint has 64 digits of 0-9 and a-f."
        )
    return found


def _refuse_change(now: Standing, wanted: Standing) -> None:
    if now.chosen and now.cap != wanted.cap:
        raise UserError(
            f"the cap was set to {said(now.cap.epsilon, now.cap.delta)}, once, and"
            f" cannot become {said(wanted.cap.epsilon, wanted.cap.delta)}: `curvote"
            " client raise-cap` raises it, and nothing lowers it."
        )
    if now.server not in {None, wanted.server}:
        raise UserError(
            f"you answer server {now.server} only, once and for all; another needs a"
            " ledger of its own (--ledger), whose cap is another cap."
        )


def _owner(ledger: Ledger) -> str:
    """Return whose ledger it is: an earlier curvote asked for the name each time."""
    settled = ledger.setting(_OWNER)
    if settled is not None:
        return settled
    known = _counted(ledger)
    if len(known) > 1:
        raise UserError(
            f"the ledger {ledger.path} counts for several names; say which is yours:"
            " `curvote client init --name N`."
        )
    return known[0] if known else NAME


def _named(ledger: Ledger, name: str) -> str:
    """Return the name as the ledger writes it; another than its owner's: UserError."""
    (name,) = names([name])
    settled, known = ledger.setting(_OWNER), _counted(ledger)
    mine = [settled] if settled is not None else known
    if mine and name not in mine:
        raise UserError(
            f"the ledger {ledger.path} is that of {' or '.join(map(repr, mine))}, and"
            f" not of {name!r}: one person has one name, or it would be asked twice."
            " Somebody else needs a ledger of their own: --ledger."
        )
    return name


def _counted(ledger: Ledger) -> list[str]:
    return sorted(map(str, ledger.spent(POPULATION).clients))
