"""A classifier from codes: it learns, says what it spent, and sees only codes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote import Budget, PrivateLabelClassifier, encode
from curvote.systems.labels.method import classifier

Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 900 records around three centres, and their classes as text."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, 3, 900)
    centres = np.array([[0, 2], [2, 0], [-2, -1]])
    x = centres[places] + rng.normal(size=(900, 2)) / 2
    return x, np.array(["aa", "iy", "sh"])[places]


LEARNERS = [
    "auto",
    "knn",
    "spectral",
    "ridge",
    "likelihood",
    RandomForestRegressor(30, min_samples_leaf=10),
    KNeighborsRegressor(60),
    Ridge(),
    MLPRegressor(hidden_layer_sizes=[8], max_iter=60, solver="lbfgs", alpha=1.0),
    OneVsRestClassifier(LogisticRegression()),
    MultiOutputClassifier(LogisticRegression()),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.filterwarnings("ignore:lbfgs failed:sklearn.exceptions.ConvergenceWarning")
def test_every_kind_of_learner_learns_from_codes(
    learner: Any, scaled: bool, data: Data
) -> None:
    """Alone, or as the last step of a Pipeline; probabilities sum to 1."""
    x, y = data
    codes = encode(y, epsilon=2.0, encoder="vector", random_state=1)
    if scaled and isinstance(learner, str):
        made: Any = make_pipeline(
            StandardScaler(), PrivateLabelClassifier(learner, 2.0, random_state=0)
        )
    else:
        inner = make_pipeline(StandardScaler(), learner) if scaled else learner
        made = PrivateLabelClassifier(inner, 2.0, random_state=0)
    made.fit(x, codes)
    proba = made.predict_proba(x)
    assert (made.predict(x) == y).mean() > 0.9
    assert proba.sum(axis=1) == pytest.approx(np.ones(900))
    assert (proba >= 0).all()


def test_plain_labels_are_asked_once_and_counted(data: Data) -> None:
    """Each fit draws anew; codes were paid for where they were drawn."""
    x, y = data
    made = PrivateLabelClassifier("ridge", 0.5)
    assert made.fit(x, encode(y, epsilon=0.5)).spent_ is None
    assert made.private_ is None
    assert made.fit(x, y).spent_ == Budget(0.5)
    assert made.fit(x, y).spent_ == Budget(1)
    assert made.private_
    assert not clone(made).set_params(random_state=0).fit(x, y).private_
    assert not made.set_params(random_state=0).fit(x, y).private_
    kept = pickle.loads(pickle.dumps(made)).set_params(random_state=None)
    assert not kept.fit(x, y).private_
    assert clone(made).spent_ is None


def test_a_failure_after_the_draw_has_counted(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever saw the codes saw them, though no classifier came of it."""

    def fails(*_: object) -> None:
        raise RuntimeError("the server is gone")

    made = PrivateLabelClassifier("ridge")
    monkeypatch.setattr(classifier, "left_out_votes", fails)
    with pytest.raises(RuntimeError, match="gone"):
        made.fit(*data)
    assert made.spent_ == Budget(1)
    with pytest.raises(NotFittedError):
        made.predict(data[0])


@pytest.mark.parametrize("learner", ["auto", Ridge()])
def test_nothing_but_the_codes_enters(learner: Any, data: Data) -> None:
    """True labels altered after encoding: the same model, bit by bit."""
    x, y = data
    given = y.copy()
    codes = encode(given, epsilon=1.0, random_state=3)
    first = PrivateLabelClassifier(learner, random_state=5).fit(x, codes)
    given[:] = given[::-1].copy()
    again = PrivateLabelClassifier(learner, random_state=5).fit(x, codes)
    assert np.array_equal(first.predict_proba(x), again.predict_proba(x))
    assert first.learner_.chosen_ == again.learner_.chosen_
    assert np.array_equal(first.share_, again.share_)


def test_a_seed_repeats_and_the_system_does_not(data: Data) -> None:
    """``random_state=None`` takes the labels' noise from the operating system."""
    x, y = data
    seeded = [
        PrivateLabelClassifier("ridge", random_state=4).fit(x, y).share_ for _ in "ab"
    ]
    system = [PrivateLabelClassifier("ridge").fit(x, y).share_ for _ in "ab"]
    assert np.array_equal(*seeded)
    assert not np.array_equal(*system)


