"""Outlook before anybody reports: of polls, of volunteers, and of protocol ``auto``.

A voter is a record drawn by itself, so whether it finds a direction right is a coin
with the direction's accuracy, then noised; a liar's bit is what it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from curvote.advise.direct import (
    SLANTS,
    Expectation,
    World,
    error_range,
    expect_direct,
    honest_means,
)
from curvote.advise.mrma import keep_probability
from curvote.advise.scenario import (
    NO_LIES,
    Lies,
    Signal,
    hidden_signal_error,
    strengths,
)
from curvote.base import validate
from curvote.base.privacy import Budget
from curvote.curves.direction import Directions
from curvote.learning.directions import Line, ReportMean
from curvote.learning.volunteers import (
    VolunteerRecords,
    joint_classifier,
    ridge_logistic,
)
from curvote.messages.amplification import ShuffledGuarantee, crowd_size
from curvote.messages.arms import ARM_PROTOCOLS, make_directions
from curvote.messages.message import messages_of
from curvote.systems.direct.choice import (
    Choice,
    choose_arm,
    choose_protocol,
    joined_arm,
    volunteer_worth,
)

DIRECTIONS = 100  # the default of `votes.directions`
VOTE_RUNS = 24


def expect_votes(
    n: int,
    d: int,
    epsilon: float,
    signal: Signal,
    *,
    seed: int = 0,
    lies: Lies = NO_LIES,
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
    right = _rule_errors(w.reshape(-1, d + 1), signal, right=True).reshape(
        VOTE_RUNS, count
    )
    honest = keep * right + (1 - keep) * (1 - right)
    wished = w[..., 1:] @ lies.pull(np.eye(d)[0]) > 0
    votes = n // count + (np.arange(count) < n % count)
    positive = rng.binomial(votes, (1 - lies.share) * honest + lies.share * wished)
    # Weights are |utility - 1/2| after reversal: signed, they are utility - 1/2.
    rules = np.einsum("rb,rbp->rp", positive / votes - 0.5, w)
    errors = _rule_errors(rules, signal, right=False)
    return Expectation(float(errors.mean()), float(errors.std()), "votes")


def _rule_errors(rules: np.ndarray, signal: Signal, *, right: bool) -> np.ndarray:
    """Return errors (R,) of rules (R, 1 + d), or how often they are ``right``.

    The signal's direction is the first axis.
    """
    across = np.linalg.norm(rules[:, 2:], axis=1)
    errors = signal.error(rules[:, 1], across, rules[:, 0])
    return 1 - errors if right else errors


Array = NDArray[np.float64]
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
        rows = [
            asdict(row)
            | {"better": self.better(row), "together": self.worth + row.reports}
            for row in self.rows
        ]
        alone = {name: asdict(expectation) for name, expectation in self.alone.items()}
        return {
            "volunteers": self.count,
            "worth": self.worth,
            "alone": alone,
            "rows": rows,
        }


def make_offer(
    count: int, clients: int, d: int, epsilons: Iterable[float], signals: Signals
) -> Offer:
    """Return the offer of ``count`` >= 1 volunteers beside ``clients`` reports.

    Records have ``d`` numbers; values out of range are a UserError.
    """
    n_v = validate.at_least(1, volunteers=count)
    alone = {name: expect_alone(n_v, d, signal) for name, signal in signals.items()}
    rows = [
        JoinedRow(
            epsilon,
            clients * epsilon**2,
            {
                name: expect_joined(n_v, clients, d, epsilon, signal)
                for name, signal in signals.items()
            },
        )
        for epsilon in epsilons
    ]
    return Offer(n_v, volunteer_worth(n_v, d), alone, rows)


def expect_alone(count: int, d: int, signal: Signal, *, seed: int = 0) -> Expectation:
    """Return the expectation of ``count`` volunteers' records of ``d`` numbers."""
    rng, directions = (
        np.random.default_rng(seed),
        make_directions("mean", d, "standard", "auto"),
    )

    def draw_lines(world: World) -> Iterator[Line]:
        for _ in range(VOLUNTEER_RUNS):
            yield ridge_logistic(*_draw_volunteers(rng, world, count))

    return _expect_lines(rng, signal, directions, draw_lines, "volunteers")


def expect_joined(
    count: int, n: int, d: int, epsilon: float, signal: Signal, *, seed: int = 0
) -> Expectation:
    """Return the expectation of them joined with ``n`` reports at ``epsilon``."""
    arm = joined_arm(choose_arm(n, d, epsilon).arm) or "mean"
    rng, directions = (
        np.random.default_rng(seed),
        make_directions(arm, d, "standard", "auto"),
    )

    def draw_lines(world: World) -> Iterator[Line]:
        for mean in honest_means(rng, world, epsilon, n, VOLUNTEER_RUNS):
            public = VolunteerRecords.from_records(
                directions, *_draw_volunteers(rng, world, count)
            )
            yield joint_classifier(ReportMean(mean, n), directions, epsilon, public)

    return _expect_lines(rng, signal, directions, draw_lines, "joined")


def _expect_lines(
    rng: np.random.Generator,
    signal: Signal,
    directions: Directions,
    draw_lines: Any,
    arm: str,
) -> Expectation:
    draw = partial(World.draw, rng, signal, directions)
    with threadpool_limits(limits=1):  # matrices are too small to share
        worlds = (draw() for _ in range(SLANTS))
        errors = [world.errors(list(draw_lines(world))) for world in worlds]
    return Expectation(float(np.mean(errors)), float(np.std(errors)), arm)


def _draw_volunteers(
    rng: np.random.Generator, world: World, count: int
) -> tuple[Array, NDArray[np.int64]]:
    """Draw records (n, d) and places of their classes (n,)."""
    z = rng.standard_normal((count, len(world.slant)))
    chance = world.signal.chance(z @ world.slant)
    return z, (rng.random(count) < chance).astype(np.int64)


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
    where records are not normal (`curvote.advise.direct`). ``outside`` is what an
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
    n = size[0]
    protocol = ARM_PROTOCOLS.get(choice.arm or "", choice.protocol)
    sizes = {"train": n, "vote": 0}
    candidates = min(DIRECTIONS, n) if protocol == "votes" else 1
    outside = ShuffledGuarantee.from_local(
        Budget(epsilon),
        min(
            crowd_size(message, message.senders.count(sizes), candidates)
            for message in messages_of(protocol).values()
        ),
    )
    lied = _liar_effect(size, signals, expected, liars) if liars else None
    return OutlookRow(epsilon, choice, expected, ends, majority, outside, lied)


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
