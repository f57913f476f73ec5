"""What trees are read behind and with: scalers, categories, gaps; the refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn import preprocessing
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from curvote.base.errors import UserError
from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.trees import cells as axes_module
from curvote.systems.utility.method.engines.trees import engine
from curvote.systems.utility.method.engines.trees.engine import Trees, cell_counts
from tests.utility.models_of import forest, stroke_like
from tests.utility.trees_of import answered, asked, corners, fitted, predicted, read

SCALERS = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.RobustScaler(),
    make_pipeline(preprocessing.MaxAbsScaler(), preprocessing.StandardScaler()),
]


def behind(*steps: Any) -> Question:
    """Return the question of a forest behind steps, fitted to people."""
    from sklearn.base import clone

    given = stroke_like()
    trees = ExtraTreesClassifier(5, random_state=1)
    model = make_pipeline(*(clone(step) for step in steps), trees)
    return asked(model.fit(given.X, given.y), "stroke", n=3)


def wrong_cells(question: Question) -> int:
    """Return at how many corners of cells the cells and the model differ."""
    surface, wrong = read(question), 0
    for i in range(len(question.records)):
        points = corners(surface, 400, seed=i)
        expected = predicted(question, i, points)
        wrong += int((answered(surface, i, points) != expected).sum())
    return wrong


@pytest.mark.parametrize("scaler", SCALERS, ids=lambda each: type(each).__name__)
def test_scalers_are_undone_to_the_last_float(scaler: Any) -> None:
    """Cuts are found in the scaler's own arithmetic: subtraction, division, float32."""
    assert wrong_cells(behind(scaler)) == 0


def test_cuts_mapped_back_by_a_formula_are_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken twin: the scaler's inverse in float64."""
    question = behind(preprocessing.StandardScaler())
    scaler = question.model[0]

    def inverted(given: Question, *others: Any) -> np.ndarray:
        (_, column), thresholds = others[2], others[3]
        return thresholds * scaler.scale_[column] + scaler.mean_[column]

    monkeypatch.setattr(axes_module, "_bisect_cuts", inverted)
    assert wrong_cells(question) > 0


def test_other_columns_may_be_encoded_in_any_way() -> None:
    """One-hot columns beside scaled ones: the record decides those splits."""
    columns = ColumnTransformer(
        [
            ("hot", preprocessing.OneHotEncoder(), [1, 2, 3]),
            ("scaled", preprocessing.StandardScaler(), [0, 4, 5]),
        ]
    )
    assert wrong_cells(behind(columns)) == 0


def test_histograms_read_categories_and_gaps_of_other_columns() -> None:
    """Categories, unknown ones, and missing values take their sides."""
    given = stroke_like(600)
    X = given.X.copy()
    X[:, 1] = X[:, 4] // 40
    X[::7, 4] = np.nan
    model = HistGradientBoostingClassifier(
        max_iter=12, categorical_features=[1, 3], random_state=1
    ).fit(X, given.y)
    records = X[:8].copy()
    records[0, 1], records[1, 4], records[2, 3] = 77, np.nan, np.nan
    assert wrong_cells(Question(model, records, given.sensitive, given.bounds)) == 0


def test_trees_read_gaps_of_other_columns() -> None:
    """A forest fitted to gaps sends them as it learnt."""
    given = stroke_like()
    X = given.X.copy()
    X[::5, 4] = np.nan
    model = RandomForestClassifier(8, random_state=1).fit(X, given.y)
    assert wrong_cells(Question(model, X[:6], given.sensitive, given.bounds)) == 0


def test_classes_may_have_any_names() -> None:
    """Answers are places in ``classes_``, of near ties as well."""
    given = stroke_like()
    names = np.array(["yes", "no"])[given.y]
    model = RandomForestClassifier(9, max_depth=3, random_state=1).fit(given.X, names)
    assert wrong_cells(asked(model, "stroke")) == 0


