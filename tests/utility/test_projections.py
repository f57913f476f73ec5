"""Public coordinates instead of features: sent, rebuilt, and agreed with."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method import projections
from curvote.systems.utility.method.deployment import make_setting
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.profile import build_profile
from curvote.systems.utility.method.projections import (
    active_directions,
    coordinates_along,
    direction_coordinates,
    principal_coordinates,
    project_setting,
)
from tests.noise import SEED
from tests.utility import models_of

SENSITIVE = (0, 3, 4, 5, 7)


def table(n, seed):
    """Records of 8 columns whose sensitive ones have two large directions."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(0).normal(size=(2, 8)) * [5, 1, 1, 2, 3, 0.5, 1, 4]
    return rng.normal(size=(n, 2)) @ mix + 0.1 * rng.normal(size=(n, 8)) + np.arange(8)


PUBLIC = table(300, 1)
RECORDS = table(200, 2)


def classifier(names=False):
    """A model of all columns, which knows their names or not."""
    X, centre = table(500, 3), np.arange(8)
    y = (X - centre) @ [1, 0.2, -0.3, 1, -1, 1, 0.1, 0.5] > 0
    given = pd.DataFrame(X, columns=list("abcdefgh")) if names else X
    return LogisticRegression(max_iter=2000).fit(given, y)


def public(values=PUBLIC):
    """The sensitive columns."""
    return values[:, list(SENSITIVE)]


def sent(how, epsilon, mechanism="joint_box"):
    """The share of records whose answer is the clean one, by draws."""
    k, model = len(how.bounds), classifier()
    channel = models_of.channel(how, mechanism, epsilon)
    records = np.repeat(how.records(RECORDS, SENSITIVE), 50, axis=0)
    records[:, :k] = channel.draw(records[:, :k], SeededEntropy(SEED))
    answers = how.before(model, 8, SENSITIVE).predict(records)
    return float(np.mean(answers == np.repeat(model.predict(RECORDS), 50)))


@pytest.mark.parametrize("names", [False, True])
def test_all_coordinates_rebuild_the_record(names):
    """With as many coordinates as features the pipeline answers as the model does."""
    model, how = classifier(names), principal_coordinates(public(), 5)
    records = how.records(RECORDS, SENSITIVE)
    assert records.shape == (200, 8)
    assert np.array_equal(records[:, 5:], RECORDS[:, [1, 2, 6]])
    pipeline = how.before(model, 8, SENSITIVE)
    rebuilt = np.asarray(pipeline[0].transform(records))
    assert rebuilt == pytest.approx(RECORDS)
    named = pd.DataFrame(RECORDS, columns=list("abcdefgh")) if names else RECORDS
    assert np.array_equal(pipeline.predict(records), model.predict(named))


def test_front_says_its_slopes():
    """A unit of a column sent adds its row of slopes, as an engine reads them."""
    front = principal_coordinates(public(), 2).before(classifier(), 8, SENSITIVE)[0]
    assert front.slopes_.shape == (5, 8)
    context = np.arange(5.0)
    for i, slope in enumerate(front.slopes_):
        there = context + np.eye(5)[i]
        added = front.transform([there]) - front.transform([context])
        assert added[0] == pytest.approx(slope)
    copied = clone(front).fit(None)
    assert np.array_equal(copied.transform([context]), front.transform([context]))


def test_coordinates_come_from_public_records(monkeypatch):
    """The components are orthogonal there, and the bounds hold the share asked for."""
    monkeypatch.setattr(projections, "COVER", 0.9)
    how = principal_coordinates(public(), 4)
    seen = how.of(public())
    spread = np.cov(seen.T)
    assert np.abs(spread - np.diag(np.diag(spread))).max() < 1e-9 * spread.max()
    inside = (seen >= how.bounds[:, 0]) & (seen <= how.bounds[:, 1])
    assert inside.mean(axis=0) == pytest.approx(0.9, abs=0.01)
    monkeypatch.setattr(projections, "COVER", 1.0)
    whole = principal_coordinates(public(), 4).bounds
    assert whole[:, 0] == pytest.approx(seen.min(axis=0))
    assert whole[:, 1] == pytest.approx(seen.max(axis=0))


