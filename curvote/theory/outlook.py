"""Outlook of protocol ``auto``: what it takes and what to expect of each signal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from curvote import validate
from curvote.privacy import Budget
from curvote.protocols.choice import Choice, choose_protocol
from curvote.protocols.direct.arms import ARM_PROTOCOLS
from curvote.protocols.message import messages_of
from curvote.protocols.outside import ShuffledGuarantee, crowd_size
from curvote.theory.direct import Expectation, expect_direct
from curvote.theory.hard import error_range
from curvote.theory.lies import NO_LIES, Lies, hidden_signal_error
from curvote.theory.signals import Signal, strengths
from curvote.theory.volunteers import Offer, make_offer
from curvote.theory.voted import DIRECTIONS, expect_votes

NO_GAIN = 0.01  # over the majority: not worth a budget
Expected = dict[str, Expectation]  # by the name of a signal
Reach = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class LiarEffect:
    """Expectations of `votes` and `direct`, honest and with liars at their worse.

    ``direct`` has the arm that it would have without liars. ``hidden_signal_error``:
    signals whose best rule errs so often or more can be hidden from every protocol.
    """

    votes: Expected
    votes_lied: Expected
    direct: Expected
    direct_lied: Expected
    hidden: float

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("votes", "votes_lied", "direct", "direct_lied")
        values = {
            name: {
                key: asdict(expectation)
                for key, expectation in getattr(self, name).items()
            }
            for name in names
        }
        return values | {"hidden": self.hidden}


@dataclass(frozen=True)
class OutlookRow:
    """One epsilon: the rule's choice, and the error of `direct` for each signal.

    ``error_range`` is what the error of a run lies between, by the name of a signal,
    where records are not normal (`curvote.theory.hard`). ``outside`` is what an
    outsider sees of a client who trusts the shuffler, ``lied`` what liars do where some
    are expected.
    """

    epsilon: float
    choice: Choice
    expected: Expected
    reach: Reach
    majority: float
    outside: ShuffledGuarantee | None
    lied: LiarEffect | None

    def gains_nothing(self, name: str) -> bool:
        """Return whether the majority does as well with this signal, to a point."""
        return self.majority - self.expected[name].error < NO_GAIN

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        direct = {
            name: asdict(expectation)
            | dict(zip(("low", "high"), self.reach[name], strict=True))
            | {"nothing_gained": self.gains_nothing(name)}
            for name, expectation in self.expected.items()
        }
        further = {
            "outside": asdict(self.outside) if self.outside else None,
            "lied": self.lied.document() if self.lied else None,
        }
        fields = {"epsilon": self.epsilon} | asdict(self.choice) | {"direct": direct}
        return fields | further


@dataclass(frozen=True)
class Outlook:
    """A row for each epsilon, beside the majority's error and the best rules'.

    Parameters
    ----------
    clients, features : int
        How many, and the numbers of a record.
    positive : float
        The share of class +1.
    signals : dict of Signal
        For which it is worked out.
    rows : list of Row
        One for each epsilon.
    liars : float
        The share of clients who lie.
    volunteers : Offer or None, default=None
        What people beside them would bring.

    Examples
    --------
    >>> from curvote.theory import look_ahead
    >>> found = look_ahead(200, 2, [2.0])
    >>> print(found.majority, [row.choice.arm for row in found.rows])
    0.5 ['mean']
    """

    clients: int
    features: int
    positive: float
    signals: dict[str, Signal]
    rows: list[OutlookRow]
    liars: float
    volunteers: Offer | None = None

    @property
    def majority(self) -> float:
        """Return the error of always naming the larger class."""
        return min(self.positive, 1 - self.positive)

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "clients": self.clients,
            "features": self.features,
            "positive": self.positive,
            "liars": self.liars,
            "majority": self.majority,
            "best": {name: signal.best for name, signal in self.signals.items()},
            "rows": [row.document() for row in self.rows],
            "volunteers": self.volunteers.document() if self.volunteers else None,
        }


def look_ahead(
    clients: int,
    features: int,
    epsilons: Iterable[float],
    positive: float = 0.5,
    liars: float = 0.0,
    *,
    volunteers: int = 0,
) -> Outlook:
    """Return the outlook for clients who report once, at each epsilon in turn.

    Parameters
    ----------
    clients : int
        2 or more.
    features : int
        Numbers of a record.
    epsilons : iterable of float
        Budgets of a report.
    positive : float in (0, 1), default=0.5
        The share of class +1.
    liars : float in [0, 1/2), default=0
        The share of clients who lie.
    volunteers : int, default=0
        People beside them who would make their labelled records public.

    Returns
    -------
    Outlook
        A row for each epsilon. Values out of range are a UserError.

    Examples
    --------
    >>> (row,) = look_ahead(200, 2, [2.0]).rows
    >>> print({name: round(found.error, 1) for name, found in row.expected.items()})
    {'weak': 0.5, 'middle': 0.3, 'strong': 0.1}
    """
    budgets = [validate.positive(epsilon=epsilon) for epsilon in epsilons]
    n = validate.at_least(2, clients=clients)
    d = validate.at_least(1, features=features)
    signals = strengths(positive)
    share = validate.minority(liars=liars)
    rows = [_outlook_row((n, d, epsilon), signals, share) for epsilon in budgets]
    purchase = make_offer(volunteers, n, d, budgets, signals) if volunteers else None
    return Outlook(n, d, positive, signals, rows, share, purchase)


def _outlook_row(
    size: tuple[int, int, float], signals: dict[str, Signal], liars: float
) -> OutlookRow:
    choice, epsilon = choose_protocol(*size, liars), size[-1]
    expected = {
        name: _expect_auto_arm(*size, signal) for name, signal in signals.items()
    }
    ends = {name: error_range(*size, s, expected[name]) for name, s in signals.items()}
    majority = next(iter(signals.values())).majority
    outside = ShuffledGuarantee.from_local(
        Budget(epsilon), _smallest_crowd(choice, size[0])
    )
    lied = _liar_effect(size, signals, expected, liars) if liars else None
    return OutlookRow(epsilon, choice, expected, ends, majority, outside, lied)


def _smallest_crowd(choice: Choice, n: int) -> int:
    """Return the number of messages among which the least hidden client's is."""
    protocol = ARM_PROTOCOLS.get(choice.arm or "", choice.protocol)
    sizes = {"train": n, "vote": 0}
    candidates = min(DIRECTIONS, n) if protocol == "votes" else 1
    return min(
        crowd_size(message, message.senders.count(sizes), candidates)
        for message in messages_of(protocol).values()
    )


def _liar_effect(
    size: tuple[int, int, float],
    signals: dict[str, Signal],
    direct: Expected,
    liars: float,
) -> LiarEffect:
    ways = [Lies(liars, across) for across in (False, True)]

    def worst(expect: Callable[..., Expectation]) -> Expected:
        return {
            name: max((expect(*size, s, lies=way) for way in ways), key=_error_of)
            for name, s in signals.items()
        }

    return LiarEffect(
        {name: expect_votes(*size, signal) for name, signal in signals.items()},
        worst(expect_votes),
        direct,
        worst(_expect_auto_arm),
        hidden_signal_error(size[-1], liars),
    )


def _expect_auto_arm(
    n: int, d: int, epsilon: float, signal: Signal, lies: Lies = NO_LIES
) -> Expectation:
    """Return the expectation of `direct` with the arm that `auto` takes of it."""
    arm = choose_protocol(n, d, epsilon).arm or "mean"
    return expect_direct(n, d, epsilon, signal, arm=arm, lies=lies)


def _error_of(expectation: Expectation) -> float:
    return expectation.error
