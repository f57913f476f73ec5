"""Randomized response on bins: its law and what it refuses; a twin is caught."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.checks.mechanism_subject import subject_of
from curvote.mechanisms import make
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.regression.targets import (
    bin_params,
    cell_middles,
    optimal_binning,
)


class _CutsByLabel(RROnBins):
    """Broken: bins that are best for the very labels, not for a prior."""

    def _draw(self, values, entropy):
        params = bin_params(np.histogram(values, 8, (-1, 1))[0] + 1e-3, self.epsilon)
        return RROnBins(epsilon=self.epsilon, **params)._draw(values, entropy)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2, 10])
def test_the_worst_ratio_is_that_of_k_rr(epsilon: float) -> None:
    """As a fraction; the law's largest ratio, and never above e^epsilon."""
    prior = np.random.default_rng(1).dirichlet(np.ones(30))
    mechanism = make("rr_on_bins", epsilon=epsilon, **bin_params(prior, epsilon))
    told = make("k_rr", epsilon=epsilon, n_classes=mechanism.k)
    assert isinstance(mechanism.worst_ratio(), Fraction)
    assert mechanism.worst_ratio() == told.worst_ratio()
    law = mechanism.probabilities(cell_middles(30))
    assert np.log(law.max() / law.min()) <= epsilon + 1e-12


def test_a_value_on_a_cut_is_of_the_upper_bin() -> None:
    """And the ends belong to the outer bins."""
    mechanism = RROnBins(epsilon=1.0, cuts=[-0.5, 0.25], answers=[-0.7, 0, 0.5])
    assert mechanism.bins([-1, -0.5, 0.2, 0.25, 1]).tolist() == [0, 1, 1, 2, 2]


def test_draws_follow_the_law() -> None:
    """Each answer as often as stated, within 5 standard errors."""
    mechanism = RROnBins(epsilon=1.0)
    drawn = mechanism.randomize(np.full(50_000, 0.1), SeededEntropy(3))
    law = mechanism.probabilities(0.1)
    shares = (drawn[:, None] == mechanism.outputs).mean(axis=0)
    assert (np.abs(shares - law) < 5 * np.sqrt(law / 50_000)).all()


def test_one_bin_says_nothing() -> None:
    """The answer is constant and the loss 0."""
    mechanism = RROnBins(epsilon=1.0, cuts=[], answers=[0.3])
    assert mechanism.worst_log_ratio() == 0
    drawn = mechanism.randomize(np.linspace(-1, 1, 9), SeededEntropy(0))
    assert set(drawn.tolist()) == {0.3}


def test_bins_made_from_the_labels_are_caught() -> None:
    """The answer of a label tells where it lies, however it is randomized."""
    broken, honest = _CutsByLabel(epsilon=1.0), RROnBins(epsilon=1.0)
    outputs = broken.randomize(np.full(50, 0.8), SeededEntropy(0))
    assert not broken.possible_mask(outputs).all()
    twin, shipped = (subject_of(each, "rr_on_bins") for each in (broken, honest))
    x = np.array(0.8)
    for subject, passes in ((twin, False), (shipped, True)):
        drawn = subject.draw(x, 4000, SeededEntropy(1))
        assert (subject.law_gap(x, drawn, 1e-6) is None) == passes


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"cuts": [0.2, 0.1]}, "cuts must be one row"),
        ({"cuts": [0.0, 1.0]}, "strictly between -1 and 1"),
        ({"cuts": [0.0]}, "one bin more"),
        ({"answers": [0, 0, 1]}, "answers must be one row"),
        ({"answers": [0, np.nan, 1]}, "finite"),
    ],
)
def test_bins_that_are_none_are_refused(params, said: str) -> None:
    """With what is wrong."""
    with pytest.raises(UserError, match=said):
        RROnBins(epsilon=1.0, **params)


def test_the_bins_of_a_prior_are_its_optimal_ones() -> None:
    """Cuts between cells, answers as the program gives them."""
    prior = np.random.default_rng(0).dirichlet(np.ones(10))
    found = optimal_binning(cell_middles(10), prior, 2.0)
    mechanism = make("rr_on_bins", epsilon=2.0, **bin_params(prior, 2.0))
    assert np.array_equal(mechanism.outputs, found.answers)
    starts = np.flatnonzero(np.diff(mechanism.bins(cell_middles(10)), prepend=-1))
    assert np.array_equal(starts, found.starts)
