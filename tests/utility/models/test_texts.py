"""Encoders of text become encoders of numbers, and the model answers as before."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from curvote.systems.utility.method.engines.base import predict_batched
from curvote.systems.utility.method.models.records import code_texts, model_matrix

RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.uniform(20, 90, 120),
        "job": RNG.choice(["govt", "none", "private"], 120),
        "smokes": RNG.choice(["no", "yes"], 120),
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
def test_the_coded_model_answers_alike(encoder: object) -> None:
    """And the given one is left as it was."""
    columns = make_column_transformer(
        (StandardScaler(), ["age"]), (encoder, ["job", "smokes"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(PEOPLE, ILL)
    clean = model.predict(PEOPLE)
    made, texts = code_texts(model)
    assert texts == {"job": ("govt", "none", "private"), "smokes": ("no", "yes")}
    cells = {name: PEOPLE[name].tolist() for name in PEOPLE}
    rows = model_matrix(cells, list(PEOPLE), "people", texts)
    np.testing.assert_array_equal(predict_batched(made, rows), clean)
    np.testing.assert_array_equal(model.predict(PEOPLE), clean)
    assert 0 < clean.mean() < 1


def test_a_model_without_texts_is_itself() -> None:
    """Nothing is copied."""
    model = LogisticRegression().fit(PEOPLE[["age"]], ILL)
    assert code_texts(model) == (model, {})
