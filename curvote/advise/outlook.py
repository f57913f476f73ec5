"""Outlook before anybody reports: of polls, of volunteers, and of protocol ``auto``.

A voter is a record drawn by itself, so whether it finds a direction right is a coin
with the direction's accuracy, then noised; a liar's bit is what it likes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from curvote.advise import direct
from curvote.advise.direct import Expectation, Lies, Signal
from curvote.advise.mrma import keep_probability
from curvote.base import validate
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.learning.directions import ReportMean
from curvote.learning.volunteers import (
    VolunteerRecords,
    joint_classifier,
    ridge_logistic,
)
from curvote.messages.amplification import ShuffledGuarantee, crowd_size
from curvote.messages.arms import ARM_PROTOCOLS, make_directions
from curvote.messages.message import learning_messages
from curvote.systems.direct import system

DIRECTIONS = 100  # the default of `votes.directions`
VOTE_RUNS = 24


def expect_votes(
    n: int,
    d: int,
    epsilon: float,
    signal: Signal,
    *,
    seed: int = 0,
    lies: Lies = direct.NO_LIES,
) -> Expectation:
    """Return the expected error of protocol ``votes``.

    Each client judges one of 100 random directions, or of ``n`` where that is less,
    with its whole ``epsilon``.

    Parameters
    ----------
    n : int
        Clients, 1 or more.
    d : int
        Numbers of a record.
    epsilon : float
        Budget of a vote.
    signal : Signal
        How labels depend on records.
    seed : int, default=0
        Of the draws.
    lies : Lies, default=nobody's
        Who votes as they like.

    Returns
    -------
    Expectation
        Mean error and spread. Values out of range are a UserError.

    Examples
    --------
    >>> from curvote.theory import strengths
    >>> print(f"{expect_votes(1000, 4, 4.0, strengths()['middle']).error:.2f}")
    0.27
    """
    n, d = validate.at_least(1, n=n), validate.at_least(1, d=d)
    keep, rng = keep_probability(epsilon), np.random.default_rng(seed)
    count = min(DIRECTIONS, n)
    w = rng.standard_normal((VOTE_RUNS, count, d + 1))
    w /= np.linalg.norm(w, axis=2, keepdims=True)
    w[..., 0] *= make_directions("mean", d, "standard", "auto").intercept
    right = 1 - _rule_errors(w.reshape(-1, d + 1), signal).reshape(VOTE_RUNS, count)
    honest = keep * right + (1 - keep) * (1 - right)
    wished = w[..., 1:] @ lies.pull(np.eye(d)[0]) > 0
    votes = n // count + (np.arange(count) < n % count)
    positive = rng.binomial(votes, (1 - lies.share) * honest + lies.share * wished)
    # Weights are |utility - 1/2| after reversal: signed, they are utility - 1/2.
    rules = np.einsum("rb,rbp->rp", positive / votes - 0.5, w)
    errors = _rule_errors(rules, signal)
    return Expectation(float(errors.mean()), float(errors.std()), "votes")


def _rule_errors(rules: FloatArray, signal: Signal) -> FloatArray:
    """Return errors of rules (R, 1 + d); the signal's direction is the first axis."""
    across = np.linalg.norm(rules[:, 2:], axis=1)
    return signal.error(rules[:, 1], across, rules[:, 0])


Signals = Mapping[str, Signal]

VOLUNTEER_RUNS = 8  # for each of the random directions of a signal


@dataclass(frozen=True)
class JoinedRow:
    """One epsilon: N epsilon^2 of the reports, and what to expect of the join."""

    epsilon: float
    reports: float
    joined: dict[str, Expectation]


@dataclass(frozen=True)
class Offer:
    """``count`` labelled volunteers, what they are worth as N epsilon^2, and errors.

    ``alone`` says by signal what to expect of them without any report.
    """

    count: int
    worth: float
    alone: dict[str, Expectation]
    rows: list[JoinedRow]

    def better(self, row: JoinedRow) -> str:
        """Return which part by itself tells more: the formula's answer."""
        return "volunteers" if self.worth > row.reports else "reports"

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        rows = []
        for row in self.rows:
            together = self.worth + row.reports
            more = {"better": self.better(row), "together": together}
            rows.append(asdict(row) | more)
        alone = {name: asdict(expectation) for name, expectation in self.alone.items()}
        facts = {"volunteers": self.count, "worth": self.worth, "alone": alone}
        return facts | {"rows": rows}


def make_offer(
    count: int, clients: int, d: int, epsilons: Iterable[float], signals: Signals
) -> Offer:
    """Return the offer of ``count`` >= 1 volunteers beside ``clients`` reports.

    Records have ``d`` numbers; values out of range are a UserError.
    """
    n_v = validate.at_least(1, volunteers=count)
    alone = {name: expect_alone(n_v, d, signal) for name, signal in signals.items()}
    rows = []
    for epsilon in epsilons:
        joined = {
            name: expect_joined(n_v, clients, d, epsilon, signal)
            for name, signal in signals.items()
        }
        rows.append(JoinedRow(epsilon, clients * epsilon**2, joined))
    return Offer(n_v, system.volunteer_worth(n_v, d), alone, rows)


