"""Weak classifiers and votes on them: utilities, reversal, averaging, drift alerts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning.intervals import binomial_interval
from curvote.learning.learners.registry import Fits, fit, parameters
from curvote.learning.sequences import decline_evidence

IntArray = NDArray[np.int64]


def draw_subsets(
    generator: np.random.Generator, n_reports: int, count: int, size: int
) -> IntArray:
    """Return the reports of ``count`` learners, [count, size] indices.

    Each learner gets ``size`` different reports, independently of the others (MRMA,
    algorithm 1). More than there are is a UserError.
    """
    validate.at_least(1, count=count)
    if validate.at_least(1, size=size) > n_reports:
        raise UserError(
            f"size is {size}, but there are only {n_reports} reports to draw from."
        )
    # A shuffle, not the smallest of random keys: partitioning differs by processor.
    # One learner after the other, so that only one order is in memory.
    everyone = np.arange(n_reports)[None]
    subsets = [generator.permuted(everyone, axis=1)[0, :size] for _ in range(count)]
    return np.array(subsets)


def disjoint_parts(
    generator: np.random.Generator, n_reports: int, count: int
) -> list[IntArray]:
    """Return ``count`` disjoint random parts of the reports.

    The remainder is left out. More parts than reports are a UserError.
    """
    if validate.at_least(1, count=count) > n_reports:
        raise UserError(f"count is {count}, but there are only {n_reports} reports.")
    size = n_reports // count
    order = generator.permutation(n_reports)[: count * size]
    return list(order.reshape(count, size))


def fit_problems(
    name: str,
    problems: Sequence[tuple[FloatArray, FloatArray]],
    *,
    gram: FloatArray,
    roughness: FloatArray | None = None,
    **params: Any,
) -> Fits:
    """Fit learner ``name`` to problems (reports [n, d], labels [n]) of any sizes n.

    ``gram`` and ``roughness`` (d, d), of the basis and of its second derivatives, make
    reports functions, for the learners that see them so.
    Problems of one size are fitted in one batch; the results stand in the order given.
    No problem at all, or different d, is a UserError.
    """
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, (reports, _) in enumerate(problems):
        groups[np.shape(reports)].append(index)
    widths = {shape[-1:] for shape in groups}
    if len(widths) != 1:
        raise UserError(f"problems must share one d; found {sorted(widths)}.")
    public = {"gram": gram, "roughness": roughness}
    params |= {key: public[key] for key in public if key in parameters(name)}
    results = []
    for group in groups.values():
        reports, labels = (np.stack([problems[i][k] for i in group]) for k in (0, 1))
        results.append(fit(name, reports, labels, **params))
    order = np.argsort(np.concatenate(list(groups.values())))
    return Fits(
        np.concatenate([fits.coef for fits in results])[order],
        np.concatenate([fits.intercept for fits in results])[order],
        np.concatenate([fits.flagged for fits in results])[order],
        results[0].ridge,
    )


@dataclass(frozen=True, eq=False)
class Utility:
    """Estimated accuracies [B] and their standard errors [B], not clipped."""

    value: FloatArray
    standard_error: FloatArray


def estimate_utility(positive: ArrayLike, n: ArrayLike, q: float) -> Utility:
    """Return unbiased accuracies from ``positive`` [B] of ``n`` [B] votes.

    Each vote was kept with probability ``q`` in (1/2, 1] and else turned round (MRMA,
    equation 7). The estimate is (positive/n + q - 1)/(2q - 1), equation (8), unbiased
    by theorem 3; it may leave [0, 1]. The standard error plugs the observed rate into
    the exact variance p (1 - p) / (n (2q - 1)^2), p the probability of a vote "right"
    after randomization. Counts outside 0..n, n < 1 or another q are a UserError.
    """
    votes, total = check_vote_counts(positive, n)
    rate = votes / total
    gain = _vote_gain(q)
    error = np.sqrt(rate * (1 - rate) / total) / gain
    return Utility((rate + q - 1) / gain, error)


def judged_accuracy(
    positive: int, n: int, q: float, confidence: float = 0.95
) -> tuple[float, float, float, float]:
    """Return a classifier's accuracy, its standard error, and its interval's ends.

    ``positive`` of ``n`` >= 1 votes say "right", each kept with probability ``q``. The
    number of them is binomial, so Clopper and Pearson's interval of their share, read
    through `estimate_utility`'s equation, covers with the ``confidence`` at every
    accuracy. All but the standard error lie in [0, 1].
    """
    utility = estimate_utility([positive], [n], q)
    ends = binomial_interval(positive, n, confidence)
    shares = np.clip([(end + q - 1) / _vote_gain(q) for end in ends], 0, 1)
    value = min(max(float(utility.value[0]), 0.0), 1.0)
    return value, float(utility.standard_error[0]), float(shares[0]), float(shares[1])


def check_vote_counts(positive: ArrayLike, n: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return valid vote counts as integers, 0 <= positive <= n."""
    positives, total = validate.finite(positive=positive), validate.finite(n=n)
    if positives.shape != total.shape or positives.ndim != 1:
        raise UserError(
            f"positive has shape {positives.shape} and n {total.shape}; both must be"
            " [B]."
        )
    valid = (positives >= 0) & (positives <= total) & (total >= 1)
    valid &= (positives % 1 == 0) & (total % 1 == 0)
    if not valid.all():
        b = int(np.argmin(valid))
        raise UserError(
            f"classifier {b} has {positives[b]:g} positive of {total[b]:g} votes;"
            " counts must be whole, 0 <= positive <= n and n >= 1."
        )
    return positives.astype(np.int64), total.astype(np.int64)