def test_what_is_not_sent_is_predicted(monkeypatch):
    """One feature of two that go together rebuilds the other; noise would not."""
    x = np.random.default_rng(4).normal(size=(100, 1))
    both = np.hstack([x, 3 * x + 1])
    monkeypatch.setattr(projections, "COVER", 1.0)
    how = coordinates_along(np.eye(2)[:, [0]], both)
    assert how.centre + how.of(both) @ how.back == pytest.approx(both)
    assert how.bounds == pytest.approx(np.array([[x.min(), x.max()]]) - x.mean())


def test_least_squares_is_the_best_way_back():
    """No other matrix rebuilds the public records better."""
    basis = np.random.default_rng(5).normal(size=(5, 2))
    how = coordinates_along(basis, public())

    def error(how):
        rebuilt = how.centre + how.of(public()) @ how.back
        return float(np.sum((rebuilt - public()) ** 2))

    rng = np.random.default_rng(6)
    others = [how.back + 1e-3 * rng.normal(size=(2, 5)) for _ in range(20)]
    assert all(error(replace(how, back=back)) > error(how) for back in others)


def test_few_coordinates_survive_more_noise():
    """Two directions at the same total agree more often than five noised features."""
    features = coordinates_along(np.eye(5), public())
    two = sent(principal_coordinates(public(), 2), 6)
    assert two > sent(features, 6) + 0.03
    assert two > sent(features, 6, "pm_01") + 0.1
    assert sent(principal_coordinates(public(), 2), 60) > 0.95


@pytest.mark.parametrize("names", [False, True])
def test_score_of_a_linear_model_is_its_one_direction(names):
    """One coordinate of five features loses no answer; the first component some."""
    model = classifier(names)
    basis = active_directions(model, PUBLIC, SENSITIVE)
    assert basis.shape == (5, 1)
    slope = model.coef_[0, list(SENSITIVE)]
    assert np.abs(np.corrcoef(slope, basis[:, 0])[0, 1]) > 0.999
    named = pd.DataFrame(RECORDS, columns=list("abcdefgh")) if names else RECORDS

    def kept(how):
        sent = how.records(RECORDS, SENSITIVE)
        answers = how.before(model, 8, SENSITIVE).predict(sent)
        return float(np.mean(answers == model.predict(named)))

    assert kept(coordinates_along(basis, public())) > 0.995
    assert kept(principal_coordinates(public(), 1)) < 0.97


class Sure:
    """A model without probabilities: the larger of two columns, or what is fixed."""

    def __init__(self, fixed=False):
        self.fixed = fixed

    def predict(self, X):
        return np.where(self.fixed | (X[:, 0] - X[:, 3] > -2), "more", "less")


def test_directions_of_what_only_answers():
    """They come from its answers: columns that change nothing have no part."""
    basis = active_directions(Sure(), PUBLIC, (0, 3))
    first = basis[:, 0] / np.abs(basis[:, 0]).max()
    assert first[0] * first[1] < 0
    spread = PUBLIC[:, [0, 3]] @ basis[:, 0]
    truth = PUBLIC[:, 0] - PUBLIC[:, 3]
    assert np.abs(np.corrcoef(spread, truth)[0, 1]) > 0.95


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: principal_coordinates(public(), 6), "6 components of 5 features"),
        (lambda: principal_coordinates(public()[:3], 3), "3 public records"),
        (lambda: principal_coordinates(public(), 0), "ask for fewer"),
        (
            lambda: coordinates_along(np.eye(2)[:, [0]], np.ones((9, 2))),
            "the same in all public records",
        ),
        (lambda: principal_coordinates([[np.nan, 1.0]], 1), "public"),
        (
            lambda: active_directions(Sure(fixed=True), PUBLIC, (0, 3)),
            "nothing needs to be sent",
        ),
    ],
)
def test_refusals(make, message):
    """One message says what is wrong."""
    with pytest.raises(UserError, match=message):
        make()


SIDE = 24


