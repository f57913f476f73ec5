"""Models, options and records: what they must be before anything is computed."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from curvote.base.errors import UserError
from curvote.systems.utility import request
from curvote.systems.utility.method.engines.base import predict_batched
from curvote.systems.utility.method.models import records
from curvote.systems.utility.method.models.records import checked_answers

RNG = np.random.default_rng(0)
X = RNG.random((60, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
NAMED = pd.DataFrame(X, columns=["age", "bmi"])
LOGISTIC = LogisticRegression().fit(X, Y)


class Answering:
    """A black box: says what a function says."""

    def __init__(self, say, classes=(0, 1)):
        self.say, self.classes_ = say, np.array(classes)

    def predict(self, rows):
        return self.say(np.asarray(rows))


def test_a_model_says_what_it_is():
    """Kind, classes and columns; those of a pipeline are its steps'."""
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NAMED, Y)
    found = records.describe_model(model)
    assert found.kind == "StandardScaler + LogisticRegression"
    assert found.classes == (0, 1)
    assert found.features == ("age", "bmi")
    assert records.describe_model(model, ["age", "bmi"]) == found
    assert records.describe_model(LOGISTIC, ["a", "b"]).features == ("a", "b")


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
def test_what_cannot_be_asked_is_said(model, features, said):
    """One message each."""
    with pytest.raises(UserError, match=said):
        records.describe_model(model, features)


def test_a_model_of_named_columns_answers_without_a_warning():
    """It is given the names that it was fitted with."""
    model = LogisticRegression().fit(NAMED, Y)
    np.testing.assert_array_equal(checked_answers(model, X), model.predict(NAMED))


def test_a_model_that_changes_its_mind_is_refused():
    """By chance, or by who stands beside a record; one that does not is taken."""
    dice = np.random.default_rng(1)
    with pytest.raises(UserError, match="differently when asked twice"):
        checked_answers(Answering(lambda rows: dice.integers(0, 2, len(rows))), X)
    with pytest.raises(UserError, match="differently when asked twice"):
        checked_answers(Answering(lambda rows: np.arange(len(rows)) % 2), X)
    told = checked_answers(Answering(lambda rows: (rows[:, 0] > 0.5).astype(int)), X)
    assert set(told.tolist()) == {0, 1}


def test_an_answer_that_is_no_class_is_refused():
    """And a model that fails says how."""
    with pytest.raises(UserError, match="none of its classes 0, 1"):
        checked_answers(Answering(lambda rows: np.full(len(rows), 2)), X)
    with pytest.raises(UserError, match="cannot answer these records"):
        checked_answers(Answering(lambda rows: rows @ np.ones(7)), X)


def test_equal_answers_mean_nothing():
    """The base rate stands in the warning; different answers need none."""
    same = records.constant_note(np.zeros(4, int), np.array([0, 0, 0, 1]))
    assert same is not None
    assert "agreement would be 1 and mean nothing" in same
    assert "75.0 % of the labels" in same
    assert records.constant_note(np.array([0, 1]), None) is None


DICE = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {
        "age": DICE.uniform(20, 90, 120),
        "job": DICE.choice(["govt", "none", "private"], 120),
        "smokes": DICE.choice(["no", "yes"], 120),
    }
)
ILL = ((PEOPLE.age > 60) ^ (PEOPLE.job == "none")).astype(int)


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
        OrdinalEncoder(),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    ],
)
def test_the_coded_model_answers_alike(encoder):
    """And the given one is left as it was."""
    columns = make_column_transformer(
        (StandardScaler(), ["age"]), (encoder, ["job", "smokes"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(PEOPLE, ILL)
    clean = model.predict(PEOPLE)
    made, texts = records.code_texts(model)
    assert texts == {"job": ("govt", "none", "private"), "smokes": ("no", "yes")}
    cells = {name: PEOPLE[name].tolist() for name in PEOPLE}
    rows = records.model_matrix(cells, list(PEOPLE), "people", texts)
    np.testing.assert_array_equal(predict_batched(made, rows), clean)
    np.testing.assert_array_equal(model.predict(PEOPLE), clean)
    assert 0 < clean.mean() < 1


def test_a_model_without_texts_is_itself():
    """Nothing is copied."""
    model = LogisticRegression().fit(PEOPLE[["age"]], ILL)
    assert records.code_texts(model) == (model, {})


def test_bounds_and_places_are_read():
    """In the order of the sensitive features."""
    assert request.sensitive_columns(["bmi", "age"], ["age", "sex", "bmi"]) == (2, 0)
    found = request.parse_bounds(["age=0:100", "bmi=-1.5:1e2"], ["bmi", "age"])
    np.testing.assert_array_equal(found, [[-1.5, 100], [0, 100]])
    assert request.check_epsilons([4, 1, 4]) == (1.0, 4.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no bounds of age, bmi"),
        (["age=0:100"], r"no bounds of bmi: .*--bounds bmi=LOW:HIGH"),
        (["age=100:0", "bmi=1:2"], "the other way round: age=0:100"),
        (["age=5:5", "bmi=1:2"], "must be below the second"),
        (["age=0:inf", "bmi=1:2"], "finite"),
        (["age=nan:1", "bmi=1:2"], "finite"),
        (["age", "bmi=1:2"], "write NAME=LOW:HIGH"),
        (["age=a:b", "bmi=1:2"], "write NAME=LOW:HIGH"),
        (["agee=0:1", "bmi=1:2"], "Did you mean 'age'"),
        (["age=0:1", "age=0:2", "bmi=1:2"], "of age twice"),
    ],
)
def test_bounds_that_are_none_are_said(given, said):
    """One message each."""
    with pytest.raises(UserError, match=said):
        request.parse_bounds(given, ["age", "bmi"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no feature is sensitive"),
        (["agee"], "Did you mean"),
        (["a", "a"], "twice"),
    ],
)
def test_features_that_are_none_are_said(names, said):
    """One message each."""
    with pytest.raises(UserError, match=said):
        request.sensitive_columns(names, ["age", "a"])


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 1e-9])
def test_an_epsilon_that_is_none_is_said(value):
    """Zero, negative, no number, without end, too small."""
    with pytest.raises(UserError, match="epsilon is"):
        request.check_epsilons([1, value])


