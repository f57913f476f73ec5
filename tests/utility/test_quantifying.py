"""The library's calls, and the settings behind: agreement, a box, and refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method.deployment import make_setting
from curvote.utility import quantify, robust_box, surrogate
from tests.utility import models_of

DATA = models_of.stroke_like(400)
HERE, PUBLIC = DATA.X[:40], DATA.X[40:120]


def asked(model=None, records=HERE, **fields):
    """Return what is quantified of people."""
    wanted = {
        "sensitive": DATA.sensitive,
        "bounds": DATA.bounds,
        "mechanism": "pm_01",
        "epsilon": 3.0,
    } | fields
    return quantify(models_of.logistic() if model is None else model, records, **wanted)


@pytest.mark.parametrize("make", [models_of.logistic, models_of.forest])
@pytest.mark.parametrize(
    ("mechanism", "params"),
    [
        ("pm_01", {}),
        ("joint_box", {}),
        ("k_rr", {"n_classes": 9}),
        ("hybrid", {"split": (0.75, 0.25)}),
    ],
)
def test_known_models_are_exact_and_agree_with_noised_records(make, mechanism, params):
    """The total is split equally unless told; arrays are one number a record."""
    model = make()
    found = asked(model, mechanism=mechanism, **params)
    assert found.evidence == "exact"
    assert found.agreement.shape == found.bound.shape == (40,)
    assert np.all(found.bound <= found.agreement + 1e-5)
    assert found.bound.mean() > 0.02
    np.testing.assert_array_equal(found.lower, found.upper)
    seen = models_of.channel(DATA, mechanism, 3.0, **params)
    rows = np.repeat(HERE, 200, axis=0)
    rows[:, [0, 5]] = seen.draw(rows[:, [0, 5]], SeededEntropy(5))
    same = model.predict(rows) == np.repeat(model.predict(HERE), 200)
    error = np.sqrt(np.sum(found.agreement * (1 - found.agreement)) / 200) / 40
    assert abs(same.mean() - found.agreement.mean()) <= 4.5 * error + 1e-4


def test_draws_and_a_surrogate_cover_what_is_exact():
    """With a surrogate the same number of draws says more."""
    model = models_of.forest()
    exact = asked(model)
    drawn = asked(model, evidence="draws", draws=400, entropy=SeededEntropy(1))
    trees = surrogate(
        model, PUBLIC, sensitive=DATA.sensitive, bounds=DATA.bounds, queries=4000
    )
    beside = asked(model, surrogate=trees, draws=400, entropy=SeededEntropy(1))
    for found in (drawn, beside):
        assert found.evidence == "draws"
        inside = (found.lower <= exact.agreement) & (exact.agreement <= found.upper)
        assert inside.mean() >= 0.9
        assert np.all(np.isnan(found.bound))
    assert np.mean(beside.upper - beside.lower) < np.mean(drawn.upper - drawn.lower)


def test_other_readings_take_what_they_need():
    """Public records to decode, training data to retrain."""
    assert asked(read="decode", public=PUBLIC).evidence == "exact"
    assert asked(read="retrain", train=(DATA.X, DATA.y)).evidence == "exact"
    age = asked(split=(1, 0), epsilon=6.0)
    assert age.agreement.mean() > asked(split=(0, 1), epsilon=6.0).agreement.mean()
    keep = 1 / (1 + np.exp(-3.0))
    np.testing.assert_allclose(asked(mechanism="output").agreement, keep)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"mechanism": "pm"}, "mechanism"),
        ({"mechanism": "gaussian"}, "delta"),
        ({"mechanism": "unary"}, "needs"),
        ({"split": (0.5, 0.25)}, "add up to 1"),
        ({"split": (1.0,)}, "split"),
        ({"size": 9}, "size"),
        ({"read": "decode"}, "public records"),
        ({"read": "retrain"}, "training data"),
        ({"draws": 0}, "draws"),
        ({"confidence": 1.0}, "confidence"),
        ({"evidence": "exact", "mechanism": "privunit"}, "can only be drawn"),
        ({"bounds": [(0, 100), (60, 12)]}, "below"),
    ],
)
def test_what_cannot_be_quantified_is_refused(fields, match):
    """One message, whatever is wrong."""
    with pytest.raises(UserError, match=match):
        asked(**fields)


def test_the_box_of_a_record_holds_its_answer():
    """Certified for a linear model, tried for a black box; corners are inside."""
    model = models_of.logistic()
    found = robust_box(model, HERE[3], sensitive=DATA.sensitive, bounds=DATA.bounds)
    assert found.certified
    assert found.queries == 0
    corners = (
        np.array(np.meshgrid(*np.stack([found.low, found.high]).T)).reshape(2, -1).T
    )
    rows = np.repeat(HERE[[3]], len(corners), axis=0)
    rows[:, [0, 5]] = corners
    assert np.all(model.predict(rows) == model.predict(HERE[[3]]))

    class Asked:
        classes_ = model.classes_

        def predict(self, rows):
            return model.predict(rows)

    tried = robust_box(
        Asked(),
        HERE[3],
        sensitive=DATA.sensitive,
        bounds=DATA.bounds,
        entropy=SeededEntropy(2),
    )
    assert not tried.certified
    assert tried.queries > 0
    assert tried.radius == pytest.approx(found.radius, abs=0.05)


def test_features_may_be_named():
    """By the names that the model knows, which gives what their places give."""
    people = pd.DataFrame(DATA.X, columns=list(DATA.names))
    model = clone(models_of.logistic()).fit(people, DATA.y)
    found = asked(model, people[:40], sensitive=["age", "bmi"])
    placed = asked(model, people[:40])
    np.testing.assert_array_equal(found.agreement, placed.agreement)
    assert repr(found).startswith(
        f"Agreement(mean={found.agreement.mean():.3f}, worst="
    )
    with pytest.raises(UserError, match=r"sensitive is 'weight'\. Known: .*age"):
        asked(model, people, sensitive=["weight", 0])


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
