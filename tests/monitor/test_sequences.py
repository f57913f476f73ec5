"""Intervals and alarms that hold at every look, against simulated streams."""

import math

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.learning.sequences import (
    DropDetector,
    deviation,
    share_interval,
)

STREAMS, ANSWERS = 400, 2_000


def bits(share: float | np.ndarray, seed: int = 1) -> np.ndarray:
    """Return streams of bits, (STREAMS, ANSWERS)."""
    rng = np.random.default_rng(seed)
    return (rng.random((STREAMS, ANSWERS)) < share).astype(np.int64)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
def test_an_interval_holds_at_all_looks(share: float) -> None:
    """In 95 of 100 streams, and one that is far too narrow does not."""
    looks = np.arange(20, ANSWERS + 1, 20)
    ones = bits(share).cumsum(axis=1)[:, looks - 1]
    low, high = share_interval(looks, ones, 0.05, 500.0)
    held = ((low <= share) & (share <= high)).all(axis=1).mean()
    assert held >= 0.95
    middle, half = (low + high) / 2, (high - low) / 4
    fewer = (np.abs(middle - share) <= half).all(axis=1).mean()
    assert fewer < 0.9


def test_it_holds_for_the_mean_of_what_drifts() -> None:
    """An interval for one unchanging share would not be about anything."""
    share = np.linspace(0.95, 0.6, ANSWERS)
    looks = np.arange(20, ANSWERS + 1, 20)
    mean = (share.cumsum() / np.arange(1, ANSWERS + 1))[looks - 1]
    ones = bits(share).cumsum(axis=1)[:, looks - 1]
    low, high = share_interval(looks, ones, 0.05, 500.0)
    assert ((low <= mean) & (mean <= high)).all(axis=1).mean() >= 0.95


def test_before_the_first_answer_all_is_possible() -> None:
    """And what is no probability of error is refused."""
    assert [float(end) for end in share_interval(0, 0, 0.05, 100)] == [0, 1]
    with pytest.raises(UserError, match="strictly between 0 and 1"):
        share_interval(10, 5, 1.5, 100)


def test_a_deviation_of_numbers_holds_at_all_looks() -> None:
    """Of numbers with little spread it is far less than of bits."""
    rng = np.random.default_rng(5)
    numbers = rng.beta(20, 20, (STREAMS, ANSWERS))
    guesses = np.full((STREAMS, ANSWERS), 0.5)
    squares = ((numbers - guesses) ** 2).cumsum(axis=1)
    looks = np.arange(50, ANSWERS + 1, 50) - 1
    reach = deviation(squares[:, looks], 0.05, 10.0)
    gap = np.abs((numbers - 0.5).cumsum(axis=1)[:, looks])
    assert (gap <= reach).all(axis=1).mean() >= 0.95
    low, high = share_interval(ANSWERS, ANSWERS / 2, 0.05, 500.0)
    assert reach[:, -1].mean() / ANSWERS < (high - low) / 4


def test_false_alarms_are_bounded_for_ever() -> None:
    """At the bound itself, where they are likeliest; a careless twin gives more."""
    alarms = 0
    for stream in bits(0.8, seed=7):
        detector = DropDetector(0.8, 0.1, block=50)
        detector.add(stream)
        alarms += detector.alarm is not None
    assert alarms / STREAMS <= 0.1
    # A twin that holds each look against the bound by itself.
    ones = bits(0.8, seed=7).cumsum(axis=1)[:, 49::50]
    n = np.arange(50, ANSWERS + 1, 50)
    z = (ones / n - 0.8) / np.sqrt(0.16 / n)
    assert (z < -1.28).any(axis=1).mean() > 0.3


def test_a_drop_is_found_when_it_was_said() -> None:
    """Behind a long quiet time, too; the order within a look makes little of it."""
    rng, times = np.random.default_rng(9), []
    for _ in range(60):
        detector = DropDetector(0.8, 0.05, block=40)
        detector.add((rng.random(800) < 0.85).astype(int))
        while detector.alarm is None:
            detector.add((rng.random(100) < 0.7).astype(int))
        times.append(detector.alarm - 800)
    told = DropDetector(0.8, 0.05, block=40).time_to_detection(
        0.7, before=800, usual=0.85
    )
    assert np.mean(times) == pytest.approx(told.mean(), rel=0.2)
    assert math.isinf(DropDetector(0.8, 0.05).time_to_detection(0.81).mean())


def test_counts_are_a_look_each() -> None:
    """Numbers in [0, 1] count by their sum; what comes behind an alarm, not at all."""
    detector = DropDetector(0.9, 0.05)
    for _ in range(20):
        detector.add_counts(100, 60.5)
    found = detector.alarm
    assert found is not None
    assert found % 100 == 0
    detector.add_counts(100, 100)
    assert detector.alarm == found
    with pytest.raises(UserError, match="0 or 1"):
        DropDetector(0.9, 0.05).add([0, 2])
