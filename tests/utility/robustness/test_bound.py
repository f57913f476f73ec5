"""Bounds from boxes: below agreement, where the published guarantee is not."""

from __future__ import annotations

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.base import Mixture
from curvote.systems.utility.method.engines.base import Channel, Part, make_channel
from curvote.systems.utility.method.profile import (
    Box,
    TrialRule,
    box_by_trials,
    certified_bound,
    certify_box,
    concentration_probability,
    grow_by_trials,
    make_trial,
    published_boxes,
    published_claim,
    query_count,
)
from tests.noise import SEED
from tests.utility.robustness.fakes import half_space, question, surface

UNIT = np.array([[0.0, 1.0]])
MECHANISMS = ["laplace", "pm_01", "sw_01", "piecewise", "hybrid", "exponential", "k_rr"]


def on_unit(name: str, epsilon: float, clip: bool = True, **params) -> Channel:
    """One feature in [0, 1]."""
    return make_channel(
        name, epsilon=epsilon, bounds=UNIT, fill_value=[0.5], clip=clip, **params
    )


def of_radius(values, radius: float) -> Box:
    """A box that somebody states."""
    values = np.asarray(values)
    n = len(values)
    none = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
    return Box(np.full(n, radius), values - radius, values + radius, *none)


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("laplace", 45.12),
        ("pm_01", 85.28),
        ("sw_01", 82.71),
        ("k_rr", 62.75),
        ("exponential", 71.83),
    ],
)
def test_concentration(name, percent):
    """Figure 4 at epsilon 2 and theta .3, around the middle of [0, 1]."""
    x = np.array([[0.5]])
    law = on_unit(name, 2).law(x)
    assert 100 * concentration_probability(law, x, 0.3) == pytest.approx(
        percent, abs=0.005
    )


