"""Votes that keep coming: utilities, weights and candidates brought up to date.

MRMA section 3.5, "Online data": what is known of each weak classifier grows with every
arrival of evaluation clients, and classifiers are added when the ensemble gets worse.
Nothing is computed twice, and with all votes counted alike (``memory`` 1) the result
is the one of `curvote.server.utility`, `reversal` and `averaging` for all votes at
once, whatever their order and however they were split into arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.server.averaging import WEIGHTS, WHEN_NONE_PASS, average, weights
from curvote.server.reversal import reversed_utility
from curvote.server.utility import estimate
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Rule:
    """How votes become an ensemble, and when it is said to have become worse.

    A vote was kept with probability ``keep`` in (1/2, 1]; ``cutoff``,
    ``when_none_pass`` and ``weights`` (its form) are those of `averaging.weights`. A
    vote that is k arrivals old counts ``memory``^k, in (0, 1]. ``drop`` standard
    errors, above 0: see `dropped`.
    """

    keep: float
    cutoff: float
    when_none_pass: str
    weights: str = "excess"
    memory: float = 1.0
    drop: float = 3.0

    def __post_init__(self) -> None:
        validate.one_of(WHEN_NONE_PASS, when_none_pass=self.when_none_pass)
        validate.one_of(WEIGHTS, weights=self.weights)
        validate.positive(drop=self.drop)
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
class Reading:
    """Votes of one arrival on the incumbent, see `in_office`."""

    n: int = 0
    positive: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.positive <= self.n:
            raise UserError(f"{self.positive} of {self.n} votes are positive.")

    def accuracy(self, keep: float) -> tuple[float, float]:
        """Return the incumbent's estimated accuracy on these clients, and its error.

        Unbiased, because the voters had no part in it; 1/2 and the largest standard
        error of one vote where there is none. ``keep`` as in `Rule`.
        """
        if not self.n:
            return 0.5, 0.5 / (2 * keep - 1)
        found = estimate([self.positive], [self.n], keep)
        return float(found.value[0]), float(found.standard_error[0])


@dataclass(frozen=True, eq=False)
class Arrival:
    """One row of the history: ``votes`` on candidates, ``added`` candidates, result."""

    votes: int
    added: int
    incumbent: Reading
    ensemble: Ensemble
    dropped: bool = False


@dataclass(frozen=True, eq=False)
class Roster:
    """What is known of B candidates after the arrivals of ``history``.

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


def started(coef: ArrayLike, intercept: ArrayLike) -> Roster:
    """Return the roster of the first candidates, ``coef`` [B, d], before any vote."""
    slopes, constants = validate.finite(coef=coef), validate.finite(intercept=intercept)
    if slopes.ndim != 2 or not len(slopes) or constants.shape != slopes.shape[:1]:
        raise UserError(
            f"coef {slopes.shape} and intercept {constants.shape} must be [B, d] and"
            " [B], not empty."
        )
    none, first = np.zeros(len(slopes)), np.zeros(len(slopes), dtype=np.int64)
    return Roster(slopes, constants, first, none, none, none)


def extended(roster: Roster, coef: ArrayLike, intercept: ArrayLike) -> Roster:
    """Return the roster with more candidates, which have no votes yet.

    Another d is a UserError.
    """
    new = started(coef, intercept)
    if new.coef.shape[1] != roster.coef.shape[1]:
        raise UserError(
            f"coef has {new.coef.shape[1]} columns; those of the candidates that are"
            f" there have {roster.coef.shape[1]}."
        )
    new = replace(new, birth=np.full(len(new.coef), len(roster.history)))
    names = (field.name for field in fields(Roster) if field.name != "history")
    both: dict[str, Any] = {
        name: np.concatenate([getattr(roster, name), getattr(new, name)])
        for name in names
    }
    return replace(roster, **both)


def judged(
    roster: Roster, n: ArrayLike, positive: ArrayLike, memory: float = 1.0
) -> Roster:
    """Return the roster with one more arrival's ``positive`` [B] of ``n`` [B] votes.

    What was there fades by ``memory``; a candidate may get no vote. Counts that are
    not whole, or outside 0..n, are a UserError.
    """
    votes, total = validate.finite(positive=positive), validate.finite(n=n)
    if not votes.shape == total.shape == roster.n.shape:
        raise UserError(
            f"positive {votes.shape} and n {total.shape} must be"
            f" {roster.n.shape}: one number for each candidate."
        )
    right = (votes >= 0) & (votes <= total) & (votes % 1 == 0) & (total % 1 == 0)
    if not right.all():
        b = int(np.argmin(right))
        raise UserError(
            f"candidate {b} has {votes[b]:g} positive of {total[b]:g} votes; counts"
            " must be whole and 0 <= positive <= n."
        )
    return replace(
        roster,
        n=memory * roster.n + total,
        positive=memory * roster.positive + votes,
        squares=memory**2 * roster.squares + total,
    )


