"""Choosing by codes: honest scores, equals of the best, and the simplest of them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote import Budget, PrivateLabelClassifier, PrivateSearchCV, UserError, encode
from curvote.labels import private_score
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.knn import KNN, RidgeVotes
from curvote.systems.labels.learners.spectral import SpectralVotes
from curvote.systems.labels.method.search import CandidateScores, simplicity_order

Data = tuple[np.ndarray, np.ndarray]
BASE = PrivateLabelClassifier("knn", 1.0)
MANY = {"estimator": [KNN(k) for k in (3, 30, 120, 600)]}


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 1,500 records of four classes in the quarters of a plane."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    return x, (x[:, 0] > 0) + 2 * (x[:, 1] > 0)


@pytest.fixture(scope="module")
def codes(data: Data) -> Codes:
    """Return their codes at epsilon 1."""
    return encode(data[1], epsilon=1.0, random_state=1)


def searched(data: Data, codes: Codes, **given: Any) -> PrivateSearchCV:
    """Return a search on the records."""
    made = PrivateSearchCV(BASE, MANY, random_state=0).set_params(**given)
    return made.fit(data[0], codes)


@pytest.mark.parametrize(
    "scoring", ["likelihood", "accuracy", "balanced_accuracy", "brier", "log_loss"]
)
def test_it_finds_what_is_good(scoring: str, data: Data, codes: Codes) -> None:
    """Not 3 neighbours; and says how well each did."""
    found = searched(data, codes, scoring=scoring)
    assert found.best_params_["estimator"].k > 3
    assert found.score(*data) > 0.8
    table = pd.DataFrame(found.cv_results_)
    assert len(table) == 4
    assert (table.std_error_test_score > 0).all()
    assert table.rank_test_score.min() == 1
    best = table.mean_test_score[table.rank_test_score == 1].iloc[0]
    least = scoring in {"brier", "log_loss"}
    assert best == (table.mean_test_score.min if least else table.mean_test_score.max)()
    assert ("mean_test_accuracy" in table) == (scoring == "likelihood")


def test_the_score_is_of_that_very_model_on_codes_that_it_never_saw(
    data: Data, codes: Codes
) -> None:
    """Altered codes of the share held out change the score and nothing else."""
    found = searched(data, codes)
    held = found.held_out_
    assert len(held) == 300
    again = private_score(found.best_estimator_, data[0][held], codes[held])
    assert found.best_score_ == again
    values = codes.values.copy()
    values[held] = values[held][::-1]
    other = searched(
        data, Codes(values, codes.classes, 1.0, codes.encoder, codes.params)
    )
    for name, column in found.cv_results_.items():
        if name != "params":
            assert np.array_equal(column, other.cv_results_[name])
    x = data[0]
    assert np.array_equal(found.predict_proba(x), other.predict_proba(x))
    assert found.best_score_ != other.best_score_


def test_what_cannot_be_told_apart_is_said(data: Data, codes: Codes) -> None:
    """Two that are the same, and two that are not at all."""
    found = searched(data, codes, grid={"estimator": [KNN(60), KNN(60)]})
    assert not found.told_apart_.any()
    assert found.best_index_ == 0
    assert "2 of 2 candidates cannot be told from the best" in found.verdict_
    alone = searched(data, codes, grid={"estimator": [KNN(1), KNN(60)]})
    assert alone.verdict_ == "estimator=KNN(k=60) is better than the 1 others."
    assert alone.told_apart_.tolist() == [True, False]


def test_any_parameter_can_stand_in_the_grid(data: Data, codes: Codes) -> None:
    """Nested ones, several grids, and learners without left-out votes (folds)."""
    model = PrivateLabelClassifier(make_pipeline(StandardScaler(), Ridge()), 1.0)
    grid = [
        {"estimator__ridge__alpha": [1.0, 1e5]},
        {"estimator": [RidgeVotes()], "calibrate": [True, False]},
    ]
    found = PrivateSearchCV(model, grid, random_state=0).fit(data[0], codes)
    assert len(found.cv_results_["params"]) == 4
    assert found.score(*data) > 0.8


def test_the_default_grid_is_of_learners(data: Data, codes: Codes) -> None:
    """For an estimator that is `auto`; another is scored as it is."""
    found = PrivateSearchCV(random_state=0).fit(data[0], codes)
    names = [each["estimator"] for each in found.cv_results_["params"]]
    assert names == ["ridge", "knn", "likelihood", "spectral"]
    alone = PrivateSearchCV(BASE, random_state=0).fit(data[0], codes)
    assert alone.cv_results_["params"] == [{}]
    assert alone.verdict_ == "the model is the only candidate."


def test_plain_labels_are_asked_once(data: Data) -> None:
    """However many candidates; the seed of the search stays out of the classifier."""
    x, y = data
    names = np.array(["a", "b", "c", "d"])[y]
    frame = pd.DataFrame(x, columns=["one", "two"])
    found = PrivateSearchCV(BASE, MANY).fit(frame, names)
    assert found.spent_ == Budget(1.0)
    assert found.private_
    assert found.best_estimator_.random_state is None
    assert found.best_estimator_.spent_ is None
    turned = found.predict(frame[["two", "one"]])
    assert np.array_equal(turned, found.predict(frame))
    assert not PrivateSearchCV(BASE, MANY, random_state=1).fit(x, y).private_


def test_two_rounds_are_scored_by_the_first(data: Data) -> None:
    """Codes under a prior are biased: the share held out answered without one."""
    model = PrivateLabelClassifier("ridge", 2.0, encoder="lp_2st")
    found = PrivateSearchCV(model, random_state=0).fit(*data)
    assert found.best_score_.low < found.score(*data) < found.best_score_.high


@pytest.mark.parametrize("encoder", ["auto", "lp_2st"])
def test_labels_are_not_spent_on_a_score_that_says_nothing(encoder: str) -> None:
    """The share held out is judged before they are asked."""
    model = PrivateLabelClassifier("ridge", 0.1, encoder=encoder)
    made = PrivateSearchCV(model)
    with pytest.raises(UserError, match=r"20 of 100 labels.*in all"):
        made.fit(np.zeros((100, 2)), np.arange(100) % 3)
    assert made.spent_ is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grid": []}, "grid has no member"),
        ({"grid": {"estimator": []}}, "grid has no value for estimator"),
        ({"grid": {"estimatr": ["knn"]}}, "names 'estimatr'.*mean 'estimator'"),
        ({"grid": {"estimator": ["kmn"]}}, "Did you mean 'knn'"),
        ({"grid": {"epsilon": [2.0]}}, "epsilon 1, the model states 2"),
        ({"holdout": 0}, "holdout is 0"),
        ({"holdout": 1.5}, "holdout is 1.5"),
        ({"holdout": 0.01}, "15 of 1500 labels.* it takes 44 held-out .* 4400 in all"),
        ({"scoring": "acuracy"}, "Did you mean 'accuracy'"),
    ],
)
def test_what_is_refused_is_said(
    given: dict[str, Any], said: str, data: Data, codes: Codes
) -> None:
    """Before anything is learned."""
    with pytest.raises(ValueError, match=said):
        searched(data, codes, **given)


def test_the_score_is_honest_where_the_best_of_many_boasts() -> None:
    """Noise only: the best of 12 claims more than 1/4, the score held out does not."""
    grid = {"estimator": [KNN(k) for k in (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)]}
    rng = np.random.default_rng(5)
    claimed, honest = [], []
    for seed in range(12):
        x, y = rng.normal(size=(500, 2)), rng.integers(0, 4, 500)
        codes = encode(y, np.arange(4), 1.0, random_state=seed)
        made = PrivateSearchCV(BASE, grid, scoring="accuracy", random_state=seed)
        found = made.fit(x, codes)
        claimed.append(found.cv_results_["mean_test_score"].max())
        honest.append(found.best_score_.value)
    error = np.std(honest) / np.sqrt(12)
    assert abs(np.mean(honest) - 0.25) < 3 * error
    assert np.mean(claimed) > 0.25 + 0.08


def piped(alpha: float) -> Any:
    """Return ridge regression behind a scaler."""
    return make_pipeline(StandardScaler(), Ridge(alpha))


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([KNN(5), KNN(50), KNN(20)], [1, 2, 0]),
        ([SpectralVotes(30), SpectralVotes(10)], [1, 0]),
        ([RidgeVotes(1.0), RidgeVotes(100.0)], [1, 0]),
        ([KNeighborsRegressor(5), KNeighborsRegressor(9)], [1, 0]),
        ([piped(1), piped(10)], [1, 0]),
        (["spectral", "ridge", "knn"], [0, 1, 2]),
        (["ridge", KNN(5), RidgeVotes(1.0), KNN(50)], [0, 2, 3, 1]),
        ([KNN(), KNN()], [0, 1]),
    ],
)
def test_smoother_ones_come_first(candidates: list[Any], expected: list[int]) -> None:
    """Within a kind by its own number; kinds, and what has none, as in the grid."""
    found = simplicity_order(candidates)
    if expected == [0, 2, 3, 1]:  # a tuned ridge has no number
        assert sorted(found[:2]) == [0, 2]
        assert found[2:] == [3, 1]
    else:
        assert found == expected


NOISE = np.random.default_rng(0).normal(size=(3, 400))


def judged(means: list[float], sign: int = 1, own: float = 1.0) -> CandidateScores:
    """Return three candidates of those means; ``own`` is noise that is not shared."""
    models = [PrivateLabelClassifier(KNN(k)) for k in (5, 50, 20)]
    shared = 5 * NOISE[0]
    noise = shared + own * (NOISE - NOISE.mean(axis=1, keepdims=True))
    return CandidateScores(models, {"score": np.array(means)[:, None] + noise}, sign)


def test_the_simplest_of_those_near_the_best_is_taken() -> None:
    """The error of a difference of 400 is about .07: .02 is nothing, .5 is much."""
    found = judged([1.0, 0.98, 0.5])
    assert found.best_place == 0
    assert found.significantly_worse.tolist() == [False, False, True]
    assert found.simplest_place == 1
    assert judged([1.0, 0.5, 0.98]).simplest_place == 2


def test_noise_that_all_share_hides_nothing() -> None:
    """Codes are the same for all candidates: differences are of records, not means."""
    found = judged([1.0, 0.98, 0.97], own=1e-3)
    assert found.significantly_worse.tolist() == [False, True, True]
    assert (found.to_columns()["std_error_test_score"] > 0.1).all()


def test_of_losses_the_least_is_best() -> None:
    """And ranks first."""
    found = judged([1.0, 0.2, 0.6], sign=-1)
    assert found.best_place == 1
    assert found.to_columns()["rank_test_score"].tolist() == [3, 1, 2]
    assert (
        found.to_columns()["mean_test_score"][1]
        < found.to_columns()["mean_test_score"][0]
    )


def test_records_of_which_nothing_is_known_count_for_nothing() -> None:
    """NaN: a learner judged by a sample of the records."""
    found = judged([1.0, 0.98, 0.5])
    each = found.scores["score"].copy()
    each[1, 200:] = np.nan
    half = CandidateScores(found.models, {"score": each}, 1)
    assert half.to_columns()["mean_test_score"][1] == pytest.approx(
        each[1, :200].mean()
    )
    assert half.significantly_worse.tolist()[2]
