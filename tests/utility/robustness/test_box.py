"""Boxes in which answers stay, and bounds from them, below agreement."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.base import Mixture
from curvote.systems.utility.method import profile
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.profile import (
    SIDE_PRECISION,
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
from tests.utility import models_of

Points = np.ndarray


@dataclass
class Model:
    """Answers 1 where ``decision`` is above 0, and counts what it is asked."""

    decision: Callable[[Points], np.ndarray]
    asked: int = 0

    def predict(self, X):
        self.asked += len(X)
        return (self.decision(X) > 0).astype(int)


def question(decision, values, bounds):
    """All columns are sensitive."""
    points = np.atleast_2d(np.asarray(values, dtype=float))
    sensitive = tuple(range(points.shape[1]))
    return base.Question(
        Model(decision), points, sensitive, np.asarray(bounds, dtype=float)
    )


@dataclass(frozen=True)
class Fake(base.Surface):
    """A surface that is given by the function that says where boxes hold."""

    where: Callable[[Points, Points], np.ndarray]

    def answers(self, channel, draws):
        raise NotImplementedError

    def holds(self, low, high):
        return self.where(low, high)

    def arrays(self):
        return {}


def surface(where):
    """The surface; what it says clean answers are does not matter here."""
    return Fake(np.zeros(1, dtype=np.int64), 2, where)


def half_space(slope, offset, values):
    """A linear classifier: the corner furthest towards the other side decides."""
    slope, sign = np.asarray(slope), np.sign(values @ slope + offset)[:, None]

    def where(low, high):
        towards = np.where(sign * slope > 0, low, high)
        return sign[:, 0] * (towards @ slope + offset) > 0

    return surface(where)


BOUNDS = np.array([[0.0, 100.0], [-3.0, 1.0], [0.0, 1e-3]])
WIDTHS = BOUNDS[:, 1] - BOUNDS[:, 0]


def records(n, seed=0):
    """Records uniform in the bounds."""
    return BOUNDS[:, 0] + WIDTHS * np.random.default_rng(seed).random((n, 3))


def planes(values, seed=1):
    """A plane through the middle of the bounds, on the features' own units."""
    slope = np.random.default_rng(seed).normal(size=3) / WIDTHS
    return slope, -float(slope @ BOUNDS.mean(axis=1))


def answers_stay(found, slope, offset, values):
    """Say whether random points and all corners of certified boxes answer alike."""
    rng = np.random.default_rng(5)
    share = rng.integers(0, 2, (200, *values.shape)) * 1.0
    share[100:] = rng.random((100, *values.shape))
    points = found.low + (found.high - found.low) * share
    own = np.sign(values @ slope + offset)
    same = (np.sign(points @ slope + offset) == own).all(axis=0)
    return bool(same[found.certified].all())


@pytest.mark.parametrize("seed", range(4))
def test_linear_boxes(seed):
    """The radius is the exact one within the precision, and no side can move on."""
    values = records(200, seed)
    slope, offset = planes(values, seed)
    known = half_space(slope, offset, values)
    found = certify_box(known, values, bounds=BOUNDS)
    assert found.certified.all()
    assert answers_stay(found, slope, offset, values)
    for shorter, holds in ((-0.001, True), (2 * SIDE_PRECISION, False)):
        reach = (found.radius + shorter)[:, None] * WIDTHS
        ends = (
            np.maximum(values - reach, BOUNDS[:, 0]),
            np.minimum(values + reach, BOUNDS[:, 1]),
        )
        assert (known.holds(*ends) == holds)[found.radius < 1].all()
    for i in range(3):
        for j in range(2):
            ends = [found.low.copy(), found.high.copy()]
            ends[j][:, i] += (2 * j - 1) * 2 * SIDE_PRECISION * WIDTHS[i]
            inside = (ends[j][:, i] > BOUNDS[i, 0]) & (ends[j][:, i] < BOUNDS[i, 1])
            assert not known.holds(*ends)[inside].any()