def ensemble(roster: Roster, rule: Rule) -> Ensemble:
    """Return utilities, reversal, weights and the average of the votes so far.

    The utility is equation (8) of MRMA for the (faded) share of votes "right", which
    is unbiased for the accuracy averaged with the same fading. The standard error is
    that of a weighted mean, sqrt(p (1 - p) sum w^2) / (sum w (2 keep - 1)). A
    candidate without votes counts for nothing: utility 1/2, the largest standard error
    that one vote can have, weight 0. No vote at all is a UserError.
    """
    known = roster.n > 0
    if not known.any():
        raise UserError("no candidate has a vote yet.")
    gain = 2 * rule.keep - 1
    total = np.where(known, roster.n, 1.0)
    rate = np.where(known, roster.positive / total, 0.5)
    squares = np.where(known, roster.squares, 1.0)
    utility = np.where(known, (rate + rule.keep - 1) / gain, 0.5)
    flipped = known & (2 * roster.positive < roster.n)
    weight, passed, none_passed = _weights(utility, flipped, known, rule)
    turned = np.where(flipped, -1.0, 1.0) * weight
    return Ensemble(
        utility,
        np.sqrt(rate * (1 - rate) * squares) / (total * gain),
        flipped,
        weight,
        passed,
        none_passed,
        *average(roster.coef, roster.intercept, turned),
    )


def _weights(
    utility: FloatArray,
    flipped: NDArray[np.bool_],
    known: NDArray[np.bool_],
    rule: Rule,
) -> tuple[FloatArray, int, bool]:
    worth = reversed_utility(utility, flipped)[known]
    weight = np.zeros(len(utility))
    how = rule.cutoff, rule.when_none_pass, rule.weights
    weight[known], none = weights(worth, *how)
    return weight, int((worth > rule.cutoff).sum()), none


def in_office(history: Sequence[Arrival]) -> int:
    """Return the row of the history whose ensemble is the incumbent.

    It is the last one in which candidates were added, the first at the latest: the
    incumbent stays the same, so that what new and earlier clients say of it compares.
    """
    return max(t for t, row in enumerate(history) if row.added or t == 0)


def dropped(history: Sequence[Arrival], drop: float = 3.0) -> bool:
    """Say whether the newest clients find the incumbent worse than earlier ones did.

    Compared are the last row's reading and those before it since the incumbent is in
    office, pooled, by Fisher's exact test of equal shares, one-sided, at the level
    that ``drop`` standard errors of a normal law leave below them (3: 0.00135). While
    the law of the clients stays what it is, or the incumbent does better with every
    arrival, a false alarm has at most this probability in each arrival, whatever the
    number of votes, epsilon, and the other votes: all readings judge one classifier,
    and randomized response maps equal accuracies to equal shares. Without an earlier
    reading nothing can have dropped: the second arrival after an addition is the
    first that can be compared.
    """
    *before, newest = history
    earlier = [row.incumbent for row in before[in_office(history) + 1 :]]
    n, positive = sum(r.n for r in earlier), sum(r.positive for r in earlier)
    watched = newest.incumbent
    if not (n and watched.n):
        return False
    from scipy.stats import hypergeom, norm  # a second; few systems look back

    everybody = n + watched.n, positive + watched.positive
    level = hypergeom.cdf(watched.positive, *everybody, watched.n)
    return bool(level <= norm.sf(drop))


def arrived(
    roster: Roster,
    n: ArrayLike,
    positive: ArrayLike,
    rule: Rule,
    incumbent: Reading | None = None,
) -> Roster:
    """Return the roster after one arrival, its row added to the history.

    ``n`` and ``positive`` [B] are its votes on the candidates (extend first, where
    some were trained), ``incumbent`` those on the ensemble of row `in_office`.
    """
    updated = judged(roster, n, positive, rule.memory)
    row = Arrival(
        votes=int(np.sum(n)),
        added=int((roster.birth == len(roster.history)).sum()),
        incumbent=incumbent or Reading(),
        ensemble=ensemble(updated, rule),
    )
    history = (*roster.history, row)
    row = replace(row, dropped=dropped(history, rule.drop))
    return replace(updated, history=(*roster.history, row))
