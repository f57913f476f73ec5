"""What the classifier of private labels refuses, and how it says so."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote import PrivateLabelClassifier, UserError, encode

CLASSES = np.array(["aa", "iy", "sh"])
X = np.random.default_rng(0).normal(size=(60, 2))
Y = CLASSES[np.arange(60) % 3]


def frame(x: np.ndarray = X) -> pd.DataFrame:
    """Return the records as named columns."""
    return pd.DataFrame(x, columns=["dose", "age"])


@pytest.fixture(scope="module")
def fitted() -> PrivateLabelClassifier:
    """Return a classifier that learned named columns."""
    return PrivateLabelClassifier("ridge", 3.0, random_state=0).fit(frame(), Y)


def test_columns_are_found_by_name(fitted: PrivateLabelClassifier) -> None:
    """In any order; the order of an array is taken as it is."""
    expected = fitted.predict_proba(frame())
    assert np.array_equal(fitted.predict_proba(frame()[["age", "dose"]]), expected)
    with pytest.warns(UserWarning, match="feature names"):
        assert np.array_equal(fitted.predict_proba(X), expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (frame().drop(columns="dose"), "X lacks column dose; columns are found by"),
        (frame().assign(ward=1), "X has column ward, which the model did not learn"),
        (frame().rename(columns={"age": "years"}), "lacks column age and has column y"),
        (pd.concat([frame(), frame()[["age"]]], axis=1), "unique column names"),
    ],
)
def test_other_columns_are_refused(
    fitted: PrivateLabelClassifier, given: pd.DataFrame, said: str
) -> None:
    """What lacks is named, and what is too much."""
    with pytest.raises(UserError, match=said):
        fitted.predict(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (frame().assign(age="old"), "X holds text or categories in column age"),
        (frame().assign(age=pd.Categorical(["a", "b"] * 30)), "column of 0 and 1"),
        (frame().replace(X[3, 0], np.nan), r"1 values that are NaN .* index \(3, 0\)"),
        (frame().replace(X[0, 1], np.inf), "NaN or infinite"),
    ],
)
def test_values_that_are_no_numbers_are_refused(
    fitted: PrivateLabelClassifier, given: pd.DataFrame, said: str
) -> None:
    """By both sides."""
    with pytest.raises(UserError, match=said):
        fitted.predict(given)
    with pytest.raises(UserError, match=said):
        PrivateLabelClassifier("ridge").fit(given, Y)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (X * 1e200, "X holds a number as large as"),
        (X[:, 0], "Expected 2D array"),
        (X[:1], r"X has one record \(n_samples = 1\)"),
        (np.empty((60, 0)), "0 feature"),
        (X.astype(str) + "a", "could not convert"),
    ],
)
def test_what_is_no_table_spends_nothing(given: np.ndarray, said: str) -> None:
    """Numbers without squares, other shapes, and a record alone."""
    made = PrivateLabelClassifier("knn")
    with pytest.raises(UserError, match=said):
        made.fit(given, Y[: len(given)])
    assert made.spent_ is None


def test_objects_that_are_numbers_are_numbers(fitted: PrivateLabelClassifier) -> None:
    """And so are truth values."""
    given = frame().astype(object)
    assert np.array_equal(fitted.predict(given), fitted.predict(frame()))
    assert len(fitted.predict(frame() > 0)) == 60


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": float("inf")}, "epsilon is inf"),
        ({"encoder": "vektor"}, "Did you mean 'vector'"),
        ({"encoder": "rr_with_prior"}, "prior"),
        ({"estimator": "kmn"}, "Did you mean 'knn'"),
        ({"estimator": 5}, "estimator is 5; give one of"),
        ({"decide": "fair"}, "decide is 'fair'"),
        ({"classes": ["aa", "iy"]}, "'sh'"),
        ({"classes": ["aa"]}, "two or more"),
        ({"random_state": -1}, "random_state is -1"),
    ],
)
def test_a_parameter_out_of_range_spends_nothing(
    stated: dict[str, Any], said: str
) -> None:
    """A UserError, which is a ValueError, that names the parameter."""
    made = PrivateLabelClassifier("ridge").set_params(**stated)
    with pytest.raises((UserError, TypeError), match=said):
        made.fit(X, Y)
    assert made.spent_ is None


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (None, "requires y"),
        (Y[:59], "X has 60 records, and y 59 labels"),
        (np.where(np.arange(60) == 7, None, Y), "1 missing labels"),
        (np.where(np.arange(60) == 7, np.nan, np.arange(60) % 3), "contains NaN"),
        (np.zeros(60), "one class only"),
        (X[:, 0], "Unknown label type: continuous"),
        (pd.Categorical.from_codes([-1, 0, 1] * 20, CLASSES), "20 missing labels"),
    ],
)
def test_labels_that_are_none_are_refused(y: Any, said: str) -> None:
    """Nothing is drawn, so nothing is spent."""
    made = PrivateLabelClassifier("ridge")
    with pytest.raises(ValueError, match=said):
        made.fit(X, y)
    assert made.spent_ is None


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"epsilon": 1.0}, "codes are of epsilon 2, the model states 1"),
        ({"encoder": "rr"}, "of encoder unary_symmetric, the model states rr"),
        ({"encoder": "lp_2st"}, "unary_symmetric, the model states lp_2st"),
        ({"encoder": "vectr"}, "Did you mean 'vector'"),
        ({"classes": ["aa", "iy"]}, "codes are of 3 classes, the model has 2"),
        ({"classes": ["aa", "sh", "iy"]}, "classes aa, iy, sh; the model has aa, sh"),
    ],
)
def test_codes_of_something_else_are_refused(stated: dict[str, Any], said: str) -> None:
    """Both are named."""
    codes = encode(Y, epsilon=2.0, encoder="vector", random_state=0)
    made = PrivateLabelClassifier("ridge", 2.0).set_params(**stated)
    with pytest.raises(UserError, match=said):
        made.fit(X, codes)


def test_a_code_for_each_record() -> None:
    """Neither more nor fewer."""
    codes = encode(Y, epsilon=1.0, random_state=0)
    with pytest.raises(UserError, match="X has 50 records, and there are 60 codes"):
        PrivateLabelClassifier("ridge").fit(X[:50], codes)