def test_box_holds_the_ball():
    """The sides only grow, and the radius is that of the largest ball inside."""
    values = records(100)
    found = certify_box(half_space(*planes(values), values), values, bounds=BOUNDS)
    reach = found.radius[:, None] * WIDTHS * (1 - 1e-12)
    assert (found.low <= np.maximum(values - reach, BOUNDS[:, 0])).all()
    assert (found.high >= np.minimum(values + reach, BOUNDS[:, 1])).all()
    assert (found.low >= BOUNDS[:, 0]).all()
    assert (found.high <= BOUNDS[:, 1]).all()


def test_constant_answer_holds_everywhere():
    """Radius 1, and the box is the bounds."""
    values = records(5)
    always = surface(lambda low, high: np.ones(len(low), dtype=bool))
    found = certify_box(always, values, bounds=BOUNDS)
    assert (found.radius == 1).all()
    assert np.array_equal(np.stack([found.low[0], found.high[0]], axis=1), BOUNDS)


def test_nothing_that_holds_is_no_box():
    """Where not even the record itself is certain, the box is the record, and not."""
    values = records(5)
    never = surface(lambda low, high: np.zeros(len(low), dtype=bool))
    found = certify_box(never, values, bounds=BOUNDS)
    assert not found.certified.any()
    assert (found.radius == 0).all()
    assert np.array_equal(found.low, values)
    assert np.array_equal(found.high, values)


def forgetful(known, seed):
    """A surface that cannot tell, at random, in a third of the cases."""
    rng = np.random.default_rng(seed)
    return surface(
        lambda low, high: known.holds(low, high) & (rng.random(len(low)) < 0.7)
    )


def test_surface_that_cannot_tell_costs_size_only():
    """Its boxes are smaller, and still no answer in them differs."""
    values = records(200)
    slope, offset = planes(values)
    known = half_space(slope, offset, values)
    found = certify_box(forgetful(known, 3), values, bounds=BOUNDS)
    assert answers_stay(found, slope, offset, values)
    assert known.holds(found.low, found.high)[found.certified].all()
    assert not found.certified.all()
    best = certify_box(known, values, bounds=BOUNDS)
    assert (found.radius <= best.radius + SIDE_PRECISION).all()


@pytest.mark.parametrize("told", [1.0, 0.7])
def test_few_boxes_are_tried(told):
    """About a hundred for all records together, even where the surface is not sure."""
    values, tries = records(200), []
    known = half_space(*planes(values), values)
    rng = np.random.default_rng(8)

    def counted(low, high):
        tries.append(len(low))
        return known.holds(low, high) & (rng.random(len(low)) < told)

    certify_box(surface(counted), values, bounds=BOUNDS)
    assert len(tries) <= 17 + 6 * (5 + 10)


def test_surface_that_lies_is_noticed():
    """The check above fails where boxes are certified that do not hold."""
    values = records(200)
    slope, offset = planes(values)
    liar = half_space(slope, offset + 0.2 * np.sign(offset), values)
    found = certify_box(liar, values, bounds=BOUNDS)
    assert not answers_stay(found, slope, offset, values)


def test_record_beyond_the_bounds():
    """It is moved to the edge, as its noised value would be."""
    values = np.array([[150.0, -9.0, 5e-4]])
    found = certify_box(half_space([1, 0, 0], -50.0, values), values, bounds=BOUNDS)
    assert found.low[0] == pytest.approx([50, -3, 0], abs=100 * SIDE_PRECISION)
    assert found.high[0] == pytest.approx(BOUNDS[:, 1])
    assert found.radius[0] == pytest.approx(0.5, abs=SIDE_PRECISION)


UNIT = np.array([[0.0, 1.0]])
MECHANISMS = ["laplace", "pm_01", "sw_01", "piecewise", "hybrid", "exponential", "k_rr"]


def on_unit(name, epsilon, clip=True, **params):
    """One feature in [0, 1]."""
    return base.make_channel(
        name, epsilon=epsilon, bounds=UNIT, fill_value=[0.5], clip=clip, **params
    )


