"""Online ensemble: utilities, weights and candidates updated with each arrival.

MRMA section 3.5, "Online data": what is known of each weak classifier grows with every
arrival of evaluation clients, and classifiers are added when the ensemble gets worse.
Nothing is computed twice, and with all votes counted alike (``memory`` 1) the result
is the one of `curvote.learning.votes`, `reversal` and `averaging` for all votes at
once, whatever their order and however they were split into arrivals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning import votes
from curvote.learning.sequences import decline_evidence


@dataclass(frozen=True)
class OnlineRule:
    """Rules of an online ensemble: weights, fading and the drift alert.

    A vote was kept with probability ``keep`` in (1/2, 1]; ``cutoff``,
    ``when_none_pass`` and ``averaging_weights`` (its form) are those of
    `averaging.averaging_weights`. A vote that is k arrivals old counts ``memory``^k, in
    (0, 1]. ``drop`` standard errors, above 0: see `has_dropped`.
    """

    keep: float
    cutoff: float
    when_none_pass: str
    weights: str = "excess"
    memory: float = 1.0
    error: float = 0.05

    def __post_init__(self) -> None:
        validate.one_of(votes.WHEN_NONE_PASS, when_none_pass=self.when_none_pass)
        validate.one_of(votes.WEIGHTS, weights=self.weights)
        validate.fraction(error=self.error)
        if not 0.5 < self.keep <= 1:
            raise UserError(f"keep is {self.keep!r}; it must lie in (1/2, 1].")
        if not 0 < self.memory <= 1:
            raise UserError(f"memory is {self.memory!r}; it must lie in (0, 1].")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The candidates as one classifier.

    ``utility``, ``standard_error``, ``reversed`` and ``weight`` are [B]; ``passed``
    candidates exceed the cutoff after reversal. ``coef`` [d] and ``intercept`` are the
    average of equation (11).
    """

    utility: FloatArray
    standard_error: FloatArray
    reversed: NDArray[np.bool_]
    weight: FloatArray
    passed: int
    none_passed: bool
    coef: FloatArray
    intercept: float


@dataclass(frozen=True)
class IncumbentVotes:
    """Votes of one arrival on the incumbent ensemble."""

    n: int = 0
    positive: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.positive <= self.n:
            raise UserError(f"{self.positive} of {self.n} votes are positive.")

    def accuracy(self, keep: float) -> tuple[float, float]:
        """Return the incumbent's estimated accuracy and its standard error.

        Unbiased, because the voters had no part in it; 1/2 and the largest standard
        error of one vote where there is none. ``keep`` as in `OnlineRule`.
        """
        if not self.n:
            return 0.5, 0.5 / (2 * keep - 1)
        estimated = votes.estimate_utility([self.positive], [self.n], keep)
        return float(estimated.value[0]), float(estimated.standard_error[0])


@dataclass(frozen=True, eq=False)
class Arrival:
    """One row of the history: votes, added candidates and the result."""

    votes: int
    added: int
    incumbent: IncumbentVotes
    ensemble: Ensemble
    dropped: bool = False


@dataclass(frozen=True, eq=False)
class Roster:
    """The B candidates with their votes after the arrivals of ``history``.

    ``coef`` is [B, d]; all else [B]: ``intercept``, ``birth`` (the arrival in which
    each was trained), and of the votes so far, each counted ``memory``^age: their
    number ``n``, how many were ``positive``, and the sum of the ``squares`` of those
    counts. Without fading the three hold whole numbers, exact up to 2^53.
    """

    coef: FloatArray
    intercept: FloatArray
    birth: NDArray[np.int64]
    n: FloatArray
    positive: FloatArray
    squares: FloatArray
    history: tuple[Arrival, ...] = ()


def start_roster(coef: ArrayLike, intercept: ArrayLike) -> Roster:
    """Return the roster of the first candidates, without votes."""
    slopes, constants = validate.finite(coef=coef), validate.finite(intercept=intercept)
    if slopes.ndim != 2 or not len(slopes) or constants.shape != slopes.shape[:1]:
        raise UserError(
            f"coef {slopes.shape} and intercept {constants.shape} must be [B, d] and"
            " [B], not empty."
        )
    zeros, first = np.zeros(len(slopes)), np.zeros(len(slopes), dtype=np.int64)
    return Roster(slopes, constants, first, zeros, zeros, zeros)


def extend_roster(roster: Roster, coef: ArrayLike, intercept: ArrayLike) -> Roster:
    """Return the roster with more candidates, which have no votes yet.

    Another d is a UserError.
    """
    new = start_roster(coef, intercept)
    if new.coef.shape[1] != roster.coef.shape[1]:
        raise UserError(
            f"coef has {new.coef.shape[1]} columns; those of the candidates that are"
            f" there have {roster.coef.shape[1]}."
        )
    new = replace(new, birth=np.full(len(new.coef), len(roster.history)))
    names = (field.name for field in fields(Roster) if field.name != "history")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(roster, name), getattr(new, name)])
        for name in names
    }
    return replace(roster, **joined)


