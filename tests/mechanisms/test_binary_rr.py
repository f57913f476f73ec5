"""Randomized response: its threshold, its law and the labels it takes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.mechanisms.randomized_response import BinaryRR
from tests.noise import SEED, Replay, exp_oracle


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 3])
def test_binary_rr_threshold_is_the_exact_floor(epsilon):
    """The kept share is floor(2^64 e^eps/(1+e^eps)) / 2^64, by a rational oracle."""
    power = exp_oracle(Fraction(epsilon))
    mechanism = make("binary_rr", epsilon=epsilon)
    assert mechanism.threshold == math.floor(2**64 * power / (1 + power))
    assert mechanism.flip_threshold + mechanism.threshold == 2**64
    assert mechanism.keep == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-15)


def test_binary_rr_keeps_just_below_the_threshold():
    """A label is kept for the word below the threshold and flipped for the next."""
    mechanism = make("binary_rr", epsilon=1)
    words = Replay(mechanism.threshold - 1, mechanism.threshold)
    assert mechanism.randomize([1, 1], words).tolist() == [1, -1]


def test_binary_rr_mean_is_shrunk():
    """The mean is (2q - 1) x and the variance 1 - (2q - 1)^2."""
    mechanism = make("binary_rr", epsilon=2)
    shrink = 2 * mechanism.keep - 1
    assert mechanism.mean([-1, 1]) == pytest.approx([-shrink, shrink])
    assert mechanism.variance(1) == pytest.approx(1 - shrink**2)


@pytest.mark.parametrize("bad", [[0, 1], [2], [0.999]])
def test_binary_rr_refuses_what_is_no_label(bad):
    """Anything but -1 and +1 is a UserError that shows the value."""
    with pytest.raises(UserError, match="labels are -1 or"):
        make("binary_rr", epsilon=1).randomize(bad, Replay())


def test_log_odds_never_exceed_a_bound():
    """The loss of a threshold rounded towards privacy is at most epsilon, as floats."""
    for epsilon in np.random.default_rng(SEED).uniform(0.001, 45, 300).tolist():
        assert BinaryRR(epsilon=epsilon).worst_log_ratio() <= epsilon
