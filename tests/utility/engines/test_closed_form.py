"""Quadratic scores: closed forms, draws, boxes, and what a coarse look loses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.mechanisms.base import continuous_law, product_law
from curvote.systems.utility.method.engines import scores as shares
from curvote.systems.utility.method.engines.base import Question, choose_engine
from curvote.systems.utility.method.engines.discriminants import (
    ClosedForm,
    mixture_shares,
)
from curvote.systems.utility.method.engines.scores import Scores, ValueLaw
from curvote.systems.utility.method.profile import certify_box
from tests.utility import models_of
from tests.utility.engines.scores.laws_of import MECHANISMS, answers, errors, normal

STROKE, DIGITS = models_of.stroke_like(), models_of.digits_like()
MODELS = {
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "bayes": GaussianNB(),
    "full": GaussianMixture(3, random_state=1),
    "tied": GaussianMixture(3, covariance_type="tied", random_state=1),
    "diag": GaussianMixture(3, covariance_type="diag", random_state=1),
    "spherical": GaussianMixture(3, covariance_type="spherical", random_state=1),
}


def surface_of(name, data=STROKE, n=10):
    """Return the engine's surface of a model behind a scaler."""
    model = make_pipeline(StandardScaler(), MODELS[name]).fit(data.X, data.y)
    question = Question(model, data.X[:n], data.sensitive, data.bounds)
    assert ClosedForm().refusal(question) is None
    return ClosedForm().surface(question)


@pytest.mark.parametrize("data", [STROKE, DIGITS], ids=["stroke", "digits"])
@pytest.mark.parametrize("mechanism", ["pm_01", "k_rr", "joint_box"])
@pytest.mark.parametrize("name", MODELS)
def test_exact_is_what_draws_show(name, mechanism, data):
    """Two classes and more, within 4.5 standard errors of the real mechanism."""
    surface = surface_of(name, data)
    given, channel = answers(surface, mechanism, epsilon=5.0)
    assert given.evidence == "exact"
    assert np.allclose(given.share.sum(axis=1), 1, atol=1e-9)
    assert errors(surface, given, channel, 2000).max() < 4.5


@pytest.mark.faults
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["qda", "bayes"])
def test_exact_is_what_many_draws_show(name, mechanism):
    """Each mechanism with 2e5 draws, at a small and a large epsilon."""
    surface = surface_of(name)
    for epsilon, clip in ((1.0, True), (8.0, False)):
        given, channel = answers(surface, mechanism, clip, epsilon)
        assert errors(surface, given, channel, 200_000).max() < 4.5


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_the_estimators(name):
    """They differ as its log densities do, at any sensitive values."""
    surface = surface_of(name, n=50)
    values = np.random.default_rng(3).uniform(*STROKE.bounds.T, (50, 2))
    rows = STROKE.X[:50].copy()
    rows[:, [0, 5]] = values
    places = surface.scores.at(values).argmax(axis=1)
    assert (places == surface.question.model.predict(rows)).all()
    lead = np.diff(surface.scores.at(values)[:, :2])[:, 0]
    if hasattr(surface.question.model, "predict_log_proba"):
        told = np.diff(surface.question.model.predict_log_proba(rows))[:, 0]
        assert np.allclose(lead, told, atol=1e-8)


@pytest.mark.parametrize("name", ["qda", "full"])
def test_atoms_are_enumerated(name):
    """Where both laws are atoms the shares are sums over the model's answers."""
    surface = surface_of(name, n=2)
    given, channel = answers(surface, "k_rr")
    law = channel.law(surface.question.values).terms[0]
    for i in range(2):
        grid = np.meshgrid(*(each.points[0] for each in law), indexing="ij")
        rows = np.repeat(STROKE.X[[i]], grid[0].size, axis=0)
        rows[:, [0, 5]] = np.stack([each.ravel() for each in grid], axis=1)
        mass = np.outer(*(each.masses[i] for each in law)).ravel()
        told = surface.question.model.predict(rows)
        right = [mass @ (told == one) for one in range(surface.n_classes)]
        assert given.share[i] == pytest.approx(right, abs=1e-12)


def example_4():
    """The paper's discriminant: normal laws around (0, 0) and (1, 1), 1 and 2 wide."""
    corners = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    model = QuadraticDiscriminantAnalysis()
    model.fit(np.vstack([corners, corners + np.array([0.1, -0.2])]), [0] * 4 + [1] * 4)
    model.means_ = np.array([[0.0, 0], [1, 1]])
    model.scalings_ = [np.ones(2), np.full(2, 2.0)]
    model.rotations_ = [np.eye(2), np.eye(2)]
    model.priors_ = np.array([0.5, 0.5])
    return model


def test_radius_of_example_4():
    """At (.5, .5): .4811 as the crow flies, .3402 to each side (QCU, appendix C.1)."""
    bounds = np.array([[-2.0, 4], [-2, 4]])
    question = Question(example_4(), np.array([[0.5, 0.5]]), (0, 1), bounds)
    surface = choose_engine(question)[0].surface(question)
    found = certify_box(surface, question.values, bounds=bounds, precision=2.0**-16)
    assert found.radius[0] * 6 == pytest.approx(0.3402, abs=1e-4)
    turns = np.linspace(0, 2 * math.pi, 721)
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    near, far = (
        {*question.model.predict(question.values + r * ring)} for r in (0.4810, 0.4812)
    )
    assert (near, far) == ({0}, {0, 1})


@pytest.mark.parametrize(
    ("name", "data"), [("qda", STROKE), ("bayes", STROKE), ("qda", DIGITS)]
)
def test_boxes_that_hold_have_one_answer(name, data):
    """No point of a box that holds is answered otherwise; few others look so."""
    surface = surface_of(name, data, n=60)
    rng, wide = np.random.default_rng(4), np.diff(data.bounds)[:, 0]
    reach = rng.uniform(0, 0.5, (60, 2)) * wide
    low, high = (surface.question.values + sign * reach for sign in (-1, 1))
    held, same = surface.holds(low, high), np.ones(60, dtype=bool)
    places = np.linspace(0, 1, 17)
    for share in np.stack(np.meshgrid(places, places), -1).reshape(-1, 2):
        rows = data.X[:60].copy()
        rows[:, list(data.sensitive)] = low + share * (high - low)
        same &= surface.question.model.predict(rows) == surface.clean
    assert not (held & ~same).any()
    assert (same & ~held).sum() <= 1
    assert 5 < held.sum() < 55


def test_kept_surface_answers_as_the_first():
    """Its arrays are enough."""
    surface = surface_of("qda")
    again = ClosedForm().restored(surface.question, surface.arrays())
    one, other = (answers(each, "pm_01")[0] for each in (surface, again))
    assert (one.share == other.share).all()


def test_refusals_say_why():
    """More than two features, and what is no normal law."""
    model = MODELS["bayes"].fit(STROKE.X, STROKE.y)
    three = Question(model, STROKE.X, (0, 4, 5), np.array([[0, 100.0]] * 3))
    said = "Quadratic scores are exact for two sensitive features; here are 3."
    assert ClosedForm().refusal(three) == said
    mixture = BayesianGaussianMixture(n_components=2, random_state=1).fit(STROKE.X)
    two = Question(mixture, STROKE.X, STROKE.sensitive, STROKE.bounds)
    said = "BayesianGaussianMixture is no discriminant of normal laws."
    assert ClosedForm().refusal(two) == said


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
