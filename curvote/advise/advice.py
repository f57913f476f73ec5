"""Recommendation of sizes and a cutoff: a search over what the planner expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from itertools import product
from typing import NamedTuple

from curvote.advise.planner import (
    REPLICATES,
    Case,
    Prediction,
    Sizes,
    expect_accuracy,
    final_accuracies,
    poll_crowd,
)
from curvote.advise.prior import UtilityPrior
from curvote.base import validate

TRAIN_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7)
LEARNER_SHARES = (0.1, 0.25, 0.5, 1.0)
COUNTS = (1, 5, 10, 20, 40, 80, 160)
CUTOFFS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
FEWEST_REPORTS = 5  # of a learner, for each coordinate and the label
LEAST_CLIENTS = 50
ROUGH, FINALISTS = 300, 12


@dataclass(frozen=True)
class Plan:
    """Recommended settings, and what to expect of them.

    Parameters
    ----------
    n_train, n_vote, n_per_learner, n_learners : int
        As in `predict`.
    cutoff : float
        As in `predict`.
    prediction : Prediction
        Of these settings.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior, recommend
    >>> plan = recommend(50, 2, 4.0, UtilityPrior(best=0.9))
    >>> print(plan.n_train + plan.n_vote, plan.cutoff)
    50 0.8
    """

    n_train: int
    n_vote: int
    n_per_learner: int
    n_learners: int
    cutoff: float
    prediction: Prediction


class _Candidate(NamedTuple):
    accuracy: float
    sizes: Sizes
    cutoff: float


def recommend(
    n: int,
    d: int,
    epsilon: float,
    prior: UtilityPrior,
    *,
    when_none_pass: str = "soft",
    mechanism: str = "laplace",
) -> Plan:
    """Return the settings of highest expected accuracy.

    All settings of a grid are compared on common random numbers, the best again on new
    and more of them; the prediction comes from a third stream, so that it is not the
    luck of the chosen one.

    Parameters
    ----------
    n : int
        Clients in all, 50 or more.
    d : int
        Numbers of a report.
    epsilon : float
        Budget of each client.
    prior : UtilityPrior
        How useful classifiers of the task can be.
    when_none_pass, mechanism : str, default="soft", "laplace"
        As in `predict`.

    Returns
    -------
    Plan
        The settings, and what to expect of them.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior
    >>> plan = recommend(50, 2, 4.0, UtilityPrior(best=0.9))
    >>> print(plan.n_learners, f"{plan.prediction.accuracy:.2f}")
    5 0.69
    """
    validate.at_least(LEAST_CLIENTS, n=n)
    case = Case(d, epsilon, prior, mechanism)
    rough = _rate_sizes(
        case, product(_size_grid(n, d), [CUTOFFS]), when_none_pass, 1, ROUGH
    )
    finalists = [
        (candidate.sizes, (candidate.cutoff,))
        for candidate in _best_candidates(rough, FINALISTS)
    ]
    (best,) = _best_candidates(
        _rate_sizes(case, finalists, when_none_pass, 2, REPLICATES), 1
    )
    sizes = best.sizes
    return Plan(
        sizes.n_train,
        sizes.n_vote,
        sizes.n_per_learner,
        sizes.n_learners,
        best.cutoff,
        expect_accuracy(case, sizes, best.cutoff, when_none_pass, seed=3),
    )


def _best_candidates(rated: Iterable[_Candidate], count: int) -> list[_Candidate]:
    return nlargest(count, rated, key=lambda option: option.accuracy)


def _rate_sizes(
    case: Case,
    options: Iterable[tuple[Sizes, tuple[float, ...]]],
    when_none_pass: str,
    seed: int,
    replicates: int,
) -> Iterator[_Candidate]:
    """Yield the expected accuracy of all sizes with their cutoffs."""
    for sizes, cutoffs in options:
        polled = poll_crowd(case, sizes, seed, replicates)
        for cutoff in cutoffs:
            final, _ = final_accuracies(polled, case.prior, cutoff, when_none_pass)
            yield _Candidate(float(final.mean()), sizes, cutoff)


def _size_grid(n: int, d: int) -> Iterator[Sizes]:
    """Yield all sizes to compare, each once; learners that are all one only once."""
    visited = set()
    for share, part, count in product(TRAIN_SHARES, LEARNER_SHARES, COUNTS):
        n_train = round(n * share)
        least = FEWEST_REPORTS * (d + 1)
        size = min(max(round(n_train * part), least), n_train)
        sizes = n_train, n - n_train, size, 1 if size == n_train else count
        if n_train >= 2 and count <= n - n_train and sizes not in visited:
            visited.add(sizes)
            yield Sizes(*sizes)