def test_shares_come_with_their_error(data: Data) -> None:
    """Unbiased estimates: within 4 standard errors, and a class that nobody has."""
    x, y = data
    classes = ["aa", "iy", "never", "sh"]
    made = PrivateLabelClassifier("ridge", 3.0, classes=classes, random_state=0)
    made.fit(x, y)
    true = np.mean(y[:, None] == np.array(classes), axis=0)
    assert list(made.classes_) == classes
    assert (abs(made.share_ - true) < 4 * made.share_se_).all()
    assert made.predict_proba(x).shape == (900, 4)


def test_pandas_categories_keep_their_order(data: Data) -> None:
    """Unused ones are classes too."""
    x, y = data
    given = pd.Series(pd.Categorical(y, ["sh", "iy", "never", "aa"]))
    made = PrivateLabelClassifier("ridge", 3.0, random_state=0).fit(x, given)
    assert list(made.classes_) == ["sh", "iy", "never", "aa"]
    assert made.score(x, y) > 0.9


def test_balanced_decisions_find_rare_classes() -> None:
    """More of the rare ones' records are found, fewer records in all."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [5400, 600])
    x = y[:, None] * 1.5 + rng.normal(size=(6000, 1))
    codes = encode(y, random_state=0)
    plain, even = (
        PrivateLabelClassifier("ridge", decide=decide, random_state=0).fit(x, codes)
        for decide in ("accuracy", "balanced")
    )
    assert np.array_equal(plain.predict_proba(x), even.predict_proba(x))
    found = [(one.predict(x) == y)[y == 1].mean() for one in (plain, even)]
    assert found[1] > found[0] + 0.2
    assert plain.score(x, y) > even.score(x, y)


def test_calibration_is_chosen_by_the_codes_and_can_be_left_out(data: Data) -> None:
    """An exponent of 1 to 8; without it votes are put on the simplex."""
    x, y = data
    codes = encode(y, epsilon=1.0, random_state=0)
    made = PrivateLabelClassifier("knn", random_state=0).fit(x, codes)
    assert made.exponent_ in range(1, 9)
    plain = clone(made).set_params(calibrate=False).fit(x, codes)
    assert plain.exponent_ is None
    surest = made.predict_proba(x).max(axis=1).mean()
    assert plain.predict_proba(x).max(axis=1).mean() < surest


def test_left_out_votes_are_taken_for_calibration_and_balance_only(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost a pass over all training records."""
    taken: list[object] = []
    passing = classifier.left_out_votes
    monkeypatch.setattr(
        classifier,
        "left_out_votes",
        lambda *args: (taken.append(args[0]), passing(*args))[1],
    )
    for calibrate, decide in (
        (False, "accuracy"),
        (False, "balanced"),
        (True, "accuracy"),
    ):
        before = len(taken)
        PrivateLabelClassifier("knn", calibrate=calibrate, decide=decide).fit(*data)
        assert (len(taken) > before) == (calibrate or decide == "balanced")


def test_further_records_join_the_graph(data: Data) -> None:
    """Public records without a code; a column more or less is refused."""
    x, y = data
    codes = encode(y[:300], epsilon=2.0, random_state=0)
    made = PrivateLabelClassifier("spectral", 2.0, random_state=0)
    more = made.fit(x[:300], codes, unlabelled=x[300:])
    assert more.score(x[300:], y[300:]) > 0.9
    with pytest.raises(ValueError, match="3 features"):
        made.fit(x[:300], codes, unlabelled=np.zeros((5, 3)))


@pytest.mark.parametrize("encoder", ["auto", "vector", "rr", "alibi", "lp_2st"])
def test_every_encoder_plays_the_clients(encoder: str, data: Data) -> None:
    """By any of its names; the codes' own is told."""
    x, y = data
    made = PrivateLabelClassifier("ridge", 3.0, encoder=encoder, random_state=0)
    assert made.fit(x, y).score(x, y) > 0.8
    assert made.spent_ == Budget(3)
    assert made.encoder_ != encoder or encoder == "alibi"


def test_true_labels_in_the_form_of_codes_are_learned_from(data: Data) -> None:
    """For a study's clean rows: no epsilon, nothing spent."""
    from curvote.labels import Codes

    x, y = data
    made = PrivateLabelClassifier("knn", float("inf"), encoder="none", random_state=0)
    assert made.fit(x, Codes.plain(y)).score(x, y) > 0.95
    assert made.spent_ is None
