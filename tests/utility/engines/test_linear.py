"""Linear classifiers: which are read, exact for two values, narrow for more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
    SGDOneClassSVM,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from curvote.mechanisms import make
from curvote.systems.utility.method.engines.base import (
    Channel,
    Draws,
    Part,
    Question,
    make_channel,
)
from curvote.systems.utility.method.engines.discriminants import Linear, LinearModel
from curvote.systems.utility.method.engines.scores import bracket_positive
from tests.utility import models_of
from tests.utility.engines.scores.laws_of import (
    MECHANISMS,
    Fixed,
    answers,
    errors,
    normal,
)

STROKE, DIGITS = models_of.stroke_like(), models_of.digits_like()


def surface_of(model, data=STROKE, n=10, sensitive=None, bounds=None):
    """Return the engine's surface of a model and some records."""
    chosen = data.sensitive if sensitive is None else sensitive
    edges = data.bounds if bounds is None else bounds
    question = Question(model, data.X[:n], chosen, edges)
    assert Linear().refusal(question) is None
    return Linear().surface(question)


def plain(weights, intercept, n=10, seed=1):
    """Return the surface of weights on [-1, 1]^d, all of it sensitive."""
    d = len(weights)
    records = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    edges = np.tile([-1.0, 1.0], (d, 1))
    question = Question(
        LinearModel(weights, intercept), records, tuple(range(d)), edges
    )
    return Linear().surface(question)