def test_level_at_theta_counts():
    """A level exactly theta away is within it, whatever the rounding."""
    levels = np.arange(101)[:, None] / 100
    law = on_unit("k_rr", 1e-3).law(levels)
    inside = concentration_probability(law, levels, 0.3)
    count = np.minimum(levels + 0.3, 1) - np.maximum(levels - 0.3, 0)
    assert inside == pytest.approx((np.rint(100 * count[:, 0]) + 1) / 101, abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
@pytest.mark.parametrize("name", MECHANISMS)
def test_bound_is_below_agreement(name, epsilon):
    """For an interval in which the answer is the clean one, and parts beyond it."""
    rng = np.random.default_rng(3)
    values, cuts = rng.random((50, 1)), np.sort(rng.random((50, 3)), axis=1)
    place = (values > cuts).sum(axis=1)
    edges = np.hstack([np.full((50, 1), -9.0), cuts, np.full((50, 1), 9.0)])
    low = np.take_along_axis(edges, place[:, None], 1)
    high = np.take_along_axis(edges, place[:, None] + 1, 1)
    found = certify_box(
        surface(lambda a, b: ((a > low) & (b <= high)).all(axis=1)), values, bounds=UNIT
    )
    law = on_unit(name, epsilon).law(values).terms[0][0]
    shares = np.diff(law.cdf(edges), axis=1)
    same = np.arange(4) % 2 == place[:, None] % 2
    agreement = np.sum(shares * same, axis=1)
    stated = certified_bound(on_unit(name, epsilon), values, found)
    assert (stated <= agreement + 1e-12).all()
    certain = np.take_along_axis(shares, place[:, None], 1)[:, 0]
    assert (stated >= 0.8 * certain - 0.05).all()


def test_bound_counts_the_clipped_mass():
    """Outputs beyond the bounds are seen at the edge; the claim loses them."""
    values = np.array([[0.9]])
    found = certify_box(half_space([1.0], -0.4, values), values, bounds=UNIT)
    channel = on_unit("laplace", 2)
    below = on_unit("laplace", 2, clip=False).law(values).terms[0][0].cdf([0.4])[0, 0]
    assert certified_bound(channel, values, found) == pytest.approx(1 - below, abs=1e-3)
    assert published_claim(channel, values, found) < 0.9405 * (1 - below) - 0.3


def test_bound_where_nothing_is_known():
    """0 without a certified box; NaN where the law is no mixture of products."""
    values = np.array([[0.2, 0.4]])
    unknown = of_radius(values, 0.1)
    bounds = np.vstack([UNIT, UNIT])
    shared = {"epsilon": 4, "bounds": bounds, "fill_value": [0.5, 0.5]}
    assert certified_bound(make_channel("pm_01", **shared), values, unknown) == 0
    assert np.isnan(
        certified_bound(make_channel("privunit", **shared), values, unknown)
    ).all()
    assert np.isnan(
        published_claim(make_channel("privunit", **shared), values, unknown)
    ).all()


def beside(X: np.ndarray) -> np.ndarray:
    """Another answer on .006 next to x = .5, and nowhere else."""
    hole = (X[:, 0] > 0.5) & (X[:, 0] <= 0.506)
    return np.where(hole, -1.0, 1.0)


def test_published_guarantee_is_no_bound():
    """A hole within the tolerance of radius .3: claimed .934, true .672, ours less."""
    values, channel = np.array([[0.5]]), on_unit("pm_01", 8)
    assert published_claim(channel, values, of_radius(values, 0.3))[0] == pytest.approx(
        0.934, abs=5e-4
    )
    hole = channel.law(values).box(np.array([[0.5]]), np.array([[0.506]]))
    agreement = 1 - hole[0]
    assert agreement == pytest.approx(0.672, abs=1e-3)
    known = surface(lambda a, b: ((b <= 0.5) | (a > 0.506)).all(axis=1))
    ours = certified_bound(channel, values, certify_box(known, values, bounds=UNIT))[0]
    assert 0.4 < ours <= agreement < 0.70
    wrong = Box(*vars(of_radius(values, 0.3)).values())
    object.__setattr__(wrong, "certified", np.array([True]))
    assert certified_bound(channel, values, wrong)[0] > agreement


def test_published_procedure_accepts_a_hole():
    """Of half the width of its tolerance: the box passes, and the claim is too high."""
    asked = question(
        lambda X: np.where(np.abs(X[:, 0] - 0.5015) < 0.0014, -1, 1), [[0.5]], UNIT
    )
    found = published_boxes(asked, SeededEntropy(SEED))
    assert found.radius[0] == pytest.approx(1, abs=0.02)
    values, channel = np.array([[0.5]]), on_unit("pm_01", 10)
    hole = channel.law(values).box(np.array([[0.5001]]), np.array([[0.5029]]))
    assert published_claim(channel, values, found)[0] > 1 - hole[0]


def test_published_queries():
    """73,778 a test; seven tests a radius: 516,446, all of them asked."""
    assert query_count() == 73_778
    asked = question(lambda X: X[:, 0] - 0.3, [[0.5], [0.9]], UNIT)
    found = published_boxes(asked, SeededEntropy(SEED), first_step=0)
    assert found.queries.tolist() == [516_446] * 2
    assert asked.model.asked == 2 * 516_446 + 2
    assert found.radius == pytest.approx([0.2, 0.6], abs=0.02)
    assert not found.certified.any()


def test_fewest_points_of_a_trial():
    """299 that agree show that at most .01 differ, at .95."""
    assert make_trial(0.01, 0.05, 1).number == 299
    for trials in (1, 7, 100):
        number = make_trial(0.01, 0.05, trials).number
        assert 0.99**number <= 0.05 / trials < 0.99 ** (number - 1)


def test_boxes_by_trials():
    """They are near the certain ones, at a hundredth of the published queries."""
    bounds = np.array([[0.0, 100.0], [12.0, 60.0]])
    values = np.array([[30.0, 20.0], [80.0, 50.0], [50.0, 40.0]])
    slope = np.array([1.0, 2.0])
    asked = question(lambda X: X @ slope - 110, values, bounds)
    found = box_by_trials(asked, SeededEntropy(SEED))
    certain = certify_box(half_space(slope, -110.0, values), values, bounds=bounds)
    assert (found.radius >= certain.radius - 0.02).all()
    assert (found.radius <= certain.radius + 0.15).all()
    assert not found.certified.any()
    assert asked.model.asked == found.queries.sum() + 3
    assert (found.queries < 100_000).all()


def beyond_tolerance(how: TrialRule) -> float:
    """The share of 300 boxes of which over a tenth is beyond the answer's end."""
    values = np.linspace(0, 0.6, 300)[:, None]
    asked = question(lambda X: 0.62 - X[:, 0], values, UNIT)
    found = grow_by_trials(asked, SeededEntropy(SEED), how, 0.01)
    share = np.maximum(found.high[:, 0] - 0.62, 0) / (found.high - found.low)[:, 0]
    return float(np.mean(share > 0.1))


def test_tolerance_of_trials_is_kept():
    """At a risk of .1 in at least .9 of the records; with three points it is not."""
    assert beyond_tolerance(make_trial(0.1, 0.1, 35)) <= 0.1
    assert beyond_tolerance(TrialRule(3, 0)) > 0.5


def test_concentration_of_a_record():
    """Several coordinates must all be near."""
    law = make("joint_box", epsilon=3, d=2).law(np.zeros((1, 2)))
    assert isinstance(law, Mixture)
    channel = Channel(
        [Part(make("joint_box", epsilon=3, d=2), (0, 1))],
        np.array([[-1.0, 1.0]] * 2),
        np.zeros(2),
    )
    assert np.array_equal(
        concentration_probability(law, np.zeros((1, 2)), 0.4),
        concentration_probability(channel.law(np.zeros((1, 2))), np.zeros((1, 2)), 0.4),
    )
