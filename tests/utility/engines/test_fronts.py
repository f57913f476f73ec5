"""Fronts: what stands before an estimator is undone, or it is said why not."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.discriminants import Linear
from curvote.systems.utility.method.projections import principal_coordinates
from tests.utility import models_of

DATA = models_of.stroke_like()


class Turned(TransformerMixin, BaseEstimator):
    """A transformer of one's own that says how it is affine."""

    def fit(self, X, y=None):
        self.slopes_ = np.array([[1.0, 0.5]] * X.shape[1])
        return self

    def transform(self, X):
        return X @ self.slopes_ + 3


def columns(*parts, **settings):
    """Return a transformer of some columns by number."""
    named = [(f"part {i}", part, list(at)) for i, (part, at) in enumerate(parts)]
    return ColumnTransformer(named, **settings)


FRONTS = {
    "none": [],
    "standard": [StandardScaler()],
    "not scaled": [StandardScaler(with_std=False), RobustScaler(with_scaling=False)],
    "ranges": [MinMaxScaler((-1, 2)), MaxAbsScaler(), RobustScaler()],
    "components": [StandardScaler(), PCA(4, whiten=True), TruncatedSVD(3)],
    "chosen": [SelectKBest(k=3), StandardScaler()],
    "nothing": [FunctionTransformer(), "passthrough", StandardScaler()],
    "imputed": [SimpleImputer(), make_pipeline(StandardScaler(), PCA(5))],
    "own": [Turned(), StandardScaler()],
    "columns": [
        columns(
            (StandardScaler(), (0, 5)),
            (OneHotEncoder(), (3,)),
            (OneHotEncoder(sparse_output=False), (1, 2)),
            remainder="passthrough",
        ),
        PCA(6),
    ],
    "dropped": [columns((MinMaxScaler(), (5, 0)), ("drop", (1,)), remainder="drop")],
}


def asked(*steps):
    """The question of a pipeline of these steps before a logistic regression."""
    model = make_pipeline(*steps, LogisticRegression(max_iter=500))
    model.fit(DATA.X, DATA.y)
    return base.Question(model, DATA.X[:50], DATA.sensitive, DATA.bounds)


def moved(question):
    """The question's records with other sensitive values, and these."""
    values = np.random.default_rng(3).uniform(*DATA.bounds.T, (50, 2))
    rows = question.records.copy()
    rows[:, list(DATA.sensitive)] = values
    return rows, values


@pytest.mark.parametrize("name", FRONTS)
def test_folded_front_is_the_pipeline(name):
    """Its scores at other values are the pipeline's decision function there."""
    question = asked(*FRONTS[name])
    rows, values = moved(question)
    scores = Linear().scores(question).at(values)
    decision = question.model.decision_function(rows)
    assert np.allclose(scores[:, 1] - scores[:, 0], decision, atol=1e-9)
    assert np.ptp(decision) > 0.1


@pytest.mark.parametrize("name", FRONTS)
def test_slopes_are_what_a_unit_adds(name):
    """Features at other values are the record's own and the moves times the slopes."""
    question = asked(*FRONTS[name])
    _, front = base.split_front(question)
    rows, values = moved(question)
    added = (values - question.values) @ front.slopes
    expected = front.features(question.records) + added
    assert np.allclose(front.features(rows), expected)


def test_columns_by_name():
    """A table's transformer names its columns; records come without names."""
    table = pd.DataFrame(DATA.X, columns=list(DATA.names))
    part = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["bmi", "age"]),
            ("words", OneHotEncoder(), ["ever_married"]),
            ("rest", "passthrough", slice("hypertension", "heart_disease")),
        ]
    )
    model = make_pipeline(part, LogisticRegression()).fit(table, DATA.y)
    question = base.Question(model, DATA.X[:50], DATA.sensitive, DATA.bounds)
    rows, values = moved(question)
    given = pd.DataFrame(rows, columns=list(DATA.names))
    scores = Linear().scores(question).at(values)
    assert np.allclose(np.diff(scores)[:, 0], model.decision_function(given))
    assert base.choose_engine(question)[0].name == "linear"


def test_search_stands_for_its_best():
    """A grid search that was refitted is its best estimator."""
    search = GridSearchCV(LogisticRegression(max_iter=900), {"C": [0.1, 1]}, cv=2)
    search.fit(DATA.X, DATA.y)
    question = base.Question(search, DATA.X[:5], DATA.sensitive, DATA.bounds)
    assert base.split_front(question)[0] is search.best_estimator_


@pytest.mark.parametrize("named", [False, True])
def test_public_coordinates_are_folded(named):
    """What rebuilds features from coordinates stands before a model of any kind."""
    table = pd.DataFrame(DATA.X, columns=list(DATA.names)) if named else DATA.X
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, DATA.y)
    three = (0, 4, 5)
    sent = principal_coordinates(DATA.X[:, list(three)], 2)
    before = sent.before(model, 6, three)
    records = sent.records(DATA.X[:50], three)
    question = base.Question(before, records, (0, 1), sent.bounds)
    values = np.random.default_rng(3).uniform(*sent.bounds.T, (50, 2))
    rows = records.copy()
    rows[:, :2] = values
    scores = Linear().scores(question).at(values)
    assert np.allclose(np.diff(scores)[:, 0], before.decision_function(rows))
    assert base.choose_engine(question)[0].name == "linear"


BENT = {
    "Normalizer": [Normalizer()],
    "MinMaxScaler": [MinMaxScaler(clip=True)],
    "FunctionTransformer": [StandardScaler(), FunctionTransformer(np.tanh)],
    "OneHotEncoder": [
        columns((OneHotEncoder(handle_unknown="ignore"), (0,))),
    ],
}


@pytest.mark.parametrize("name", BENT)
def test_what_is_not_affine_is_named(name):
    """A front that bends a sensitive feature is refused, by its name."""
    question = asked(*BENT[name])
    _, why = base.split_front(question)
    assert why == f"{name} in front of the model bends a sensitive feature."
    assert Linear().refusal(question) == why
    assert base.choose_engine(question)[0].name == "black_box"


def test_bent_after_mixing_is_bent():
    """An encoder of other columns is bent once a mixture of all stands before it."""
    encoder = columns((FunctionTransformer(np.tanh), (1, 2)), remainder="passthrough")
    assert isinstance(base.split_front(asked(encoder))[1], base.Front)
    assert isinstance(
        base.split_front(asked(StandardScaler(), PCA(6), encoder))[1], str
    )


def test_own_transformer_without_slopes_is_bent():
    """Nothing is taken for affine that does not say so."""
    turned = Turned().fit(DATA.X)
    mute = SimpleNamespace(transform=turned.transform)
    model = SimpleNamespace(steps=[("mute", mute), ("end", None)])
    question = base.Question(model, DATA.X, DATA.sensitive, DATA.bounds)
    assert "bends" in base.split_front(question)[1]