@pytest.mark.parametrize("data", ["stroke", "digits"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_exact_is_what_draws_show(mechanism, data):
    """Two classes and four, each mechanism, within 4.5 standard errors."""
    surface = surface_of(models_of.logistic(data), models_of.DATA[data]())
    given, channel = answers(surface, mechanism)
    assert given.evidence == "exact"
    assert np.allclose(given.share.sum(axis=1), 1, atol=1e-9)
    assert errors(surface, given, channel, 4000).max() < 4.5


def test_other_weights_are_noticed():
    """The twin: another intercept's shares are not those of the draws."""
    surface = surface_of(models_of.logistic())
    other = models_of.logistic().__class__(max_iter=5000, C=1e-3)
    wrong = surface_of(other.fit(STROKE.X, STROKE.y))
    given, channel = answers(wrong, "pm_01")
    assert errors(surface, given, channel, 4000).max() > 4.5


@pytest.mark.faults
@pytest.mark.parametrize("data", ["stroke", "digits"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_exact_is_what_many_draws_show(mechanism, data):
    """The same with 2e5 draws, at a small and a large epsilon, clipped and not."""
    surface = surface_of(models_of.logistic(data), models_of.DATA[data]())
    for epsilon, clip in ((1.0, True), (8.0, False)):
        given, channel = answers(surface, mechanism, clip, epsilon)
        assert errors(surface, given, channel, 200_000).max() < 4.5


def test_normal_noise_in_closed_form():
    """A sum of normal values is normal: exact means off by less than 1e-5."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights, sd = rng.normal(size=2), np.exp(rng.normal(size=2) * 2)
        surface = plain(weights, rng.normal())
        values = surface.question.values
        given = surface.answers(Fixed(normal(values, sd)), Draws())
        centre = values @ weights + surface.question.model.intercept
        right = special.ndtr(centre / np.sqrt(weights**2 @ sd**2))
        assert np.abs(given.share[:, 1] - right).max() < 1e-5


@pytest.mark.parametrize("mechanism", ["exponential", "k_rr", "duchi"])
def test_atoms_are_enumerated(mechanism):
    """Where both laws are atoms the shares are sums over the model's answers."""
    surface = surface_of(models_of.logistic(), n=3)
    given, channel = answers(surface, mechanism)
    first, second = channel.law(surface.question.values).terms[0]
    for i in range(3):
        pairs = np.meshgrid(first.points[i], second.points[i], indexing="ij")
        rows = np.repeat(STROKE.X[[i]], pairs[0].size, axis=0)
        rows[:, [0, 5]] = np.stack([each.ravel() for each in pairs], axis=1)
        mass = np.outer(first.masses[i], second.masses[i]).ravel()
        right = mass @ (surface.question.model.predict(rows) == 1)
        assert given.share[i, 1] == pytest.approx(right, abs=1e-12)


def test_ties_are_scikit_learns():
    """Weights 1 and -1 tie wherever both levels are equal: the first class has it."""
    surface = plain(np.array([1.0, -1.0]), 0.0)
    given, channel = answers(surface, "k_rr")
    first, second = channel.law(surface.question.values).terms[0]
    above = np.tril(np.ones((101, 101)), -1)
    right = np.einsum("ni,ij,nj->n", first.masses, above, second.masses)
    assert np.allclose(given.share[:, 1], right, atol=1e-12)
    same = (first.masses * second.masses).sum(axis=1)
    assert same.min() > 1e-3


def test_ties_of_many_classes_are_scikit_learns():
    """Three equal scores on a whole line: argmax takes the first of them."""
    model = LogisticRegression().fit(DIGITS.X[:, :2], np.arange(400) % 3)
    model.coef_ = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    model.intercept_ = np.zeros(3)
    question = Question(model, np.full((1, 2), 0.3), (0, 1), np.array([[0, 1.0]] * 2))
    surface = Linear().surface(question)
    given, channel = answers(surface, "k_rr")
    law = channel.law(question.values).terms[0]
    grid = np.stack(np.meshgrid(*(each.points[0] for each in law), indexing="ij"), -1)
    told = model.predict(grid.reshape(-1, 2))
    mass = np.outer(*(each.masses[0] for each in law)).ravel()
    right = [mass @ (told == one) for one in range(3)]
    assert np.allclose(given.share[0], right, atol=1e-12)
    assert surface.holds(*[np.full((1, 2), 0.3)] * 2).all()


@pytest.mark.parametrize("mechanism", ["laplace", "piecewise", "joint_box"])
@pytest.mark.parametrize("clip", [True, False])
def test_five_coefficients_lie_in_their_bracket(mechanism, clip):
    """As for curves that are sent as five noised coefficients."""
    surface = plain(np.array([1.5, -0.7, 0.4, 0.2, -2.0]), 0.1)
    given, channel = answers(surface, mechanism, clip, epsilon=10.0)
    assert given.evidence == "bracket"
    assert (given.upper - given.lower).max() < 0.002
    assert errors(surface, given, channel, 4000).max() < 4.5


def test_49_features_lie_in_a_narrow_bracket():
    """At most .005 wide, with two mechanisms."""
    surface = plain(np.random.default_rng(2).normal(size=49), 0.3, n=4)
    for mechanism in ("pm_01", "joint_box"):
        given, channel = answers(surface, mechanism, epsilon=98.0)
        assert (given.upper - given.lower).max() <= 0.005
        assert errors(surface, given, channel, 4000).max() < 4.5


def test_bracket_holds_what_is_exact():
    """Two features on the lattice: their exact share lies in the bracket."""
    rng = np.random.default_rng(5)
    for mechanism in ("pm_01", "exponential", "laplace"):
        surface = plain(rng.normal(size=2), rng.normal())
        given, channel = answers(surface, mechanism, epsilon=6.0)
        lead = np.diff(surface.scores.constant)[:, 0]
        slopes = np.diff(surface.scores.linear)[0, :, 0]
        low, high = bracket_positive(
            lead, slopes, channel.law(surface.question.values).terms[0]
        )
        assert (low <= given.share[:, 1] + 1e-6).all()
        assert (high >= given.share[:, 1] - 1e-6).all()
        assert (low < high).any()


def test_withheld_features_are_their_constant():
    """Nothing sent: the answer at the constants; one sent: its law alone."""
    surface = surface_of(models_of.logistic())
    instead = np.array([61.0, 30.0])
    given = surface.answers(Channel([], STROKE.bounds, instead), Draws())
    rows = STROKE.X[:10].copy()
    rows[:, [0, 5]] = instead
    told = surface.question.model.predict(rows)
    assert (given.share == np.eye(2)[told]).all()
    part = Part(make("laplace", epsilon=1.0), (1,))
    one = Channel([part], STROKE.bounds, instead)
    assert errors(surface, surface.answers(one, Draws()), one, 4000).max() < 4.5


def test_without_a_law_it_is_drawn():
    """PrivUnit has none: the same surface says so and draws."""
    surface = plain(np.array([1.0, 0.5, -1.0]), 0.1)
    channel = make_channel(
        "privunit", epsilon=4, bounds=surface.question.bounds, fill_value=np.zeros(3)
    )
    given = surface.answers(channel, Draws(500))
    assert given.evidence == "draws"
    assert (given.queries == 500).all()


@pytest.mark.parametrize("data", ["stroke", "digits"])
def test_boxes_that_hold_have_one_answer(data):
    """At points of boxes that hold the answer is the clean one; others show why not."""
    table = models_of.DATA[data]()
    surface = surface_of(models_of.logistic(data), table, 60)
    rng, wide = np.random.default_rng(4), np.diff(table.bounds)[:, 0]
    reach = rng.uniform(0, 0.4, (60, 2)) * wide
    low, high = (surface.question.values + sign * reach for sign in (-1, 1))
    held, same = surface.holds(low, high), np.ones(60, dtype=bool)
    corners = np.linspace(0, 1, 9)
    for share in np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2):
        rows = table.X[:60].copy()
        rows[:, list(table.sensitive)] = low + share * (high - low)
        same &= surface.question.model.predict(rows) == surface.clean
    assert (held == same).all()
    assert 5 < held.sum() < 55


@pytest.mark.parametrize("data", ["stroke", "digits"])
def test_kept_surface_answers_as_the_first(data, tmp_path):
    """What a file holds is enough."""
    surface = surface_of(models_of.logistic(data), models_of.DATA[data]())
    np.savez(tmp_path / "kept.npz", **surface.arrays())
    with np.load(tmp_path / "kept.npz", allow_pickle=False) as kept:
        again = Linear().restored(surface.question, dict(kept))
    one, other = (answers(each, "pm_01")[0] for each in (surface, again))
    assert (one.share == other.share).all()
    assert (surface.clean == again.clean).all()


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        SGDClassifier(random_state=1),
        RidgeClassifier(),
        Perceptron(),
        LinearDiscriminantAnalysis(),
        LogisticRegression(max_iter=500),
        NearestCentroid(),
        NearestCentroid(priors="empirical"),
        KMeans(3, random_state=1),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("data", [STROKE, DIGITS], ids=["stroke", "digits"])
def test_linear_models_are_read(model, data):
    """Whatever the kind, behind a scaler: draws agree."""
    surface = surface_of(
        make_pipeline(StandardScaler(), model).fit(data.X, data.y), data
    )
    given, channel = answers(surface, "joint_box")
    assert errors(surface, given, channel, 2000).max() < 4.5


@pytest.mark.parametrize("model", [MultinomialNB(), ComplementNB()])
def test_naive_bayes_on_counts_is_linear(model):
    """Its scores are weights times the counts."""
    surface = surface_of(model.fit(DIGITS.X, DIGITS.y), DIGITS)
    given, channel = answers(surface, "pm_01")
    assert errors(surface, given, channel, 2000).max() < 4.5


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (SVC(), "SVC is not linear."),
        (
            SVC(kernel="linear", decision_function_shape="ovo"),
            "SVC is not linear.",
        ),
        (BernoulliNB(), "BernoulliNB is not linear."),
        (SGDOneClassSVM(), "SGDOneClassSVM is not linear."),
        (
            CalibratedClassifierCV(LogisticRegression(max_iter=500)),
            "CalibratedClassifierCV is not linear.",
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_not_linear_is_refused(model, why):
    """Also votes of pairs of classes, which have weights too."""
    question = Question(
        model.fit(DIGITS.X, DIGITS.y), DIGITS.X, (1, 6), np.tile([0.0, 1.0], (2, 1))
    )
    assert Linear().refusal(question) == why


def test_answers_that_are_not_the_weights_are_noticed():
    """An estimator with weights may answer in another way."""

    class Shifted(LogisticRegression):
        def predict(self, X):
            return (self.decision_function(X) > 0.5).astype(int)

    model = Shifted(max_iter=5000).fit(STROKE.X, STROKE.y)
    question = Question(model, STROKE.X, STROKE.sensitive, STROKE.bounds)
    said = "Shifted answers otherwise than the largest of its scores."
    assert Linear().refusal(question) == said


def test_many_classes_and_features_are_refused():
    """Four classes are exact for two features, and the reason says so."""
    model = models_of.logistic("digits")
    question = Question(model, DIGITS.X, (1, 2, 6), np.tile([0.0, 1.0], (3, 1)))
    why = Linear().refusal(question)
    assert why == (
        "A linear model of 4 classes is exact for two sensitive features; here are 3."
    )
