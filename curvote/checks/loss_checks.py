"""Checks of losses: the declared law, exactly, and draws, with proven bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote.base.validate import FloatArray
from curvote.checks.events import (
    SLACK,
    Event,
    Scores,
    finite_rows,
    number_scores,
    proportion_bounds,
    strongest_event,
)
from curvote.checks.subject import Loss, Subject
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.exact import exp_bounds


def bernstein(values: FloatArray, most: ArrayLike, alpha: float) -> FloatArray:
    """Return the deviation bound of column means of bounded values.

    Wrong with probability ``alpha`` for each column (Maurer & Pontil 2009, theorem 4,
    both sides).
    """
    n = len(values)
    log = np.log(4 / alpha)
    spread = np.sqrt(2 * values.var(axis=0, ddof=1) * log / n)
    return np.asarray(spread + 7 * np.asarray(most) * log / (3 * (n - 1)))


def exceeds_exp(ratio: Fraction, epsilon: float) -> bool:
    """Return exactly whether ``ratio`` > e^``epsilon``.

    e^epsilon is irrational, so enough bits always settle it.
    """
    parts = epsilon.as_integer_ratio()
    bits = 256 + ratio.numerator.bit_length() + ratio.denominator.bit_length()
    while True:
        low, high = exp_bounds(*parts, bits)
        if ratio.numerator * high <= ratio.denominator << bits:
            return False
        if ratio.numerator * low > ratio.denominator << bits:
            return True
        bits *= 2


def check_declared_loss(subject: Subject, loss: Loss) -> str | None:
    """Check that the integers of the law stay within the budget.

    A fraction is compared with e^epsilon by rational bounds: one threshold in 2^64
    that is too large by 1 is caught.
    """
    claimed = subject.budget.epsilon
    if loss.ratio is not None and exceeds_exp(loss.ratio, claimed):
        excess = loss.log - claimed
        by = "less than 1e-9" if excess < 1e-9 else f"{excess:.3g}"
        return f"the worst ratio exceeds e^{claimed:g} by {by} in log"
    if Fraction(loss.log) > Fraction(claimed):
        return f"the worst loss is {loss.log:.6g}, not {claimed:g}"
    return None


def event_scores(
    subject: Subject, inputs: tuple[object, object], rows: FloatArray, loss: FloatArray
) -> Iterator[tuple[str, FloatArray]]:
    """Yield named scores of outputs, ``rows`` (n, k), that tell two inputs apart.

    Only the first, the declared ``loss`` of each, trusts the declared law.
    """
    yield "declared loss", np.nan_to_num(loss)
    first, other = map(subject.input_row, inputs)
    if first is not None and other is not None:
        yield "projection on x - x2", rows @ (first - other)
        yield "values equal to x", (rows == first).sum(axis=1).astype(np.float64)


OutputPair = tuple[Any, Any]


@dataclass(frozen=True)
class Pair:
    """Two inputs, their draws, and the declared loss of x over x2."""

    x: Any
    x2: Any
    outputs: Any
    outputs2: Any
    loss: FloatArray
    loss2: FloatArray

    @classmethod
    def of(cls, subject: Subject, first: OutputPair, second: OutputPair) -> Pair:
        """Return the pair of two inputs with their outputs."""
        inputs, outputs = (first[0], second[0]), (first[1], second[1])
        losses = (subject.log_ratio(*inputs, some) for some in outputs)
        return cls(*inputs, *outputs, *losses)

    @property
    def sides(self) -> tuple[tuple[Any, Any, FloatArray], ...]:
        """Each input with its outputs and their losses."""
        other = self.x2, self.outputs2, self.loss2
        return (self.x, self.outputs, self.loss), other


def lower_bound(
    subject: Subject, pairs: Sequence[Pair], alpha: float
) -> tuple[float, Event]:
    """Return an epsilon that the draws prove, and the event that proves it.

    Too large with probability ``alpha`` at most.
    """
    # An input of several pairs has the same outputs in all of them.
    by_outputs: dict[int, tuple[FloatArray, Scores]] = {}

    def scores(pair: Pair, outputs: Any, loss: FloatArray) -> Scores:
        if id(outputs) not in by_outputs:
            rows = finite_rows(subject.view(outputs))
            by_outputs[id(outputs)] = rows, dict(number_scores(rows))
        rows, number = by_outputs[id(outputs)]
        inputs = pair.x, pair.x2
        return {**dict(event_scores(subject, inputs, rows, loss)), **number}

    sides = (
        (scores(p, p.outputs, p.loss), scores(p, p.outputs2, p.loss2)) for p in pairs
    )
    return strongest_event(sides, subject.budget.delta, alpha)


def check_lower_bound(subject: Subject, bound: float, event: Event) -> str | None:
    """Check that the draws prove no larger loss than the claim."""
    claimed = subject.budget.epsilon
    if bound <= claimed + SLACK:
        return None
    proof = f"({event}: {event.hits} and {event.hits2} of {event.n} draws)"
    return f"epsilon is at least {bound:.3f}, not {claimed:g} {proof}"


def check_support(subject: Subject, pairs: Sequence[Pair]) -> str | None:
    """Check that each output is possible and loses at most epsilon."""
    for pair in pairs:
        for _, outputs, losses in pair.sides:
            wrong = np.flatnonzero(~np.asarray(subject.possible(outputs), dtype=bool))
            if wrong.size:
                row = subject.view(outputs)[wrong[0]]
                return (
                    f"{wrong.size} outputs that the declared law gives for no input,"
                    f" the first is {np.array2string(row[:4], threshold=4)}"
                )
            loss = np.abs(losses)
            # NaN is 0/0: an output that neither input can give.
            over = ~(loss <= subject.budget.epsilon + SLACK)
            if not subject.budget.delta and over.any():
                return f"an output was drawn whose declared loss is {loss[over][0]:.3f}"
    return None


CUTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def check_law(subject: Subject, pairs: Sequence[Pair], alpha: float) -> str | None:
    """Compare draws with the declared law; wrong with probability ``alpha`` at most."""
    faults = _law_faults(subject, pairs, alpha / (3 * len(pairs)))
    return next(faults, None)


def _law_faults(subject: Subject, pairs: Sequence[Pair], alpha: float) -> Iterator[str]:
    compared = set[int]()
    for pair in pairs:
        # An input of several pairs has the same draws in all of them.
        fresh = [side for side in pair.sides if id(side[1]) not in compared]
        compared |= {id(outputs) for _, outputs, _ in fresh}
        for x, outputs, _ in fresh:
            if why := subject.law_gap(x, outputs, alpha):
                yield why
        # P(A | x) = E[e^L 1_A | x2] for events A = {L <= t}, L the declared loss.
        # Thresholds t come from the first third.
        loss, loss2 = pair.loss, pair.loss2
        third = len(loss) // 3
        cuts = np.unique(np.quantile(loss2[:third], CUTS, method="higher"))
        cuts = cuts[np.isfinite(cuts) & (cuts < 30)]
        if not cuts.size:
            continue
        hits = loss[third:, None] <= cuts
        weights = np.exp(np.minimum(loss2[third:, None], cuts))
        weights *= loss2[third:, None] <= cuts
        event_alpha = alpha / (2 * cuts.size)
        margin = bernstein(weights, np.exp(cuts), event_alpha)
        low, high = proportion_bounds(hits.sum(axis=0), len(hits), event_alpha / 2)
        expected = weights.mean(axis=0)
        gap = np.maximum(low - expected, expected - high) - margin
        worst = int(np.argmax(gap))
        if gap[worst] > 0:
            yield (
                f"P(declared loss <= {cuts[worst]:.3g}) differs by over"
                f" {gap[worst]:.2g} from what the declared loss says"
            )


def share_gap(
    draws: FloatArray, outputs: FloatArray, declared: FloatArray, alpha: float
) -> str | None:
    """Return where an output's share departs from its probability, if at all.

    ``outputs`` [m] are the outputs, increasing, ``declared`` [m] their probabilities.
    """
    place = np.minimum(np.searchsorted(outputs, draws), len(outputs) - 1)
    if (outputs[place] != draws).any():
        return "an output was drawn that the channel does not name"
    hits = np.bincount(place, minlength=len(outputs))
    low, high = proportion_bounds(hits, len(draws), alpha / (2 * len(outputs)))
    slack = 1e-12  # declared probabilities are rounded to float64
    wrong = np.flatnonzero((declared < low - slack) | (declared > high + slack))
    if not wrong.size:
        return None
    i = wrong[0]
    share = hits[i] / len(draws)
    return f"output {outputs[i]:g} has share {share:.4g}, declared {declared[i]:.4g}"


def distribution_gap(
    mechanism: ScalarMechanism, x: FloatArray, draws: FloatArray, alpha: float
) -> str | None:
    """Return how far the distribution function is off, if it is.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant (1990), jumps included.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    below = mechanism.cdf(x, np.nextafter(at, -np.inf))
    gap = np.abs(reached - mechanism.cdf(x, at)).max()
    gap = max(gap, np.abs(reached - counts / draws.size - below).max())
    if gap <= math.sqrt(math.log(2 / alpha) / (2 * draws.size)):
        return None
    return f"for input {float(x):.3g} the distribution function is off by {gap:.3g}"
