"""What a model must be, and what its answers must be, before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.base.errors import UserError
from curvote.systems.utility.method.models.records import (
    checked_answers,
    constant_note,
    describe_model,
)

RNG = np.random.default_rng(0)
X = RNG.random((60, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
NAMED = pd.DataFrame(X, columns=["age", "bmi"])
LOGISTIC = LogisticRegression().fit(X, Y)


class Answering:
    """A black box: says what a function says."""

    def __init__(self, say: Any, classes: Any = (0, 1)) -> None:
        self.say, self.classes_ = say, np.array(classes)

    def predict(self, rows: Any) -> Any:
        return self.say(np.asarray(rows))


def test_a_model_says_what_it_is() -> None:
    """Kind, classes and columns; those of a pipeline are its steps'."""
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NAMED, Y)
    found = describe_model(model)
    assert found.kind == "StandardScaler + LogisticRegression"
    assert found.classes == (0, 1)
    assert found.features == ("age", "bmi")
    assert describe_model(model, ["age", "bmi"]) == found
    assert describe_model(LOGISTIC, ["a", "b"]).features == ("a", "b")


@pytest.mark.parametrize(
    ("model", "features", "said"),
    [
        (LinearRegression().fit(X, Y), ["a", "b"], "is a regressor"),
        (LogisticRegression(), ["a", "b"], "not fitted"),
        (StandardScaler().fit(X), ["a", "b"], "cannot predict"),
        (KMeans(2, n_init=1, random_state=0).fit(X), ["a", "b"], "names no classes"),
        (
            MultiOutputClassifier(LogisticRegression()).fit(X, np.column_stack([Y, Y])),
            ["a", "b"],
            "several questions",
        ),
        (Answering(len, ["ill"]), ["a", "b"], "one class only, 'ill'"),
        (LOGISTIC, None, "keeps no names of its 2 columns"),
        (LOGISTIC, ["a"], "names 1 columns, the model has 2"),
        (LOGISTIC, ["a", "a"], "a column twice"),
        (LogisticRegression().fit(NAMED, Y), ["agee"], "Did you mean 'age'"),
        (LogisticRegression().fit(NAMED, Y), ["bmi", "age"], "in this order"),
    ],
)
def test_what_cannot_be_asked_is_said(
    model: Any, features: list[str] | None, said: str
) -> None:
    """One message each."""
    with pytest.raises(UserError, match=said):
        describe_model(model, features)


def test_a_model_of_named_columns_answers_without_a_warning() -> None:
    """It is given the names that it was fitted with."""
    model = LogisticRegression().fit(NAMED, Y)
    np.testing.assert_array_equal(checked_answers(model, X), model.predict(NAMED))


def test_a_model_that_changes_its_mind_is_refused() -> None:
    """By chance, or by who stands beside a record; one that does not is taken."""
    dice = np.random.default_rng(1)
    with pytest.raises(UserError, match="differently when asked twice"):
        checked_answers(Answering(lambda rows: dice.integers(0, 2, len(rows))), X)
    with pytest.raises(UserError, match="differently when asked twice"):
        checked_answers(Answering(lambda rows: np.arange(len(rows)) % 2), X)
    told = checked_answers(Answering(lambda rows: (rows[:, 0] > 0.5).astype(int)), X)
    assert set(told.tolist()) == {0, 1}


def test_an_answer_that_is_no_class_is_refused() -> None:
    """And a model that fails says how."""
    with pytest.raises(UserError, match="none of its classes 0, 1"):
        checked_answers(Answering(lambda rows: np.full(len(rows), 2)), X)
    with pytest.raises(UserError, match="cannot answer these records"):
        checked_answers(Answering(lambda rows: rows @ np.ones(7)), X)


def test_equal_answers_mean_nothing() -> None:
    """The base rate stands in the warning; different answers need none."""
    same = constant_note(np.zeros(4, int), np.array([0, 0, 0, 1]))
    assert same is not None
    assert "agreement would be 1 and mean nothing" in same
    assert "75.0 % of the labels" in same
    assert constant_note(np.array([0, 1]), None) is None
