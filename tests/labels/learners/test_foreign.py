"""Scikit-learn's estimators on codes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from curvote.base.errors import UserError
from curvote.systems.labels.learners.factory import make
from curvote.systems.labels.learners.knn import KNN
from tests.labels.learners.worlds import circle, coded

FORESTS = [
    RandomForestRegressor(20, min_samples_leaf=20, random_state=0),
    RandomForestClassifier(20, min_samples_leaf=20, random_state=0),
    make_pipeline(StandardScaler(), RandomForestRegressor(20, min_samples_leaf=20)),
]
OTHERS = [
    Ridge(),
    SVR(),
    KNeighborsRegressor(40),
    KNeighborsClassifier(40),
    make_pipeline(StandardScaler(), PolynomialFeatures(3), LogisticRegression()),
    MLPClassifier((8,), solver="lbfgs", max_iter=1000, alpha=10, random_state=0),
]


def fitted(estimator, encoder="vector"):
    """Return a learner and the share of right answers for new records."""
    X, _, codes = coded(600, encoder=encoder)
    new, truth = circle(300, 4, seed=9)
    learner = make(estimator).fit(X, codes, np.random.default_rng(0))
    votes = learner.votes(new)
    return learner, (votes.argmax(axis=1) == truth).mean()


@pytest.mark.parametrize("encoder", ["vector", "subset", "rr"])
@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_each_learns(place, encoder):
    """Regressors on decoded codes, classifiers on bits, one column or many."""
    learner, right = fitted(OTHERS[place], encoder)
    assert right > 0.8
    assert learner.without_own().votes is None


@pytest.mark.parametrize("forest", FORESTS)
def test_a_forest_has_left_out_votes(forest):
    """Out of bag, of all records."""
    learner, right = fitted(forest)
    assert right > 0.8
    assert learner.without_own().votes.shape == (600, 4)


def test_bits_are_mapped_back():
    """A classifier's mean bits over neighbours are the mean decoded codes."""
    X, _, codes = coded(200, encoder="vector")
    rng = np.random.default_rng(0)
    bits = make(KNeighborsClassifier(15)).fit(X, codes, rng).votes(X)
    assert bits == pytest.approx(KNN(k=15).fit(X, codes, rng).votes(X), abs=1e-9)


def test_the_given_estimator_stays_as_it_is():
    """A copy learns, with a seed of its own; twice the same."""
    forest = RandomForestRegressor(5)
    X, _, codes = coded(100)
    votes = [
        make(forest).fit(X, codes, np.random.default_rng(1)).votes(X) for _ in range(2)
    ]
    assert (votes[0] == votes[1]).all()
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None


def test_codes_without_bits_want_a_regressor():
    """Soft labels of alibi are no bits."""
    X, _, codes = coded(100, encoder="alibi")
    with pytest.raises(UserError, match="a classifier learns bits"):
        make(LogisticRegression()).fit(X, codes, np.random.default_rng(0))
