"""Settings: what is no model, no record or no bound is refused in plain words."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from curvote.base.errors import UserError
from curvote.systems.utility.method.deployment import make_setting
from tests.utility import models_of

DATA = models_of.stroke_like(400)


def given(model=None, records=DATA.X[:9], **fields):
    """Return a setting of nine people."""
    asked = {"sensitive": DATA.sensitive, "bounds": DATA.bounds} | fields
    return make_setting(
        models_of.logistic() if model is None else model, records, **asked
    )


class OneClass:
    classes_ = np.array([0])

    def predict(self, rows):
        return np.zeros(len(rows))


WRONG = [
    ({"sensitive": []}, "sensitive"),
    ({"sensitive": [0, 0]}, "different columns"),
    ({"sensitive": [0, 6]}, "0 to 5"),
    ({"sensitive": [-1, 0]}, "whole number"),
    ({"bounds": [(0, 100)]}, "one \\(low, high\\) for each"),
    ({"bounds": [(0, 100), (60, 12)]}, "must be below"),
    ({"bounds": [(0, 100), (12, np.inf)]}, "finite"),
    ({"records": DATA.X[:9, :4]}, "shape"),
    ({"records": DATA.X[0]}, "shape"),
    ({"records": np.full((3, 6), np.nan)}, "NaN"),
    ({"records": [["a"] * 6]}, "numbers"),
    ({"labels": [1, 0]}, "one a record"),
    ({"public": DATA.X[:5, :2]}, "public"),
    ({"public": np.full((3, 6), np.nan)}, "public"),
    ({"features": ["age"]}, "names"),
    ({"features": ["age"] * 6}, "different"),
    ({"model": LinearRegression().fit(DATA.X, DATA.y)}, "no classifier"),
    ({"model": "a model"}, "no classifier"),
    ({"model": OneClass()}, "one class only"),
]


@pytest.mark.parametrize(("fields", "match"), WRONG)
def test_what_is_no_setting_is_refused(fields, match):
    """One message that says what to do."""
    with pytest.raises(UserError, match=match):
        given(**fields)


def test_a_setting_knows_its_names_and_values():
    """Values lie within the bounds, whatever the records."""
    rows = DATA.X[:9].copy()
    rows[0, 0] = 140.0
    found = given(records=rows, features=DATA.names)
    assert found.names == ("age", "bmi")
    assert found.values[0, 0] == 100.0
    assert np.array_equal(found.fill_value, DATA.bounds.mean(axis=1))
    assert given().names == ("x0", "x5")


def test_answers_are_places_among_the_classes():
    """Whatever the classes are called."""
    names = np.array(["no", "yes"])[DATA.y]
    model = LogisticRegression(max_iter=5000).fit(DATA.X, names)
    found = given(model)
    assert np.array_equal(found.classes[found.answers(DATA.X)], model.predict(DATA.X))