def digits(n, seed):
    """Pictures of four smooth shapes, a few more directions, and speckle."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    smooth = np.cumsum(fixed.normal(size=(12, SIDE)), axis=1)
    labels = rng.integers(0, 4, n)
    blend = rng.normal(size=(n, 8)) * 0.6 ** np.arange(8)
    pictures = smooth[labels] + blend @ smooth[4:] + 0.3 * rng.normal(size=(n, SIDE))
    return np.clip(0.5 + pictures / 20, 0, 1), labels


def pictures():
    """A small network on them, 60 records, 400 public ones; the last column is open."""
    (X, y), (records, labels) = digits(800, 1), digits(60, 2)
    model = MLPClassifier((16,), max_iter=800, random_state=0, tol=1e-3).fit(X, y)
    return make_setting(
        model,
        records,
        sensitive=range(SIDE - 1),
        bounds=np.tile([0.0, 1.0], (SIDE - 1, 1)),
        labels=labels,
        public=digits(400, 3)[0],
        train=(X, y),
    )


@pytest.fixture(scope="module")
def given():
    """The setting, once."""
    return pictures()


def test_setting_in_coordinates(given):
    """Its clean answers are the given model's, and the open column stays open."""
    seen = project_setting(given, principal_coordinates(given.public[:, :-1], 5))
    assert seen.records.shape == (60, 6)
    assert seen.names == tuple(f"coordinate {i}" for i in range(1, 6))
    assert np.array_equal(seen.records[:, 5], given.records[:, -1])
    assert np.array_equal(seen.reference, given.answers(given.records))
    assert np.array_equal(build_profile(seen).clean, seen.reference)
    assert np.array_equal(seen.labels, given.labels)
    assert seen.train is None
    rough = project_setting(given, principal_coordinates(given.public[:, :-1], 1))
    assert (rough.answers(rough.records) != rough.reference).any()


def test_all_components_lose_nothing(given):
    """With as many as there are features, the answers are the same."""
    seen = project_setting(given, principal_coordinates(given.public[:, :-1], SIDE - 1))
    assert np.array_equal(seen.answers(seen.records), seen.reference)
    again = project_setting(
        replace(given, reference=1 - seen.reference),
        principal_coordinates(given.public[:, :-1], 3),
    )
    assert np.array_equal(again.reference, 1 - seen.reference)


def agreement(seen, mechanism, epsilon):
    """By draws."""
    channel = models_of.channel(seen, mechanism, epsilon)
    rows = np.repeat(seen.records, 40, axis=0)
    noised = channel.draw(np.repeat(seen.values, 40, axis=0), SeededEntropy(5))
    rows[:, list(seen.sensitive)] = noised
    return float(np.mean(seen.answers(rows) == np.repeat(seen.reference, 40)))


def test_directions_of_the_model_beat_components(given):
    """What the model looks at, at the same number of coordinates and total."""
    values = given.public[:, :-1]
    (how,) = direction_coordinates(given, (3,))
    for epsilon in (6, 30):
        mine = project_setting(given, how)
        theirs = project_setting(given, principal_coordinates(values, 3))
        gap = agreement(mine, "joint_box", epsilon) - agreement(
            theirs, "joint_box", epsilon
        )
        assert gap > 0.02, gap


@pytest.mark.parametrize(
    ("name", "engine"), [("logistic", "linear"), ("network", "network")]
)
def test_engines_fold_what_rebuilds_the_features(name, engine):
    """In front of a pipeline, too: the agreement is known as it is without it."""
    data, model = models_of.stroke_like(40, 5), getattr(models_of, name)("stroke")
    seen = make_setting(
        model,
        data.X[:10],
        sensitive=data.sensitive,
        bounds=data.bounds,
        public=data.X[10:],
    )
    one = project_setting(seen, direction_coordinates(seen, (1, 2))[0])
    assert [len(how.bounds) for how in direction_coordinates(seen, (1, 2, 9))] == {
        "linear": [1],
        "network": [1, 2],
    }[engine]
    found, _ = base.choose_engine(one.question)
    assert found.name == engine
    channel = models_of.channel(one, "pm_01", 3)
    answers = found.surface(one.question).answers(channel, base.Draws())
    rows, size = np.repeat(one.records, 4000, axis=0), (10, 4000)
    rows[:, :1] = channel.draw(rows[:, :1], SeededEntropy(3))
    same = (one.answers(rows).reshape(size) == 1).mean(axis=1)
    error = 4.5 * np.sqrt(0.25 / 4000)
    assert (same >= answers.lower[:, 1] - error).all()
    assert (same <= answers.upper[:, 1] + error).all()
    assert (answers.upper - answers.lower).max() < 0.02
