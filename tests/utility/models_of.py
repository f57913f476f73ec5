"""Generated data and small fitted models that the tests of utility share."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import make_channel

NAMES = ("age", "hypertension", "heart_disease", "ever_married", "glucose", "bmi")


class Data(NamedTuple):
    """Records (n, D) in their own units, labels (n,), and what is sensitive of them."""

    X: FloatArray
    y: NDArray[np.int64]
    names: tuple[str, ...]
    sensitive: tuple[int, ...]
    bounds: FloatArray


def stroke_like(n=400, seed=1):
    """Return people of whom about half have had a stroke; age and bmi are sensitive."""
    rng = np.random.default_rng(seed)
    age = rng.integers(1, 100, n) * 1.0
    ill, heart = (rng.random((2, n)) < 0.05 + 0.003 * age).astype(float)
    married = (rng.random(n) < age / 90).astype(float)
    glucose = np.round(np.clip(rng.gamma(6, 18, n) + 0.3 * age, 50, 300), 2)
    bmi = np.round(np.clip(rng.normal(26 + 0.05 * age, 6), 12, 60), 1)
    odds = 0.05 * (age - 55) + ill + heart + 0.01 * (glucose - 130) + 0.05 * (bmi - 29)
    stroke = rng.random(n) < 1 / (1 + np.exp(-odds))
    X = np.column_stack([age, ill, heart, married, glucose, bmi])
    bounds = np.array([[0.0, 100.0], [12.0, 60.0]])
    return Data(X, stroke.astype(np.int64), NAMES, (0, 5), bounds)


def digits_like(n=400, seed=1):
    """Return noisy pictures of 3x3 pixels in [0, 1], four classes of much the same."""
    rng = np.random.default_rng(seed)
    shapes = np.random.default_rng(7).random((4, 9))
    y = rng.integers(0, 4, n)
    X = np.round(np.clip(shapes[y] + rng.normal(0, 0.25, (n, 9)), 0, 1), 3)
    names = tuple(f"pixel_{i}" for i in range(9))
    return Data(X, y, names, (1, 6), np.array([[0.0, 1.0], [0.0, 1.0]]))


DATA = {"stroke": stroke_like, "digits": digits_like}


def channel(on, mechanism="pm_01", epsilon=2.0, **settings):
    """Return the channel on the ``bounds`` of data, of a question or of coordinates.

    Their middle stands in place of what is withheld.
    """
    wanted = {"bounds": on.bounds, "fill_value": on.bounds.mean(axis=1)} | settings
    return make_channel(mechanism, epsilon=epsilon, **wanted)


def logistic(data="stroke"):
    """Return a logistic regression of ``DATA[data]()``."""
    from sklearn.linear_model import LogisticRegression

    return _fitted(LogisticRegression, data, max_iter=5000)


def forest(data="stroke", trees=20):
    """Return a random forest of deep trees."""
    from sklearn.ensemble import RandomForestClassifier

    return _fitted(RandomForestClassifier, data, n_estimators=trees, random_state=1)


def boosting(data="stroke", trees=20):
    """Return gradient boosting of trees of depth 3."""
    from sklearn.ensemble import GradientBoostingClassifier

    return _fitted(GradientBoostingClassifier, data, n_estimators=trees, random_state=1)


def hist_boosting(data="stroke", trees=20):
    """Return histogram gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _fitted(HistGradientBoostingClassifier, data, max_iter=trees, random_state=1)


@cache
def network(data="stroke", layers=(8, 8)):
    """Return a small ReLU network, fitted to standardised columns: a pipeline."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    inner = _fitted_network(data, layers)
    assert isinstance(inner, MLPClassifier)
    return make_pipeline(StandardScaler().fit(DATA[data]().X), inner)


@cache
def _fitted(kind, data, **settings):
    given = DATA[data]()
    return kind(**settings).fit(given.X, given.y)


@cache
def _fitted_network(data, layers):
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    given = DATA[data]()
    model = MLPClassifier(layers, solver="lbfgs", max_iter=3000, random_state=1)
    return model.fit(StandardScaler().fit_transform(given.X), given.y)
