"""Discriminants of normal laws: quadratic scores, exact for two noised features."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.systems.utility.method.engines.base import Question, choose_engine
from curvote.systems.utility.method.engines.discriminants import ClosedForm
from curvote.systems.utility.method.profile import certify_box
from tests.utility import models_of
from tests.utility.engines.scores.laws_of import MECHANISMS, answers, errors

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
    places = surface.scores.places(values)
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
