"""Planner of MRMA: how accurate it will be, from public quantities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.server.averaging import WHEN_NONE_PASS
from curvote.theory.crowd import Case, Reports, Sizes, WeakClassifiers, draw_means
from curvote.theory.prior import UtilityPrior
from curvote.theory.votes import keep_probability
from curvote.validate import FloatArray

BoolArray = NDArray[np.bool_]

REPLICATES = 4000
VALUES = 2**23  # coordinates that may be drawn for each class
FEWEST = 200
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Prediction:
    """What to expect of one run, over the noise, the draws and the votes.

    Parameters
    ----------
    accuracy : float
        The mean accuracy of the final classifier on unperturbed data.
    spread : float
        Its standard deviation from run to run.
    interval : (float, float)
        The middle 95 %.
    weak, weak_spread : float
        Mean and standard deviation of the accuracies of the weak classifiers before
        reversal.
    reversal_right : float
        How often reversal leaves the better of f and -f.
    none_passed : float
        How often no utility is above the cutoff.
    standard_error : float
        Of ``accuracy``, from a finite number of draws.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior, predict
    >>> sizes = {"n_per_learner": 50, "n_learners": 25, "cutoff": 0.8}
    >>> found = predict(500, 2500, 4, 4.0, UtilityPrior(best=0.9), **sizes)
    >>> print(f"{found.accuracy:.2f}, weak ones {found.weak:.2f}")
    0.84, weak ones 0.53
    """

    accuracy: float
    spread: float
    interval: tuple[float, float]
    weak: float
    weak_spread: float
    reversal_right: float
    none_passed: float
    standard_error: float


@dataclass(frozen=True)
class PolledCrowd:
    """Classifiers, their true accuracies, and the votes' reversal and utility [R, B].

    ``utility`` is the estimate after reversal.
    """

    crowd: WeakClassifiers
    true: FloatArray
    reversed: BoolArray
    utility: FloatArray


def predict(
    n_train: int,
    n_vote: int,
    d: int,
    epsilon: float,
    prior: UtilityPrior,
    *,
    n_per_learner: int,
    n_learners: int,
    cutoff: float,
    when_none_pass: str = "soft",
    mechanism: str = "laplace",
    seed: int = 0,
) -> Prediction:
    """Return the accuracy that MRMA with nearest-centroid learners will reach.

    Nothing but these numbers, the noise that an unbiased ``mechanism`` states and
    ``prior`` enters: thousands of draws of class means and vote counts. No other
    learner depends on class means alone; under noise this is the one to take.

    Parameters
    ----------
    n_train, n_vote : int
        Clients who report (z in [-1, 1]^d, label), and who vote.
    d : int
        Numbers of a report.
    epsilon : float
        Budget of each client.
    prior : UtilityPrior
        How useful classifiers of the task can be.
    n_per_learner, n_learners : int
        Reports that a classifier learns from, and the classifiers that share the votes.
    cutoff : float in [0.5, 1)
        After reversal they are averaged by max(u - cutoff, 0).
    when_none_pass : "soft", "best" or "uniform", default="soft"
        What is averaged where no utility is above the cutoff.
    mechanism : str, default="laplace"
        What noises a number.
    seed : int, default=0
        Of the draws.

    Returns
    -------
    Prediction
        Of one run.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior
    >>> sizes = {"n_per_learner": 50, "n_learners": 25, "cutoff": 0.8}
    >>> found = predict(500, 2500, 4, 4.0, UtilityPrior(best=0.9), **sizes)
    >>> print(f"{found.accuracy:.2f}, weak ones {found.weak:.2f}")
    0.84, weak ones 0.53
    """
    case = Case(d, epsilon, prior, mechanism)
    sizes = Sizes(n_train, n_vote, n_per_learner, n_learners)
    return expect_accuracy(case, sizes, cutoff, when_none_pass, seed)


def expect_accuracy(
    case: Case, sizes: Sizes, cutoff: float, when_none_pass: str, seed: int
) -> Prediction:
    """Return what MRMA will reach in this case with these sizes; see ``predict``."""
    polled = poll_crowd(case, sizes, seed)
    final, none_passed = final_accuracies(polled, case.prior, cutoff, when_none_pass)
    low, high = np.quantile(final, INTERVAL)
    return Prediction(
        accuracy=float(final.mean()),
        spread=float(final.std()),
        interval=(float(low), float(high)),
        weak=float(polled.true.mean()),
        weak_spread=float(polled.true.std()),
        reversal_right=float(((polled.true >= 0.5) != polled.reversed).mean()),
        none_passed=float(none_passed.mean()),
        standard_error=float(final.std() / np.sqrt(len(final))),
    )


def poll_crowd(
    case: Case, sizes: Sizes, seed: int, replicates: int = REPLICATES
) -> PolledCrowd:
    """Return weak classifiers with their true accuracies, and what the votes say.

    ``replicates`` are fewer, and at least FEWEST, where the crowds are large.
    """
    rng = np.random.default_rng(seed)
    most = VALUES // (sizes.n_learners * case.d)
    law = Reports.from_case(case)
    means = draw_means(rng, law, sizes, max(FEWEST, min(replicates, most)))
    crowd = means.centroid(law)
    true = case.prior.utility(crowd.coef, crowd.intercept)
    votes, keep = sizes.votes, keep_probability(case.epsilon)
    positive = rng.binomial(votes, (2 * keep - 1) * true + 1 - keep)
    # The better side's estimate, (max(positive, n - positive)/n + q - 1)/(2q - 1)
    utility = 0.5 + np.abs(positive / votes - 0.5) / (2 * keep - 1)
    return PolledCrowd(crowd, true, 2 * positive < votes, utility)


def final_accuracies(
    polled: PolledCrowd,
    prior: UtilityPrior,
    cutoff: float,
    when_none_pass: str = "soft",
) -> tuple[FloatArray, BoolArray]:
    """Return the accuracies [R] of averaged classifiers, and where none passed."""
    weight, none_passed = _averaging_weights(polled.utility, cutoff, when_none_pass)
    signed = np.where(polled.reversed, -weight, weight)[:, None, :]
    coef = (signed @ polled.crowd.coef)[:, 0]
    intercept = (signed @ polled.crowd.intercept[..., None])[:, 0, 0]
    return prior.utility(coef, intercept), none_passed


def _averaging_weights(
    utility: FloatArray, cutoff: float, when_none_pass: str
) -> tuple[FloatArray, BoolArray]:
    """Return ``server.averaging.weights`` of many runs [R, B], up to their scale."""
    validate.one_of(WHEN_NONE_PASS, when_none_pass=when_none_pass)
    if not 0.5 <= cutoff < 1:
        raise UserError(f"cutoff is {cutoff!r}; it must lie in [0.5, 1).")
    weight = np.maximum(utility - cutoff, 0)
    none_passed = weight.max(axis=1) == 0
    weight[none_passed] = _fallback_weights(utility[none_passed], when_none_pass)
    return weight, none_passed


def _fallback_weights(utility: FloatArray, how: str) -> FloatArray:
    if how == "best":
        best = utility.argmax(axis=1)[:, None]
        return np.where(np.arange(utility.shape[1]) == best, 1.0, 0.0)
    if how == "uniform":
        return np.ones_like(utility)
    soft = utility - 0.5
    soft[soft.max(axis=1) == 0] = 1
    return soft
