"""The dynamic program over bins against all binnings there are."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.regression.targets import optimal_binning


def loss_of(
    values: np.ndarray, prior: np.ndarray, epsilon: float, edges: tuple[int, ...]
) -> float:
    """The expected squared error of randomized response, answer by answer."""
    k = len(edges) - 1
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    move = (1 - keep) / max(1, k - 1)
    total = 0.0
    for start, end in pairwise(edges):
        inside = (np.arange(len(values)) >= start) & (np.arange(len(values)) < end)
        joint = prior * np.where(inside, keep, move)
        answer = joint @ values / joint.sum()
        total += float(joint @ (values - answer) ** 2)
    return total


def brute_force(values: np.ndarray, prior: np.ndarray, epsilon: float) -> float:
    """The least loss over all ways of cutting m values into intervals."""
    m = len(values)
    return min(
        loss_of(values, prior, epsilon, (0, *inner, m))
        for k in range(m)
        for inner in combinations(range(1, m), k)
    )


@pytest.mark.parametrize("seed", range(50))
def test_it_equals_brute_force(seed: int) -> None:
    """For random priors of at most 8 values, some of them of weight 0."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9))
    values = np.sort(rng.normal(size=m))
    prior = rng.dirichlet(np.full(m, 0.7)) * (rng.random(m) < 0.9)
    prior = prior / prior.sum() if prior.any() else np.full(m, 1 / m)
    epsilon = float(rng.choice([0.1, 0.5, 1, 2, 4, 8]))
    found = optimal_binning(values, prior, epsilon)
    assert found.loss == pytest.approx(brute_force(values, prior, epsilon), rel=1e-9)
    edges = (*map(int, found.starts), m)
    stated = loss_of(values, prior, epsilon, edges)
    assert found.loss == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 9])
def test_the_loss_is_that_of_the_mechanism(epsilon: float) -> None:
    """Each client's squared error, by the exact law of what it sends."""
    rng = np.random.default_rng(3)
    values, prior = np.linspace(-0.9, 0.9, 24), rng.dirichlet(np.ones(24))
    found = optimal_binning(values, prior, epsilon)
    starts = found.starts[1:]
    cuts = (values[starts - 1] + values[starts]) / 2
    mechanism = RROnBins(epsilon=epsilon, cuts=cuts, answers=found.answers)
    errors = mechanism.variance(values) + (mechanism.mean(values) - values) ** 2
    assert prior @ errors == pytest.approx(found.loss, rel=1e-9)
    assert prior @ mechanism.mean(values) == pytest.approx(prior @ values, abs=1e-9)


def test_a_richer_budget_never_loses() -> None:
    """Neither in error nor in the number of bins, down to the values themselves."""
    values, prior = np.arange(12.0), np.full(12, 1 / 12)
    found = [
        optimal_binning(values, prior, epsilon)
        for epsilon in (0.01, 0.5, 2, 5, 30, 800)
    ]
    losses = [each.loss for each in found]
    assert losses == sorted(losses, reverse=True)
    counts = [len(each.starts) for each in found]
    assert counts[0] == 2
    assert counts[-1] == 12
    assert counts == sorted(counts)
    assert losses[-1] == pytest.approx(0, abs=1e-12)


def test_a_prior_of_one_value_takes_one_bin() -> None:
    """Its answer is the value, whatever the client holds."""
    found = optimal_binning([1.0, 2.0, 4.0], [0, 3, 0], 1.0)
    assert len(found.starts) == 1
    assert found.answers.tolist() == [2.0]
    assert found.loss == pytest.approx(0)


@pytest.mark.parametrize(
    ("values", "prior", "said"),
    [
        ([1, 1, 2], [1, 1, 1], "increase strictly"),
        ([1, 2], [1, 1, 1], r"shape \(2,\) and prior \(3,\)"),
        ([1, 2], [0, 0], "one above 0"),
        ([1, 2], [1, -1], "no negative"),
        ([1, np.nan], [1, 1], "finite"),
        ([], [], "one weight for each value"),
    ],
)
def test_what_is_no_prior_is_refused(values, prior, said: str) -> None:
    """With what was given."""
    with pytest.raises(UserError, match=said):
        optimal_binning(values, prior, 1.0)