def refusals() -> dict[str, tuple[Any, str]]:
    """Return models that are no sums of leaves over thresholds, and words why."""
    given = stroke_like()
    X, y = given.X, given.y
    first = LogisticRegression(max_iter=5000)
    named = HistGradientBoostingClassifier(max_iter=9, categorical_features=[0])
    X_named = np.column_stack([X[:, 0] // 20, X[:, 1:]])
    mixed = make_pipeline(PCA(4), DecisionTreeClassifier())
    bent = make_pipeline(preprocessing.PowerTransformer(), DecisionTreeClassifier())
    return {
        "linear": (first.fit(X, y), "no ensemble of trees"),
        "clusters": (KMeans(2, n_init=1).fit(X), "no ensemble of trees"),
        "mixed": (mixed.fit(X, y), "mixes sensitive"),
        "named": (named.fit(X_named, y), "by categories"),
        "first": (
            GradientBoostingClassifier(n_estimators=2, init=first).fit(X, y),
            "first guess",
        ),
        "several": (
            DecisionTreeClassifier().fit(X, np.column_stack([y, y])),
            "several questions",
        ),
        "lone": (DecisionTreeClassifier().fit(X, np.zeros(len(X))), "one class only"),
        "boosted": (AdaBoostClassifier(first, n_estimators=2).fit(X, y), "no decision"),
        "bent": (bent.fit(X, y), "bends"),
    }


def test_what_is_no_sum_of_leaves_is_refused_with_the_reason() -> None:
    """Each reason is one sentence; making the surface all the same is an error."""
    for model, words in refusals().values():
        question = asked(model, "stroke")
        reason = Trees().refusal(question)
        assert reason is not None
        assert words in reason
        assert reason.endswith(".")
        with pytest.raises(UserError, match=re.escape(reason)):
            Trees().surface(question)


def test_cells_are_counted_as_they_would_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The count of each record is that of the sums which are made for it."""
    question, made = asked(fitted("forest", "stroke"), "stroke"), []
    real = engine.cells.cell_sums

    def noted(*given: Any) -> Any:
        total = real(*given)
        made.append(total[0].size)
        return total

    monkeypatch.setattr(engine.cells, "cell_sums", noted)
    counted = cell_counts(question)
    assert not made
    read(question)
    assert counted.tolist() == made


@pytest.mark.parametrize("limit", ["MOST_CELLS", "MOST_BYTES"])
def test_a_surface_that_would_not_fit_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """The reason names the number of cells, and what takes their place."""
    question = asked(forest(), "stroke")
    monkeypatch.setattr(engine.cells, "cell_sums", None)
    monkeypatch.setattr(engine, limit, 10)
    reason = Trees().refusal(question)
    assert reason is not None
    assert f"{cell_counts(question).sum():.3g} cells" in reason
    assert "draws take their place" in reason


def test_cells_are_counted_where_all_cuts_of_the_trees_would_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record reaches few of the trees' cuts: those that fit exactly are made."""
    question = asked(forest(), "stroke")
    total = int(cell_counts(question).sum())
    monkeypatch.setattr(engine, "MOST_CELLS", total)
    assert Trees().refusal(question) is None
    monkeypatch.setattr(engine, "MOST_CELLS", total - 1)
    assert Trees().refusal(question) is not None


@pytest.mark.parametrize("kind", ["forest", "boosting", "ada"])
def test_slabs_make_the_same_answers(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """However thin the slabs in which cells are made."""
    question = asked(fitted(kind, "digits"), "digits")
    whole = read(question)
    monkeypatch.setattr(engine, "SLAB_BYTES", 1000)
    thin = read(question)
    for i in range(5):
        points = corners(whole, 400, seed=i)
        assert (answered(thin, i, points) == answered(whole, i, points)).all()
    assert len(thin.boxes.answer) <= 2 * len(whole.boxes.answer)