def _vote_gain(q: float) -> float:
    if not 0.5 < q <= 1:
        raise UserError(f"q is {q!r}; the probability to keep a vote lies in (1/2, 1].")
    return 2 * q - 1


def reversal_mask(positive: ArrayLike, n: ArrayLike) -> NDArray[np.bool_]:
    """Return which classifiers to reverse, [B]: those with 2 * positive < n.

    This is MRMA, equation (9), "estimated accuracy < 1/2", asked of the integer counts
    ``positive`` [B] of ``n`` [B]: in floating point a tie falls to either side by
    rounding error. A tie keeps the classifier.
    """
    votes, total = check_vote_counts(positive, n)
    return 2 * votes < total


def reversed_utility(utility: ArrayLike, reversed_: ArrayLike) -> NDArray[np.float64]:
    """Return the utilities [B] after reversal.

    The standard errors stay as they are.
    """
    value, mask = validate.finite(utility=utility), np.asarray(reversed_, dtype=bool)
    if value.shape != mask.shape:
        raise UserError(f"utility has shape {value.shape}, reversed {mask.shape}.")
    return np.where(mask, 1 - value, value)


WHEN_NONE_PASS = ("soft", "best", "uniform")
WEIGHTS = ("excess", "distance")


def averaging_weights(
    utility: ArrayLike, cutoff: float, when_none_pass: str, form: str = "excess"
) -> tuple[FloatArray, bool]:
    """Return weights [B] that sum to 1, and whether none passed the cutoff.

    MRMA, equation (10), ``form`` "excess": weights in proportion to max(u - ``cutoff``,
    0), u the ``utility`` [B] after reversal, ``cutoff`` (r0) in [1/2, 1). The authors'
    public code has another form, and their tables 1 and 2 match it, "distance": who
    passes weighs |u - 1/2|, u clipped to [0, 1]. The paper is silent where nobody
    passes; ``when_none_pass`` decides: ``soft`` max(u - 1/2, 0) (uniform where that is
    0 too), ``best`` the one of highest utility, ``uniform``.
    """
    validate.one_of(WEIGHTS, weights=form)
    value = validate.finite(utility=utility)
    validate.one_of(WHEN_NONE_PASS, when_none_pass=when_none_pass)
    if value.ndim != 1 or not value.size:
        raise UserError(f"utility has shape {value.shape}; it must be [B], not empty.")
    if not validate.rule_holds(lambda: 0.5 <= cutoff < 1):
        raise UserError(f"cutoff is {cutoff!r}; it must lie in [0.5, 1).")
    none_passed = not bool((value > cutoff).any())
    if none_passed and when_none_pass == "best":
        raw = np.eye(1, value.size, int(np.argmax(value)))[0]
    elif none_passed and when_none_pass == "uniform":
        raw = np.ones(value.size)
    elif none_passed or form == "excess":
        raw = np.maximum(value - (0.5 if none_passed else cutoff), 0)
    else:  # who passes is above 1/2, so only the upper end of [0, 1] can clip
        raw = np.where(value > cutoff, np.minimum(value, 1) - 0.5, 0)
    top = raw.max()
    if top == 0:
        return np.full(raw.size, 1 / raw.size), none_passed
    relative = raw / top  # first, so that the sum cannot overflow
    return np.asarray(relative / relative.sum()), none_passed


def average_classifiers(
    coef: ArrayLike, intercept: ArrayLike, weights: ArrayLike
) -> tuple[FloatArray, float]:
    """Return the weighted mean of ``coef`` [B, d] and ``intercept`` [B].

    MRMA, equation (11): for linear classifiers the average of the decision functions is
    the classifier of the averaged (unnormalised) coefficient vectors.
    ``averaging_weights`` is [B]; reverse the classifiers first.
    """
    slopes, constants = validate.finite(coef=coef), validate.finite(intercept=intercept)
    share = validate.finite(weights=weights)
    if slopes.ndim != 2 or not constants.shape == share.shape == slopes.shape[:1]:
        raise UserError(
            f"coef {slopes.shape}, intercept {constants.shape} and weights"
            f" {share.shape} must be [B, d], [B] and [B]."
        )
    return share @ slopes, float(share @ constants)


def decline_of_votes(n: ArrayLike, positive: ArrayLike) -> float:
    """Return the evidence that candidates do worse in later batches of votes.

    ``n`` and ``positive`` (T, B) count the votes of T batches on B candidates and those
    "right" among them. The first batch says which candidates are reversed, as in MRMA,
    equation (9), and is not looked at again; of the others all votes together are bits
    of `sequences.decline_evidence`, as invitations are dealt to candidates at random.
    Counts that are not whole, or outside 0..n, are a UserError.
    """
    votes, right = (np.atleast_2d(validate.finite(counts=c)) for c in (n, positive))
    for batch in zip(right, votes, strict=True):
        check_vote_counts(batch[0][batch[1] > 0], batch[1][batch[1] > 0])
    has_votes = votes[0] > 0
    turned = has_votes & (2 * right[0] < votes[0])
    right = np.where(turned, votes - right, right)[1:, has_votes]
    return decline_evidence(votes[1:, has_votes].sum(axis=1), right.sum(axis=1))