def of_radius(values, radius):
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
    assert certified_bound(base.make_channel("pm_01", **shared), values, unknown) == 0
    assert np.isnan(
        certified_bound(base.make_channel("privunit", **shared), values, unknown)
    ).all()
    assert np.isnan(
        published_claim(base.make_channel("privunit", **shared), values, unknown)
    ).all()


def beside(X):
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


def test_published_queries(monkeypatch):
    """73,778 a test; seven tests a radius: 516,446, all of them asked."""
    assert query_count() == 73_778
    asked = question(lambda X: X[:, 0] - 0.3, [[0.5], [0.9]], UNIT)
    monkeypatch.setattr(profile, "FIRST_STEP", 0.0)  # the radius alone
    found = published_boxes(asked, SeededEntropy(SEED))
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


def beyond_tolerance(how):
    """The share of 300 boxes of which over a tenth is beyond the answer's end."""
    values = np.linspace(0, 0.6, 300)[:, None]
    asked = question(lambda X: 0.62 - X[:, 0], values, UNIT)
    found = grow_by_trials(asked, SeededEntropy(SEED), how)
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
    channel = base.Channel(
        [base.Part(make("joint_box", epsilon=3, d=2), (0, 1))],
        np.array([[-1.0, 1.0]] * 2),
        np.zeros(2),
    )
    assert np.array_equal(
        concentration_probability(law, np.zeros((1, 2)), 0.4),
        concentration_probability(channel.law(np.zeros((1, 2))), np.zeros((1, 2)), 0.4),
    )


MODELS = ["logistic", "forest", "boosting", "hist_boosting"]
OF_MODELS = ["laplace", "pm_01", "sw_01", "exponential", "k_rr", "hybrid", "joint_box"]
RECORDS = 50


@cache
def found(name):
    """A model's boxes around 50 records it has not seen."""
    data = models_of.stroke_like(RECORDS, 5)
    model = getattr(models_of, name)("stroke")
    bounds = np.asarray(data.bounds, dtype=float)
    question = base.Question(model, data.X, tuple(data.sensitive), bounds)
    surface = base.choose_engine(question)[0].surface(question)
    return question, surface, certify_box(surface, question.values, bounds=bounds)


@pytest.mark.parametrize("name", MODELS)
def test_answers_stay_in_certified_boxes(name):
    """At 40 random points and the four corners of each."""
    question, _, boxes = found(name)
    clean = base.predict_batched(question.model, question.records)
    share = np.random.default_rng(SEED).random((44, RECORDS, 2))
    share[:4] = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[:, None]
    points = boxes.low + (boxes.high - boxes.low) * np.clip(share, 0, 1)
    points = np.clip(points, boxes.low, boxes.high)
    rows = np.tile(question.records, (44, 1))
    rows[:, list(question.sensitive)] = points.reshape(-1, 2)
    same = base.predict_batched(question.model, rows) == np.tile(clean, 44)
    assert same.reshape(44, RECORDS)[:, boxes.certified].all()
    assert boxes.certified.all()


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
@pytest.mark.parametrize("name", MODELS)
def test_bound_is_at_most_agreement(name, epsilon):
    """For seven mechanisms and 50 records; and it comes near for large epsilons."""
    question, surface, boxes = found(name)
    for mechanism in OF_MODELS:
        channel = models_of.channel(question, mechanism, epsilon)
        shares = surface.answers(channel, base.Draws()).upper
        agreement = np.take_along_axis(shares, surface.clean[:, None], axis=1)[:, 0]
        least = certified_bound(channel, question.values, boxes)
        assert (least <= agreement + 1e-9).all()
        assert (least > 0).any()


def test_too_large_a_box_is_noticed():
    """Twice the box is above agreement somewhere."""
    question, surface, boxes = found("forest")
    channel = models_of.channel(question, "pm_01", 8)
    reach = (boxes.high - boxes.low) / 2
    wide = boxes.low - reach, boxes.high + reach
    twice = Box(boxes.radius, *wide, boxes.certified, boxes.queries)
    shares = surface.answers(channel, base.Draws()).upper
    agreement = np.take_along_axis(shares, surface.clean[:, None], axis=1)[:, 0]
    assert (certified_bound(channel, question.values, twice) > agreement).any()
