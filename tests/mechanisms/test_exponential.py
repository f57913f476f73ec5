"""The exponential mechanism: its counts, its rate and its grid."""

from fractions import Fraction

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.mechanisms.base import SMALLEST_EPSILON
from tests.noise import EPSILONS, Replay

SIZES = (2, 3, 4, 5, 101)


def exact_counts(mechanism) -> list[list[int]]:
    """The channel as Python integers out of 2^64."""
    return [[int(count) for count in row] for row in mechanism.counts]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, *EPSILONS, 44, 1e300])
def test_counts_are_a_channel_within_epsilon(epsilon, size):
    """Rows are 2^64 words, no output is impossible, no ratio exceeds e^epsilon."""
    mechanism = make("exponential", epsilon=epsilon, size=size)
    rows = exact_counts(mechanism)
    assert {sum(row) for row in rows} == {2**64}
    assert min(map(min, rows)) > 0
    columns = zip(*rows, strict=True)
    assert mechanism.worst_ratio() == max(
        Fraction(max(column), min(column)) for column in columns
    )
    assert mechanism.worst_log_ratio() <= epsilon
    if epsilon <= 10:
        assert mechanism.worst_log_ratio() >= epsilon - 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_law_is_exponential_in_the_distance(epsilon):
    """P(y | x) is proportional to e^(-epsilon |x - y| / 2): near points are likelier.

    Zheng & Hu's general rate, half of it, would spend half of epsilon.
    """
    mechanism = make("exponential", epsilon=epsilon)
    grid = mechanism.outputs
    weights = np.exp(-epsilon / 2 * np.abs(grid[:, None] - grid))
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert mechanism.probabilities(grid) == pytest.approx(expected, rel=1e-12)
    assert grid == pytest.approx(np.linspace(-1, 1, 101), abs=1e-15)


def test_worst_pair_is_that_of_the_ends():
    """The largest ratio stands in the first column, between the two ends."""
    mechanism = make("exponential", epsilon=2)
    rows = exact_counts(mechanism)
    assert mechanism.worst_ratio() == Fraction(rows[0][0], rows[-1][0])


@pytest.mark.parametrize("size", SIZES)
def test_words_lead_to_their_outputs(size):
    """The first and the last word of each output's share give that output."""
    mechanism = make("exponential", epsilon=3, size=size)
    for x, row in zip(mechanism.outputs, exact_counts(mechanism), strict=True):
        ends = np.cumsum(np.array(row, dtype=object))
        words = [
            *(ends - 1),
            *(end - count for end, count in zip(ends, row, strict=True)),
        ]
        drawn = mechanism.randomize(np.full(2 * size, x), Replay(*words))
        assert (drawn == np.tile(mechanism.outputs, 2)).all()


def test_inputs_go_to_the_nearest_grid_point():
    """At an absurd epsilon the answer is the grid point next to the input."""
    mechanism = make("exponential", epsilon=1e6, size=5)
    x = np.array([-1, -0.8, -0.7, 0.1, 0.3, 0.9])
    assert mechanism.mean(x) == pytest.approx([-1, -1, -0.5, 0, 0.5, 1], abs=1e-15)


def test_mean_and_variance_are_those_of_the_channel():
    """The stated moments are sums over the channel's row of the input."""
    mechanism, x = make("exponential", epsilon=1), np.linspace(-1, 1, 37)
    rows = mechanism.probabilities(x)
    mean = rows @ mechanism.outputs
    assert mechanism.mean(x) == pytest.approx(mean, abs=1e-12)
    square = rows @ mechanism.outputs**2
    assert mechanism.variance(x) == pytest.approx(square - mean**2, abs=1e-12)


@pytest.mark.parametrize("bad", [1, 0, 2.5, 1025])
def test_size_out_of_range(bad):
    """Fewer than 2 points, more than 1024 or a broken number is a UserError."""
    with pytest.raises(UserError, match="size"):
        make("exponential", epsilon=1, size=bad)