def add_votes(
    roster: Roster, n: ArrayLike, positive: ArrayLike, memory: float = 1.0
) -> Roster:
    """Return the roster with the votes of one more arrival.

    What was there fades by ``memory``; a candidate may get no vote. Counts that are
    not whole, or outside 0..n, are a UserError.
    """
    right, total = validate.finite(positive=positive), validate.finite(n=n)
    if not right.shape == total.shape == roster.n.shape:
        raise UserError(
            f"positive {right.shape} and n {total.shape} must be"
            f" {roster.n.shape}: one number for each candidate."
        )
    valid = (right >= 0) & (right <= total) & (right % 1 == 0) & (total % 1 == 0)
    if not valid.all():
        b = int(np.argmin(valid))
        raise UserError(
            f"candidate {b} has {right[b]:g} positive of {total[b]:g} votes; counts"
            " must be whole and 0 <= positive <= n."
        )
    return replace(
        roster,
        n=memory * roster.n + total,
        positive=memory * roster.positive + right,
        squares=memory**2 * roster.squares + total,
    )


def build_ensemble(roster: Roster, rule: OnlineRule) -> Ensemble:
    """Return utilities, reversal, weights and the average of all votes.

    The utility is equation (8) of MRMA for the (faded) share of votes "right", which
    is unbiased for the accuracy averaged with the same fading. The standard error is
    that of a weighted mean, sqrt(p (1 - p) sum w^2) / (sum w (2 keep - 1)). A
    candidate without votes counts for nothing: utility 1/2, the largest standard error
    that one vote can have, weight 0. No vote at all is a UserError.
    """
    has_votes = roster.n > 0
    if not has_votes.any():
        raise UserError("no candidate has a vote yet.")
    gain = 2 * rule.keep - 1
    total = np.where(has_votes, roster.n, 1.0)
    rate = np.where(has_votes, roster.positive / total, 0.5)
    squares = np.where(has_votes, roster.squares, 1.0)
    utility = np.where(has_votes, (rate + rule.keep - 1) / gain, 0.5)
    flipped = has_votes & (2 * roster.positive < roster.n)
    worth = votes.reversed_utility(utility, flipped)[has_votes]
    weight = np.zeros(len(utility))
    weight[has_votes], none_passed = votes.averaging_weights(
        worth, rule.cutoff, rule.when_none_pass, rule.weights
    )
    signed_weights = np.where(flipped, -1.0, 1.0) * weight
    return Ensemble(
        utility,
        np.sqrt(rate * (1 - rate) * squares) / (total * gain),
        flipped,
        weight,
        int((worth > rule.cutoff).sum()),
        none_passed,
        *votes.average_classifiers(roster.coef, roster.intercept, signed_weights),
    )


def incumbent_row(history: Sequence[Arrival]) -> int:
    """Return the row of the history whose ensemble is the incumbent.

    It is the last one in which candidates were added, the first at the latest: the
    incumbent stays the same, so that what new and earlier clients say of it compares.
    """
    return max(t for t, row in enumerate(history) if row.added or t == 0)


def has_dropped(history: Sequence[Arrival], error: float = 0.05) -> bool:
    """Return whether newer clients find the incumbent worse than earlier ones did.

    Compared are its readings since it is in office, as looks of
    `sequences.decline_evidence`: while the law of the clients stays what it is, or the
    incumbent does better with every arrival, it is ever said to have dropped with
    probability at most ``error``, whatever the number of arrivals, of votes, epsilon
    and the other votes. All readings judge one classifier, and randomized response maps
    equal accuracies to equal shares. Without an earlier reading nothing can have
    dropped.
    """
    readings = [row.incumbent for row in history[incumbent_row(history) + 1 :]]
    counts = [r.n for r in readings], [r.positive for r in readings]
    return decline_evidence(*counts) >= 1 / error


def add_arrival(
    roster: Roster,
    n: ArrayLike,
    positive: ArrayLike,
    rule: OnlineRule,
    incumbent: IncumbentVotes | None = None,
) -> Roster:
    """Return the roster after one arrival, with its row in the history.

    ``n`` and ``positive`` [B] are its votes on the candidates (extend first, where
    some were trained), ``incumbent`` those on the ensemble of row `incumbent_row`.
    """
    updated = add_votes(roster, n, positive, rule.memory)
    row = Arrival(
        votes=int(np.sum(n)),
        added=int((roster.birth == len(roster.history)).sum()),
        incumbent=incumbent or IncumbentVotes(),
        ensemble=build_ensemble(updated, rule),
    )
    history = (*roster.history, row)
    row = replace(row, dropped=has_dropped(history, rule.error))
    return replace(updated, history=(*roster.history, row))
