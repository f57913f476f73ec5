"""Quadrature: closed forms, sums from below and above, and what a coarse look loses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from curvote.mechanisms.base import continuous_law, product_law
from curvote.systems.utility.method.engines import scores as shares
from curvote.systems.utility.method.engines.discriminants import mixture_shares
from curvote.systems.utility.method.engines.scores import Scores, ValueLaw
from tests.utility.engines.scores.laws_of import normal


def line(constants, slopes):
    """Scores 0 and constant + v @ slopes, (n,) and (2,)."""
    constant = np.stack([np.zeros_like(constants), constants], axis=1)
    linear = np.stack([np.zeros(2), slopes], axis=-1)[None]
    return Scores(constant, linear, np.zeros((2, 2, 2)))


def uniform(low, wide):
    """Independent uniform laws on [low, low + wide], (n, 2) and (2,)."""
    return product_law(
        *(
            continuous_law(
                start[:, None], lambda x, at, w=w: np.clip((at - x) / w, 0, 1)
            )
            for start, w in zip(low.T, wide, strict=True)
        )
    )


def area(constants, slopes, low, wide):
    """P(constant + v @ slopes > 0) for uniform values: parts of second powers."""
    start = constants + low @ slopes + np.minimum(slopes * wide, 0).sum()
    a, b = np.abs(slopes * wide)
    ramps = [np.maximum(start + each, 0) ** 2 for each in (0, a, b, a + b)]
    return (ramps[3] - ramps[1] - ramps[2] + ramps[0]) / (2 * a * b)


def test_uniform_values_in_closed_form():
    """Windows of very different widths: off by less than is stated."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        slopes, wide = rng.normal(size=2), 10 ** rng.uniform(-3, 1, 2)
        low, constants = rng.normal(size=(20, 2)), rng.normal(size=20)
        constants = -low @ slopes - rng.uniform(0, 1, 20) * (slopes * wide).sum()
        found, _ = mixture_shares(line(constants, slopes), uniform(low, wide))
        right = area(constants, slopes, low, wide)
        assert np.abs(found[:, 1] - right).max() < shares.TOLERANCE
        assert 0.01 < right.mean() < 0.99


def test_few_looks_lose_what_is_stated(monkeypatch):
    """The twin: even points alone miss a narrow window."""
    monkeypatch.setattr(shares, "LOOK_POINTS", (33,))
    slopes, wide = np.array([1.0, 1.0]), np.array([0.01, 0.02])
    low = np.full((20, 2), 0.3)
    constants = -np.linspace(0.6, 0.63, 20)
    found, _ = mixture_shares(line(constants, slopes), uniform(low, wide))
    right = area(constants, slopes, low, wide)
    assert np.abs(found[:, 1] - right).max() > 100 * shares.TOLERANCE


def test_sum_lies_between_lower_and_upper_sums():
    """Two classes: the share is monotone in the first value, so these bracket it."""
    rng = np.random.default_rng(2)
    scores = line(rng.normal(size=10), np.array([0.7, -1.3]))
    law = normal(rng.normal(size=(10, 2)), np.array([0.5, 0.2]))
    first, second = law.terms[0]
    found, _ = mixture_shares(scores, law)
    left, right = ValueLaw.rest(first), ValueLaw.rest(second)
    points = np.linspace(*shares.law_ends(left), 20_001, axis=-1)
    mass = np.diff(left.upto(points))
    at = shares.winning_shares(scores.along(1, 0, points), right)[..., 1]
    pairs = np.stack([at[:, 1:], at[:, :-1]])
    low, high = ((mass * each).sum(axis=1) for each in (pairs.min(0), pairs.max(0)))
    assert (low - 1e-7 < found[:, 1]).all()
    assert (found[:, 1] < high + 1e-7).all()
    assert (high - low).max() < 0.02


def test_three_classes_share_the_plane():
    """Three equal sectors around the centre of a round law: a third each."""
    turns = np.pi * np.array([0, 2 / 3, 4 / 3])
    linear = np.stack([np.cos(turns), np.sin(turns)])[None]
    scores = Scores(np.zeros((2, 3)), linear, np.zeros((2, 2, 3)))
    found, _ = mixture_shares(scores, normal(np.zeros((2, 2)), np.array([3.0, 3.0])))
    assert np.abs(found - 1 / 3).max() < shares.TOLERANCE


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.5])
def test_circle_in_a_round_law(radius):
    """Scores r^2 and |v|^2: the second wins outside, exp(-r^2 / 2) of the time."""
    square = np.stack([np.zeros((2, 2)), np.eye(2)], axis=-1)
    constant = np.array([[radius**2, 0.0]] * 2)
    scores = Scores(constant, np.zeros((1, 2, 2)), square)
    found, _ = mixture_shares(scores, normal(np.zeros((2, 2)), np.ones(2)))
    assert found[0, 1] == pytest.approx(np.exp(-(radius**2) / 2), abs=1e-5)


def test_ends_of_an_unbounded_law():
    """No more than the stated mass lies beyond either."""
    law = normal(np.array([[3.0], [-40.0]]), np.array([2.0])).terms[0][0]
    low, high = shares.law_ends(ValueLaw.with_atoms(law))
    assert special.ndtr((low + 40) / 2).max() <= shares.CUT_MASS
    assert special.ndtr((3 - high) / 2).max() <= shares.CUT_MASS