def expect_alone(count: int, d: int, signal: Signal, *, seed: int = 0) -> Expectation:
    """Return the expectation of ``count`` volunteers' records of ``d`` numbers."""
    rng = np.random.default_rng(seed)
    directions = make_directions("mean", d, "standard", "auto")

    def errors(world: direct.World) -> FloatArray:
        draws = (world.draw_records(rng, count) for _ in range(VOLUNTEER_RUNS))
        return world.errors([ridge_logistic(*rows) for rows in draws])

    return direct.average_worlds(rng, signal, directions, errors, "volunteers")


def expect_joined(
    count: int, n: int, d: int, epsilon: float, signal: Signal, *, seed: int = 0
) -> Expectation:
    """Return the expectation of them joined with ``n`` reports at ``epsilon``."""
    rule = system.choose_protocol(n, d, epsilon, of_direct=True)
    arm = system.joined_arm(rule.arm) or "mean"
    rng = np.random.default_rng(seed)
    directions = make_directions(arm, d, "standard", "auto")

    def errors(world: direct.World) -> FloatArray:
        noise, lines = direct.MeanNoise(rng, world, epsilon, direct.NO_LIES), []
        for mean in noise.draw_means(n, VOLUNTEER_RUNS):
            public_records = world.draw_records(rng, count)
            public = VolunteerRecords.from_records(directions, *public_records)
            parts = ReportMean(mean, n), directions, epsilon, public
            lines.append(joint_classifier(*parts))
        return world.errors(lines)

    return direct.average_worlds(rng, signal, directions, errors, "joined")


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


@dataclass(frozen=True)
class OutlookRow:
    """One epsilon: the rule's choice, and the error of `direct` for each signal.

    ``error_range`` is what the error of a run lies between, by the name of a signal,
    where records are not normal (`curvote.advise.direct`). ``outside`` is what an
    outsider sees of a client who trusts the shuffler, ``lied`` what liars do where some
    are expected.
    """

    epsilon: float
    choice: system.Choice
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
        expected = {}
        for name, expectation in self.expected.items():
            low, high = self.reach[name]
            ends = {"low": low, "high": high}
            nothing = {"nothing_gained": self.gains_nothing(name)}
            expected[name] = asdict(expectation) | ends | nothing
        return {
            "epsilon": self.epsilon,
            **asdict(self.choice),
            "direct": expected,
            "outside": asdict(self.outside) if self.outside else None,
            "lied": asdict(self.lied) if self.lied else None,
        }


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
    0.5 ['joint']
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
    positive: float | None = None,
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
    positive : float in (0, 1) or None, default=None
        The share of class +1 where it is public; None works with equal classes, of
        which nobody knows.
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
    public_balance, positive = (
        positive is not None,
        0.5 if positive is None else positive,
    )
    signals = direct.strengths(positive)
    balance = (1 - positive, positive) if public_balance else None
    share = validate.minority(liars=liars)
    lies = [Lies(share, across) for across in (False, True)]
    majority = next(iter(signals.values())).majority
    rows = []
    for epsilon in budgets:
        choice = system.choose_protocol(n, d, epsilon, share, balance=balance)
        worst = partial(_worst_of_lies, (n, d, epsilon), signals)
        expect = partial(direct.expect_direct, public_balance=public_balance)
        honest = worst(expect, [direct.NO_LIES])
        reach = partial(
            direct.error_range, n, d, epsilon, public_balance=public_balance
        )
        ends = {s: reach(signals[s], honest[s]) for s in signals}
        protocol = ARM_PROTOCOLS.get(choice.arm or "", choice.protocol)
        candidates = min(DIRECTIONS, n) if protocol == "votes" else 1
        crowd = min(
            crowd_size(kind, kind.senders.count({"train": n, "vote": 0}), candidates)
            for kind in learning_messages(protocol).values()
        )
        outside = ShuffledGuarantee.from_local(Budget(epsilon), crowd)
        lied = None
        if share:
            lied = LiarEffect(
                votes=worst(expect_votes, [direct.NO_LIES]),
                votes_lied=worst(expect_votes, lies),
                direct=honest,
                direct_lied=worst(expect, lies),
                hidden=direct.hidden_signal_error(epsilon, share),
            )
        row = OutlookRow(epsilon, choice, honest, ends, majority, outside, lied)
        rows.append(row)
    purchase = make_offer(volunteers, n, d, budgets, signals) if volunteers else None
    return Outlook(n, d, positive, signals, rows, share, purchase)


def _worst_of_lies(
    size: tuple[int, int, float],
    signals: Signals,
    expect: Callable[..., Expectation],
    lies: Sequence[Lies],
) -> Expected:
    return {
        name: max(
            (expect(*size, signal, lies=way) for way in lies),
            key=lambda expectation: expectation.error,
        )
        for name, signal in signals.items()
    }