def test_records_are_numbers():
    """As text, as numbers, in the order asked for."""
    table = {"b": ["1", " 2.5"], "a": [3, 4.0], "c": ["x", "y"]}
    found = records.model_matrix(table, ["a", "b"], "file")
    np.testing.assert_array_equal(found, [[3, 1], [4, 2.5]])


def test_a_text_is_its_place_among_those_that_are_known():
    """One that is not known is refused, and the nearest is named."""
    table, texts = {"job": ["private", " govt"]}, {"job": ("govt", "private")}
    np.testing.assert_array_equal(
        records.model_matrix(table, ["job"], "file", texts), [[1], [0]]
    )
    with pytest.raises(UserError, match=r"such as 'privat'\. Did you mean 'private'"):
        records.model_matrix({"job": ["privat"]}, ["job"], "file", texts)


def test_every_problem_of_a_table_is_said_at_once():
    """Gaps and text apart, with counts and the column."""
    table = {"age": ["1", "", "NA", None], "job": ["a", "b", "c", "1"], "x": [1] * 4}
    with pytest.raises(UserError) as said:
        records.model_matrix(table, ["age", "job", "xx"], "people.csv")
    messages = [problem.message for problem in said.value.problems]
    assert len(messages) == 3
    assert "no column 'xx'. Did you mean 'x'" in messages[0]
    assert "people.csv: age has 3 gaps in 4 records" in messages[1]
    assert "job holds 3 values that are no finite numbers, such as 'a'" in messages[2]
    with pytest.raises(UserError, match="no record"):
        records.model_matrix({"age": []}, ["age"], "people.csv")


def test_what_lies_beyond_is_moved_and_counted():
    """Only the sensitive columns; what lies inside is left alone."""
    given = np.array([[-5.0, 7.0], [50.0, 7.0], [101.0, 7.0]])
    found, notes = records.clip_records(
        given, [0], np.array([[0.0, 100.0]]), ["age", "b"]
    )
    np.testing.assert_array_equal(found, [[0, 7], [50, 7], [100, 7]])
    assert notes == ("age: 2 of 3 records lie beyond 0:100 and were moved to the edge",)
    assert (
        records.clip_records(found, [0], np.array([[0.0, 100.0]]), ["age", "b"])[1]
        == ()
    )


def test_labels_are_places_of_classes():
    """However a file writes a number; or by the value that is the second class."""
    same = records.label_codes(["1", 1.0, "0"], "ill", [0, 1], None)
    assert same.tolist() == [1, 1, 0]
    said = records.label_codes(["Yes", "No", "No"], "ill", [0, 1], "Yes")
    assert said.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("cells", "classes", "positive", "said"),
    [
        (["0", ""], [0, 1], None, "1 gaps in 2 records"),
        (["Yes", "No"], [0, 1], None, "none of the classes: 0, 1"),
        (["Yes", "No"], [0, 1], "yes", "--positive yes is none of ill"),
        (["0", "1"], [0, 1, 2], "1", "--positive is for two classes"),
    ],
)
def test_labels_that_are_none_are_said(cells, classes, positive, said):
    """One message each."""
    with pytest.raises(UserError, match=said):
        records.label_codes(cells, "ill", classes, positive)


def test_groups_are_few():
    """A column of numbers without end is no group; a gap is none."""
    assert records.group_names(["f", "m"], "sex").tolist() == ["f", "m"]
    with pytest.raises(UserError, match="30 different values"):
        records.group_names(list(range(30)), "age")
    with pytest.raises(UserError, match="gaps"):
        records.group_names(["f", None], "sex")
