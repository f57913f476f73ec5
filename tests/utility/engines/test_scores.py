"""Classifiers by scores: which are read, exact for two values, narrow for more."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy import special
from sklearn import discriminant_analysis, linear_model, naive_bayes
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.base import Mixture, continuous_law, product_law
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines import scores as shares
from curvote.systems.utility.method.engines.discriminants import (
    ClosedForm,
    Linear,
    LinearModel,
    mixture_shares,
)
from curvote.systems.utility.method.engines.scores import Scores, ValueLaw
from curvote.systems.utility.method.profile import certify_box
from tests.noise import SEED
from tests.utility import models_of

# Every mechanism that has a law for two features, with what it needs.
MECHANISMS = {
    "laplace": {},
    "pm_01": {},
    "sw_01": {},
    "piecewise": {},
    "square_wave": {},
    "hybrid": {},
    "duchi": {},
    "exponential": {},
    "k_rr": {},
    "hadamard": {"n_classes": 5},
    "joint_box": {},
    "duchi_vector": {},
    "sampled": {"k": 1},
    "gaussian": {"delta": 1e-3},
}


@dataclass(frozen=True)
class Fixed:
    """A channel whose laws are given, for the first records."""

    mixture: Mixture

    def law(self, values):
        return self.mixture.select(slice(0, len(values)))


def normal(means, deviations):
    """Return independent normal laws: (n, s) means, (s,) deviations."""
    pairs = zip(np.transpose(means), deviations, strict=True)
    return product_law(
        *(
            continuous_law(
                mean[:, None], lambda x, at, sd=sd: special.ndtr((at - x) / sd)
            )
            for mean, sd in pairs
        )
    )


def answers(surface, mechanism, clip=True, epsilon=3.0):
    """Return the surface's answers under a mechanism, and its channel."""
    settings = {"clip": clip} | MECHANISMS[mechanism]
    channel = models_of.channel(surface.question, mechanism, epsilon, **settings)
    return surface.answers(channel, base.Draws()), channel


def errors(surface, given, channel, draws):
    """Return by how many standard errors draws lie outside the brackets, (n, K).

    The variance is at least that of one hit.
    """
    question, n = surface.question, len(surface.clean)
    seen = channel.draw(np.repeat(question.values, draws, axis=0), SeededEntropy(SEED))
    rows = np.repeat(question.records, draws, axis=0)
    rows[:, list(question.sensitive)] = seen
    told = question.model.predict(rows).reshape(n, draws)
    classes = getattr(question.model, "classes_", range(surface.n_classes))
    share = np.stack([(told == one).mean(axis=1) for one in classes], axis=1)
    spread = np.sqrt(np.maximum(given.share * (1 - given.share), 1 / draws) / draws)
    return np.maximum(given.lower - share, share - given.upper).clip(min=0) / spread


STROKE, DIGITS = models_of.stroke_like(), models_of.digits_like()
MODELS = {
    "qda": discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    "bayes": naive_bayes.GaussianNB(),
    **{
        kind: GaussianMixture(3, covariance_type=kind, random_state=1)
        for kind in ("full", "tied", "diag", "spherical")
    },
}


def surface_of(model, data=STROKE, n=10):
    """Return the surface of a model, or of one of `MODELS` behind a scaler."""
    if isinstance(model, str):
        model = make_pipeline(StandardScaler(), MODELS[model]).fit(data.X, data.y)
    question = base.Question(model, data.X[:n], data.sensitive, data.bounds)
    engine, _ = base.choose_engine(question)
    assert engine.name in {"linear", "closed_form"}
    return engine.surface(question)


def named(name, data="stroke", n=10):
    """Return the surface of a model by its name."""
    model = models_of.logistic(data) if name == "logistic" else name
    return surface_of(model, models_of.DATA[data](), n)


@pytest.mark.parametrize(
    ("name", "data", "mechanism"),
    [
        *product(["logistic"], models_of.DATA, MECHANISMS),
        *product(MODELS, models_of.DATA, ["pm_01", "k_rr", "joint_box"]),
    ],
)
def test_exact_is_what_draws_show(name, data, mechanism):
    """Two classes and more, within 4.5 standard errors of the real mechanism."""
    surface = named(name, data)
    given, channel = answers(surface, mechanism, epsilon=4.0)
    assert given.evidence == "exact"
    assert np.allclose(given.share.sum(axis=1), 1, atol=1e-9)
    assert errors(surface, given, channel, 2000).max() < 4.5


