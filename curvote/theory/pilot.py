"""Prior from the accuracy of weak classifiers: in a pilot, or as one believes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from curvote.errors import UserError
from curvote.theory.crowd import Case, Reports, Sizes, draw_means
from curvote.theory.prior import UtilityPrior

RUNS, LEARNERS = 200, 100
MANY = 10**7  # reports, so that learners share next to none
NEAREST = 1e-3


def prior_from_weak(
    prior: UtilityPrior,
    weak: float,
    n_per_learner: int,
    d: int,
    epsilon: float,
    *,
    mechanism: str = "laplace",
) -> UtilityPrior:
    """Return ``prior`` with the separation that gives weak classifiers ``weak``.

    Parameters
    ----------
    prior : UtilityPrior
        What is believed beside the separation.
    weak : float
        The mean true accuracy of weak classifiers before reversal: the mean estimated
        utility of a pilot, for example.
    n_per_learner : int
        The reports that each learns from.
    d : int
        Numbers of a report.
    epsilon : float
        Budget of a report.
    mechanism : str, default="laplace"
        As in `predict`.

    Returns
    -------
    UtilityPrior
        Where no separation gives ``weak``, a UserError says what can be reached.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior
    >>> prior = UtilityPrior(best=0.9)
    >>> found = prior_from_weak(prior, weak=0.6, n_per_learner=50, d=4, epsilon=4.0)
    >>> print(f"{prior.distance:.2f} {found.distance:.2f}")
    0.77 1.51
    """
    case = Case(d, epsilon, prior, mechanism)
    sizes = Sizes(MANY, LEARNERS, n_per_learner, LEARNERS)

    def weak_accuracy(log_separation: float) -> float:
        candidate = replace(prior, separation=math.exp(log_separation))
        return _mean_utility(replace(case, prior=candidate), sizes)

    ends = math.log(NEAREST), math.log(2 * math.sqrt(d))  # the cube's diagonal
    low, high = map(weak_accuracy, ends)
    if not low < weak < high:
        raise UserError(
            f"weak is {weak!r}; with these reports weak classifiers have mean"
            f" accuracies between {low:.4f} and {high:.4f}."
        )
    solution = brentq(lambda x: weak_accuracy(x) - weak, *ends, xtol=1e-6)
    return replace(prior, separation=math.exp(solution))


def _mean_utility(case: Case, sizes: Sizes) -> float:
    """Return the mean accuracy of weak classifiers.

    Over mirrored pairs: what noise alone makes of one it takes from the other, and
    the little that is left is the signal.
    """
    law = Reports.from_case(case)
    means = draw_means(np.random.default_rng(0), law, sizes, RUNS)
    crowds = (half.centroid(law) for half in (means, means.mirrored(law)))
    pair = [case.prior.utility(crowd.coef, crowd.intercept) for crowd in crowds]
    return float(np.mean(pair))
