"""A classifier from codes: it learns, says what it spent, and sees only codes."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote import (
    Budget,
    PrivateLabelClassifier,
    PrivateSearchCV,
    UserError,
    encode,
)
from curvote.base.entropy import SeededEntropy
from curvote.labels import Codes
from curvote.systems.labels.codes.encoding import encode_in_two_rounds
from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.method import classifier
from curvote.systems.labels.method.classifier import break_ties, class_frequencies

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


X = np.arange(3000.0)[:, None]


def test_ties_fall_evenly_and_by_the_record() -> None:
    """Each of the largest as often; the same record the same class in any company."""
    proba = np.tile([0.4, 0.2, 0.4], (3000, 1))
    places = break_ties(proba, X, 7).argmax(axis=1)
    share = np.bincount(places, minlength=3) / 3000
    assert share == pytest.approx([0.5, 0, 0.5], abs=0.04)
    order = np.random.default_rng(0).permutation(3000)[:100]
    again = break_ties(proba[order], X[order], 7)
    assert np.array_equal(again.argmax(axis=1), places[order])
    assert again.sum(axis=1) == pytest.approx(np.ones(100))
    assert (break_ties(proba, X, 8).argmax(axis=1) != places).any()


def test_a_sum_in_another_order_is_a_tie_too() -> None:
    """Rounding decides nothing."""
    proba = np.tile([0.5 + 1e-12, 0.5 - 1e-12], (3000, 1))
    share = break_ties(proba, X, 0).argmax(axis=1).mean()
    assert share == pytest.approx(0.5, abs=0.04)


def test_what_is_no_tie_stays() -> None:
    """Not a digit moves, and the given array is left alone."""
    proba = np.random.default_rng(0).dirichlet(np.ones(4), size=3000)
    given = proba.copy()
    assert break_ties(proba, X, 0) == pytest.approx(given, abs=1e-15)
    assert np.array_equal(proba, given)


def test_no_class_counts_as_never() -> None:
    """Division needs a share above 0."""
    assert class_frequencies(np.array([[1.0, 0.0], [0.8, 0.2]])) == pytest.approx(
        [0.9, 0.1]
    )
    assert (class_frequencies(np.array([[1.0, 0.0]])) > 0).all()


K = np.array(["a", "b", "c"])


def asked(labels: np.ndarray, prior: np.ndarray) -> tuple[Codes, Codes]:
    """Return the codes of the first round and of both, records in reverse order."""
    order = np.arange(len(labels))[::-1]
    first, both = encode_in_two_rounds(
        *(labels, K, 2.0, SeededEntropy(0), order),
        lambda _first, _codes, second: prior[second],
    )
    return first, both


def test_each_client_answers_once_in_its_own_row() -> None:
    """The first half of the order under an even prior, the others under theirs."""
    labels = K[np.arange(7) % 3]
    prior = np.tile([0.98, 0.01, 0.01], (7, 1))
    first, both = asked(labels, prior)
    assert (len(first), len(both)) == (3, 7)
    assert np.array_equal(both.values[::-1][:3], first.values)
    assert both.prior is not None
    assert (both.prior[4:] == 1 / 3).all()
    assert np.array_equal(both.prior[:4], prior[:4])
    # A prior that is sure leaves one answer only: such a client says nothing.
    assert (both.values[:4] == 0).all()


def test_the_second_round_learns_from_the_codes_of_the_first_only() -> None:
    """What makes the prior is given rows and codes, never a label."""
    seen = []

    def prior(first: np.ndarray, codes: Codes, second: np.ndarray) -> np.ndarray:
        seen.append((first, codes, second))
        return np.full((len(second), 3), 1 / 3)

    labels = K[np.arange(40) % 3]
    noise = SeededEntropy(0)
    early, _ = encode_in_two_rounds(labels, K, 1.0, noise, np.arange(40), prior)
    ((first, codes, second),) = seen
    assert codes is early
    assert sorted([*first, *second]) == list(range(40))


def test_the_classifier_asks_in_two_rounds() -> None:
    """Where features tell the class, priors leave few answers; each spends epsilon."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1200)
    x = np.eye(3)[y] * 4 + rng.normal(size=(1200, 3))
    made = PrivateLabelClassifier("ridge", 2.0, encoder="lp_2st", random_state=0)
    assert made.fit(x, K[y]).score(x, K[y]) > 0.9
    assert made.spent_ == Budget(2.0)
    assert made.encoder_ == "rr_with_prior"


def test_one_client_makes_no_two_rounds() -> None:
    """Each round asks somebody."""
    with pytest.raises(UserError, match="two records or more; X has 1"):
        asked(K[:1], np.ones((1, 3)))


def votes(n=500, classes=5, seed=0):
    """Return noisy votes, some of them below 0."""
    return np.random.default_rng(seed).normal(0.2, 0.4, (n, classes))


@pytest.mark.parametrize("exponent", [1, 3, 8])
def test_probabilities_are_a_law_that_keeps_the_order(exponent):
    """Rows sum to 1, no class is impossible, the largest vote stays the largest."""
    given = votes()
    proba = smoothing.probabilities(given, exponent)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert (proba > 0).all()
    some = given.max(axis=1) > 0
    assert (proba.argmax(axis=1) == given.argmax(axis=1))[some].all()


def test_a_record_without_votes_is_uniform():
    """Where no vote is positive nothing is known."""
    assert smoothing.to_simplex(np.array([[-1.0, 0.0]])) == pytest.approx(0.5)
    assert smoothing.probabilities(np.zeros((1, 4)), 5) == pytest.approx(0.25)


@pytest.mark.parametrize("true", [1, 2, 4])
def test_the_exponent_is_found_from_codes(true):
    """Labels drawn by probabilities with a known exponent."""
    rng = np.random.default_rng(true)
    given = rng.dirichlet(np.full(5, 2.0), 20_000)
    proba = smoothing.probabilities(given, true)
    y = (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1).clip(max=4)
    codes = encode(y, np.arange(5), 2.0, "subset", true)
    assert smoothing.best_exponent(given, codes.likelihood())[0] == true


def test_the_likelihood_is_that_of_the_mixture():
    """One row by hand: the mean over classes of the code's likelihood."""
    proba, likely = np.array([[0.2, 0.8]]), np.array([[1.0, 0.25]])
    found = smoothing.log_likelihood(proba, likely)
    assert found == pytest.approx(np.log(0.2 + 0.2))
    assert smoothing.posterior(proba, likely) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", [PrivateLabelClassifier, PrivateSearchCV])
def test_the_tags_are_honest(kind: type[Any]) -> None:
    """A poor score is to be expected; without a seed nothing repeats."""
    tags = kind().__sklearn_tags__()
    assert tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    assert tags.non_deterministic
    assert not kind(random_state=0).__sklearn_tags__().non_deterministic