@pytest.mark.faults
@pytest.mark.parametrize(
    ("name", "data", "mechanism"),
    [
        *product(["logistic"], models_of.DATA, MECHANISMS),
        *product(["qda", "bayes"], ["stroke"], MECHANISMS),
    ],
)
def test_exact_is_what_many_draws_show(name, data, mechanism):
    """The same with 2e5 draws, at a small and a large epsilon, clipped and not."""
    surface = named(name, data)
    for epsilon, clip in ((1.0, True), (8.0, False)):
        given, channel = answers(surface, mechanism, clip, epsilon)
        assert errors(surface, given, channel, 200_000).max() < 4.5


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        *product(["logistic"], ["exponential", "k_rr", "duchi"]),
        ("qda", "k_rr"),
        ("full", "k_rr"),
    ],
)
def test_atoms_are_enumerated(name, mechanism):
    """Where both laws are atoms the shares are sums over the model's answers."""
    surface = named(name, n=2)
    given, channel = answers(surface, mechanism)
    law = channel.law(surface.question.values).terms[0]
    for i in range(2):
        grid = np.meshgrid(*(each.points[i] for each in law), indexing="ij")
        rows = np.repeat(STROKE.X[[i]], grid[0].size, axis=0)
        rows[:, [0, 5]] = np.stack([each.ravel() for each in grid], axis=1)
        mass = np.outer(*(each.masses[i] for each in law)).ravel()
        told = surface.question.model.predict(rows)
        right = [mass @ (told == one) for one in range(surface.n_classes)]
        assert given.share[i] == pytest.approx(right, abs=1e-12)


def plain(weights, intercept, n=10, seed=1):
    """Return the surface of weights on [-1, 1]^d, all of it sensitive."""
    d = len(weights)
    records = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    edges = np.tile([-1.0, 1.0], (d, 1))
    question = base.Question(
        LinearModel(weights, intercept), records, tuple(range(d)), edges
    )
    return Linear().surface(question)


def test_other_weights_are_noticed():
    """The twin: another intercept's shares are not those of the draws."""
    surface = surface_of(models_of.logistic())
    other = models_of.logistic().__class__(max_iter=5000, C=1e-3)
    wrong = surface_of(other.fit(STROKE.X, STROKE.y))
    given, channel = answers(wrong, "pm_01")
    assert errors(surface, given, channel, 4000).max() > 4.5


