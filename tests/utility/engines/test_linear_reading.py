"""Which models the linear engine reads, and why it refuses the others."""

from __future__ import annotations

import numpy as np
import pytest
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

from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.discriminants import Linear
from tests.utility import models_of
from tests.utility.engines.linear_of import DIGITS, STROKE, surface_of
from tests.utility.engines.scores.laws_of import answers, errors


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
