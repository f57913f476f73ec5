"""Account of a client in its ledger: name, cap, pinned server and spending.

Name, cap and server are written once, by `curvote client init` or at the first release.
None of them ever comes from a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.text import format_budget
from curvote.ledger.amounts import Amount
from curvote.ledger.book import Ledger
from curvote.ledger.cohort import ClientIds, sorted_ids

POPULATION: Final = "self"
DEFAULT_NAME: Final = "me"
DEFAULT_CAP: Final = Budget(2.0)  # the cap of whoever never named one

# Names of the ledger's settings that are written once.
_OWNER: Final = "client"
_SERVER: Final = "server"
_SENDER_NAME: Final = "called"
_RECORDS: Final = "records"


@dataclass(frozen=True)
class Account:
    """The account of a client: its name, cap, server and spending.

    ``chosen`` is false where ``cap`` is the house's and not written down yet.
    ``server`` is the fingerprint of the only server that is answered, None before the
    first. ``spent`` is its own, or the most that was about any one of its records.
    ``records`` says how its tables name their records, and ``sender_name`` under what
    name it is asked for them; None: it never was.
    """

    name: str
    cap: Budget
    chosen: bool
    server: str | None
    spent: Amount
    sender_name: str | None = None
    records: str | None = None

    @classmethod
    def from_ledger(cls, ledger: Ledger, name: str | None = None) -> Account:
        """Return the account of client ``name``, None: of the ledger's owner.

        UserError: ``name`` is not its owner, or nobody knows who that is.
        """
        if name is not None:
            (name,) = sorted_ids([name])
        settled = ledger.setting(_OWNER)
        owners = [] if settled is None else [settled]
        if name is not None or not owners:
            counted = sorted(map(str, ledger.spent(POPULATION).clients))
            owners = owners or counted
        if name is None and len(owners) > 1:
            raise UserError(
                f"the ledger {ledger.path} counts for several names; say which is"
                " yours: `curvote client init --name N`."
            )
        if name is None:
            name = owners[0] if owners else DEFAULT_NAME
        if owners and name not in owners:
            raise UserError(
                f"the ledger {ledger.path} is that of {' or '.join(map(repr, owners))},"
                f" and not of {name!r}: one person has one name, or it would be asked"
                " twice. Somebody else needs a ledger of their own: --ledger."
            )
        cap = ledger.cap(POPULATION)
        spent = ledger.most_spent(POPULATION, [name])
        chosen = cap is not None
        naming = (ledger.setting(setting) for setting in (_SENDER_NAME, _RECORDS))
        fields = name, cap or DEFAULT_CAP, chosen, ledger.setting(_SERVER)
        return cls(*fields, spent, *naming)

    def about(self, ledger: Ledger, records: ClientIds) -> Account:
        """Return the account with the largest spending of some records."""
        return replace(self, spent=ledger.most_spent(POPULATION, records))

    def write(self, ledger: Ledger) -> None:
        """Store name, cap and server; other stored values are a UserError."""
        ledger.store_setting(_OWNER, self.name)
        ledger.set_cap(POPULATION, self.cap)
        once = (_SERVER, self.server), (_SENDER_NAME, self.sender_name)
        for setting, value in (*once, (_RECORDS, self.records)):
            if value is not None:
                ledger.store_setting(setting, value)

    def has_room(self, budget: Budget) -> bool:
        """Return whether the cap allows one more release."""
        total = self.spent.plus(Amount.from_budget(budget))
        return total.within(Amount.from_budget(self.cap))

    def remaining(self, after: Budget | None = None) -> tuple[float, float]:
        """Return the remaining epsilon and delta, ``after`` one more release."""
        spent = self.spent
        if after is not None:
            spent = spent.plus(Amount.from_budget(after))
        epsilon, delta = Amount.from_budget(self.cap).minus(spent).to_floats()
        return max(epsilon, 0.0), max(delta, 0.0)


@dataclass(frozen=True)
class AccountOptions:
    """The options of `curvote client init`; None keeps a value.

    ``server`` is a fingerprint of 64 hex digits, capital or small.
    """

    name: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    server: str | None = None


def open_account(ledger: Ledger, options: AccountOptions) -> Account:
    """Set up a ledger once, and return its owner's account.

    UserError, and nothing is written: a name, cap or server other than what stands.
    """
    now = Account.from_ledger(ledger, options.name)
    cap, server = _changed_cap(now.cap, options.epsilon, options.delta), now.server
    if options.server is not None:
        server = options.server.strip().lower()
        if len(server) != 64 or set(server) - set("0123456789abcdef"):
            raise UserError(
                f"server is {options.server!r}; a fingerprint has 64 digits of 0-9 and"
                " a-f."
            )
    if now.chosen and now.cap != cap:
        raise UserError(
            f"the cap was set to {format_budget(now.cap.epsilon, now.cap.delta)}, once,"
            f" and cannot become {format_budget(cap.epsilon, cap.delta)}: `curvote"
            " client raise-cap` raises it, and nothing lowers it."
        )
    if now.server not in {None, server}:
        raise UserError(
            f"you answer server {now.server} only, once and for all; another needs a"
            " ledger of its own (--ledger), whose cap is another cap."
        )
    changed = replace(now, cap=cap, server=server, chosen=True)
    changed.write(ledger)
    return changed


def refuse_new_ids(ledger: Ledger, records: Sequence[str]) -> None:
    """Refuse records most of which are new while known ones are gone.

    Ids that another program wrote, or of another column, would give the same people a
    second budget; nobody but the owner can know that they are others.
    """
    n, known_count = len(records), ledger.count_spenders(POPULATION)
    overlapping = ledger.count_overlap(POPULATION, records)
    new, absent = n - overlapping, known_count - overlapping
    if 2 * new > n and absent and absent >= min(new, known_count / 2):
        raise UserError(
            f"{new} of {n} records are new to your ledger, while {absent} of its"
            f" {known_count} known ones are gone: if these are the same people under"
            " other ids, name them as before. Only if they are other people:"
            " --new-people. Nothing was drawn."
        )


def plan_raise(
    ledger: Ledger, epsilon: float, delta: float | None
) -> tuple[Budget, Budget]:
    """Return the current cap and the raised one.

    UserError: there is no cap yet, or the new one is not above it.
    """
    now = ledger.cap(POPULATION)
    if now is None:
        raise UserError("there is no cap to raise: `curvote client init` sets it.")
    wanted = _changed_cap(now, epsilon, delta)
    if wanted == now or wanted.epsilon < now.epsilon or wanted.delta < now.delta:
        raise UserError(
            f"the cap is {format_budget(now.epsilon, now.delta)};"
            f" {format_budget(wanted.epsilon, wanted.delta)} does not raise it."
        )
    return now, wanted


def _changed_cap(cap: Budget, epsilon: float | None, delta: float | None) -> Budget:
    return Budget(
        cap.epsilon if epsilon is None else validate.positive(cap=epsilon),
        cap.delta if delta is None else delta,
    )