def test_normal_noise_in_closed_form():
    """A sum of normal values is normal: exact means off by less than 1e-5."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights, sd = rng.normal(size=2), np.exp(rng.normal(size=2) * 2)
        surface = plain(weights, rng.normal())
        values = surface.question.values
        given = surface.answers(Fixed(normal(values, sd)), base.Draws())
        centre = values @ weights + surface.question.model.intercept
        right = special.ndtr(centre / np.sqrt(weights**2 @ sd**2))
        assert np.abs(given.share[:, 1] - right).max() < 1e-5


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
    question = base.Question(
        model, np.full((1, 2), 0.3), (0, 1), np.array([[0, 1.0]] * 2)
    )
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
    surface = plain(np.random.default_rng(2).normal(size=49), 0.3, n=2)
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
        low, high = shares.bracket_positive(
            lead, slopes, channel.law(surface.question.values).terms[0]
        )
        assert (low <= given.share[:, 1] + 1e-6).all()
        assert (high >= given.share[:, 1] - 1e-6).all()
        assert (low < high).any()


def test_withheld_features_are_their_constant():
    """Nothing sent: the answer at the constants; one sent: its law alone."""
    surface = surface_of(models_of.logistic())
    instead = np.array([61.0, 30.0])
    given = surface.answers(base.Channel([], STROKE.bounds, instead), base.Draws())
    rows = STROKE.X[:10].copy()
    rows[:, [0, 5]] = instead
    told = surface.question.model.predict(rows)
    assert (given.share == np.eye(2)[told]).all()
    part = base.Part(make("laplace", epsilon=1.0), (1,))
    one = base.Channel([part], STROKE.bounds, instead)
    assert errors(surface, surface.answers(one, base.Draws()), one, 4000).max() < 4.5


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        linear_model.SGDClassifier(random_state=1),
        linear_model.RidgeClassifier(),
        linear_model.Perceptron(),
        discriminant_analysis.LinearDiscriminantAnalysis(),
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


@pytest.mark.parametrize(
    "model", [naive_bayes.MultinomialNB(), naive_bayes.ComplementNB()]
)
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
        (naive_bayes.BernoulliNB(), "BernoulliNB is not linear."),
        (linear_model.SGDOneClassSVM(), "SGDOneClassSVM is not linear."),
        (
            CalibratedClassifierCV(LogisticRegression(max_iter=500)),
            "CalibratedClassifierCV is not linear.",
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_not_linear_is_refused(model, why):
    """Also votes of pairs of classes, which have weights too."""
    question = base.Question(
        model.fit(DIGITS.X, DIGITS.y), DIGITS.X, (1, 6), np.tile([0.0, 1.0], (2, 1))
    )
    assert Linear().refusal(question) == why


def test_answers_that_are_not_the_weights_are_noticed():
    """An estimator with weights may answer in another way."""

    class Shifted(LogisticRegression):
        def predict(self, X):
            return (self.decision_function(X) > 0.5).astype(int)

    model = Shifted(max_iter=5000).fit(STROKE.X, STROKE.y)
    question = base.Question(model, STROKE.X, STROKE.sensitive, STROKE.bounds)
    said = "Shifted answers otherwise than the largest of its scores."
    assert Linear().refusal(question) == said


def test_many_classes_and_features_are_refused():
    """Four classes are exact for two features, and the reason says so."""
    model = models_of.logistic("digits")
    question = base.Question(model, DIGITS.X, (1, 2, 6), np.tile([0.0, 1.0], (3, 1)))
    why = Linear().refusal(question)
    assert why == (
        "A linear model of 4 classes is exact for two sensitive features; here are 3."
    )


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


def example_4():
    """The paper's discriminant: normal laws around (0, 0) and (1, 1), 1 and 2 wide."""
    corners = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    model = discriminant_analysis.QuadraticDiscriminantAnalysis()
    model.fit(np.vstack([corners, corners + np.array([0.1, -0.2])]), [0] * 4 + [1] * 4)
    model.means_ = np.array([[0.0, 0], [1, 1]])
    model.scalings_ = [np.ones(2), np.full(2, 2.0)]
    model.rotations_ = [np.eye(2), np.eye(2)]
    model.priors_ = np.array([0.5, 0.5])
    return model


def test_radius_of_example_4():
    """At (.5, .5): .4811 as the crow flies, .3402 to each side (QCU, appendix C.1)."""
    bounds = np.array([[-2.0, 4], [-2, 4]])
    question = base.Question(example_4(), np.array([[0.5, 0.5]]), (0, 1), bounds)
    surface = base.choose_engine(question)[0].surface(question)
    found = certify_box(surface, question.values, bounds=bounds, precision=2.0**-16)
    assert found.radius[0] * 6 == pytest.approx(0.3402, abs=1e-4)
    turns = np.linspace(0, 2 * math.pi, 721)
    ring = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    near, far = (
        {*question.model.predict(question.values + r * ring)} for r in (0.4810, 0.4812)
    )
    assert (near, far) == ({0}, {0, 1})


def test_refusals_say_why():
    """More than two features, and what is no normal law."""
    model = MODELS["bayes"].fit(STROKE.X, STROKE.y)
    three = base.Question(model, STROKE.X, (0, 4, 5), np.array([[0, 100.0]] * 3))
    said = "Quadratic scores are exact for two sensitive features; here are 3."
    assert ClosedForm().refusal(three) == said
    mixture = BayesianGaussianMixture(n_components=2, random_state=1).fit(STROKE.X)
    two = base.Question(mixture, STROKE.X, STROKE.sensitive, STROKE.bounds)
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
